/** Options of `openAIChat`, checked and with their defaults filled in. */
import type { JsonObject } from '../../core/json.ts';
import { OBJECTS, oneOf, TOKENS, WORD } from '../shared/option-checks.ts';
import { definedFields, type OptionRules, type ProviderConfig, type ProviderOptions, resolveProviderOptions } from '../shared/options.ts';
import { COMMON_IDS, type IdRules, NINE_CHARACTER_IDS } from '../shared/wire-ids.ts';
import type { ThinkingField, ThinkingHistory } from './thinking.ts';

/** Options of `openAIChat`. */
export interface OpenAIChatOptions extends ProviderOptions {
  /** Address of the API, up to but without `/chat/completions`. @defaultValue `https://api.openai.com/v1` */
  readonly baseUrl?: string | undefined;
  /** Who answers: `LLM.provider`. Signatures and provider parts go back only to the same one. @defaultValue `openai` */
  readonly provider?: string | undefined;
  /** Most tokens of a reply, thinking included; a request's own value comes first. @defaultValue the server's */
  readonly maxOutputTokens?: number | undefined;
  /** Name of the field for it. @defaultValue `max_completion_tokens` for OpenAI's newer models, else `max_tokens` */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** How hard the model thinks: sent as `reasoning_effort`, word for word. @defaultValue the server's */
  readonly thinkingEffort?: 'minimal' | 'low' | 'medium' | 'high' | (string & {}) | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model, so that
   * a running tool loop goes on thinking where it was and the request's beginning never changes; `drop` sends none;
   * `fill` does as `keep`, and gives every other reply an empty thinking field. Kimi and DeepSeek refuse replies with
   * calls that have none, while the model thinks: choose it there for a conversation that other models had a part in.
   *
   * @defaultValue `keep`: servers that have no use for older thinking leave it out themselves
   */
  readonly thinkingHistory?: ThinkingHistory | undefined;
  /**
   * The field for thinking that does not know which one it came in.
   *
   * @defaultValue the one that this server answered with last
   */
  readonly thinkingField?: ThinkingField | undefined;
  /**
   * What a server asks for that its answers do not tell. `mistral`: ids of calls have nine letters and digits, and no
   * user's message follows a tool's directly. `kimi`: tools named `$…` are the server's own, such as `$web_search`.
   *
   * @defaultValue by the address: Mistral's, Moonshot's, else `common`
   */
  readonly dialect?: ChatDialect | undefined;
  /** Tools that the server runs itself, as it takes them, such as `{ type: 'web_search' }`; they follow yours. @defaultValue none */
  readonly serverTools?: readonly JsonObject[] | undefined;
}

/** A way to speak the protocol. */
export type ChatDialect = 'common' | 'mistral' | 'kimi';

/** Options, complete. */
export interface OpenAIChatConfig extends ProviderConfig {
  readonly options: OpenAIChatOptions;
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  readonly dialect: ChatDialect;
  readonly idRules: IdRules;
  /** The fields that are the same in every request. */
  readonly fixedFields: JsonObject;
}

const RULES: OptionRules<OpenAIChatOptions> = {
  adapter: 'openAIChat',
  exampleModel: 'gpt-4.1-mini',
  exampleKey: 'OPENAI_API_KEY',
  provider: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  path: '/chat/completions',
  checks: {
    maxOutputTokens: TOKENS,
    maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
    thinkingEffort: WORD,
    thinkingHistory: oneOf('keep', 'drop', 'fill'),
    thinkingField: oneOf('reasoning_content', 'reasoning', 'reasoning_text', 'content'),
    dialect: oneOf('common', 'mistral', 'kimi'),
    serverTools: OBJECTS,
  },
  writtenFields: new Map([['messages', 'the messages of the request']]),
};

/** OpenAI's models that refuse `max_tokens`; also fine-tuned (`ft:`), and behind a gateway's prefix (`openai/`, `openai.`). */
const COMPLETION_TOKENS_MODEL = /(?:^|[/:.])(?:o[1-9](?![a-z\d])|gpt-(?:[5-9]|1\d)(?!\d)|codex)/i;

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(options: OpenAIChatOptions): OpenAIChatConfig {
  const config = resolveProviderOptions(options, RULES);
  const dialect = options.dialect ?? dialectOf(config.url);
  return {
    ...config,
    options,
    dialect,
    maxTokensField: options.maxTokensField ?? (COMPLETION_TOKENS_MODEL.test(config.model) ? 'max_completion_tokens' : 'max_tokens'),
    idRules: dialect === 'mistral' ? NINE_CHARACTER_IDS : COMMON_IDS,
    fixedFields: fixedFields(options, config.isStreamed),
  };
}

function dialectOf({ hostname }: URL): ChatDialect {
  if (/(?:^|\.)mistral\.ai$/.test(hostname)) return 'mistral';
  return /(?:^|\.)moonshot\.(?:ai|cn)$/.test(hostname) ? 'kimi' : 'common';
}

function fixedFields({ model, temperature, thinkingEffort, body }: OpenAIChatOptions, isStreamed: boolean): JsonObject {
  const stream = isStreamed ? { stream: true, stream_options: { include_usage: true } } : { stream: false };
  return definedFields({ model, ...stream, temperature, reasoning_effort: thinkingEffort }, body);
}
