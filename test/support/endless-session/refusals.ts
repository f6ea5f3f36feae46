/**
 * Refusals: what servers of five vendors answer to a request that is too long, word for word, read by the adapter that
 * speaks to them. So the errors of the session are those that a host would see. The adapters write the requests, too: what
 * they would send is held against the rules of their protocol.
 */
import type { LLM, LLMError, LLMRequest } from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { checkMessagesRequest } from '../anthropic-rules.ts';
import { checkChatRequest } from '../chat-rules.ts';
import { checkGenerateContentRequest } from '../gemini-rules.ts';
import { checkResponsesRequest } from '../responses-rules.ts';

/** How much too long a request is. */
export interface Excess {
  readonly input: number;
  readonly output: number;
  readonly window: number;
}

/** A vendor's adapter, on a server that refuses everything. */
export interface RefusingVendor {
  readonly provider: string;
  /** The error that the adapter makes of the refusal. */
  refuse(request: LLMRequest, excess: Excess): Promise<LLMError>;
  /** Rules of the protocol that the request would break. */
  brokenRules(request: LLMRequest): Promise<readonly string[]>;
}

type MakeFetch = typeof globalThis.fetch;

interface Vendor {
  create(fetch: MakeFetch, modelId: string): LLM;
  check(body: unknown): readonly string[];
  body(excess: Excess): unknown;
}

const KEY = 'sk-test';

const VENDORS: readonly Vendor[] = [
  {
    create: (fetch, model) => openAIChat({ model, fetch, apiKey: KEY, baseUrl: 'https://api.openai.com/v1' }),
    check: checkChatRequest,
    body: ({ input, output, window }) => ({
      error: {
        message: `This model's maximum context length is ${window} tokens. However, you requested ${input + output} tokens (${input} in the messages, ${output} in the completion). Please reduce the length of the messages or completion.`,
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    }),
  },
  {
    create: (fetch, model) => anthropic({ model, fetch, apiKey: KEY, thinkingHistory: 'signed' }),
    check: (body) => checkMessagesRequest(body),
    body: ({ input, output, window }) => ({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          input > window
            ? `prompt is too long: ${input} tokens > ${window} maximum`
            : `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${window}, decrease input length or \`max_tokens\` and try again`,
      },
    }),
  },
  {
    create: (fetch, model) => google({ model, fetch, apiKey: KEY }),
    check: (body) => checkGenerateContentRequest(body),
    body: ({ input, output, window }) => ({
      error: { code: 400, message: `The input token count (${input}) exceeds the maximum number of tokens allowed (${window - output}).`, status: 'INVALID_ARGUMENT' },
    }),
  },
  {
    create: (fetch, model) => openAIResponses({ model, fetch, apiKey: KEY }),
    check: (body) => checkResponsesRequest(body),
    body: () => ({
      error: {
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'context_length_exceeded',
      },
    }),
  },
  {
    create: (fetch, model) => openAIChat({ model, fetch, provider: 'llama.cpp', baseUrl: 'http://localhost:8080/v1' }),
    check: checkChatRequest,
    body: ({ input, window }) => ({
      error: { code: 400, message: `request (${input} tokens) exceeds the available context size (${window} tokens), try increasing it`, type: 'exceed_context_size_error', n_prompt_tokens: input, n_ctx: window },
    }),
  },
];

/** The vendor of this number, in turn. */
export function createRefusingVendor(number: number, modelId: string): RefusingVendor {
  const vendor = VENDORS[number % VENDORS.length]!;
  let answer = '';
  let sent: unknown;
  const adapter = vendor.create(async (_url, init) => {
    sent = JSON.parse(init?.body as string);
    return new Response(answer, { status: 400, headers: { 'content-type': 'application/json' } });
  }, modelId);

  async function send({ onDelta: _onDelta, onAttemptFailed: _onAttemptFailed, ...request }: LLMRequest, excess: Excess): Promise<LLMError> {
    answer = JSON.stringify(vendor.body(excess));
    sent = undefined;
    try {
      await adapter.chat(request);
    } catch (error) {
      return error as LLMError;
    }
    throw new Error('A server that refuses everything was understood to answer.');
  }

  return {
    provider: adapter.provider,
    refuse: send,
    async brokenRules(request) {
      const error = await send(request, { input: 9, output: 1, window: 8 });
      return sent === undefined ? [`nothing was sent: ${error.message}`] : vendor.check(sent);
    },
  };
}
