/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * input: settings, instructions, tools, input, then what is only this request's. Of an incremental request the input is
 * what is new.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import type { LLMRequest, ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { assertMessages } from '../shared/assert-messages.ts';
import { definedFields } from '../shared/options.ts';
import { isJsonObject } from '../shared/own-data.ts';
import type { ToolNames } from '../shared/tool-names.ts';
import { isStrictSchema } from '../shared/tool-schema-strict.ts';
import { cleanJson, cleanText, isBlank } from '../shared/wire-text.ts';
import type { OpenAIResponsesConfig } from './options.ts';
import { type WireTools, writeTools } from './wire-tools.ts';

/** What a request says beside its settings. */
export interface RequestContent {
  readonly request: LLMRequest;
  /** JSON of the input's items, separated by commas. */
  readonly input: string;
  /** The response that the input goes on from; undefined if it is whole. */
  readonly previousResponseId: string | undefined;
  /** Whether to ask for the thinking in encrypted form. */
  readonly asksEncrypted: boolean;
}

/** A request's text. */
export interface RequestText {
  /** JSON text. */
  readonly body: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

// The server refuses less.
const MIN_OUTPUT_TOKENS = 16;
// No model writes more in one reply.
const MAX_OUTPUT_TOKENS = 128_000;

const ENCRYPTED = ['reasoning.encrypted_content'];

/**
 * Makes a function that puts requests together; it costs what is new in them. It throws an `LLMError` for a history that
 * says nothing.
 */
export function createRequestWriter(config: OpenAIResponsesConfig): (content: RequestContent) => RequestText {
  const { options, fixedFields } = config;
  const { body = {}, serverTools = [] } = options;
  // Fields with a place of their own behind the settings.
  const { text: givenText, ...givenFields } = body;
  const writtenTools = new WeakMap<readonly ToolDefinition[], WireTools>();
  const plainHead = toHead({});
  const encryptedHead = toHead({ include: ENCRYPTED });

  /** The settings, without the closing brace: fields follow. */
  function toHead(more: JsonObject): string {
    return JSON.stringify(definedFields({ ...fixedFields, ...more }, givenFields)).slice(0, -1);
  }

  function toolsOf(tools: readonly ToolDefinition[]): WireTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const written = writeTools(tools, serverTools);
    writtenTools.set(tools, written);
    return written;
  }

  function isGiven(name: string): boolean {
    return Object.hasOwn(body, name);
  }

  /** A field with its comma; what the host gave stands in the settings. */
  function field(name: string, json: string): string {
    return json === '' || isGiven(name) ? '' : `,"${name}":${json}`;
  }

  function toText({ responseSchema }: LLMRequest): JsonValue | undefined {
    if (isGiven('text') && !isJsonObject(givenText)) return givenText;
    const format = responseSchema === undefined ? {} : { format: toFormat(responseSchema) };
    const text: JsonObject = { ...(isJsonObject(givenText) && givenText), ...format };
    return Object.keys(text).length === 0 ? undefined : text;
  }

  function tailFields(request: LLMRequest, { json, names }: WireTools): JsonObject {
    const { toolChoice = 'auto' } = request;
    const maxTokens = request.maxOutputTokens ?? options.maxOutputTokens;
    const ceiling = options.capabilities?.maxOutputTokens ?? MAX_OUTPUT_TOKENS;
    const fields: Record<string, JsonValue | undefined> = {
      tool_choice: json !== '' && toolChoice !== 'auto' ? toWireChoice(toolChoice, names) : undefined,
      max_output_tokens: maxTokens === undefined ? undefined : Math.max(MIN_OUTPUT_TOKENS, Math.min(maxTokens, ceiling)),
    };
    const own = Object.entries(fields).filter(([name]) => !isGiven(name));
    return definedFields({ ...Object.fromEntries(own), text: toText(request) }, undefined);
  }

  return ({ request, input, previousResponseId, asksEncrypted }) => {
    const tools = toolsOf(request.tools);
    const instructions = isBlank(request.systemPrompt) ? '' : JSON.stringify(cleanText(request.systemPrompt));
    // Instructions alone, or a prompt that the server keeps, are requests that some make on purpose.
    if (!isGiven('prompt') && (request.messages.length > 0 || instructions === '')) assertMessages(input, config.provider);
    const previous = previousResponseId === undefined ? '' : JSON.stringify(previousResponseId);
    const head = (asksEncrypted ? encryptedHead : plainHead) + field('instructions', instructions) + field('tools', tools.json);
    const tail = JSON.stringify(tailFields(request, tools)).slice(1);
    return {
      body: `${head}${field('previous_response_id', previous)},"input":[${input}]${tail === '}' ? '' : ','}${tail}`,
      toolName: tools.names.fromWire,
    };
  };
}

function toFormat(schema: JsonSchema): JsonObject {
  return { type: 'json_schema', name: 'answer', schema: cleanJson(schema), ...(isStrictSchema(schema) && { strict: true }) };
}

function toWireChoice(choice: ToolChoice, { toWire }: ToolNames): string | JsonObject {
  return typeof choice === 'string' ? choice : { type: 'function', name: toWire(choice.name) };
}
