/**
 * Redaction of an exchange: the rules of the user, then everything that is known to be secret. Pure.
 *
 * - What need not be hidden keeps its bytes. A body is looked at part by part: it is JSON, or made of lines, or of events
 *   whose data is JSON. Where a part changes its length, the pieces that the body came in are moved to fit.
 * - JSON that broke off has no paths any more: where paths are to be hidden, it is hidden whole.
 */
import { isUtf8 } from 'node:buffer';
import { type Exchange, type ExchangeEnd, type GivenResponse, type HeaderValues, type Piece, splitUrl } from './exchange.ts';
import { type FieldRules, MASK, parseLoosely } from './field-rules.ts';
import { isSecretName } from './secret-names.ts';
import type { Secrets } from './secrets.ts';

/** What hides things. */
export interface Redaction {
  readonly rules: FieldRules;
  readonly secrets: Secrets;
}

/** The exchange without what is to be hidden. */
export function redactExchange({ request, response, end }: Exchange, redaction: Redaction): Exchange {
  return {
    request: {
      method: request.method,
      url: redactUrl(request.url, redaction),
      headers: redactHeaders(request.headers, redaction),
      body: redactBody(request.body, redaction).body,
    },
    response: response && redactResponse(response, redaction),
    end: redactEnd(end, redaction),
  };
}

function redactUrl(url: string, { rules, secrets }: Redaction): string {
  const { address, parameters } = splitUrl(url);
  const pairs = parameters.map(([name, value]) => `${name}=${isSecretName(name) ? MASK : String(rules.apply(value, `?${name}`))}`);
  const clean = String(rules.apply(address, 'url'));
  return secrets.replace(pairs.length === 0 ? clean : `${clean}?${pairs.join('&')}`);
}

function redactHeaders(headers: HeaderValues, { secrets }: Redaction): HeaderValues {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSecretName(name) ? MASK : secrets.replace(value)]));
}

function redactResponse(response: GivenResponse, redaction: Redaction): GivenResponse {
  const { body, move } = redactBody(response.body, redaction);
  const { url, statusText } = response;
  return {
    ...response,
    ...(url !== undefined && { url: redactUrl(url, redaction) }),
    ...(statusText !== undefined && { statusText: redaction.secrets.replace(statusText) }),
    headers: redactHeaders(response.headers, redaction),
    body,
    pieces: movePieces(response.pieces, move),
  };
}

function redactEnd(end: ExchangeEnd, { secrets }: Redaction): ExchangeEnd {
  if (end.type !== 'failed') return end;
  return { ...end, message: secrets.replace(end.message), code: end.code === undefined ? undefined : secrets.replace(end.code) };
}

interface RedactedBody {
  readonly body: Buffer;
  /** Where a place of the old body is in the new one. To be asked in ascending order. */
  readonly move: (offset: number) => number;
}

function redactBody(body: Buffer, redaction: Redaction): RedactedBody {
  const { text, encoding } = readText(body);
  const parts = parseLoosely(text) === undefined ? text.split(PART_END) : [text];
  const clean = parts.map((part) => Buffer.from(redactPart(part, redaction), encoding));
  return { body: Buffer.concat(clean), move: mover(parts.map((part) => Buffer.byteLength(part, encoding)), clean.map(({ length }) => length)) };
}

/** The text of a body. Bytes that are no text are read as if each were a character: a key is found in them as well. */
export function readText(body: Buffer): { readonly text: string; readonly encoding: 'utf8' | 'latin1' } {
  const encoding = isUtf8(body) ? 'utf8' : 'latin1';
  return { text: body.toString(encoding), encoding };
}

/** Behind a line, but not between two that hold the data of one event. */
const PART_END = /(?<=\n)(?!data:)|(?<=\n)(?<!(?:^|\n)data:[^\n]*\n)/;
const DATA = /(?<=^|\n)data: ?/g;

function redactPart(part: string, { rules, secrets }: Redaction): string {
  const isData = part.startsWith('data:');
  const text = isData ? part.replace(DATA, '') : part;
  const value = parseLoosely(text);
  if (value === undefined) {
    const lines = part.split(/(?<=\n)/);
    // Data of several events, with nothing between them.
    if (isData && lines.length > 1) return lines.map((line) => redactPart(line, { rules, secrets })).join('');
    return secrets.replace(String(rules.hasPaths && BROKEN_JSON.test(text) ? MASK : rules.apply(part)));
  }
  const changed = rules.apply(value);
  return secrets.replace(changed === value ? part : `${isData ? 'data: ' : ''}${JSON.stringify(changed)}${/[\r\n]*$/.exec(part)?.[0] ?? ''}`);
}

/** What can only be the beginning of an object or a list, as far as it is one. */
const BROKEN_JSON = /^\s*(?:\{|\[\s*[[{"])/;

/** Within a part a place stays where it is, as far as the new part goes. */
function mover(before: readonly number[], after: readonly number[]): RedactedBody['move'] {
  let [part, from, to] = [0, 0, 0];
  return (offset) => {
    for (let length = before[part]; length !== undefined && offset >= from + length; length = before[part]) {
      from += length;
      to += after[part] ?? 0;
      part += 1;
    }
    return to + Math.min(offset - from, after[part] ?? 0);
  };
}

function movePieces(pieces: readonly Piece[], move: (offset: number) => number): readonly Piece[] {
  let [end, moved] = [0, 0];
  return pieces.map(({ length, afterMs }) => {
    const start = moved;
    end += length;
    moved = move(end);
    return { length: moved - start, afterMs };
  });
}
