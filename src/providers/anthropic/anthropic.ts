/** Anthropic Messages as an LLM: one request, one answer; said in another way where the server refuses the first. */
import type { LLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest } from '../../core/llm.ts';
import { createHttpLLM, type WrittenRequest } from '../shared/http-llm.ts';
import { type AnthropicOptions, resolveOptions } from './options.ts';
import { isBindingRefused, isThinkingBound, isThinkingRefused } from './refusals.ts';
import { createReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';

/**
 * Makes an LLM of a server that speaks Anthropic Messages: Claude, and the servers compatible with the protocol.
 *
 * Prompts are marked for the server's cache. Thinking goes back to the same provider and model with its signature, and
 * what the provider's own tools did goes back to the same provider, all unchanged and in its place; thinking that the
 * server refuses is left out from then on. A history that begins
 * with a reply gets a short user's turn before it, since the protocol wants one; one that ends with a reply is sent so,
 * for the model to go on with it, which newer models refuse unless it was paused.
 *
 * A call cannot be forced upon some models, Claude Opus and Sonnet since 5.5, Fable and Mythos since 5.1: a `toolChoice` that
 * does is an error of kind `invalid_request`, code `forced_tool_choice`.
 * The objects of a `responseSchema` are closed, since the protocol wants that; one whose names are not listed is an error of
 * this kind, code `schema_open`.
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

  /** Whether the server is told to leave out thinking of another conversation. Only once it refused some: others let it pass. */
  let dropsUnbound = false;
  let isBindingKnown = config.takesBinding;

  function write(request: LLMRequest): WrittenRequest {
    const asked = dropsUnbound;
    const { body, toolName } = requests.write(request, asked);
    return {
      body,
      createReader: (outlet) => createReplyReader({ ...outlet, provider, model, toolName }),
      instead(error: LLMError) {
        if (asked && isBindingRefused(error)) isBindingKnown = false;
        else if (!isThinkingRefused(error)) return undefined;
        dropsUnbound = isBindingKnown && (dropsUnbound || isThinkingBound(error));
        // Another request may have found out meanwhile.
        if (dropsUnbound && !asked) return write(request);
        const isBarer = requests.leaveOutThinking(request.messages);
        return isBarer || dropsUnbound !== asked ? write(request) : undefined;
      },
    };
  }

  return createHttpLLM(config, {
    get fixed() {
      return config.headersFor(dropsUnbound);
    },
    authorize: (key) => (options.authScheme === 'bearer' ? [['authorization', `Bearer ${key}`]] : [['x-api-key', key]]),
    write,
  });
}
