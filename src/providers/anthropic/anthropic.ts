/** Anthropic Messages as an LLM: one request, one answer, no retries. */
import type { LLM } from '../../core/llm.ts';
import { createHttpLLM } from '../shared/http-llm.ts';
import { type AnthropicOptions, resolveOptions } from './options.ts';
import { createReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';

/**
 * Makes an LLM of a server that speaks Anthropic Messages: Claude, and the servers compatible with the protocol.
 *
 * Prompts are marked for the server's cache. Thinking goes back to the same provider and model with its signature, and
 * what the provider's own tools did goes back to the same provider, all unchanged and in its place. A history that begins
 * with a reply gets a short user's turn before it, since the protocol wants one; one that ends with a reply is sent so,
 * for the model to go on with it, which newer models refuse unless it was paused.
 *
 * A call cannot be forced upon some models, Claude Opus and Sonnet since 5.5, Fable and Mythos since 5.1: a `toolChoice` that
 * does is an error of kind `invalid_request`, code `forced_tool_choice`.
 *
 * @throws TypeError for options that are missing or wrong.
 * @example
 * ```ts
 * const llm = anthropic({ model: 'claude-sonnet-5-5', apiKey: process.env.ANTHROPIC_API_KEY, systemPrompt: 'Be brief.' });
 * ```
 */
export function anthropic(options: AnthropicOptions): LLM {
  const config = resolveOptions(options);
  const { provider, model, thinkingHistory } = config;
  const requests = createRequestWriter(config, { provider, model, thinkingHistory, mediaTypes: options.capabilities?.mediaTypes });

  return createHttpLLM(config, {
    fixed: config.fixedHeaders,
    authorize: (key) => (options.authScheme === 'bearer' ? [['authorization', `Bearer ${key}`]] : [['x-api-key', key]]),
    write(request) {
      const { body, toolName } = requests.write(request);
      return { body, createReader: (outlet) => createReplyReader({ ...outlet, provider, model, toolName }) };
    },
  });
}
