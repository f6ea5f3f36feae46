/**
 * Recorder: sends requests on, and keeps what passes.
 *
 * - What the client gets is what the server sent, when it sent it: no piece waits for another, and nothing is read that
 *   the client does not ask for.
 * - Exchanges stand in the order in which their requests were sent, whichever ends first.
 */
import { causeCode, messageOf } from '../../core/errors.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { Exchange, ExchangeEnd, GivenResponse, HeaderValues, Piece, SentRequest } from './exchange.ts';

/** What a recorder needs to know. */
export interface RecorderOptions {
  readonly runtime: Runtime;
  /** Headers of an answer that are kept. */
  readonly keepHeaders: (headers: Headers) => HeaderValues;
}

/** An exchange while it is recorded. */
export class Recording {
  readonly #request: SentRequest;
  readonly #options: RecorderOptions;
  readonly #startedAt: number;
  #response: Omit<GivenResponse, 'body' | 'pieces'> | undefined;
  readonly #body: Buffer[] = [];
  readonly #pieces: Piece[] = [];
  #end: ExchangeEnd | undefined;

  constructor(request: SentRequest, options: RecorderOptions) {
    this.#request = request;
    this.#options = options;
    this.#startedAt = options.runtime.now();
  }

  /** What is known by now. What has not ended counts as aborted: its client no longer waits. */
  get exchange(): Exchange {
    const response = this.#response && { ...this.#response, body: Buffer.concat(this.#body), pieces: this.#pieces };
    return { request: this.#request, response, end: this.#end ?? { type: 'aborted', afterMs: this.#afterMs } };
  }

  /** Sends the request. */
  async send(fetch: () => Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
    let response: Response;
    try {
      response = await fetch();
    } catch (thrown) {
      this.#fail(thrown, signal);
      throw thrown;
    }
    const { status, statusText, headers } = response;
    const [url = ''] = response.url.split('#');
    this.#response = {
      status,
      ...(statusText !== '' && { statusText }),
      ...(url !== '' && url !== this.#request.url && { url }),
      headers: this.#options.keepHeaders(headers),
      afterMs: this.#afterMs,
    };
    if (response.body === null) {
      this.#end = { type: 'complete', afterMs: this.#afterMs };
      return response;
    }
    const passedOn = new Response(this.#passOn(response.body, signal), { status, statusText, headers });
    return Object.defineProperty(passedOn, 'url', { value: response.url });
  }

  #passOn(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read();
            if (done) {
              this.#end ??= { type: 'complete', afterMs: this.#afterMs };
              controller.close();
              return;
            }
            this.#add(value);
            controller.enqueue(value);
          } catch (thrown) {
            this.#fail(thrown, signal);
            controller.error(thrown);
          }
        },
        cancel: (reason) => {
          this.#end ??= { type: 'aborted', afterMs: this.#afterMs };
          return reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }

  #add(bytes: Uint8Array): void {
    // A copy: the client may do with its bytes what it likes.
    this.#body.push(Buffer.from(bytes));
    this.#pieces.push({ length: bytes.length, afterMs: this.#afterMs });
  }

  #fail(thrown: unknown, signal: AbortSignal | undefined): void {
    const afterMs = this.#afterMs;
    this.#end ??= signal?.aborted === true ? { type: 'aborted', afterMs } : { type: 'failed', afterMs, message: messageOf(thrown), code: causeCode(thrown) };
  }

  get #afterMs(): number {
    return Math.max(0, this.#options.runtime.now() - this.#startedAt);
  }
}
