/**
 * Match: which recorded request a request is, and what differs where it is none.
 *
 * - Compared are the method, the address, its parameters and the body; the order of keys and parameters is of no matter.
 * - What is masked in the recording equals anything, also nothing: a replay needs no key.
 */
import { isRecord } from '../../core/json.ts';
import { type SentRequest, splitUrl } from './exchange.ts';
import { fieldPath, itemPath } from './field-path.ts';
import { type ApplyRules, MASK } from './field-rules.ts';

/** One place where two requests differ; undefined is nothing at all. */
export interface Difference {
  /** `messages[0].content`, `?alt`, `url`, `method` or `body`. */
  readonly path: string;
  readonly recorded: unknown;
  readonly got: unknown;
}

/** A request as it is compared. */
export interface ComparedRequest {
  readonly method: string;
  readonly url: unknown;
  readonly parameters: ReadonlyMap<string, unknown>;
  readonly body: unknown;
}

/** Makes a request comparable. @param rules - Applied to it: what they mask is not compared. */
export function toCompared({ method, url, body }: SentRequest, rules: ApplyRules): ComparedRequest {
  const { address, parameters } = splitUrl(url);
  return {
    method,
    url: rules(address, 'url'),
    parameters: new Map(parameters.map(([name, value]) => [name, rules(value, `?${name}`)])),
    body: rules(readBody(body)),
  };
}

/** The value of JSON, else the text; undefined for no body. */
function readBody(body: Buffer): unknown {
  const text = body.toString();
  try {
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}

/** Every place where they differ, in the order of the recording. */
export function findDifferences(recorded: ComparedRequest, got: ComparedRequest): readonly Difference[] {
  const names = new Set([...recorded.parameters.keys(), ...got.parameters.keys()]);
  return [
    ...compare(recorded.method, got.method, 'method'),
    ...compare(recorded.url, got.url, 'url'),
    ...[...names].flatMap((name) => compare(recorded.parameters.get(name), got.parameters.get(name), `?${name}`)),
    ...compare(recorded.body, got.body, ''),
  ];
}

function compare(recorded: unknown, got: unknown, path: string): readonly Difference[] {
  if (recorded === got || recorded === MASK || got === MASK) return [];
  if (Array.isArray(recorded) && Array.isArray(got)) {
    const length = Math.max(recorded.length, got.length);
    return Array.from({ length }, (_, index) => compare(recorded[index], got[index], itemPath(path, index))).flat();
  }
  if (isRecord(recorded) && isRecord(got)) {
    const names = new Set([...Object.keys(recorded), ...Object.keys(got)]);
    return [...names].flatMap((name) => compare(own(recorded, name), own(got, name), fieldPath(path, name)));
  }
  if (typeof recorded === 'string' && typeof got === 'string' && fits(recorded, got)) return [];
  return [{ path: path === '' ? 'body' : path, recorded, got }];
}

function own(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Whether a text is the recorded one, with anything in the place of each mask. */
function fits(recorded: string, got: string): boolean {
  const [head = '', ...rest] = recorded.split(MASK);
  const tail = rest.pop();
  if (tail === undefined || !got.startsWith(head)) return false;
  let at = head.length;
  for (const part of rest) {
    const found = got.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return got.length - tail.length >= at && got.endsWith(tail);
}
