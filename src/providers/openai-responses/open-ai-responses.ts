/** Responses as an LLM: one request, one answer; said in another way where the server refuses the first. */
import type { LLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest } from '../../core/llm.ts';
import { createHttpLLM, type WrittenRequest } from '../shared/http-llm.ts';
import { createConversationWriter } from './conversation.ts';
import { type OpenAIResponsesOptions, resolveOptions } from './options.ts';
import { isEncryptionRefused, isOwnItemRefused, isResponseLost } from './refusals.ts';
import { createReplyReader, type ResponseReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';

/** OpenAI's models that do not think, and refuse to give their thinking; also behind a gateway's prefix. */
const UNTHINKING_MODEL = /(?:^|\/)(?:gpt-[34]|gpt-5[\w.]*-chat|chatgpt)/;

/**
 * Makes an LLM of a server that speaks the Responses protocol: OpenAI and Azure; xAI, OpenRouter, LM Studio, vLLM,
 * llama.cpp and others that followed.
 *
 * The system prompt goes as `instructions`. Thinking goes back to the same provider and model in the form that its
 * server gave: encrypted, or as text. What the server's own tools did becomes provider parts, in their place.
 *
 * @throws TypeError for options that are missing or wrong.
 * @example
 * ```ts
 * const llm = openAIResponses({ model: 'gpt-5-mini', apiKey: process.env.OPENAI_API_KEY, thinkingSummary: 'auto' });
 * ```
 */
export function openAIResponses(options: OpenAIResponsesOptions): LLM {
  const config = resolveOptions(options);
  const { provider, model } = config;
  const conversations = createConversationWriter(config);
  const writeRequest = createRequestWriter(config);
  let asksEncrypted = config.keepsThinking && !UNTHINKING_MODEL.test(model);

  function write(request: LLMRequest, isWhole: boolean): WrittenRequest {
    const conversation = conversations.write(request.messages, isWhole);
    const { input, previousResponseId } = conversation;
    const asked = asksEncrypted;
    const { body, toolName } = writeRequest({ request, input, previousResponseId, asksEncrypted: asked });
    let reply: ResponseReader | undefined;

    function instead(error: LLMError): WrittenRequest | undefined {
      if (previousResponseId !== undefined && isResponseLost(error)) {
        conversations.forget(previousResponseId);
        return write(request, true);
      }
      if (asked && isEncryptionRefused(error)) {
        asksEncrypted = false;
        return write(request, isWhole);
      }
      return isOwnItemRefused(error) && conversations.leaveOutOwn(request.messages) ? write(request, isWhole) : undefined;
    }

    return {
      body,
      createReader(outlet) {
        reply = createReplyReader({ ...outlet, provider, model, toolName, previousResponseId });
        return reply;
      },
      onResponse(response) {
        if (reply?.isHeld === true) conversation.keep(response);
      },
      instead,
    };
  }

  return createHttpLLM(config, {
    fixed: [],
    authorize: (key) => [['authorization', `Bearer ${key}`]],
    write: (request) => write(request, false),
  });
}
