/**
 * Think tags: thinking that a model writes into its answer, `<think>…</think>`, becomes thinking.
 *
 * Owns what of a reply is rewritten: its fragments, its parts, and the parts that an error tells of. Where thinking
 * begins and ends in the text is `think-tag-scanner.ts`'s business.
 *
 * - Fragments and parts say the same: both come from the text of the reply and from what stands before it, and parts that
 *   are not streamed (media, provider parts, thinking without text) change nothing.
 * - Of a reply that was cut off, nothing becomes text that might have been thinking.
 */
import { changeLLMError, isLLMError, LLMError, type PartialReplyPart } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { decorateLLM, type LLM, type LLMDelta, type LLMRequest, type LLMResponse, type ReplyPart } from '../core/llm.ts';
import type { TextPart, ThinkingPart } from '../core/message.ts';
import { assertLLM, assertOptions } from '../core/assert.ts';
import { createThinkTagRules, type ThinkTag, type ThinkTagRegions, type ThinkTagRules, ThinkTagScanner } from './think-tag-scanner.ts';

const DEFAULT_TAGS: readonly ThinkTag[] = [{ open: '<think>', close: '</think>' }];

const ARGUMENT = { taker: 'withThinkTags', example: "withThinkTags(openAIChat({ model: 'qwen3', baseUrl: 'http://localhost:8000/v1' }))" };
const OPTIONS: Readonly<Record<keyof ThinkTagsOptions, true>> = { tags: true, startsInside: true };

/** Options of {@link withThinkTags}. */
export interface ThinkTagsOptions {
  /**
   * The tags that the model writes around its thinking, in place of the default. Letters match in either case. Thinking
   * that one opened is closed by the same one's `close`.
   *
   * @defaultValue `<think>` and `</think>`, which nearly all open models write. Others, such as `<thinking>` or
   * `[THINK]`, are yours to name: each more is one more word that an answer cannot begin with.
   */
  readonly tags?: readonly ThinkTag[] | undefined;
  /**
   * The replies begin inside of thinking: for servers whose chat template writes the opening tag into the prompt, so that
   * only the closing one arrives. An opening tag that does come is left out. A reply without a closing tag is thinking to
   * its end: not for models that answer without thinking at times.
   *
   * @defaultValue false: a closing tag without an opening one is text, since what came before it was already shown
   */
  readonly startsInside?: boolean | undefined;
}

/**
 * Makes a model whose thinking is thinking, of one that writes it into the answer as `<think>…</think>`: the fragments
 * as they arrive, the parts of the reply, and what an error tells of a reply that broke off (`LLMError.partial`).
 *
 * - Only a tag that the reply begins with opens thinking, white space aside; that white space is left out. Tags in prose
 *   or code later on are text, and so is all text behind a tool call or behind thinking that the server told apart itself.
 * - The first closing tag ends the thinking. Without one it lasts to the end of the reply.
 * - Nothing else is changed or trimmed: the line breaks around the tags stay. Empty thinking leaves no part.
 * - What a provider attached to a text stays with the text behind the thinking, even if that is empty.
 * - Of a reply that broke off, thinking is kept only if it was closed.
 *
 * Such thinking has no signature. It goes back to the model the way its adapter sends unsigned thinking: `openAIChat` in
 * the field that its `thinkingField` option names, where the server answers under the very name of the model, and not at
 * all without that option. The tags themselves never go back. Models that work with tools while they think may do better
 * with the field.
 *
 * Put it directly around the adapter, inside of `withRetry`: a reply of nothing but thinking is an empty one.
 *
 * @param llm - The model to ask.
 * @param options - The tags, and whether replies begin inside of them.
 * @returns A model that also rejects with {@link index.LLMError | LLMError} `malformed_response`, code `empty`, retryable,
 * for a reply of nothing but thinking, unless it was cut at the output limit or filtered.
 * @throws TypeError without a model, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const llm = withRetry(withThinkTags(openAIChat({ model: 'qwen3', baseUrl: 'http://localhost:8000/v1' })));
 * ```
 */
export function withThinkTags(llm: LLM, options: ThinkTagsOptions = {}): LLM {
  assertLLM(llm, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  const { tags = DEFAULT_TAGS, startsInside = false } = options;
  assertTags(tags);
  if (typeof startsInside !== 'boolean') {
    throw new TypeError('withThinkTags: `startsInside` must be true or false. For example: withThinkTags(llm, { startsInside: true }).');
  }
  const rules = createThinkTagRules(tags, startsInside);

  return decorateLLM(llm, async (request) => {
    const stream = splitStream(request, rules);
    let response: LLMResponse;
    try {
      response = await attemptChat(llm, stream.request);
    } catch (thrown) {
      throw stream.splitError(thrown);
    }
    stream.end();
    return splitResponse(response, rules, llm.provider);
  });
}

/** A request whose fragments are told apart on their way. */
interface SplitStream {
  /** The request to send. */
  readonly request: LLMRequest;
  /** Streams what was held back. */
  end(): void;
  /** What an attempt failed with, rewritten where it tells of the reply. */
  splitError<Thrown>(thrown: Thrown): Thrown | LLMError;
}

function splitStream(request: LLMRequest, rules: ThinkTagRules): SplitStream {
  const { onDelta } = request;
  // Without a listener an adapter need not stream for our sake.
  if (onDelta === undefined) {
    return { request, end: () => undefined, splitError: (thrown) => splitError(thrown, rules) };
  }
  const createScanner = (): ThinkTagScanner =>
    new ThinkTagScanner(rules, (type, text) => {
      onDelta({ type, text });
    });
  let scanner = createScanner();
  const split = <Thrown>(thrown: Thrown): Thrown | LLMError => (scanner.isPlain ? thrown : splitError(thrown, rules));
  return {
    request: {
      ...request,
      onDelta: (delta) => {
        if (scanner.isInText || !addTo(scanner, delta)) onDelta(delta);
      },
      onAttemptFailed: (attempt) => {
        const error = split(attempt.error);
        scanner = createScanner();
        return request.onAttemptFailed?.({ ...attempt, error });
      },
    },
    end: () => {
      scanner.end();
    },
    splitError: split,
  };
}

/** Tells a scanner of the next piece of a reply. @returns Whether the scanner has taken it, and hands it out itself. */
function addTo(scanner: ThinkTagScanner, piece: LLMDelta | ReplyPart): boolean {
  if (isText(piece)) {
    scanner.addText(piece.text);
    return true;
  }
  // An adapter without types may give anything: whoever gets it says what is wrong with it.
  if (!isRecord(piece)) return false;
  if (piece.type === 'tool_call') scanner.addCall();
  if (piece.type === 'thinking' && piece.text !== '') scanner.addThinking();
  return false;
}

function isText<Piece extends LLMDelta | ReplyPart>(piece: Piece): piece is Extract<Piece, { type: 'text' }> {
  return isRecord(piece) && piece.type === 'text' && typeof piece.text === 'string';
}

/** @throws {@link index.LLMError | LLMError} `empty` if nothing but thinking is left. */
function splitResponse(response: LLMResponse, rules: ThinkTagRules, provider: string): LLMResponse {
  const given: unknown = isRecord(response) ? response.content : undefined;
  if (!Array.isArray(given)) return response;
  const content = splitParts(response.content, rules, true);
  if (content === response.content) return response;
  const { stopReason, rawStopReason = stopReason, usage, provider: answeredBy, modelId } = response;
  if (stopReason !== 'filtered' && stopReason !== 'max_tokens' && !content.some(isSubstance)) {
    const message = `${provider} sent an empty reply: nothing but thinking (finish reason: ${rawStopReason}).`;
    // The one that answered, where something inside chose among several; a server's own name of a model is worth nothing here.
    const answered = answeredBy === undefined ? {} : { provider: answeredBy, modelId };
    throw new LLMError({ kind: 'malformed_response', code: 'empty', message, usage, ...answered });
  }
  return { ...response, content };
}

/** What was thrown; an error that tells of thinking as text, with that put right. */
function splitError<Thrown>(thrown: Thrown, rules: ThinkTagRules): Thrown | LLMError {
  if (!isLLMError(thrown) || !Array.isArray(thrown.partial)) return thrown;
  const partial = splitParts<PartialReplyPart>(thrown.partial, rules, false);
  if (partial === thrown.partial) return thrown;
  return changeLLMError(thrown, { partial });
}

/** The parts, with thinking of its own; the same list if there is none. Not whole: what is still open is left out. */
function splitParts<Part extends ReplyPart>(
  parts: readonly Part[],
  rules: ThinkTagRules,
  isWhole: boolean,
): readonly (Part | TextPart | ThinkingPart)[] {
  const scanner = new ThinkTagScanner(rules, () => undefined);
  for (const part of parts) addTo(scanner, part);
  if (isWhole) scanner.end();
  const { thinkingFrom, thinkingTo, textFrom } = scanner.regions;
  if (textFrom === 0 || !parts.some(isText)) return parts;
  const isClosed = isWhole || thinkingTo < Infinity;
  const regions = { thinkingFrom: isClosed ? thinkingFrom : Infinity, thinkingTo, textFrom };
  let end = 0;
  return parts.flatMap((part): readonly (Part | TextPart | ThinkingPart)[] => {
    if (!isText(part)) return [part];
    end += part.text.length;
    return splitText(part, end - part.text.length, regions);
  });
}

/** The parts of a text. @param start - Its position in the joined text of the reply. */
function splitText(part: TextPart, start: number, { thinkingFrom, thinkingTo, textFrom }: ThinkTagRegions): readonly (TextPart | ThinkingPart)[] {
  const within = (position: number): number => Math.max(0, position - start);
  const thinking = part.text.slice(within(thinkingFrom), within(thinkingTo));
  const text = part.text.slice(within(textFrom));
  return [
    ...(thinking === '' ? [] : [{ type: 'thinking', text: thinking } as const]),
    ...(text === '' && part.providerData === undefined ? [] : [{ ...part, text }]),
  ];
}

function isSubstance(part: ReplyPart): boolean {
  return part.type === 'text' ? part.text.trim() !== '' : part.type !== 'thinking';
}

function assertTags(tags: unknown): void {
  if (Array.isArray(tags) && tags.length > 0 && tags.every(isTag)) return;
  throw new TypeError(
    'withThinkTags: `tags` must be a list of { open, close }, both with a text, and `open` not beginning with white space. ' +
      "For example: withThinkTags(llm, { tags: [{ open: '<think>', close: '</think>' }] }).",
  );
}

function isTag(tag: unknown): boolean {
  if (!isRecord(tag) || typeof tag['open'] !== 'string' || typeof tag['close'] !== 'string') return false;
  return tag['open'].trimStart() === tag['open'] && tag['open'] !== '' && tag['close'] !== '';
}
