/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * contents: settings, system prompt, tools, contents, then what is only this request's.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { LLMRequest, ToolChoice } from '../../core/llm.ts';
import { assertMessages } from '../shared/assert-messages.ts';
import { createHistoryWriter } from '../shared/history-writer.ts';
import { definedFields, type ProviderOptions } from '../shared/options.ts';
import { isJsonObject } from '../shared/own-data.ts';
import type { ToolNames } from '../shared/tool-names.ts';
import { cleanText, isBlank, joinJson } from '../shared/wire-text.ts';
import { toAnswerFormat } from './answer-format.ts';
import { geminiHistory } from './contents.ts';
import type { GoogleConfig } from './options.ts';
import { createToolWriter, type GeminiTools } from './tools.ts';

/** A request's text. */
export interface RequestText {
  /** JSON text. */
  readonly body: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Writes the requests of one adapter. */
export interface RequestWriter {
  /** Writes a request; costs what is new in it. @param isMinimalRefused - Whether the least thinking is known to be refused. */
  write(request: LLMRequest, isMinimalRefused: boolean): RequestText;
}

/** Makes a writer. */
export function createRequestWriter(config: GoogleConfig): RequestWriter {
  const { options, provider, model, thinking } = config;
  const { generationConfig, toolConfig, ...body } = options.body ?? {};
  const fixed = JSON.stringify(definedFields({}, body)).slice(1, -1);
  const history = createHistoryWriter(
    geminiHistory({
      provider,
      model,
      mediaTypes: options.capabilities?.mediaTypes,
      keepsThinking: options.thinkingHistory !== 'drop',
      needsSignatures: thinking.needsSignatures,
      sendsIds: options.sendCallIds ?? false,
    }),
  );
  const toolsOf = createToolWriter(config.schemaFormat, options.serverTools ?? []);

  function generationFields({ responseSchema, maxOutputTokens }: LLMRequest, isMinimalRefused: boolean): JsonObject {
    const maxTokens = maxOutputTokens ?? options.maxOutputTokens;
    const ceiling = options.capabilities?.maxOutputTokens ?? Infinity;
    return definedFields(
      {
        temperature: options.temperature,
        thinkingConfig: thinking.config(isMinimalRefused),
        maxOutputTokens: maxTokens === undefined ? undefined : Math.max(1, Math.min(maxTokens, ceiling)),
        ...(responseSchema !== undefined && toAnswerFormat(responseSchema, config.schemaFormat)),
      },
      fieldsOf(generationConfig),
    );
  }

  function toolFields({ toolChoice = 'auto' }: LLMRequest, { names, hasFunctions, hasServerTools }: GeminiTools): JsonObject {
    const { functionCallingConfig: given, ...more } = fieldsOf(toolConfig) ?? {};
    const calling = { ...fieldsOf(given), ...(hasFunctions && toolChoice !== 'auto' && toCallingConfig(toolChoice, names)) };
    // Without it the Gemini API refuses functions beside its own tools; Vertex AI does not know it.
    const isCombined = hasFunctions && hasServerTools && thinking.combinesTools && config.isGeminiApi;
    return definedFields(
      {
        functionCallingConfig: Object.keys(calling).length === 0 ? undefined : definedFields(calling, undefined),
        includeServerSideToolInvocations: isCombined ? true : undefined,
      },
      more,
    );
  }

  return {
    write(request, isMinimalRefused) {
      const { systemPrompt, messages, tools } = request;
      const written = toolsOf(tools);
      const { sink, tail } = history.write(messages);
      const contents = sink.render(tail);
      assertMessages(contents, provider);
      const fields = [
        isBlank(systemPrompt) ? '' : `"systemInstruction":${JSON.stringify({ parts: [{ text: cleanText(systemPrompt) }] })}`,
        written.json === '' ? '' : `"tools":${written.json}`,
        `"contents":[${contents}]`,
        objectField('toolConfig', toolFields(request, written)),
        objectField('generationConfig', generationFields(request, isMinimalRefused)),
      ];
      return { body: `{${fields.reduce(joinJson, fixed)}}`, toolName: written.names.fromWire };
    },
  };
}

/** A field that is left out if its object is empty. */
function objectField(name: string, fields: JsonObject): string {
  return Object.keys(fields).length === 0 ? '' : `"${name}":${JSON.stringify(fields)}`;
}

function fieldsOf(value: JsonValue | undefined): ProviderOptions['body'] {
  return isJsonObject(value) ? value : undefined;
}

function toCallingConfig(choice: ToolChoice, { toWire }: ToolNames): JsonObject {
  if (choice === 'none') return { mode: 'NONE' };
  return typeof choice === 'string' ? { mode: 'ANY' } : { mode: 'ANY', allowedFunctionNames: [toWire(choice.name)] };
}
