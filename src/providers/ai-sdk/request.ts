/** Request: the call options that an AI SDK model is asked with. */
import { cloneJson, isRecord, type JsonSchema } from '../../core/json.ts';
import type { LLMRequest, ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { assertMessages } from '../shared/assert-messages.ts';
import { createHistoryWriter } from '../shared/history-writer.ts';
import { nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import type { SupportedUrls } from './model.ts';
import type { AiSdkConfig } from './options.ts';
import { promptFormat } from './prompt.ts';
import type { PromptMessage, PromptPart } from './prompt-types.ts';

/** A request, ready to be made. */
export interface CallRequest {
  /** All call options but the signal. */
  readonly options: object;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Writes the requests of one adapter. */
export interface RequestWriter {
  /** Writes a request; costs what is new in it. @param supportedUrls - What the model's server fetches itself. */
  write(request: LLMRequest, supportedUrls: SupportedUrls): CallRequest;
}

interface WrittenTools {
  readonly list: readonly PromptPart[];
  readonly names: ToolNames;
}

// No model writes more in one reply; a larger wish is answered with an error by some servers.
const MAX_OUTPUT_TOKENS = 128_000;

/** Makes a writer. */
export function createRequestWriter(config: AiSdkConfig): RequestWriter {
  const { options, provider, modelId, idRules, putsMediaInResults } = config;
  const { specificationVersion: version } = config.model;
  let supportedUrls: SupportedUrls = {};
  const history = createHistoryWriter(
    promptFormat(() => ({
      provider,
      model: modelId,
      version,
      supportedUrls,
      idRules,
      putsMediaInResults,
      mediaTypes: options.capabilities?.mediaTypes,
      keepsThinking: options.thinkingHistory !== 'drop',
    })),
  );
  const providerTools = Object.entries(options.providerTools ?? {}).map(([name, tool]) => toProviderTool(name, tool, version === 'v2'));
  const writtenTools = new WeakMap<readonly ToolDefinition[], WrittenTools>();
  let system: PromptMessage | undefined;

  function toolsOf(tools: readonly ToolDefinition[]): WrittenTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const names = nameTools(tools);
    const written = { list: [...tools.map((tool) => toFunctionTool(tool, names)), ...providerTools], names };
    writtenTools.set(tools, written);
    return written;
  }

  function systemMessage(systemPrompt: string): readonly PromptMessage[] {
    const content = cleanText(systemPrompt);
    if (isBlank(content)) return [];
    if (system?.content !== content) system = { role: 'system', content };
    return [system];
  }

  return {
    write(request, urls) {
      supportedUrls = urls;
      const { list, names } = toolsOf(request.tools);
      const { sink, tail } = history.write(request.messages);
      const messages = sink.render(tail);
      // There is no text of it here.
      if (messages.length === 0) assertMessages('', provider);
      const { toolChoice = 'auto', responseSchema } = request;
      const maxTokens = request.maxOutputTokens ?? options.maxOutputTokens;
      const ceiling = options.capabilities?.maxOutputTokens ?? MAX_OUTPUT_TOKENS;
      return {
        toolName: names.fromWire,
        options: {
          ...definedSettings(config),
          ...(list.length > 0 && { tools: [...list] }),
          ...(list.length > 0 && toolChoice !== 'auto' && { toolChoice: toSdkChoice(toolChoice, names) }),
          ...(responseSchema !== undefined && { responseFormat: toResponseFormat(responseSchema) }),
          ...(maxTokens !== undefined && { maxOutputTokens: Math.max(1, Math.min(maxTokens, ceiling)) }),
          prompt: [...systemMessage(request.systemPrompt), ...messages],
        },
      };
    },
  };
}

/** What is the same in every request. Providers take a field that is there for one that is set. */
function definedSettings({ options }: AiSdkConfig): object {
  const { settings, temperature, thinkingEffort, providerOptions, headers } = options;
  const fields = {
    ...settings,
    temperature,
    reasoning: thinkingEffort,
    providerOptions,
    headers: headers === undefined ? undefined : { ...headers },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function toFunctionTool({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames): PromptPart {
  // A copy: some providers write into the schema.
  return { type: 'function', name: toWire(name), description: cleanText(description), inputSchema: cloneJson(toToolSchema(inputSchema)) };
}

function toProviderTool(name: string, tool: object, isV2: boolean): PromptPart {
  const { id, args }: Record<string, unknown> = isRecord(tool) ? tool : {};
  return { type: isV2 ? 'provider-defined' : 'provider', id, name, args };
}

function toSdkChoice(choice: ToolChoice, { toWire }: ToolNames): PromptPart {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: toWire(choice.name) };
}

function toResponseFormat(schema: JsonSchema): PromptPart {
  return { type: 'json', name: 'answer', schema: cloneJson(schema) };
}
