/**
 * Cassette text: exchanges as a file that people read and `git diff` shows, and back.
 *
 * - Bytes come back as they were. A body is `json` where writing the value gives its very bytes again, else `text` with a
 *   line a line, else `base64`.
 * - A person may have changed it: lengths of pieces need not fit a body any more, everything else is checked.
 */
import { isUtf8 } from 'node:buffer';
import { isRecord, parseJson } from '../../core/json.ts';
import { CassetteError } from './errors.ts';
import type { Exchange, ExchangeEnd, GivenResponse, HeaderValues, Piece, SentRequest } from './exchange.ts';

const VERSION = 1;
const BASE64_LINE = 120;

/** Writes a file. */
export function writeCassetteText(exchanges: readonly Exchange[]): string {
  const written = exchanges.map(({ request, response, end }) => ({
    request: { ...request, body: writeBody(request.body) },
    response: response && {
      status: response.status,
      statusText: response.statusText,
      url: response.url,
      headers: response.headers,
      afterMs: response.afterMs,
      body: writeBody(response.body),
      pieces: response.pieces.map(({ length, afterMs }) => `${length}@${afterMs}`).join(' '),
    },
    end,
  }));
  return `${JSON.stringify({ turnloopCassette: VERSION, exchanges: written }, null, 2)}\n`;
}

function writeBody(body: Buffer): object | undefined {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) return { base64: body.toString('base64').match(new RegExp(`.{1,${BASE64_LINE}}`, 'g')) };
  const text = body.toString();
  const json = sameJson(text);
  return json === undefined ? { text: text.split('\n') } : { json };
}

/** The object or list whose JSON is this very text. */
function sameJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && JSON.stringify(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads a file.
 *
 * @param path - For messages.
 * @throws {@link CassetteError} saying where it is broken.
 */
export function readCassetteText(text: string, path: string): readonly Exchange[] {
  let file: unknown;
  try {
    // Some editors put a mark of the encoding before a text.
    file = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    const found = parseJson(text);
    throw broken(path, found.ok ? 'it is no JSON' : found.message, cause);
  }
  const version = isRecord(file) ? file['turnloopCassette'] : undefined;
  if (typeof version !== 'number' || version < VERSION) throw broken(path, 'it has no `turnloopCassette`, the number of its format');
  if (version > VERSION) {
    throw new CassetteError('cassette_version', `The cassette ${path} has format ${version}; this version of turnloop reads up to ${VERSION}. Update turnloop, or record anew.`);
  }
  const reader = new Reader(path);
  return reader.list(isRecord(file) ? file['exchanges'] : undefined, 'exchanges').map((exchange, index) => reader.exchange(exchange, `exchanges[${index}]`));
}

function broken(path: string, what: string, cause?: unknown): CassetteError {
  return new CassetteError('cassette_broken', `The cassette ${path} is broken: ${what}. Mend it, or delete it and record anew.`, cause);
}

/** Reads the values of one file. */
class Reader {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  exchange(value: unknown, at: string): Exchange {
    const { request, response, end } = this.#record(value, at);
    const read: Exchange = {
      request: this.#request(request, `${at}.request`),
      response: response === undefined ? undefined : this.#response(response, `${at}.response`),
      end: this.#end(end, `${at}.end`),
    };
    if (read.response === undefined && read.end.type === 'complete') throw this.#expected(`${at}.response`, 'an answer, since `end` says that it was complete', response);
    return read;
  }

  list(value: unknown, at: string): readonly unknown[] {
    if (!Array.isArray(value)) throw this.#expected(at, 'a list', value);
    return value;
  }

  #request(value: unknown, at: string): SentRequest {
    const { method, url, headers, body } = this.#record(value, at);
    return { method: this.#text(method, `${at}.method`), url: this.#text(url, `${at}.url`), headers: this.#headers(headers, `${at}.headers`), body: this.#body(body, `${at}.body`) };
  }

  #response(value: unknown, at: string): GivenResponse {
    const { status, statusText, url, headers, afterMs, body, pieces } = this.#record(value, at);
    const code = this.#number(status, `${at}.status`);
    if (!Number.isInteger(code) || code < 200 || code > 599) throw this.#expected(`${at}.status`, 'a whole number from 200 to 599', status);
    return {
      status: code,
      ...(statusText !== undefined && { statusText: this.#statusText(statusText, `${at}.statusText`) }),
      ...(url !== undefined && { url: this.#text(url, `${at}.url`) }),
      headers: this.#headers(headers, `${at}.headers`),
      afterMs: this.#number(afterMs, `${at}.afterMs`),
      body: this.#body(body, `${at}.body`),
      pieces: this.#pieces(pieces, `${at}.pieces`),
    };
  }

  #statusText(value: unknown, at: string): string {
    const text = this.#text(value, at);
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) throw this.#expected(at, 'a line of plain letters', value);
    return text;
  }

  #end(value: unknown, at: string): ExchangeEnd {
    const { type, afterMs: after, message, code } = this.#record(value, at);
    const afterMs = this.#number(after, `${at}.afterMs`);
    if (type === 'complete' || type === 'aborted') return { type, afterMs };
    if (type !== 'failed') throw this.#expected(`${at}.type`, '"complete", "aborted" or "failed"', type);
    return { type, afterMs, message: this.#text(message, `${at}.message`), code: code === undefined ? undefined : this.#text(code, `${at}.code`) };
  }

  #body(value: unknown, at: string): Buffer {
    if (value === undefined) return Buffer.alloc(0);
    const { json, text, base64 } = this.#record(value, at);
    if (json !== undefined) return Buffer.from(JSON.stringify(json));
    if (text !== undefined) return Buffer.from(this.#lines(text, `${at}.text`).join('\n'));
    const bytes = this.#lines(base64, `${at}.base64`).join('');
    if (!/^[\w+/]*={0,2}$/.test(bytes)) throw this.#expected(`${at}.base64`, 'base64', bytes);
    return Buffer.from(bytes, 'base64');
  }

  #pieces(value: unknown, at: string): readonly Piece[] {
    const words = this.#text(value, at).split(' ').filter((word) => word !== '');
    return words.map((word) => {
      const [, length, afterMs] = /^(\d+)@(\d+)$/.exec(word) ?? [];
      if (length === undefined || afterMs === undefined) throw this.#expected(at, 'made of pieces such as "120@35", bytes and milliseconds', word);
      return { length: Number(length), afterMs: Number(afterMs) };
    });
  }

  #headers(value: unknown, at: string): HeaderValues {
    const entries = Object.entries(this.#record(value, at)).map(([name, header]) => [name, this.#text(header, `${at}.${name}`)] as const);
    try {
      return Object.fromEntries(new Headers(Object.fromEntries(entries)));
    } catch {
      throw this.#expected(at, 'made of names and values that a header can have', value);
    }
  }

  #lines(value: unknown, at: string): readonly string[] {
    return this.list(value, at).map((line, index) => this.#text(line, `${at}[${index}]`));
  }

  #record(value: unknown, at: string): Record<string, unknown> {
    if (!isRecord(value)) throw this.#expected(at, 'an object', value);
    return value;
  }

  #text(value: unknown, at: string): string {
    if (typeof value !== 'string') throw this.#expected(at, 'a text', value);
    return value;
  }

  #number(value: unknown, at: string): number {
    if (typeof value !== 'number' || value < 0) throw this.#expected(at, 'a number of at least 0', value);
    return value;
  }

  #expected(at: string, what: string, value: unknown): CassetteError {
    const given = value === undefined ? 'is missing' : `is ${(JSON.stringify(value) ?? typeof value).slice(0, 60)}`;
    return broken(this.#path, `\`${at}\` should be ${what}, but ${given}`);
  }
}
