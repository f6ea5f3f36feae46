/** Options of `openAIChat`, checked and with their defaults filled in. */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMCapabilities } from '../../core/llm.ts';
import type { ErrorPattern } from '../shared/error-patterns.ts';
import type { RequestTimeouts } from '../shared/http.ts';
import { COMMON_IDS, type IdRules, NINE_CHARACTER_IDS } from '../shared/wire-ids.ts';
import type { ThinkingField } from './thinking.ts';

/** Options of `openAIChat`. */
export interface OpenAIChatOptions {
  /** The server's name of the model, such as `gpt-4.1-mini`. */
  readonly model: string;
  /**
   * The key, sent as `authorization: Bearer …`; or a function that is asked for it at each request, and may wait. What
   * it throws is an `auth` error.
   *
   * @defaultValue none is sent: servers of one's own often want none
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Address of the API, up to but without `/chat/completions`. @defaultValue `https://api.openai.com/v1` */
  readonly baseUrl?: string | undefined;
  /** What the model is told before the conversation. @defaultValue nothing */
  readonly systemPrompt?: string | undefined;
  /** Who answers: `LLM.provider`. Signatures and provider parts go back only to the same one. @defaultValue `openai` */
  readonly provider?: string | undefined;
  /** More headers; one of a name that is sent anyway replaces it. Values of secret-looking names stay out of errors. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** More fields of the request, sent as they are; one that is sent anyway is replaced, by undefined removed. */
  readonly body?: Readonly<Record<string, JsonValue | undefined>> | undefined;
  /** Sends the requests: for proxies, longer limits or tests. @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** @defaultValue the server's */
  readonly temperature?: number | undefined;
  /** Most tokens of a reply, thinking included; a request's own value comes first. @defaultValue the server's */
  readonly maxOutputTokens?: number | undefined;
  /** Name of the field for it. @defaultValue `max_completion_tokens` for OpenAI's newer models, else `max_tokens` */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** How hard the model thinks: sent as `reasoning_effort`, word for word. @defaultValue the server's */
  readonly thinkingEffort?: 'minimal' | 'low' | 'medium' | 'high' | (string & {}) | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model, so that
   * a running tool loop goes on thinking where it was and the request's beginning never changes; `drop` sends none.
   *
   * @defaultValue `keep`: servers that have no use for older thinking leave it out themselves
   */
  readonly thinkingHistory?: 'keep' | 'drop' | undefined;
  /**
   * The field for thinking that does not know which one it came in.
   *
   * @defaultValue the one that this server answered with last
   */
  readonly thinkingField?: ThinkingField | undefined;
  /** Whether to ask for a stream. @defaultValue true */
  readonly stream?: boolean | undefined;
  /** Time limits. */
  readonly timeouts?: RequestTimeouts | undefined;
  /** What the model can take; media it cannot take is replaced by a note. @defaultValue unknown: all is sent */
  readonly capabilities?: LLMCapabilities | undefined;
  /** Which ids of tool calls the server takes. @defaultValue `nine-characters` at Mistral's address, else `common` */
  readonly idFormat?: 'common' | 'nine-characters' | undefined;
  /** Wordings of errors that are not known here; asked first. */
  readonly errorPatterns?: readonly ErrorPattern[] | undefined;
}

/** Options, complete. */
export interface OpenAIChatConfig {
  readonly options: OpenAIChatOptions;
  readonly url: URL;
  readonly provider: string;
  readonly isStreamed: boolean;
  readonly timeouts: { readonly connectMs: number; readonly firstTokenMs: number; readonly betweenTokensMs: number };
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  readonly idRules: IdRules;
  /** The fields that are the same in every request. */
  readonly fixedFields: JsonObject;
}

const CORRECT_CALL = "openAIChat({ model: 'gpt-4.1-mini', apiKey: process.env.OPENAI_API_KEY })";

const OPTIONS: Readonly<Record<keyof OpenAIChatOptions, true>> = {
  model: true,
  apiKey: true,
  baseUrl: true,
  systemPrompt: true,
  provider: true,
  headers: true,
  body: true,
  fetch: true,
  temperature: true,
  maxOutputTokens: true,
  maxTokensField: true,
  thinkingEffort: true,
  thinkingHistory: true,
  thinkingField: true,
  stream: true,
  timeouts: true,
  capabilities: true,
  idFormat: true,
  errorPatterns: true,
};
const TIMEOUTS: Readonly<Record<keyof RequestTimeouts, true>> = { connectMs: true, firstTokenMs: true, betweenTokensMs: true };

const DEFAULT_BASE_URL = 'https://api.openai.com/v1';
const PATH = '/chat/completions';
const DEFAULT_CONNECT_MS = 30_000;
const DEFAULT_FIRST_TOKEN_MS = 290_000;
const DEFAULT_BETWEEN_TOKENS_MS = 60_000;

/** OpenAI's models that refuse `max_tokens`; also behind a gateway's prefix. */
const COMPLETION_TOKENS_MODEL = /(?:^|\/)(?:o[1-9]|gpt-[5-9]|codex)/;
const PRIVATE_HOST = /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\]|\[f[cd])|\.(?:local|internal)$|^[^.:]+$/;

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(options: OpenAIChatOptions): OpenAIChatConfig {
  // Callers without types come here too.
  const given: unknown = options;
  assertNames(isRecord(given) ? given : {}, OPTIONS, '');
  const model = isRecord(given) ? given['model'] : undefined;
  if (typeof model !== 'string' || model === '') throw new TypeError(`openAIChat needs \`model\`: ${CORRECT_CALL}`);
  const timeouts: unknown = options.timeouts ?? {};
  if (!isRecord(timeouts)) throw new TypeError(`openAIChat: \`timeouts\` is not an object. It takes ${namesOf(TIMEOUTS, 'timeouts.')}.`);
  assertNames(timeouts, TIMEOUTS, 'timeouts.');
  assertTexts(options);
  const url = chatUrl(options.baseUrl ?? DEFAULT_BASE_URL);
  const isStreamed = options.stream ?? true;
  return {
    options,
    url,
    provider: options.provider ?? 'openai',
    isStreamed,
    timeouts: resolveTimeouts(options.timeouts ?? {}, url, isStreamed),
    maxTokensField: options.maxTokensField ?? (COMPLETION_TOKENS_MODEL.test(model) ? 'max_completion_tokens' : 'max_tokens'),
    idRules: usesNineCharacters(options, url) ? NINE_CHARACTER_IDS : COMMON_IDS,
    fixedFields: fixedFields(options, isStreamed),
  };
}

/** An option that is misspelt would be ignored: the request would go elsewhere, or wait for ever. */
function assertNames(given: Readonly<Record<string, unknown>>, known: Readonly<Record<string, true>>, path: string): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const meant = Object.keys(known).find((name) => name.toLowerCase() === unknown.toLowerCase());
  const hint = meant === undefined ? '' : ` Did you mean \`${path}${meant}\`?`;
  throw new TypeError(`openAIChat has no option \`${path}${unknown}\`.${hint} It takes ${namesOf(known, path)}: ${CORRECT_CALL}`);
}

/** What is neither would be sent as it reads, or not at all. Values stay out of the messages: they may be secrets. */
function assertTexts({ apiKey, systemPrompt, headers }: { readonly [Name in keyof OpenAIChatOptions]?: unknown }): void {
  if (typeof (apiKey ?? '') !== 'string' && typeof apiKey !== 'function') {
    throw new TypeError(`openAIChat: \`apiKey\` must be a text or a function that gives one: ${CORRECT_CALL}`);
  }
  if (typeof (systemPrompt ?? '') !== 'string') {
    throw new TypeError("openAIChat: `systemPrompt` must be a text: openAIChat({ model: 'gpt-4.1-mini', systemPrompt: 'Be brief.' })");
  }
  const isPlain = isRecord(headers ?? {}) && !(Symbol.iterator in Object(headers ?? {}));
  const wrong = isPlain ? Object.entries(headers ?? {}).find(([, value]) => typeof value !== 'string')?.[0] : 'headers';
  if (wrong === undefined) return;
  const what = isPlain ? `header \`${wrong}\` must be a text` : '`headers` must be a plain object of texts';
  throw new TypeError(`openAIChat: ${what}: openAIChat({ model: 'gpt-4.1-mini', headers: { 'x-title': 'My agent' } })`);
}

function namesOf(known: Readonly<Record<string, true>>, path: string): string {
  return Object.keys(known).map((name) => path + name).join(', ');
}

function chatUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  // The address stays out of the message: its query may hold a key.
  if (url === undefined || !url.protocol.startsWith('http') || url.username !== '' || url.password !== '') {
    throw new TypeError(`openAIChat: \`baseUrl\` must be an http(s) address without user or password, such as '${DEFAULT_BASE_URL}'.`);
  }
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith(PATH) ? path : path + PATH;
  url.hash = '';
  return url;
}

function resolveTimeouts(timeouts: RequestTimeouts, url: URL, isStreamed: boolean): OpenAIChatConfig['timeouts'] {
  const firstTokenMs = timeouts.firstTokenMs ?? DEFAULT_FIRST_TOKEN_MS;
  const connectMs = timeouts.connectMs ?? (PRIVATE_HOST.test(url.hostname) ? firstTokenMs : DEFAULT_CONNECT_MS);
  return {
    // An answer that is not streamed starts when the reply is ready.
    connectMs: isStreamed ? connectMs : Math.max(connectMs, firstTokenMs),
    firstTokenMs,
    betweenTokensMs: timeouts.betweenTokensMs ?? DEFAULT_BETWEEN_TOKENS_MS,
  };
}

function usesNineCharacters({ idFormat }: OpenAIChatOptions, url: URL): boolean {
  return idFormat === undefined ? /(?:^|\.)mistral\.ai$/.test(url.hostname) : idFormat === 'nine-characters';
}

function fixedFields({ model, temperature, thinkingEffort, body }: OpenAIChatOptions, isStreamed: boolean): JsonObject {
  const fields: Record<string, JsonValue | undefined> = {
    model,
    ...(isStreamed ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
    temperature,
    reasoning_effort: thinkingEffort,
    ...body,
  };
  const known = Object.entries(fields).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined);
  return Object.fromEntries(known);
}
