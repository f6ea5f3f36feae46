/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * messages: settings, tools, messages, then what is only this request's.
 */
import type { JsonObject, JsonSchema } from '../../core/json.ts';
import type { LLMRequest, ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { renamedTools, toWireName } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { createHistoryWriter } from './history-writer.ts';
import { type WireTarget, writeSystem } from './message-wire.ts';
import type { OpenAIChatConfig } from './options.ts';

/** A request, ready to be sent. */
export interface WrittenRequest {
  /** JSON text. */
  readonly body: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Writes the requests of one adapter. */
export interface RequestWriter {
  /** Writes a request; costs what is new in it. */
  write(request: LLMRequest): WrittenRequest;
}

interface WrittenTools {
  readonly json: string;
  readonly renamed: ReadonlyMap<string, string>;
}

// No model writes more in one reply; a larger wish is answered with an error by some servers.
const MAX_OUTPUT_TOKENS = 128_000;

/** Makes a writer. */
export function createRequestWriter(config: OpenAIChatConfig, target: () => WireTarget): RequestWriter {
  const { options, maxTokensField } = config;
  // Without its closing brace: fields follow.
  const head = JSON.stringify(config.fixedFields).slice(0, -1);
  const history = createHistoryWriter(target, config.idRules);
  const writtenTools = new WeakMap<readonly ToolDefinition[], WrittenTools>();

  function toolsOf(tools: readonly ToolDefinition[]): WrittenTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const written = { json: JSON.stringify(tools.map(toWireTool)), renamed: renamedTools(tools) };
    writtenTools.set(tools, written);
    return written;
  }

  function tailFields(request: LLMRequest): JsonObject {
    const { toolChoice = 'auto', responseSchema } = request;
    const maxTokens = request.maxOutputTokens ?? options.maxOutputTokens;
    const ceiling = options.capabilities?.maxOutputTokens ?? MAX_OUTPUT_TOKENS;
    return {
      ...(request.tools.length > 0 && toolChoice !== 'auto' && { tool_choice: toWireChoice(toolChoice) }),
      ...(responseSchema !== undefined && { response_format: toResponseFormat(responseSchema) }),
      ...(maxTokens !== undefined && { [maxTokensField]: Math.max(1, Math.min(maxTokens, ceiling)) }),
    };
  }

  return {
    write(request) {
      const { systemPrompt, messages, tools } = request;
      const { json, renamed } = tools.length === 0 ? { json: '', renamed: new Map<string, string>() } : toolsOf(tools);
      const system = isBlank(systemPrompt) ? '' : `,${writeSystem(systemPrompt)}`;
      const list = (system + history.write(messages)).slice(1);
      const tail = JSON.stringify(tailFields(request)).slice(1);
      const toolField = json === '' ? '' : `,"tools":${json}`;
      return {
        body: `${head}${toolField},"messages":[${list}]${tail === '}' ? '' : ','}${tail}`,
        toolName: (wireName) => renamed.get(wireName) ?? wireName,
      };
    },
  };
}

function toWireTool({ name, description, inputSchema }: ToolDefinition): JsonObject {
  return {
    type: 'function',
    function: { name: toWireName(name), description: cleanText(description), parameters: toToolSchema(inputSchema) },
  };
}

function toWireChoice(choice: ToolChoice): string | JsonObject {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: toWireName(choice.name) } };
}

function toResponseFormat(schema: JsonSchema): JsonObject {
  return { type: 'json_schema', json_schema: { name: 'answer', schema } };
}
