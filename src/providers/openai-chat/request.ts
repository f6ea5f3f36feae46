/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * messages: settings, tools, messages, then what is only this request's.
 */
import type { JsonObject, JsonSchema } from '../../core/json.ts';
import type { LLMRequest, ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { createHistoryWriter } from '../shared/history-writer.ts';
import { nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { chatHistory } from './chat-history.ts';
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
  /** Writes a request; costs what is new in it. */
  write(request: LLMRequest): RequestText;
}

interface WrittenTools {
  readonly json: string;
  readonly names: ToolNames;
}

// No model writes more in one reply; a larger wish is answered with an error by some servers.
const MAX_OUTPUT_TOKENS = 128_000;

/** Makes a writer. */
export function createRequestWriter(config: OpenAIChatConfig, target: () => WireTarget): RequestWriter {
  const { options, maxTokensField } = config;
  // Without its closing brace: fields follow.
  const head = JSON.stringify(config.fixedFields).slice(0, -1);
  const history = createHistoryWriter(chatHistory(target, config.idRules));
  const writtenTools = new WeakMap<readonly ToolDefinition[], WrittenTools>();

  function toolsOf(tools: readonly ToolDefinition[]): WrittenTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const names = nameTools(tools);
    const written = { json: JSON.stringify(tools.map((tool) => toWireTool(tool, names))), names };
    writtenTools.set(tools, written);
    return written;
  }

  function tailFields(request: LLMRequest, names: ToolNames): JsonObject {
    const { toolChoice = 'auto', responseSchema } = request;
    const maxTokens = request.maxOutputTokens ?? options.maxOutputTokens;
    const ceiling = options.capabilities?.maxOutputTokens ?? MAX_OUTPUT_TOKENS;
    return {
      ...(request.tools.length > 0 && toolChoice !== 'auto' && { tool_choice: toWireChoice(toolChoice, names) }),
      ...(responseSchema !== undefined && { response_format: toResponseFormat(responseSchema) }),
      ...(maxTokens !== undefined && { [maxTokensField]: Math.max(1, Math.min(maxTokens, ceiling)) }),
    };
  }

  return {
    write(request) {
      const { systemPrompt, messages, tools } = request;
      const { json, names } = tools.length === 0 ? { json: '', names: nameTools(tools) } : toolsOf(tools);
      const system = isBlank(systemPrompt) ? '' : writeSystem(systemPrompt);
      const { sink, tail: ownMessages } = history.write(messages);
      const tail = JSON.stringify(tailFields(request, names)).slice(1);
      const toolField = json === '' ? '' : `,"tools":${json}`;
      return {
        body: `${head}${toolField},"messages":[${sink.render(system, ownMessages)}]${tail === '}' ? '' : ','}${tail}`,
        toolName: names.fromWire,
      };
    },
  };
}

function toWireTool({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames): JsonObject {
  return {
    type: 'function',
    function: { name: toWire(name), description: cleanText(description), parameters: toToolSchema(inputSchema) },
  };
}

function toWireChoice(choice: ToolChoice, { toWire }: ToolNames): string | JsonObject {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: toWire(choice.name) } };
}

function toResponseFormat(schema: JsonSchema): JsonObject {
  return { type: 'json_schema', json_schema: { name: 'answer', schema } };
}
