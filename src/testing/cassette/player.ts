/**
 * Player: a recorded exchange as an answer of `fetch`.
 *
 * - The bytes are those of the file, however they are cut.
 * - What the client aborted when it was recorded comes as far as it came then, and waits for the client to abort again.
 * - When an answer is over nothing of it waits any more: no timer, no listener.
 */
import { type Runtime, sleep } from '../../core/runtime.ts';
import type { Exchange, ExchangeEnd, GivenResponse } from './exchange.ts';

/** How exchanges are played. */
export interface PlayOptions {
  readonly timing: 'at_once' | 'recorded';
  /** How many bytes the next piece has, given how many are left. Absent: as recorded. */
  readonly pieceLength: ((bytesLeft: number) => number) | undefined;
  readonly runtime: Runtime;
}

/** These have no body. */
const NULL_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Who asks for it. */
export interface Asked {
  /** The address that was asked for, which may hold what the recording hides. */
  readonly url: string;
  /** It has not aborted yet. */
  readonly signal: AbortSignal | undefined;
}

/** Plays an exchange. Rejects and breaks off as it did when it was recorded, and when the signal aborts. */
export async function play({ request, response, end }: Exchange, { url, signal }: Asked, options: PlayOptions): Promise<Response> {
  const { runtime, timing } = options;
  const startedAt = runtime.now();
  const over = new AbortController();

  function until(afterMs: number): Promise<void> | undefined {
    const delayMs = startedAt + afterMs - runtime.now();
    return timing === 'recorded' && delayMs > 0 ? sleep(delayMs, { runtime, signal: over.signal }) : undefined;
  }

  const onAbort = (): void => over.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { signal: over.signal });

  try {
    await until(response?.afterMs ?? end.afterMs);
    over.signal.throwIfAborted();
    if (response === undefined) {
      if (end.type === 'failed') throw toThrown(end);
      return await new Promise<never>((_, reject) => {
        over.signal.addEventListener('abort', () => reject(over.signal.reason));
      });
    }
  } catch (thrown) {
    over.abort();
    throw thrown;
  }
  const { status, statusText = '', headers } = response;
  const hasBody = request.method !== 'HEAD' && !NULL_BODY.has(status);
  if (!hasBody) over.abort();
  const body = hasBody ? playBody(cutPieces(response, options.pieceLength), { end, over, until }) : null;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: response.url ?? url });
}

interface Body {
  readonly end: ExchangeEnd;
  /** Aborted when the body is over, for whatever reason. */
  readonly over: AbortController;
  readonly until: (afterMs: number) => Promise<void> | undefined;
}

function playBody(pieces: Iterator<TimedBytes, undefined>, { end, over, until }: Body): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(controller) {
        over.signal.addEventListener('abort', () => controller.error(over.signal.reason));
      },
      async pull(controller) {
        let piece: TimedBytes | undefined;
        try {
          piece = pieces.next().value;
        } catch (thrown) {
          // `pieces` of the options is at fault.
          over.abort(thrown);
          return;
        }
        try {
          await until(piece?.afterMs ?? end.afterMs);
        } catch {
          return;
        }
        if (over.signal.aborted) return;
        if (piece !== undefined) controller.enqueue(piece.bytes);
        else if (end.type === 'failed') over.abort(toThrown(end));
        else if (end.type === 'complete') {
          controller.close();
          over.abort();
        }
      },
      cancel: () => over.abort(),
    },
    { highWaterMark: 0 },
  );
}

/** As the platform words it: the code is on the way down the causes. */
function toThrown({ message, code }: Extract<ExchangeEnd, { type: 'failed' }>): TypeError {
  return new TypeError(message, code === undefined ? undefined : { cause: Object.assign(new Error(message), { code }) });
}

interface TimedBytes {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly afterMs: number;
}

/** The body in pieces, each of which comes when the last of its bytes came. */
function* cutPieces({ body, pieces, afterMs }: GivenResponse, pieceLength: PlayOptions['pieceLength']): Generator<TimedBytes, undefined> {
  let [index, recordedEnd] = [-1, 0];
  function advanceTo(end: number): void {
    while (recordedEnd < end) {
      index += 1;
      // The file may have been changed by hand: the last piece has all that is left.
      recordedEnd += index < pieces.length - 1 ? (pieces[index]?.length ?? 0) : Infinity;
    }
  }
  for (let start = 0; start < body.length; ) {
    const left = body.length - start;
    advanceTo(start + 1);
    const asked = pieceLength === undefined ? recordedEnd - start : pieceLength(left);
    if (typeof asked !== 'number' || !(asked >= 1)) throw new TypeError(`createCassette: a function of \`pieces\` must return a number of at least 1, not ${String(asked)}. For example: pieces: (bytesLeft) => Math.min(3, bytesLeft).`);
    const end = start + Math.min(left, Math.floor(asked));
    advanceTo(end);
    yield { bytes: new Uint8Array(body.subarray(start, end)), afterMs: pieces[index]?.afterMs ?? afterMs };
    start = end;
  }
  return undefined;
}
