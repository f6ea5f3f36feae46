/**
 * Options: those that every adapter over HTTP takes, checked and with their defaults filled in.
 *
 * - An option that no one knows is refused: it is a misspelt one, and would be ignored.
 * - Values stay out of the messages: they may be secrets.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMCapabilities } from '../../core/llm.ts';
import type { ErrorPattern } from './error-patterns.ts';
import type { RequestTimeouts } from './http.ts';

/** Options of every adapter over HTTP. */
export interface ProviderOptions {
  /** The server's name of the model. */
  readonly model: string;
  /**
   * The key; or a function that is asked for it at each request, and may wait. What it throws is an `auth` error.
   *
   * @defaultValue none is sent: servers of one's own often want none
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** What the model is told before the conversation. @defaultValue nothing */
  readonly systemPrompt?: string | undefined;
  /** More headers; one of a name that is sent anyway replaces it. Values of secret-looking names stay out of errors. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** More fields of the request, sent as they are; one that is sent anyway is replaced, by undefined removed. */
  readonly body?: Readonly<Record<string, JsonValue | undefined>> | undefined;
  /** Sends the requests: for proxies, longer limits or tests. @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** @defaultValue the server's */
  readonly temperature?: number | undefined;
  /** Whether to ask for a stream. @defaultValue true */
  readonly stream?: boolean | undefined;
  /** Time limits. */
  readonly timeouts?: RequestTimeouts | undefined;
  /** What the model can take; media it cannot take is replaced by a note. @defaultValue unknown: all is sent */
  readonly capabilities?: LLMCapabilities | undefined;
  /** Wordings of errors that are not known here; asked first. */
  readonly errorPatterns?: readonly ErrorPattern[] | undefined;
}

/** Options of an adapter that also lets its server be chosen. */
interface ServerOptions extends ProviderOptions {
  readonly baseUrl?: string | undefined;
  readonly provider?: string | undefined;
}

/** What the options of one adapter are checked against. */
export interface OptionRules<Options> {
  /** Name of the function that takes them. */
  readonly adapter: string;
  /** A model, for examples. */
  readonly exampleModel: string;
  /** Name of the key's environment variable, for examples; this code never reads it. */
  readonly exampleKey: string;
  /** Every option there is. */
  readonly names: Readonly<Record<Exclude<keyof Options, keyof ServerOptions>, true>>;
  /** `LLM.provider`, where the options name no other. */
  readonly provider: string;
  /** Where the API is, where the options name no other place. */
  readonly baseUrl: string;
  /** Path of the endpoint behind the base. */
  readonly path: string;
}

/** What every adapter knows of itself after its options were checked. */
export interface ProviderConfig {
  readonly options: ProviderOptions;
  readonly provider: string;
  readonly model: string;
  /** The whole address of the endpoint. */
  readonly url: URL;
  readonly isStreamed: boolean;
  readonly timeouts: Required<{ readonly [Name in keyof RequestTimeouts]: number }>;
}

const COMMON_NAMES: Readonly<Record<keyof ServerOptions, true>> = {
  model: true,
  apiKey: true,
  baseUrl: true,
  systemPrompt: true,
  provider: true,
  headers: true,
  body: true,
  fetch: true,
  temperature: true,
  stream: true,
  timeouts: true,
  capabilities: true,
  errorPatterns: true,
};
const TIMEOUTS: Readonly<Record<keyof RequestTimeouts, true>> = { connectMs: true, firstTokenMs: true, betweenTokensMs: true };

const DEFAULT_CONNECT_MS = 30_000;
const DEFAULT_FIRST_TOKEN_MS = 290_000;
const DEFAULT_BETWEEN_TOKENS_MS = 60_000;

const PRIVATE_HOST = /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|\[f[cd])|\.(?:local|internal)$|^[^.:]+$/;

/**
 * Checks the options that all adapters share and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveProviderOptions<Options extends ServerOptions>(options: Options, rules: OptionRules<Options>): ProviderConfig {
  // Callers without types come here too.
  const given: unknown = options;
  const names: Readonly<Record<string, true>> = { ...COMMON_NAMES, ...rules.names };
  assertNames(isRecord(given) ? given : {}, names, { ...rules, prefix: '' });
  const model = isRecord(given) ? given['model'] : undefined;
  if (typeof model !== 'string' || model === '') throw new TypeError(`${rules.adapter} needs \`model\`: ${exampleCall(rules)}`);
  const timeouts: unknown = options.timeouts ?? {};
  if (!isRecord(timeouts)) throw new TypeError(`${rules.adapter}: \`timeouts\` is not an object. It takes ${namesOf(TIMEOUTS, 'timeouts.')}.`);
  assertNames(timeouts, TIMEOUTS, { ...rules, prefix: 'timeouts.' });
  assertTexts(options, rules);
  const url = endpointUrl(options.baseUrl ?? rules.baseUrl, rules);
  const isStreamed = options.stream ?? true;
  return {
    options,
    provider: options.provider ?? rules.provider,
    model,
    url,
    isStreamed,
    timeouts: resolveTimeouts(options.timeouts ?? {}, url, isStreamed),
  };
}

/** Request fields without those that are undefined, `extra` ones last and in the place of others of their name. */
export function definedFields(fields: Readonly<Record<string, JsonValue | undefined>>, extra: ProviderOptions['body']): JsonObject {
  const known = Object.entries({ ...fields, ...extra }).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined);
  return Object.fromEntries(known);
}

interface Example {
  readonly adapter: string;
  readonly exampleModel: string;
  readonly exampleKey: string;
}

function exampleCall({ adapter, exampleModel, exampleKey }: Example): string {
  return `${adapter}({ model: '${exampleModel}', apiKey: process.env.${exampleKey} })`;
}

/** An option that is misspelt would be ignored: the request would go elsewhere, or wait for ever. */
function assertNames(
  given: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, true>>,
  { prefix, ...example }: Example & { readonly prefix: string },
): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const meant = Object.keys(known).find((name) => name.toLowerCase() === unknown.toLowerCase());
  const hint = meant === undefined ? '' : ` Did you mean \`${prefix}${meant}\`?`;
  const takes = namesOf(known, prefix);
  throw new TypeError(`${example.adapter} has no option \`${prefix}${unknown}\`.${hint} It takes ${takes}: ${exampleCall(example)}`);
}

/** What is neither would be sent as it reads, or not at all. */
function assertTexts({ apiKey, systemPrompt, headers }: { readonly [Name in keyof ProviderOptions]?: unknown }, example: Example): void {
  const { adapter, exampleModel } = example;
  if (typeof (apiKey ?? '') !== 'string' && typeof apiKey !== 'function') {
    throw new TypeError(`${adapter}: \`apiKey\` must be a text or a function that gives one: ${exampleCall(example)}`);
  }
  if (typeof (systemPrompt ?? '') !== 'string') {
    throw new TypeError(`${adapter}: \`systemPrompt\` must be a text: ${adapter}({ model: '${exampleModel}', systemPrompt: 'Be brief.' })`);
  }
  const isPlain = isRecord(headers ?? {}) && !(Symbol.iterator in Object(headers ?? {}));
  const wrong = isPlain ? Object.entries(headers ?? {}).find(([, value]) => typeof value !== 'string')?.[0] : 'headers';
  if (wrong === undefined) return;
  const what = isPlain ? `header \`${wrong}\` must be a text` : '`headers` must be a plain object of texts';
  throw new TypeError(`${adapter}: ${what}: ${adapter}({ model: '${exampleModel}', headers: { 'x-title': 'My agent' } })`);
}

function namesOf(known: Readonly<Record<string, true>>, prefix: string): string {
  return Object.keys(known).map((name) => prefix + name).join(', ');
}

function endpointUrl(baseUrl: string, { adapter, baseUrl: usual, path }: { adapter: string; baseUrl: string; path: string }): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  // The address stays out of the message: its query may hold a key.
  if (url === undefined || !url.protocol.startsWith('http') || url.username !== '' || url.password !== '') {
    throw new TypeError(`${adapter}: \`baseUrl\` must be an http(s) address without user or password, such as '${usual}'.`);
  }
  const base = url.pathname.replace(/\/+$/, '');
  url.pathname = base.endsWith(path) ? base : base + path;
  url.hash = '';
  return url;
}

function resolveTimeouts(timeouts: RequestTimeouts, url: URL, isStreamed: boolean): ProviderConfig['timeouts'] {
  const firstTokenMs = timeouts.firstTokenMs ?? DEFAULT_FIRST_TOKEN_MS;
  const connectMs = timeouts.connectMs ?? (PRIVATE_HOST.test(url.hostname) ? firstTokenMs : DEFAULT_CONNECT_MS);
  return {
    // An answer that is not streamed starts when the reply is ready.
    connectMs: isStreamed ? connectMs : Math.max(connectMs, firstTokenMs),
    firstTokenMs,
    betweenTokensMs: timeouts.betweenTokensMs ?? DEFAULT_BETWEEN_TOKENS_MS,
  };
}
