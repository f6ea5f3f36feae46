/**
 * Redaction of an exchange: the rules of the user, then everything that is known to be secret. Pure.
 *
 * What need not be hidden keeps its bytes. A body is looked at line by line: the data of an event is JSON, as a whole body
 * may be. Where a line changes its length, the pieces that the body came in are moved to fit.
 */
import { isUtf8 } from 'node:buffer';
import { type Exchange, type ExchangeEnd, type GivenResponse, type HeaderValues, type Piece, splitUrl } from './exchange.ts';
import { type ApplyRules, MASK } from './field-rules.ts';
import { isSecretName, type Secrets } from './secrets.ts';

/** What hides things. */
export interface Redaction {
  readonly rules: ApplyRules;
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
  const pairs = parameters.map(([name, value]) => `${name}=${isSecretName(name) ? MASK : String(rules(value, `?${name}`))}`);
  const clean = String(rules(address, 'url'));
  return secrets.replace(pairs.length === 0 ? clean : `${clean}?${pairs.join('&')}`);
}

function redactHeaders(headers: HeaderValues, { secrets }: Redaction): HeaderValues {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSecretName(name) ? MASK : secrets.replace(value)]));
}

function redactResponse(response: GivenResponse, redaction: Redaction): GivenResponse {
  const { body, move } = redactBody(response.body, redaction);
  return { ...response, headers: redactHeaders(response.headers, redaction), body, pieces: movePieces(response.pieces, move) };
}

function redactEnd(end: ExchangeEnd, { secrets }: Redaction): ExchangeEnd {
  return end.type === 'failed' ? { ...end, message: secrets.replace(end.message) } : end;
}

interface RedactedBody {
  readonly body: Buffer;
  /** Where a place of the old body is in the new one. To be asked in ascending order. */
  readonly move: (offset: number) => number;
}

function redactBody(body: Buffer, redaction: Redaction): RedactedBody {
  // Bytes that are no text are read as if each were a character: a key is found in them as well.
  const encoding = isUtf8(body) ? 'utf8' : 'latin1';
  const text = body.toString(encoding);
  const lines = parsed(text) === undefined ? text.split(/(?<=\n)/) : [text];
  const clean = lines.map((line) => Buffer.from(redactLine(line, redaction), encoding));
  return { body: Buffer.concat(clean), move: mover(lines.map((line) => Buffer.byteLength(line, encoding)), clean.map(({ length }) => length)) };
}

function redactLine(line: string, { rules, secrets }: Redaction): string {
  const [prefix = ''] = /^(?:data: ?)?/.exec(line) ?? [];
  const value = parsed(line.slice(prefix.length));
  if (value === undefined) return secrets.replace(String(rules(line)));
  const changed = rules(value);
  return secrets.replace(changed === value ? line : `${prefix}${JSON.stringify(changed)}${/\r?\n?$/.exec(line)?.[0] ?? ''}`);
}

/** An object or a list; undefined for anything else. */
function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Within a line a place stays where it is, as far as the new line goes. */
function mover(before: readonly number[], after: readonly number[]): RedactedBody['move'] {
  let [line, from, to] = [0, 0, 0];
  return (offset) => {
    for (let length = before[line]; length !== undefined && offset >= from + length; length = before[line]) {
      from += length;
      to += after[line] ?? 0;
      line += 1;
    }
    return to + Math.min(offset - from, after[line] ?? 0);
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
