/**
 * Answer reader: the bytes of an answer to a reply, whatever the server says they are.
 *
 * The first character tells a stream from a plain body, not the content type: errors come as `text/event-stream`,
 * streams without any type, and plain answers to requests for a stream.
 */
import { LLMError } from '../../core/errors.ts';
import type { LLMResponse } from '../../core/llm.ts';
import { type ErrorContext, malformedResponse } from './errors.ts';
import type { Answer } from './http.ts';
import { createSseReader } from './sse.ts';
import { concatBytes, decodeCutUtf8, decodeLoosely } from './utf8.ts';
import { isTooDeep, parseJson } from './json-values.ts';
import type { ReplyReader } from './reply-reader.ts';

/** How Chat Completions ends a stream; servers of other protocols add it too. */
const END_MARK = '[DONE]';
const HEAD_BYTES = 1024;
const TOO_DEEP = 'the answer holds lists or objects that are nested too deep';
const OPEN_BRACE = 123;
const OPEN_BRACKET = 91;
const LESS_THAN = 60;

/**
 * Reads a success answer to its end.
 *
 * @throws {@link index.LLMError | LLMError}, with nothing kept of the reply: the reader has it.
 */
export async function readAnswer(answer: Answer, reply: ReplyReader, context: ErrorContext): Promise<LLMResponse> {
  const head: Uint8Array[] = [];
  let start: number | undefined;
  while (start === undefined) {
    const chunk = await answer.nextChunk();
    if (chunk === undefined) throw emptyBody(context);
    head.push(chunk);
    start = firstByte(chunk);
  }
  if (start === LESS_THAN) throw await pageError(answer, head, context);
  if (start === OPEN_BRACE || start === OPEN_BRACKET) return readPlain(answer, head, { reply, context });
  return readStream(answer, head, { reply, context });
}

interface Reading {
  readonly reply: ReplyReader;
  readonly context: ErrorContext;
}

async function readPlain(answer: Answer, head: readonly Uint8Array[], { reply, context }: Reading): Promise<LLMResponse> {
  const pieces = [...head];
  for (let chunk = await answer.nextChunk(); chunk !== undefined; chunk = await answer.nextChunk()) {
    // White space keeps a connection open while the reply is being made.
    if (firstByte(chunk) !== undefined) answer.progress();
    pieces.push(chunk);
  }
  const text = decodeCutUtf8(concatBytes(pieces)).replace(/^\ufeff/, '');
  const body = parseJson(text);
  if (body === undefined) throw malformedResponse('the answer is not valid JSON', text, context);
  if (isTooDeep(body, text)) throw malformedResponse(TOO_DEEP, text, context);
  if (!reply.readBody(body)) throw malformedResponse('the answer is not a reply of this API; is `baseUrl` right?', text, context);
  return reply.finish(true);
}

async function readStream(answer: Answer, head: readonly Uint8Array[], { reply, context }: Reading): Promise<LLMResponse> {
  let sawEnd = false;
  let sawEvent = false;
  let isAtEnd = false;
  /** The beginning of the body, as long as no event came: it says what the body is instead. */
  const seen: Uint8Array[] = [];
  let seenLength = 0;
  const events = createSseReader((data, event) => {
    if (sawEnd || reply.isEnded || answer.isOver) return;
    sawEvent = true;
    if (data.charCodeAt(0) === OPEN_BRACKET && data.startsWith(END_MARK)) {
      sawEnd = true;
      return;
    }
    const value = parseJson(data);
    if (value === undefined) {
      // What a cut leaves of the last event is no fault of the server's.
      if (data.trim() === '' || isAtEnd) return;
      throw malformedResponse('an event of the stream is not valid JSON', data, context);
    }
    if (isTooDeep(value, data)) throw malformedResponse(TOO_DEEP, data, context);
    reply.readEvent(event === 'error' ? asError(value) : value, event);
  });

  try {
    for (const chunk of head) push(chunk);
    while (!sawEnd && !reply.isEnded) {
      const chunk = await answer.nextChunk();
      if (chunk === undefined) break;
      push(chunk);
    }
  } catch (error) {
    // The reply was complete: how the connection ended matters no more, unless the caller ended it.
    if (!reply.isFinished || !isConnectionFailure(error)) throw error;
  }
  const isOver = sawEnd || reply.isEnded;
  if (isOver) await answer.drain();
  isAtEnd = true;
  events.end();
  if (!sawEvent && !isCommentOnly(seen)) throw malformedResponse('the answer is no event stream', begin(seen), context);
  return reply.finish(isOver);

  function push(chunk: Uint8Array): void {
    const before = reply.progress;
    events.push(chunk);
    // Once per chunk, however many events it holds.
    if (reply.progress !== before) answer.progress();
    if (reply.isSilent === true) answer.silence();
    if (sawEvent || seenLength >= HEAD_BYTES) return;
    seen.push(chunk);
    seenLength += chunk.length;
  }
}

function emptyBody({ provider }: ErrorContext): LLMError {
  const message = `${provider}: the answer has no body; is \`baseUrl\` right, and is there a proxy that cuts answers off?`;
  return new LLMError({ kind: 'network', code: 'empty_body', message });
}

/** Only servers that name their events use the name, and then the data alone may not tell. */
function asError(value: unknown): unknown {
  return typeof value === 'object' && value !== null && !('error' in value) ? { error: value } : value;
}

async function pageError(answer: Answer, head: readonly Uint8Array[], context: ErrorContext): Promise<LLMError> {
  const text = begin(head) + (await answer.readErrorText());
  const type = answer.headers.get('content-type') ?? 'no content type';
  return malformedResponse(`the answer is a web page (${type}), not the API's; is \`baseUrl\` right?`, text, context);
}

function isConnectionFailure(error: unknown): boolean {
  return error instanceof LLMError && (error.kind === 'network' || error.kind === 'timeout');
}

/** The first byte that is neither white space nor part of a BOM. */
function firstByte(chunk: Uint8Array): number | undefined {
  return chunk.find((byte) => byte > 32 && byte !== 0xef && byte !== 0xbb && byte !== 0xbf);
}

function begin(head: readonly Uint8Array[]): string {
  return decodeLoosely(concatBytes(head));
}

/** A stream that held only comments was a stream. */
function isCommentOnly(head: readonly Uint8Array[]): boolean {
  return begin(head)
    .split(/[\r\n]+/)
    .every((line) => /^\s*(:|$)/.test(line));
}
