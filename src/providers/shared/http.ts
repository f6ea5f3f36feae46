/**
 * HTTP: sends one JSON request and hands its answer to a reader, chunk by chunk.
 *
 * - However it ends, the connection is let go of: the body is read to its end or cancelled, exactly once.
 * - Nothing that a runtime throws goes out as it is; see `network-error.ts`.
 * - Redirects are not followed: the key would travel to wherever they point.
 */
import { LLMError } from '../../core/errors.ts';
import type { Runtime } from '../../core/runtime.ts';
import { toNetworkError } from './network-error.ts';
import { concatBytes, decodeLoosely } from './utf8.ts';
import { createWatch, timeoutCode, type Watch } from './watch.ts';

/** Time limits of a request, in milliseconds; `Infinity` for none. */
export interface RequestTimeouts {
  /**
   * Until the server answers at all: its status and headers. Waiting for a key counts.
   *
   * @defaultValue 30,000; for a server on this machine or in a private network `firstTokenMs`, since local servers
   * often hold the headers back until they have read the prompt
   */
  readonly connectMs?: number | undefined;
  /**
   * From the start of the request to the first token: a fragment of text, thinking or a tool call. What only keeps a
   * connection open is none, be it comments or empty chunks.
   *
   * @defaultValue 290,000: Node's own `fetch` gives up after 300 s without headers; more needs a `fetch` of your own
   */
  readonly firstTokenMs?: number | undefined;
  /** From one token to the next, and from the finish reason to the end of the answer. @defaultValue 60,000 */
  readonly betweenTokensMs?: number | undefined;
}

/** One request. */
export interface PostRequest {
  /** Where to. */
  readonly url: URL;
  /** Makes the headers, asked once; may wait for a key. */
  readonly headers: () => Promise<Headers>;
  /** JSON text. */
  readonly body: string;
  /** @defaultValue the global `fetch` of the moment */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The caller's signal. */
  readonly signal: AbortSignal;
  /** Clock and timers. */
  readonly runtime: Runtime;
  /** Time limits, all of them. */
  readonly timeouts: Required<{ [Name in keyof RequestTimeouts]: number }>;
  /** Takes secrets out of texts. */
  readonly redact: (text: string) => string;
}

/** An answer, as its reader sees it. */
export interface Answer {
  /** HTTP status. */
  readonly status: number;
  /** Headers of the answer. */
  readonly headers: Headers;
  /** True once the request was aborted or ran out of time: nothing more is to be delivered. */
  readonly isOver: boolean;
  /**
   * The next bytes; undefined at the end of the body.
   *
   * @throws {@link index.LLMError | LLMError} of kind `aborted`, `timeout` or `network`.
   */
  nextChunk(): Promise<Uint8Array | undefined>;
  /** To be called when tokens arrived, or the end of the reply: from now on the limit between tokens holds. */
  progress(): void;
  /** To be called while the model works unseen: silence is to be expected, so the limit of the first token holds again. */
  silence(): void;
  /** Reads on to the end of the body, for a short time only, so that the connection can be used again. */
  drain(): Promise<void>;
  /** The beginning of the body as text, read for a short time only; what of it did not come is left out. */
  readErrorText(): Promise<string>;
}

// A server that has sent its last event closes the answer at once. Reconnecting costs about as much.
const DRAIN_MS = 100;
const ERROR_BODY_MS = 5000;
const REST_TIMEOUT = timeoutCode('rest');
const MAX_ERROR_BYTES = 65_536;

/**
 * Sends a request and reads its answer.
 *
 * @param read - Reads the answer. What it throws comes out, unless the request was interrupted: then that does.
 * @throws {@link index.LLMError | LLMError}, nothing else, as long as `read` throws nothing else.
 */
export async function post<Result>(request: PostRequest, read: (answer: Answer) => Promise<Result>): Promise<Result> {
  const { url, runtime, timeouts, redact } = request;
  const startedAt = runtime.now();
  const connection = createConnection();
  const watch = createWatch({ ...request, origin: url.origin, release: connection.release });
  try {
    throwIf(watch.interruption());
    const connectMs = Math.min(timeouts.connectMs, timeouts.firstTokenMs);
    watch.limit('api_key', connectMs, startedAt);
    const headers = await watch.wait(request.headers());
    watch.limit('connect', connectMs, startedAt);
    const response = await watch.wait(send(request, headers, connection.signal), discard);
    if (isRedirect(response)) throw redirectError(response, url, redact);
    watch.limit('first_token', timeouts.firstTokenMs, startedAt);
    const result = await read(createAnswer(response, { connection, watch, request }));
    // A time limit no longer matters now, an abort does.
    if (watch.interruption()?.kind === 'aborted') throwIf(watch.interruption());
    return result;
  } catch (thrown) {
    const interruption = watch.interruption();
    // What the reader made of an answer that it had waited for the rest of is worth more than that the rest did not come.
    throw interruption === undefined || interruption.code === REST_TIMEOUT ? thrown : interruption;
  } finally {
    watch.end();
    connection.release();
  }
}

function throwIf(error: LLMError | undefined): void {
  if (error !== undefined) throw error;
}

async function send(request: PostRequest, headers: Headers, signal: AbortSignal): Promise<Response> {
  const fetch = request.fetch ?? globalThis.fetch;
  try {
    return await fetch(request.url, { method: 'POST', headers, body: request.body, signal, redirect: 'manual' });
  } catch (thrown) {
    throw networkError(thrown, request);
  }
}

function networkError(thrown: unknown, { url, redact }: PostRequest): LLMError {
  return toNetworkError(thrown, { origin: url.origin, redact });
}

function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

function isRedirect({ status, type }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400);
}

function redirectError(response: Response, url: URL, redact: (text: string) => string): LLMError {
  discard(response);
  const target = response.headers.get('location');
  const where = target === null ? 'another address' : redact(target).slice(0, 200);
  const message = `${url.origin} redirects to ${where}. Redirects are not followed: set \`baseUrl\` to where the API is.`;
  return new LLMError({ kind: 'not_found', code: 'redirect', message, status: response.status });
}

/** What a request holds on to, and one way to let go of it. */
interface Connection {
  readonly signal: AbortSignal;
  /** The body's reader, as long as the body has not ended. */
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  isComplete: boolean;
  release(this: void): void;
}

function createConnection(): Connection {
  const controller = new AbortController();
  const connection: Connection = { signal: controller.signal, reader: undefined, isComplete: false, release };

  function release(): void {
    if (connection.isComplete) return;
    connection.isComplete = true;
    // Failing to cancel what is being thrown away concerns nobody.
    connection.reader?.cancel().catch(() => undefined);
    connection.reader = undefined;
    controller.abort();
  }

  return connection;
}

interface AnswerParts {
  readonly connection: Connection;
  readonly watch: Watch;
  readonly request: PostRequest;
}

function createAnswer(response: Response, { connection, watch, request }: AnswerParts): Answer {
  connection.reader = response.body?.getReader();
  let isFlowing = false;

  async function nextChunk(): Promise<Uint8Array | undefined> {
    throwIf(watch.interruption());
    const { reader } = connection;
    if (reader === undefined) return undefined;
    try {
      // An interruption cancels the reader, which settles this at once: no race per chunk is needed.
      const { done, value } = await reader.read();
      throwIf(watch.interruption());
      if (!done) return value;
    } catch (thrown) {
      throw networkError(thrown, request);
    }
    connection.reader = undefined;
    connection.isComplete = true;
    return undefined;
  }

  async function readFor(limitMs: number, onChunk: (chunk: Uint8Array) => boolean): Promise<void> {
    watch.limit('rest', limitMs);
    try {
      for (let chunk = await nextChunk(); chunk !== undefined; chunk = await nextChunk()) if (!onChunk(chunk)) return;
    } catch (error) {
      // Whatever else goes wrong here, what matters has been read already.
      if (watch.interruption()?.kind === 'aborted') throw error;
    }
  }

  return {
    status: response.status,
    headers: response.headers,
    get isOver() {
      return watch.interruption() !== undefined;
    },
    nextChunk,
    progress() {
      if (isFlowing) watch.touch();
      else watch.limit('between_tokens', request.timeouts.betweenTokensMs);
      isFlowing = true;
    },
    silence() {
      if (isFlowing) watch.limit('first_token', request.timeouts.firstTokenMs);
      isFlowing = false;
    },
    drain: () => readFor(DRAIN_MS, () => true),
    async readErrorText() {
      const pieces: Uint8Array[] = [];
      let length = 0;
      await readFor(ERROR_BODY_MS, (chunk) => {
        pieces.push(chunk);
        length += chunk.length;
        return length < MAX_ERROR_BYTES;
      });
      return decodeLoosely(concatBytes(pieces));
    },
  };
}
