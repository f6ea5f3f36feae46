/** Gemini as an LLM: one request, one answer, no retries. */
import type { LLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest } from '../../core/llm.ts';
import { createHttpLLM, type WrittenRequest } from '../shared/http-llm.ts';
import { type GoogleOptions, resolveOptions } from './options.ts';
import { createReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';
import { refusesLeast } from './thinking.ts';

/**
 * Makes an LLM of a Gemini model, by `streamGenerateContent`.
 *
 * Thinking and thought signatures go back to the same model in their places, as Gemini 3 demands. Replies of other
 * models may stand in the history: their calls and texts are sent, what only they understand is not.
 *
 * @throws TypeError for options that are missing or wrong.
 * @example
 * ```ts
 * const llm = google({ model: 'gemini-2.5-flash', apiKey: process.env.GEMINI_API_KEY, systemPrompt: 'Be brief.' });
 * ```
 */
export function google(options: GoogleOptions): LLM {
  const config = resolveOptions(options);
  const { provider, model } = config;
  const requests = createRequestWriter(config);
  /** Whether the model is known to take no less thinking than `LOW`. */
  let isMinimalRefused = false;

  function write(request: LLMRequest): WrittenRequest {
    const { body, toolName } = requests.write(request, isMinimalRefused);
    const asksForLeast = config.thinking.asksForLeast && !isMinimalRefused;
    return {
      body,
      createReader: (outlet) => createReplyReader({ ...outlet, provider, model, toolName }),
      instead(error: LLMError) {
        if (!asksForLeast || !refusesLeast(error)) return undefined;
        isMinimalRefused = true;
        return write(request);
      },
    };
  }

  return createHttpLLM(config, {
    fixed: [],
    authorize: (key) => (config.keyType === 'access-token' ? [['authorization', `Bearer ${key}`]] : [['x-goog-api-key', key]]),
    write,
  });
}
