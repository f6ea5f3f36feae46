/** Options of `anthropic`, checked and with their defaults filled in. */
import type { JsonObject } from '../../core/json.ts';
import { CHECKED_LATER, FLAG, OBJECTS, oneOf, TEXTS, TOKENS, WORD } from '../shared/option-checks.ts';
import { definedFields, type OptionRules, type ProviderConfig, type ProviderOptions, resolveProviderOptions } from '../shared/options.ts';
import type { HeaderList } from '../shared/request-headers.ts';
import type { PromptCache } from './cache-marks.ts';
import { outputCeiling, parseClaude, takesForcedCalls } from './claude-model.ts';
import type { ThinkingHistory } from './thinking-block.ts';
import { type ThinkingOptions, type ThinkingSettings, thinkingSettings } from './thinking-mode.ts';

/** Options of `anthropic`. */
export interface AnthropicOptions extends ProviderOptions, ThinkingOptions {
  /** Address of the API, up to but without `/messages`. @defaultValue `https://api.anthropic.com/v1` */
  readonly baseUrl?: string | undefined;
  /** Who answers: `LLM.provider`. Signatures and provider parts go back only to the same one. @defaultValue `anthropic` */
  readonly provider?: string | undefined;
  /** How the key is sent: as `x-api-key`, or as `authorization: Bearer`, which gateways want. @defaultValue `x-api-key` */
  readonly authScheme?: 'x-api-key' | 'bearer' | undefined;
  /**
   * Most tokens of a reply, thinking included; a request's own value comes first. Never more than the model writes.
   *
   * @defaultValue the most that the model writes by its name, from 4,096 to 128,000, or `capabilities.maxOutputTokens`;
   * 128,000 for a model that is not known
   */
  readonly maxOutputTokens?: number | undefined;
  /** Left out of requests that think and for models that refuse it, Claude 4.7 and later. @defaultValue the server's */
  readonly temperature?: number | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model, unchanged
   * and in its place; `signed` what has a signature; `drop` none. Newer Claude models (since 5.5; Fable and Mythos since
   * 5.1) take it only behind the very conversation that it came from, and some accounts are refused otherwise: the request
   * is sent once more, with the model told to leave out such thinking, and so are later ones. Thinking that a server
   * refuses for any other reason is left out from then on.
   *
   * @defaultValue `keep`; for Claude, which refuses unsigned thinking, without what was not signed and is no thinking of
   * a reply: a host made it up
   */
  readonly thinkingHistory?: 'keep' | 'signed' | 'drop' | undefined;
  /**
   * How long the server keeps the prompt: it is marked at the system prompt, the last tool and the two newest user turns.
   * With marks of yours (in `serverTools` or `body`) there are fewer, as the server takes four. `off` marks nothing.
   *
   * @defaultValue `5m`: an agent's next step mostly comes within that time, and longer costs more to write
   */
  readonly promptCache?: PromptCache | undefined;
  /**
   * Tools of the server, as it takes them, such as `{ type: 'web_search_20250305', name: 'web_search' }`. They follow
   * yours, but for one with the name of one of yours, which stands in its place (`bash_20250124`). What the server's
   * tools did is in the reply as provider parts.
   *
   * @defaultValue none
   */
  readonly serverTools?: readonly JsonObject[] | undefined;
  /** Names for the `anthropic-beta` header; those that an option needs are added. @defaultValue none */
  readonly betas?: readonly string[] | undefined;
  /** Whether a reply may hold several calls. @defaultValue true */
  readonly parallelTools?: boolean | undefined;
  /** Whether arguments are streamed as the model writes them, sooner and unchecked by the server. @defaultValue false */
  readonly eagerInput?: boolean | undefined;
}

/** Options, complete. */
export interface AnthropicConfig extends ProviderConfig {
  readonly options: AnthropicOptions;
  readonly thinking: ThinkingSettings;
  readonly thinkingHistory: ThinkingHistory;
  /** Most tokens that a reply may be asked to have. */
  readonly outputCeiling: number;
  /** Whether the model can be made to call a tool. */
  readonly takesForcedCalls: boolean;
  /** Whether requests can tell the server to leave out thinking of another conversation. */
  readonly takesBinding: boolean;
  /** Whether the model is known to be Claude, by its name. */
  readonly isClaude: boolean;
  /** Headers of every request beside the key. @param dropsUnbound - Whether the server is told to leave out thinking of another conversation. */
  readonly headersFor: (dropsUnbound: boolean) => HeaderList;
  /** The fields that are the same in every request. */
  readonly fixedFields: JsonObject;
}

const RULES: OptionRules<AnthropicOptions> = {
  adapter: 'anthropic',
  exampleModel: 'claude-sonnet-5-5',
  exampleKey: 'ANTHROPIC_API_KEY',
  provider: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  path: '/messages',
  checks: {
    authScheme: oneOf('x-api-key', 'bearer'),
    maxOutputTokens: TOKENS,
    thinkingEffort: WORD,
    thinkingBudget: CHECKED_LATER,
    thinkingMode: oneOf('adaptive', 'budget', 'off'),
    thinkingDisplay: oneOf('summarized', 'omitted'),
    thinkingHistory: oneOf('keep', 'signed', 'drop'),
    promptCache: oneOf('5m', '1h', 'off'),
    serverTools: OBJECTS,
    betas: TEXTS,
    parallelTools: FLAG,
    eagerInput: FLAG,
  },
  writtenFields: new Map([['messages', 'the messages of the request']]),
};

const VERSION = '2023-06-01';
const BETA_HEADER = 'anthropic-beta';
const INTERLEAVED_THINKING = 'interleaved-thinking-2025-05-14';
const THINKING_BINDING = 'thinking-binding-controls-2026-08-01';

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(options: AnthropicOptions): AnthropicConfig {
  const config = resolveProviderOptions(options, RULES);
  const claude = parseClaude(config.model);
  const thinking = thinkingSettings(options, claude);
  const headers = Object.entries(options.headers ?? {});
  const needed = thinking.needsInterleavedHeader ? [INTERLEAVED_THINKING] : [];
  const fixedHeaders = toHeaders(betaNames(options, headers, needed));
  const bindingHeaders = toHeaders(betaNames(options, headers, [...needed, THINKING_BINDING]));
  return {
    ...config,
    // Theirs are among the betas, and would replace ours.
    options: { ...options, headers: Object.fromEntries(headers.filter(([name]) => !isBetaHeader(name))) },
    thinking,
    thinkingHistory: options.thinkingHistory ?? (claude === undefined ? 'keep' : 'received'),
    outputCeiling: options.capabilities?.maxOutputTokens ?? outputCeiling(claude),
    takesForcedCalls: takesForcedCalls(claude),
    // A field of the host's takes the place of the one that says it.
    takesBinding: thinking.takesBinding && !Object.hasOwn(options.body ?? {}, 'thinking'),
    isClaude: claude !== undefined,
    headersFor: (dropsUnbound) => (dropsUnbound ? bindingHeaders : fixedHeaders),
    fixedFields: definedFields({ model: config.model, stream: config.isStreamed }, options.body),
  };
}

function toHeaders(betas: readonly string[]): HeaderList {
  return [['anthropic-version', VERSION], ...(betas.length === 0 ? [] : [[BETA_HEADER, betas.join(',')] as const])];
}

/** Each name once, in the order in which they were given. @param needed - What our own fields need. */
function betaNames({ betas }: AnthropicOptions, headers: readonly (readonly [string, string])[], needed: readonly string[]): readonly string[] {
  const given = headers.flatMap(([name, value]) => (isBetaHeader(name) ? value.split(',') : []));
  return [...new Set([...(betas ?? []), ...given, ...needed].map((name) => name.trim()))].filter((name) => name !== '');
}

function isBetaHeader(name: string): boolean {
  return name.toLowerCase() === BETA_HEADER;
}
