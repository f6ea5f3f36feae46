/** Exchange: one request and what came of it, in bytes. What the recorder makes, the file keeps and the player plays. */

/** Headers by their names in small letters. */
export type HeaderValues = Readonly<Record<string, string>>;

/** A request as it was sent. */
export interface SentRequest {
  readonly method: string;
  /** The whole address, without a fragment. */
  readonly url: string;
  readonly headers: HeaderValues;
  readonly body: Buffer;
}

/** Bytes that came together. */
export interface Piece {
  readonly length: number;
  /** Milliseconds after the request. */
  readonly afterMs: number;
}

/** An answer, as far as it came. */
export interface GivenResponse {
  readonly status: number;
  /** Absent where there is none, as in HTTP/2. */
  readonly statusText?: string | undefined;
  /** Where it came from; absent where that is the address of the request. */
  readonly url?: string | undefined;
  readonly headers: HeaderValues;
  /** When status and headers came, in milliseconds after the request. */
  readonly afterMs: number;
  readonly body: Buffer;
  /** How the body came. */
  readonly pieces: readonly Piece[];
}

/** How an exchange ended, and when: with its answer, by the client, or by a connection that broke. */
export type ExchangeEnd =
  | { readonly type: 'complete' | 'aborted'; readonly afterMs: number }
  | { readonly type: 'failed'; readonly afterMs: number; readonly message: string; readonly code?: string | undefined };

/** One request and what came of it. */
export interface Exchange {
  readonly request: SentRequest;
  /** Absent where it ended before there was one. */
  readonly response?: GivenResponse | undefined;
  readonly end: ExchangeEnd;
}

/** The address and the parameters behind it, each as it is written. */
export function splitUrl(url: string): { readonly address: string; readonly parameters: readonly (readonly [name: string, value: string])[] } {
  const at = url.indexOf('?');
  if (at < 0) return { address: url, parameters: [] };
  const pairs = url.slice(at + 1).split('&').filter((pair) => pair !== '');
  return {
    address: url.slice(0, at),
    parameters: pairs.map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [name, value.join('=')];
    }),
  };
}
