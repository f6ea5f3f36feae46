/**
 * Options: those that every adapter over HTTP takes, checked and with their defaults filled in.
 *
 * - An option that no one knows is refused: it is a misspelt one, and would be ignored. So is a value of the wrong kind,
 *   which would be sent as it reads, or fail in the middle of a turn.
 * - Values stay out of the messages: they may be secrets.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMCapabilities } from '../../core/llm.ts';
import type { ErrorPattern } from './error-patterns.ts';
import type { RequestTimeouts } from './http.ts';
import { AMOUNT, CAPABILITIES, FIELDS, FLAG, FUNCTION, HEADERS, KEY, type OptionCheck, type OptionChecks, PATTERNS, TEXT, TIMEOUTS, WORD } from './option-checks.ts';

/** Options of every adapter over HTTP. */
export interface ProviderOptions {
  /** The server's name of the model. */
  readonly model: string;
  /**
   * The key; or a function that is asked for it at each request, and may wait. What it throws is an `auth` error, unless
   * it is an `LLMError` of its own. When a server refuses the key (401) it is asked once more, with `refresh` set: a token
   * that it has kept is to be made anew. If it then gives another key the request is sent again, once.
   *
   * @defaultValue none is sent: servers of one's own often want none
   */
  readonly apiKey?: string | ((ask: { readonly refresh: boolean }) => string | Promise<string>) | undefined;
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
  /** Every option there is, and what it may be. */
  readonly checks: Readonly<Record<Exclude<keyof Options, keyof ServerOptions>, OptionCheck>>;
  /** Fields of a request that `body` cannot replace, and what to give in their place. */
  readonly writtenFields: ReadonlyMap<string, string>;
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

const COMMON_CHECKS: Readonly<Record<keyof ServerOptions, OptionCheck>> = {
  model: WORD,
  apiKey: KEY,
  baseUrl: TEXT,
  systemPrompt: TEXT,
  provider: WORD,
  headers: HEADERS,
  body: FIELDS,
  fetch: FUNCTION,
  temperature: AMOUNT,
  stream: FLAG,
  timeouts: FIELDS,
  capabilities: FIELDS,
  errorPatterns: PATTERNS,
};

/** What options look like where the general example does not show it. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ['systemPrompt', "systemPrompt: 'Be brief.'"],
  ['headers', "headers: { 'x-title': 'My agent' }"],
  ['timeouts', 'timeouts: { firstTokenMs: 120_000 }'],
]);

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
  const checks = { ...COMMON_CHECKS, ...rules.checks };
  // Callers without types come here too.
  const given: unknown = options;
  assertNames(isRecord(given) ? given : {}, checks, { ...rules, prefix: '' });
  const model = isRecord(given) ? given['model'] : undefined;
  if (typeof model !== 'string' || model === '') throw new TypeError(`${rules.adapter} needs \`model\`: ${exampleCall(rules)}`);
  assertValues(options, checks, { ...rules, prefix: '' });
  for (const [prefix, group, groupChecks] of [['timeouts.', options.timeouts, TIMEOUTS], ['capabilities.', options.capabilities, CAPABILITIES]] as const) {
    assertNames({ ...group }, groupChecks, { ...rules, prefix });
    assertValues(group ?? {}, groupChecks, { ...rules, prefix });
  }
  assertBody(options.body ?? {}, rules);
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

/** @param option - One that the example is to show; a key if there is none. */
function exampleCall({ adapter, exampleModel, exampleKey }: Example, option = `apiKey: process.env.${exampleKey}`): string {
  return `${adapter}({ model: '${exampleModel}', ${option} })`;
}

/** An option that is misspelt would be ignored: the request would go elsewhere, or wait for ever. */
function assertNames(given: Readonly<Record<string, unknown>>, known: OptionChecks, { prefix, ...example }: Example & { readonly prefix: string }): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const meant = Object.keys(known).find((name) => name.toLowerCase() === unknown.toLowerCase());
  const hint = meant === undefined ? '' : ` Did you mean \`${prefix}${meant}\`?`;
  const takes = Object.keys(known).map((name) => prefix + name).join(', ');
  throw new TypeError(`${example.adapter} has no option \`${prefix}${unknown}\`.${hint} It takes ${takes}: ${exampleCall(example)}`);
}

/** What is of the wrong kind would be sent as it reads, or fail in the middle of a turn. */
function assertValues(given: object, checks: OptionChecks, { prefix, ...example }: Example & { readonly prefix: string }): void {
  for (const [name, check] of Object.entries(checks)) {
    const value: unknown = Reflect.get(given, name);
    const complaint = value === undefined ? undefined : check(value, prefix + name);
    if (complaint !== undefined) throw new TypeError(`${example.adapter}: ${complaint}: ${exampleCall(example, EXAMPLES.get(name))}`);
  }
}

/** Two fields of one name would be sent, or the conversation would not. */
function assertBody(body: NonNullable<ProviderOptions['body']>, { adapter, writtenFields }: Pick<OptionRules<ServerOptions>, 'adapter' | 'writtenFields'>): void {
  for (const [field, instead] of writtenFields) {
    if (Object.hasOwn(body, field)) throw new TypeError(`${adapter}: \`body.${field}\` is written from the request. Give ${instead} instead.`);
  }
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
