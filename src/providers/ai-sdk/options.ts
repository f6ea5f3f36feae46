/** Options of `aiSdk`, checked and with their defaults filled in. */
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { LLMCapabilities } from '../../core/llm.ts';
import type { ErrorPattern } from '../shared/error-patterns.ts';
import type { RequestTimeouts } from '../shared/http.ts';
import { COMMON_IDS, type IdRules, NINE_CHARACTER_IDS } from '../shared/wire-ids.ts';
import type { AiSdkModel } from './model.ts';

/** Call settings of the AI SDK that are handed to the model as they are. */
export interface AiSdkSettings {
  /** Nucleus sampling. */
  readonly topP?: number | undefined;
  /** Samples from the likeliest tokens only, as many as this. */
  readonly topK?: number | undefined;
  /** Against repeating what the prompt says. */
  readonly presencePenalty?: number | undefined;
  /** Against repeating words. */
  readonly frequencyPenalty?: number | undefined;
  /** Texts that end the reply. */
  readonly stopSequences?: readonly string[] | undefined;
  /** Whole number that makes sampling repeatable, where the provider can. */
  readonly seed?: number | undefined;
}

/** Options of `aiSdk`. Keys, addresses and `fetch` are options of the SDK's provider. */
export interface AiSdkOptions {
  /** What the model is told before the conversation. @defaultValue nothing */
  readonly systemPrompt?: string | undefined;
  /**
   * Who answers: `LLM.provider`. Signatures and provider parts go back only to the same one.
   *
   * @defaultValue the model's `provider`, whole, such as `openai.responses`: what one of a company's APIs attaches to
   * its replies another one does not take
   */
  readonly provider?: string | undefined;
  /** `LLM.modelId`: what a part is said to come from. @defaultValue the model's `modelId` */
  readonly modelId?: string | undefined;
  /** More headers, for providers over HTTP. Values of secret-looking names stay out of errors. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The SDK's `providerOptions`, sent with each request: thinking, caching and what else only one provider knows. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>> | undefined;
  /**
   * Tools that the provider runs itself, by name, as the SDK's providers make them:
   * `{ web_search: anthropic.tools.webSearch_20250305({ maxUses: 3 }) }`. What they find is kept in the reply as
   * provider parts and goes back with it.
   */
  readonly providerTools?: Readonly<Record<string, object>> | undefined;
  /** More call settings of the SDK. */
  readonly settings?: AiSdkSettings | undefined;
  /** @defaultValue the provider's */
  readonly temperature?: number | undefined;
  /** Most tokens of a reply, thinking included; a request's own value comes first. @defaultValue the provider's */
  readonly maxOutputTokens?: number | undefined;
  /** How hard the model thinks; for models of specification v4, others take it in `providerOptions`. @defaultValue the provider's */
  readonly thinkingEffort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | (string & {}) | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model, `drop`
   * sends none.
   *
   * @defaultValue `keep`: providers that have no use for older thinking leave it out themselves
   */
  readonly thinkingHistory?: 'keep' | 'drop' | undefined;
  /**
   * Whether to ask for a stream. One that ends without a reason for the end counts as cut. With a model of specification
   * v2 that is also one whose reason its package does not know: both are `unknown` there. Where a server always ends so,
   * do not stream: a whole answer needs no reason.
   *
   * @defaultValue true
   */
  readonly stream?: boolean | undefined;
  /**
   * Time limits. A model often hands out its stream with the first token only, so `connectMs` is `firstTokenMs` unless
   * it is set.
   */
  readonly timeouts?: RequestTimeouts | undefined;
  /**
   * What the model can take; media it cannot take is replaced by a note, as is media at an address that is not among
   * the model's `supportedUrls`: its server would not fetch it.
   *
   * @defaultValue unknown: all else is sent
   */
  readonly capabilities?: LLMCapabilities | undefined;
  /** Which ids of tool calls the server takes. @defaultValue `nine-characters` for Mistral, else `common` */
  readonly idFormat?: 'common' | 'nine-characters' | undefined;
  /**
   * Where the media of a tool's output goes: into the result, or into a user message after the results. A provider
   * that takes none in results would show the model its base64.
   *
   * @defaultValue `result` for the providers known to take it (Anthropic, Google, Bedrock, OpenAI's Responses), else `user`
   */
  readonly toolResultMedia?: 'result' | 'user' | undefined;
  /** Wordings of errors that are not known here; asked first. */
  readonly errorPatterns?: readonly ErrorPattern[] | undefined;
}

/** Options, complete. */
export interface AiSdkConfig {
  readonly options: AiSdkOptions;
  readonly model: AiSdkModel;
  readonly provider: string;
  readonly modelId: string;
  readonly isStreamed: boolean;
  readonly timeouts: Required<{ readonly [Name in keyof RequestTimeouts]: number }>;
  readonly idRules: IdRules;
  readonly putsMediaInResults: boolean;
}

const OPTIONS: Readonly<Record<keyof AiSdkOptions, true>> = {
  systemPrompt: true,
  provider: true,
  modelId: true,
  headers: true,
  providerOptions: true,
  providerTools: true,
  settings: true,
  temperature: true,
  maxOutputTokens: true,
  thinkingEffort: true,
  thinkingHistory: true,
  stream: true,
  timeouts: true,
  capabilities: true,
  idFormat: true,
  toolResultMedia: true,
  errorPatterns: true,
};
const SETTINGS: Readonly<Record<keyof AiSdkSettings, true>> = {
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  stopSequences: true,
  seed: true,
};
const TIMEOUTS: Readonly<Record<keyof RequestTimeouts, true>> = { connectMs: true, firstTokenMs: true, betweenTokensMs: true };
const TEXTS = ['systemPrompt', 'provider', 'modelId'] as const;
/** Options that are objects, with the names in them where these are fixed. */
const GROUPS: readonly (readonly [name: keyof AiSdkOptions, known: Readonly<Record<string, true>> | undefined])[] = [
  ['headers', undefined],
  ['providerOptions', undefined],
  ['providerTools', undefined],
  ['settings', SETTINGS],
  ['timeouts', TIMEOUTS],
];

const DEFAULT_FIRST_TOKEN_MS = 290_000;
const DEFAULT_BETWEEN_TOKENS_MS = 60_000;

/** Providers whose packages put media of a tool's output where the model sees it. The others write it as JSON text. */
const TAKES_MEDIA_IN_RESULTS = /anthropic|^google|bedrock|^(?:openai|azure|azure-openai)\.responses$|^gateway:(?:anthropic|google|openai)\//;
const IS_MISTRAL = /^(?:gateway:)?mistral/;

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(model: AiSdkModel, options: AiSdkOptions): AiSdkConfig {
  assertOptions(model, options);
  const firstTokenMs = options.timeouts?.firstTokenMs ?? DEFAULT_FIRST_TOKEN_MS;
  const route = model.provider === 'gateway' ? `gateway:${model.modelId}` : model.provider;
  return {
    options,
    model,
    provider: options.provider ?? model.provider,
    modelId: options.modelId ?? model.modelId,
    isStreamed: options.stream ?? true,
    timeouts: {
      connectMs: options.timeouts?.connectMs ?? firstTokenMs,
      firstTokenMs,
      betweenTokensMs: options.timeouts?.betweenTokensMs ?? DEFAULT_BETWEEN_TOKENS_MS,
    },
    idRules: (options.idFormat ?? (IS_MISTRAL.test(route) ? 'nine-characters' : 'common')) === 'common' ? COMMON_IDS : NINE_CHARACTER_IDS,
    putsMediaInResults: (options.toolResultMedia ?? (TAKES_MEDIA_IN_RESULTS.test(route) ? 'result' : 'user')) === 'result',
  };
}

/** Callers without types come here too. Values stay out of the messages: they may be secrets. */
function assertOptions(model: AiSdkModel, given: { readonly [Name in keyof AiSdkOptions]?: unknown }): void {
  if (!isRecord(given)) throw new TypeError(`aiSdk: the options must be an object: ${EXAMPLE}`);
  assertNames(given, OPTIONS, '');
  for (const name of TEXTS) {
    if (typeof (given[name] ?? '') !== 'string') throw new TypeError(`aiSdk: \`${name}\` must be a text: ${EXAMPLE}`);
  }
  for (const [name, known] of GROUPS) {
    const group: unknown = given[name] ?? {};
    if (!isRecord(group) || Symbol.iterator in group) throw new TypeError(`aiSdk: \`${name}\` must be a plain object: ${EXAMPLE}`);
    if (known !== undefined) assertNames(group, known, `${name}.`);
  }
  const { headers, providerTools, thinkingEffort } = given;
  const header = Object.entries(headers ?? {}).find(([, value]) => typeof value !== 'string')?.[0];
  if (header !== undefined) throw new TypeError(`aiSdk: header \`${header}\` must be a text: aiSdk(model, { headers: { 'x-title': 'My agent' } })`);
  const tool = Object.entries(providerTools ?? {}).find(([, value]) => !isProviderTool(value))?.[0];
  if (tool !== undefined) {
    throw new TypeError(
      `aiSdk: \`providerTools.${tool}\` is no tool that a provider runs: it takes such as anthropic.tools.webSearch_20250305(). Tools of your own are given to the agent.`,
    );
  }
  if (thinkingEffort !== undefined && model.specificationVersion !== 'v4') {
    throw new TypeError(
      `aiSdk: \`thinkingEffort\` is for models of specification v4; one of ${model.specificationVersion} takes it as its provider calls it: aiSdk(model, { providerOptions: { openai: { reasoningEffort: 'low' } } })`,
    );
  }
}

const EXAMPLE = "aiSdk(openai('gpt-5'), { systemPrompt: 'Be brief.' })";

function isProviderTool(value: unknown): boolean {
  return isRecord(value) && typeof value['id'] === 'string' && isRecord(value['args']);
}

/** An option that is misspelt would be ignored. */
function assertNames(given: Readonly<Record<string, unknown>>, known: Readonly<Record<string, true>>, prefix: string): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const meant = Object.keys(known).find((name) => name.toLowerCase() === unknown.toLowerCase());
  const hint = meant === undefined ? '' : ` Did you mean \`${prefix}${meant}\`?`;
  const names = Object.keys(known).map((name) => prefix + name).join(', ');
  throw new TypeError(`aiSdk has no option \`${prefix}${unknown}\`.${hint} It takes ${names}: ${EXAMPLE}`);
}
