/** Options of `createCassette`, checked and with their defaults filled in. */
import { fileURLToPath } from 'node:url';
import { assertOptions } from '../../core/assert.ts';
import { type Runtime, systemRuntime } from '../../core/runtime.ts';
import { compileRules, type FieldRule, type FieldRules } from './field-rules.ts';
import type { PlayOptions } from './player.ts';

/** Options of {@link createCassette}. */
export interface CassetteOptions {
  /**
   * `auto` replays the file if there is one, and else records it. `record` records anew whatever is there. `replay` never
   * touches the network: it needs the file.
   *
   * @defaultValue `auto`; on a build server `replay` is the safe choice
   */
  readonly mode?: 'auto' | 'record' | 'replay' | undefined;
  /**
   * What else must not be in the file, in requests and answers: paths, whose values are replaced by `[redacted]`, and
   * functions, which are given every text with its path and return what is kept of it. A masked value matches any other.
   *
   * Keys, cookies and ids of organisations and requests are hidden without asking: headers and parameters of such names,
   * members of a body that can be nothing else (`api_key`, `authorization`, `access_token`, `password`), and their values
   * (from 8 characters on) wherever else they stand. What a server streams in fragments is not put together: a key that is
   * spread over several deltas is for a function to find.
   *
   * A path is written as messages write it: `metadata.user_id`, `messages[0].content`, `tools[*].name`, `metadata.*`,
   * `**.email` at any depth, `["a name"]` for one that is no word; `?name` is a parameter of the address. It leads on into
   * a text that holds JSON, such as the arguments of a call. A function is given such a text whole, and the address itself
   * as `url`. JSON that broke off has no paths: where there is one to hide, it is hidden whole.
   *
   * @defaultValue nothing else
   */
  readonly redact?: readonly FieldRule[] | undefined;
  /**
   * What is kept but not compared: values that change with every run. Paths and functions as for `redact`:
   * `['metadata.date', (text) => text.replace(/\d{4}-\d\d-\d\d/g, 'DATE')]`.
   *
   * @defaultValue nothing: method, address and body are compared, in any order of keys
   */
  readonly ignore?: readonly FieldRule[] | undefined;
  /**
   * More headers to keep, of requests and answers; for reading, since headers are not compared. Values of secret names are
   * masked all the same.
   *
   * @defaultValue what adapters and readers look at, such as `content-type`, `retry-after` and `anthropic-version`
   */
  readonly headers?: readonly string[] | undefined;
  /** Whether a replay answers at once or takes the time that the server took. @defaultValue `at_once` */
  readonly timing?: 'at_once' | 'recorded' | undefined;
  /**
   * How a replay cuts bodies: a number of bytes, or a function that is given how many are left and says how many the next
   * piece has. To show that a reader takes them in any pieces.
   *
   * @defaultValue as they came when they were recorded
   */
  readonly pieces?: number | ((bytesLeft: number) => number) | undefined;
  /** Sends requests while recording. @defaultValue the global `fetch` of the moment */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Clock and timers, for `timing` and for the times that are recorded. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/** Options, ready for use. */
export interface ResolvedOptions {
  readonly mode: 'auto' | 'record' | 'replay';
  readonly redact: FieldRules;
  readonly ignore: FieldRules;
  readonly headers: ReadonlySet<string>;
  readonly play: PlayOptions;
  readonly fetch: typeof globalThis.fetch;
  readonly runtime: Runtime;
}

/** A token, as HTTP has it (RFC 9110, 5.6.2). */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const EXAMPLE = "await createCassette('test/cassettes/weather.json', { mode: 'replay' })";
const ARGUMENT = { taker: 'createCassette', example: EXAMPLE };

const OPTIONS: Readonly<Record<keyof CassetteOptions, true>> = {
  mode: true,
  redact: true,
  ignore: true,
  headers: true,
  timing: true,
  pieces: true,
  fetch: true,
  runtime: true,
};

/** @throws TypeError naming the option that is wrong. */
export function resolveOptions(options: CassetteOptions): ResolvedOptions {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { mode = 'auto', redact = [], ignore = [], headers = [], timing = 'at_once', pieces, fetch, runtime = systemRuntime } = options;
  check(['auto', 'record', 'replay'].includes(mode), "`mode` must be 'auto', 'record' or 'replay'");
  check(['at_once', 'recorded'].includes(timing), "`timing` must be 'at_once' or 'recorded'");
  check(Array.isArray(redact), '`redact` must be a list');
  check(Array.isArray(ignore), '`ignore` must be a list');
  check(Array.isArray(headers) && headers.every((name) => typeof name === 'string' && HEADER_NAME.test(name)), '`headers` must be a list of names of headers');
  check(pieces === undefined || typeof pieces === 'function' || (Number.isSafeInteger(pieces) && pieces > 0), '`pieces` must be a whole number of at least 1, or a function');
  check((['now', 'setTimer', 'random', 'createId'] as const).every((name) => typeof runtime[name] === 'function'), '`runtime` must be a Runtime, such as virtualRuntime()');
  check(fetch === undefined || typeof fetch === 'function', '`fetch` must be a function');
  return {
    mode,
    redact: compileRules(redact, 'redact'),
    ignore: compileRules(ignore, 'ignore'),
    headers: new Set(headers.map((name) => name.toLowerCase())),
    play: { timing, pieceLength: typeof pieces === 'number' ? () => pieces : pieces, runtime },
    fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
    runtime,
  };
}

/** Where the file is. @throws TypeError if it is nowhere. */
export function resolvePath(path: unknown): string {
  if (typeof path === 'string' && path !== '') return path;
  if (path instanceof URL && path.protocol === 'file:') return fileURLToPath(path);
  throw new TypeError(`createCassette needs the path of its file, not ${path === '' ? 'an empty text' : path instanceof URL ? path.protocol : typeof path}. For example: ${EXAMPLE}.`);
}

function check(isRight: boolean, complaint: string): void {
  if (!isRight) throw new TypeError(`createCassette: ${complaint}. For example: ${EXAMPLE}.`);
}
