/**
 * Outgoing: reads what is given to `fetch` without using it up.
 *
 * - What is kept of a request is what it means, for people to read and for the next run to compare: a compressed body is
 *   unpacked, and the boundary of a form, which is another each time, always the same.
 * - What is sent is what was given.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { SentRequest } from './exchange.ts';
import { MASK } from './field-rules.ts';
import { keepHeaders } from './kept-headers.ts';

/** A request that is on its way. */
export interface Outgoing {
  readonly sent: SentRequest;
  /** All of them. */
  readonly headers: Headers;
  /** What to call `fetch` with. */
  readonly resend: Parameters<typeof globalThis.fetch>;
  readonly signal: AbortSignal | undefined;
}

/** Reads a request. @param keptHeaders - Names of more headers to keep. */
export async function readOutgoing(input: string | URL | Request, init: RequestInit | undefined, keptHeaders: ReadonlySet<string>): Promise<Outgoing> {
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  // Without the signal: a request listens to its own until it is collected.
  const request = new Request(input, { ...init, signal: null });
  const text = typeof init?.body === 'string' ? init.body : undefined;
  // A text can be sent again as it was given, with whatever else this platform's `fetch` knows; a stream cannot.
  const resend: Outgoing['resend'] = text === undefined ? [request.clone(), { signal: signal ?? null }] : [input, init];
  const body = text === undefined ? Buffer.from(await request.arrayBuffer()) : Buffer.from(text);
  const { method, headers } = request;
  const [url = ''] = request.url.split('#');
  return { sent: withoutBoundary({ method, url, headers: keepHeaders(headers, keptHeaders), body: unpacked(body, headers) }), headers, resend, signal };
}

const UNPACK: ReadonlyMap<string, (bytes: Buffer) => Buffer> = new Map([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
]);

/** A body without its compression. What cannot be unpacked cannot be searched for keys either: it is hidden. */
function unpacked(body: Buffer, headers: Headers): Buffer {
  const coding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (coding === 'identity' || body.length === 0) return body;
  try {
    return UNPACK.get(coding)?.(body) ?? Buffer.from(MASK);
  } catch {
    return Buffer.from(MASK);
  }
}

function withoutBoundary(request: SentRequest): SentRequest {
  const [, quoted, bare] = /^multipart\/.*;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(request.headers['content-type'] ?? '') ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) return request;
  const body = Buffer.from(request.body.toString('latin1').replaceAll(boundary, 'boundary'), 'latin1');
  return { ...request, headers: { ...request.headers, 'content-type': (request.headers['content-type'] ?? '').replace(boundary, 'boundary') }, body };
}
