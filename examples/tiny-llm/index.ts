/**
 * tiny-llm: a real, very small language model that runs in this process, as an `LLM` of turnloop.
 *
 * The example of a custom adapter: a whole contract in one file, from the request to its
 * deltas, reply, usage and errors. Everything the model needs is in the files beside it.
 *
 * @module
 */
import { readFileSync } from 'node:fs';
import { LLMError, toUsage, type LLM, type LLMErrorOptions, type LLMRequest, type LLMResponse, type ToolChoice } from 'turnloop';
import { renderPrompt } from './chat-template.ts';
import { toChat } from './chat.ts';
import { generateTokens, keepCommonPrefix, type DecodingOptions } from './decoding.ts';
import { readGguf } from './gguf.ts';
import { createReplyBuilder, textsOf } from './reply-builder.ts';
import { encodePrompt, MARKS } from './tokenizer.ts';
import { createSequence, createTransformer, type Sequence } from './transformer.ts';

/** Options of {@link tinyLLM}. */
export interface TinyLLMOptions {
  /** What the model is told before the conversation. It was trained with short ones, and with none. @defaultValue none */
  readonly systemPrompt?: string | undefined;
  /** The model file. @defaultValue `tiny-coder.gguf` beside this file */
  readonly modelFile?: string | URL | undefined;
}

/** Most tokens of a reply: longer than any that makes sense. Should the model go astray, it stops here. */
const MAX_OUTPUT_TOKENS = 400;

/**
 * Loads the model; some 30 milliseconds and 2 MB.
 *
 * Replies are the likeliest ones: the same request always gets the same reply. Requests may
 * overlap; the one that comes after another continues from the prompt they share, which
 * `usage` reports as tokens read from the cache.
 *
 * @throws `TypeError` when the file isn't a model that can be run, or the error of reading it.
 */
export function tinyLLM({ systemPrompt = '', modelFile }: TinyLLMOptions = {}): LLM {
  const transformer = createTransformer(readGguf(readFileSync(modelFile ?? new URL('tiny-coder.gguf', import.meta.url))));
  const { contextLength } = transformer.shape;
  /** The sequence of the last request, unless another is working on it. */
  let idle: Sequence | undefined;

  return {
    provider: 'tiny-llm',
    modelId: 'tiny-coder',
    systemPrompt,
    capabilities: { contextWindow: contextLength, maxOutputTokens: MAX_OUTPUT_TOKENS, mediaTypes: [] },

    async chat(request) {
      assertSupported(request);
      const prompt = encodePrompt(renderPrompt(toChat(request)));
      if (prompt.length > contextLength) {
        throw new LLMError({
          kind: 'context_overflow',
          message: `The prompt has ${prompt.length} tokens (bytes), more than the ${contextLength} that tiny-coder takes.`,
        });
      }
      const sequence = idle ?? createSequence(transformer);
      idle = undefined;
      try {
        return await reply(sequence, prompt, request);
      } finally {
        idle = sequence;
      }
    },
  };
}

/** Refuses what the model can't do, so that it isn't mistaken for done. */
function assertSupported({ messages, responseSchema }: LLMRequest): void {
  if (responseSchema !== undefined) {
    throw new LLMError({ kind: 'invalid_request', message: 'tiny-coder cannot answer in JSON: leave out `responseSchema`.' });
  }
  if (messages.some((message) => message.content.some((part) => part.type === 'media'))) {
    throw new LLMError({ kind: 'media_rejected', message: 'tiny-coder reads text only: leave out media.' });
  }
}

/** Generates the reply to a prompt, telling of each piece as it comes. */
async function reply(sequence: Sequence, prompt: readonly number[], request: LLMRequest): Promise<LLMResponse> {
  const maxOutputTokens = Math.min(request.maxOutputTokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS);
  const cacheReadTokens = keepCommonPrefix(sequence, prompt);
  const answer = createReplyBuilder((delta) => request.onDelta?.(delta));
  let outputTokens = 0;
  let lastToken: number | undefined;

  const usage = (): LLMResponse['usage'] => {
    const promptTokens = Math.min(sequence.tokens.length, prompt.length);
    return toUsage({ inputTokens: promptTokens - cacheReadTokens, cacheReadTokens, outputTokens });
  };
  const failure = (options: LLMErrorOptions): LLMError =>
    new LLMError({ ...options, usage: usage(), partial: textsOf(answer.content) });

  try {
    for await (const token of generateTokens(sequence, prompt, { signal: request.signal, ...toDecoding(request.toolChoice) })) {
      outputTokens += 1;
      lastToken = token;
      answer.read(token);
      if (outputTokens >= maxOutputTokens) break;
    }
  } catch (error) {
    if (!request.signal.aborted) throw error;
    throw failure({ kind: 'aborted', message: 'The request was aborted.', cause: error });
  }
  answer.end();

  const isWhole = lastToken === MARKS.messageEnd.token;
  const { content, malformed } = answer;
  if (isWhole && malformed !== undefined) {
    const excerpt = JSON.stringify(malformed.slice(0, 200));
    // The same request gets the same reply: another attempt is in vain.
    throw failure({ kind: 'malformed_response', retryable: false, message: `tiny-coder wrote a tool call without a name: ${excerpt}.` });
  }
  if (isWhole && content.length === 0) {
    throw failure({ kind: 'malformed_response', code: 'empty', retryable: false, message: 'tiny-coder said nothing.' });
  }
  const hasCalls = content.some((part) => part.type === 'tool_call');
  return { content, stopReason: isWhole ? (hasCalls ? 'tool_use' : 'end_turn') : 'max_tokens', usage: usage() };
}

/** A tool choice as what the reply must begin with, or must not hold. */
function toDecoding(toolChoice: ToolChoice = 'auto'): DecodingOptions {
  switch (toolChoice) {
    case 'auto':
      return {};
    case 'none':
      return { excludedToken: MARKS.callStart.token };
    case 'required':
      return { beginning: [MARKS.callStart.token] };
    default:
      return { beginning: encodePrompt(`${MARKS.callStart.text}\n{"name": "${toolChoice.name}", "arguments": `) };
  }
}
