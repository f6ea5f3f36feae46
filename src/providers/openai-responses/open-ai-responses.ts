/** Responses as an LLM: one request, one answer; said in another way where the server refuses the first. */
import type { LLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest } from '../../core/llm.ts';
import { createHttpLLM, type WrittenRequest } from '../shared/http-llm.ts';
import { createConversationWriter } from './conversation.ts';
import { type OpenAIResponsesOptions, resolveOptions } from './options.ts';
import { isEncryptionRefused, isOwnItemRefused, isResponseLost, mayBeResponseLost } from './refusals.ts';
import { createReplyReader, type ResponseReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';

/** OpenAI's models that do not think, and refuse to give their thinking; also behind a gateway's prefix. */
const UNTHINKING_MODEL = /(?:^|\/)(?:gpt-[34]|gpt-5[\w.]*-chat|chatgpt)/;

/** How a request is said. */
interface Wording {
  /** Whether the server is told the whole history. */
  readonly isWhole: boolean;
  /** Whether it is asked for the thinking in encrypted form. */
  readonly asked: boolean;
  /** Called once the request was taken: what was changed in it was the reason that it was not before. */
  readonly onTaken: (() => void) | undefined;
}

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

  function write(request: LLMRequest, { isWhole, asked, onTaken }: Wording): WrittenRequest {
    const conversation = conversations.write(request.messages, isWhole);
    const { input, previousResponseId } = conversation;
    const { body, toolName } = writeRequest({ request, input, previousResponseId, asksEncrypted: asked });
    let reply: ResponseReader | undefined;

    /** @param change - What is said in another way. */
    function again(change: Partial<Wording>): WrittenRequest {
      return write(request, { isWhole, asked, onTaken, ...change });
    }

    function instead(error: LLMError): WrittenRequest | undefined {
      if (previousResponseId !== undefined && mayBeResponseLost(error)) {
        if (isResponseLost(error)) conversation.lose();
        return again({ isWhole: true, onTaken: isResponseLost(error) ? onTaken : conversation.lose });
      }
      if (asked && isEncryptionRefused(error)) return again({ asked: false });
      return isOwnItemRefused(error) && conversations.leaveOutOwn(request.messages) ? again({}) : undefined;
    }

    return {
      body,
      createReader(outlet) {
        reply = createReplyReader({ ...outlet, provider, model, toolName, previousResponseId });
        return reply;
      },
      onResponse(response) {
        // Whatever was refused, it is now known to have been what was left out.
        if (!asked) asksEncrypted = false;
        onTaken?.();
        if (reply?.isHeld === true) conversation.keep(response);
      },
      instead,
    };
  }

  return createHttpLLM(config, {
    fixed: [],
    authorize: (key) => [['authorization', `Bearer ${key}`]],
    write: (request) => write(request, { isWhole: false, asked: asksEncrypted, onTaken: undefined }),
  });
}
