/** AI SDK models as LLMs: one request, one reply, no retries. */
import type { LLM, LLMRequest, LLMResponse } from '../../core/llm.ts';
import { systemRuntime } from '../../core/runtime.ts';
import { withReply } from '../shared/partial-reply.ts';
import { toModelError } from './errors.ts';
import { type AiSdkModel, assertModel, type SupportedUrls } from './model.ts';
import { startModelCall } from './model-call.ts';
import { type AiSdkOptions, resolveOptions } from './options.ts';
import { createReplyReader, type ReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';
import { salvageJson } from './salvage-json.ts';

/**
 * Makes an LLM of a language model of the AI SDK (`ai` 5 to 7), so that every provider of that ecosystem can be used.
 *
 * Thinking, calls and provider parts go back to the same provider and model with what it attached to them. What a model
 * says it did not heed of a request is told as the notice `model.warnings`.
 *
 * @param model - A model object, such as `openai('gpt-5')`; not a model's id.
 * @throws TypeError for what is no model of a known specification, and for options that are wrong.
 * @example
 * ```ts
 * import { anthropic } from '@ai-sdk/anthropic';
 *
 * const llm = aiSdk(anthropic('claude-sonnet-4-5'), {
 *   systemPrompt: 'Be brief.',
 *   providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
 * });
 * ```
 */
export function aiSdk(model: AiSdkModel, options: AiSdkOptions = {}): LLM {
  assertModel(model);
  const config = resolveOptions(model, options);
  const { provider, modelId } = config;
  const requests = createRequestWriter(config);
  const errorContext = { provider, headers: options.headers ?? {}, patterns: options.errorPatterns ?? [] };
  let supportedUrls: SupportedUrls | undefined;

  async function chat(request: LLMRequest): Promise<LLMResponse> {
    const { signal, scope } = request;
    const runtime = scope?.runtime ?? systemRuntime;
    const startedAt = runtime.now();
    let firstDeltaMs: number | undefined;
    let reply: ReplyReader | undefined;
    const call = startModelCall(config, { signal, runtime, startedAt });
    try {
      supportedUrls ??= (await call.wait(model.supportedUrls)) ?? {};
      const written = requests.write(request, supportedUrls);
      reply = createReplyReader({
        provider,
        sdkProvider: model.provider,
        model: modelId,
        toolName: written.toolName,
        toError: (thrown) => toModelError(thrown, errorContext),
        onDelta(delta) {
          if (call.interruption() !== undefined) return;
          firstDeltaMs ??= runtime.now() - startedAt;
          request.onDelta?.(delta);
        },
        onWarnings(warnings) {
          scope?.notify({ name: 'model.warnings', data: { provider, warnings: salvageJson(warnings) ?? null } });
        },
      });
      await call.run(written.options, reply);
      const response = reply.finish();
      // A time limit no longer matters now, an abort does.
      const interruption = call.interruption();
      if (interruption?.kind === 'aborted') throw interruption;
      return { ...response, timing: { firstDeltaMs, totalMs: runtime.now() - startedAt } };
    } catch (thrown) {
      const interruption = call.interruption();
      const isCause = interruption?.kind === 'aborted' || reply?.isFinished !== true;
      throw withReply((isCause ? interruption : undefined) ?? toModelError(thrown, errorContext), reply);
    } finally {
      call.end();
    }
  }

  return { provider, modelId, systemPrompt: options.systemPrompt ?? '', capabilities: options.capabilities, chat };
}
