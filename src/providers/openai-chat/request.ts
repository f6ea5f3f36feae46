/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * messages: settings, tools, messages, then what is only this request's. A field that the host gives itself takes the
 * place of ours.
 */
import type { JsonObject, JsonSchema } from '../../core/json.ts';
import type { LLMRequest, ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { assertMessages } from '../shared/assert-messages.ts';
import { createHistoryWriter } from '../shared/history-writer.ts';
import type { ToolNames } from '../shared/tool-names.ts';
import { isStrictSchema } from '../shared/tool-schema-strict.ts';
import { cleanJson, isBlank } from '../shared/wire-text.ts';
import { chatHistory } from './chat-history.ts';
import { type ChatTools, writeTools } from './chat-tools.ts';
import { type WireTarget, writeSystem } from './message-wire.ts';
import type { OpenAIChatConfig } from './options.ts';

/** A request's text. */
export interface RequestText {
  /** JSON text. */
  readonly body: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Writes the requests of one adapter. */
export interface RequestWriter {
  /**
   * Writes a request; costs what is new in it.
   *
   * @throws {@link index.LLMError | LLMError} for a history that says nothing.
   */
  write(request: LLMRequest): RequestText;
}

// No model writes more in one reply; a larger wish is answered with an error by some servers.
const MAX_OUTPUT_TOKENS = 128_000;

/** Makes a writer. */
export function createRequestWriter(config: OpenAIChatConfig, target: () => WireTarget): RequestWriter {
  const { options, maxTokensField, dialect } = config;
  // Without its closing brace: fields follow.
  const head = JSON.stringify(cleanJson(config.fixedFields)).slice(0, -1);
  const history = createHistoryWriter(chatHistory({ target, idRules: config.idRules, userMayFollowTool: dialect !== 'mistral' }));
  const { body = {}, serverTools = [] } = options;
  const writtenTools = new WeakMap<readonly ToolDefinition[], ChatTools>();

  function toolsOf(tools: readonly ToolDefinition[]): ChatTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const written = writeTools(tools, dialect, serverTools);
    writtenTools.set(tools, written);
    return written;
  }

  function tailFields(request: LLMRequest, { json, names }: ChatTools): JsonObject {
    const { toolChoice = 'auto', responseSchema } = request;
    const maxTokens = request.maxOutputTokens ?? options.maxOutputTokens;
    const ceiling = options.capabilities?.maxOutputTokens ?? MAX_OUTPUT_TOKENS;
    const fields: JsonObject = {
      ...(json !== '' && toolChoice !== 'auto' && { tool_choice: toWireChoice(toolChoice, names) }),
      ...(responseSchema !== undefined && { response_format: toResponseFormat(responseSchema) }),
      ...(maxTokens !== undefined && { [maxTokensField]: Math.max(1, Math.min(maxTokens, ceiling)) }),
    };
    return Object.fromEntries(Object.entries(fields).filter(([name]) => !isGiven(name)));
  }

  function isGiven(name: string): boolean {
    return Object.hasOwn(body, name);
  }

  return {
    write(request) {
      const { systemPrompt, messages, tools } = request;
      const written = toolsOf(tools);
      const system = isBlank(systemPrompt) ? '' : writeSystem(systemPrompt);
      const { sink, tail: ownMessages } = history.write(messages);
      // A system prompt alone is a request that some make on purpose.
      if (messages.length > 0 || system === '') assertMessages(sink.render('', ownMessages), config.provider);
      const tail = JSON.stringify(tailFields(request, written)).slice(1);
      const toolField = written.json === '' || isGiven('tools') ? '' : `,"tools":${written.json}`;
      return {
        body: `${head}${toolField},"messages":[${sink.render(system, ownMessages)}]${tail === '}' ? '' : ','}${tail}`,
        toolName: written.names.fromWire,
      };
    },
  };
}

function toWireChoice(choice: ToolChoice, { toWire }: ToolNames): string | JsonObject {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: toWire(choice.name) } };
}

function toResponseFormat(schema: JsonSchema): JsonObject {
  return { type: 'json_schema', json_schema: { name: 'answer', schema: cleanJson(schema), ...(isStrictSchema(schema) && { strict: true }) } };
}
