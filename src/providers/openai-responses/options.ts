/** Options of `openAIResponses`, checked and with their defaults filled in. */
import type { JsonObject } from '../../core/json.ts';
import { OBJECTS, oneOf, TOKENS, WORD } from '../shared/option-checks.ts';
import { definedFields, type OptionRules, type ProviderConfig, type ProviderOptions, resolveProviderOptions } from '../shared/options.ts';

/** Options of `openAIResponses`. */
export interface OpenAIResponsesOptions extends ProviderOptions {
  /** Address of the API, up to but without `/responses`. @defaultValue `https://api.openai.com/v1` */
  readonly baseUrl?: string | undefined;
  /** Who answers: `LLM.provider`. Encrypted thinking and provider parts go back only to the same one. @defaultValue `openai` */
  readonly provider?: string | undefined;
  /**
   * Who remembers the conversation.
   *
   * - `stateless`: we do. The server keeps nothing (`store: false`); each request holds the whole history, with the
   *   model's encrypted thinking.
   * - `incremental`: the server does (`store: true`; OpenAI keeps it for 30 days). A request names the response before it
   *   (`previous_response_id`) and holds only what came after. Whenever the history no longer goes on from what the
   *   server has (it was compacted or edited, comes from another process or model, or the server forgot it) it is sent
   *   whole. Which response answered what is remembered by this object only, for histories of about 32 million
   *   characters together. Costs the same tokens, and fewer bytes on their way.
   *
   * @defaultValue `stateless`: works with every server and account, and leaves nothing behind
   */
  readonly state?: 'stateless' | 'incremental' | undefined;
  /**
   * Most tokens of a reply, thinking included, at least 16; a request's own value comes first.
   *
   * @defaultValue the server's
   */
  readonly maxOutputTokens?: number | undefined;
  /** How hard the model thinks: sent as `reasoning.effort`, word for word. @defaultValue the server's */
  readonly thinkingEffort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | (string & {}) | undefined;
  /**
   * Asks for summaries of the thinking, which OpenAI shows in the place of it: sent as `reasoning.summary`.
   *
   * @defaultValue none are asked for: some models give them to verified organisations only, and refuse others
   */
  readonly thinkingSummary?: 'auto' | 'concise' | 'detailed' | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model, so that
   * a running tool loop goes on thinking where it was and the request's beginning never changes; `drop` sends none.
   *
   * @defaultValue `keep`: servers that have no use for older thinking leave it out themselves
   */
  readonly thinkingHistory?: 'keep' | 'drop' | undefined;
  /**
   * Tools that the server runs itself, as it takes them, such as `{ type: 'web_search' }`; they follow yours. What they
   * leave in a reply becomes provider parts. Calls that only you could answer (`local_shell`, `apply_patch`, `computer`)
   * become provider parts too, but nobody answers them, so they are not sent back.
   *
   * @defaultValue none
   */
  readonly serverTools?: readonly JsonObject[] | undefined;
}

/** Options, complete. */
export interface OpenAIResponsesConfig extends ProviderConfig {
  readonly options: OpenAIResponsesOptions;
  readonly isIncremental: boolean;
  readonly keepsThinking: boolean;
  /** The fields that are the same in every request, `include` and those of `body` aside. */
  readonly fixedFields: JsonObject;
}

const RULES: OptionRules<OpenAIResponsesOptions> = {
  adapter: 'openAIResponses',
  exampleModel: 'gpt-5-mini',
  exampleKey: 'OPENAI_API_KEY',
  provider: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  path: '/responses',
  checks: {
    state: oneOf('stateless', 'incremental'),
    maxOutputTokens: TOKENS,
    thinkingEffort: WORD,
    thinkingSummary: oneOf('auto', 'concise', 'detailed'),
    thinkingHistory: oneOf('keep', 'drop'),
    serverTools: OBJECTS,
  },
  writtenFields: new Map([['input', 'the messages of the request']]),
};

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(options: OpenAIResponsesOptions): OpenAIResponsesConfig {
  const config = resolveProviderOptions(options, RULES);
  const { state = 'stateless', temperature, thinkingEffort: effort, thinkingSummary: summary } = options;
  const isIncremental = state === 'incremental';
  const reasoning = effort === undefined && summary === undefined ? undefined : definedFields({ effort, summary }, undefined);
  return {
    ...config,
    options,
    isIncremental,
    keepsThinking: options.thinkingHistory !== 'drop',
    fixedFields: definedFields({ model: config.model, stream: config.isStreamed, store: isIncremental, temperature, reasoning }, undefined),
  };
}
