/** Options of `google`, checked and with their defaults filled in. */
import { isRecord, type JsonObject } from '../../core/json.ts';
import { FLAG, OBJECTS, oneOf, TOKENS, TOKENS_OR_LESS, WORD } from '../shared/option-checks.ts';
import { type OptionRules, type ProviderConfig, type ProviderOptions, resolveProviderOptions } from '../shared/options.ts';
import { endpointPath, isProjectUrl } from './endpoint.ts';
import { type GeminiThinking, resolveThinking } from './thinking.ts';
import type { SchemaFormat } from './tools.ts';

/** Options of `google`. */
export interface GoogleOptions extends ProviderOptions {
  /**
   * The model, such as `gemini-2.5-flash`; also as a path, such as `models/gemini-2.5-flash`, `tunedModels/mine` or
   * `publishers/google/models/gemini-2.5-flash`.
   */
  readonly model: string;
  /**
   * Address of the API, up to but without the model. Of Vertex AI: `https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION`.
   *
   * @defaultValue `https://generativelanguage.googleapis.com/v1beta`
   */
  readonly baseUrl?: string | undefined;
  /** Who answers: `LLM.provider`. Signatures and provider parts go back only to the same one. @defaultValue `google` */
  readonly provider?: string | undefined;
  /**
   * What `apiKey` is: an `api-key` is sent as `x-goog-api-key`, an `access-token` as a bearer. Tokens last an hour, so
   * give a function that gets one.
   *
   * @defaultValue `access-token` if the address names a project, as those of Vertex AI do, else `api-key`
   */
  readonly keyType?: 'api-key' | 'access-token' | undefined;
  /**
   * More fields of the request, sent as they are, such as `safetySettings`. Those of `generationConfig` and `toolConfig`
   * are merged with ours, and replace them by name; undefined removes one.
   */
  readonly body?: ProviderOptions['body'];
  /** Most tokens of a reply, thinking included; a request's own value comes first. @defaultValue the server's */
  readonly maxOutputTokens?: number | undefined;
  /**
   * How hard the model thinks. Gemini 3 and newer get it as `thinkingLevel`, in capitals. Older models get a budget:
   * 1,024 tokens for `minimal` and `low`, 8,192 for `medium`, 24,576 for `high`. `off` asks for the least that the model
   * takes, and hides it.
   *
   * @defaultValue the server's
   */
  readonly thinkingEffort?: 'off' | 'minimal' | 'low' | 'medium' | 'high' | (string & {}) | undefined;
  /** How many tokens the model may think, in place of an effort; -1 lets it decide. @defaultValue by the effort */
  readonly thinkingBudget?: number | undefined;
  /** Whether to ask for summaries of the thinking. @defaultValue true with an effort or a budget, else the server's: models that do not think refuse the question */
  readonly showThinking?: boolean | undefined;
  /**
   * What becomes of the thinking in the history: `keep` sends back all that came from this provider and model; `drop`
   * sends none but the signatures of calls, without which Gemini 3 refuses a request.
   *
   * @defaultValue `keep`: newer models think on from there
   */
  readonly thinkingHistory?: 'keep' | 'drop' | undefined;
  /** Tools that the server runs itself, as it takes them, such as `{ googleSearch: {} }`; they follow yours. @defaultValue none */
  readonly serverTools?: readonly JsonObject[] | undefined;
  /**
   * The words that schemas of tools and answers are sent in: `json-schema` in the fields that Google added for it in
   * 2025, or `openapi`, a subset that every server and gateway knows and that has no maps, tuples or listed numbers.
   *
   * @defaultValue `openapi` for Google's stable `/v1`, else `json-schema`; recursive schemas are always sent as `openapi`
   */
  readonly schemaFormat?: SchemaFormat | undefined;
  /**
   * Whether calls and results are sent with ids.
   *
   * @defaultValue false: they stand in one order, which tells as much, and Vertex AI refuses ids
   */
  readonly sendCallIds?: boolean | undefined;
}

/** Options, complete. */
export interface GoogleConfig extends ProviderConfig {
  readonly options: GoogleOptions;
  readonly keyType: 'api-key' | 'access-token';
  readonly thinking: GeminiThinking;
  readonly schemaFormat: SchemaFormat;
  /** Whether this is Google's own API rather than Vertex AI. */
  readonly isGeminiApi: boolean;
}

const RULES: OptionRules<GoogleOptions> = {
  adapter: 'google',
  exampleModel: 'gemini-2.5-flash',
  exampleKey: 'GEMINI_API_KEY',
  provider: 'google',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  path: '',
  checks: {
    keyType: oneOf('api-key', 'access-token'),
    maxOutputTokens: TOKENS,
    thinkingEffort: WORD,
    thinkingBudget: TOKENS_OR_LESS,
    showThinking: FLAG,
    thinkingHistory: oneOf('keep', 'drop'),
    serverTools: OBJECTS,
    schemaFormat: oneOf('json-schema', 'openapi'),
    sendCallIds: FLAG,
  },
  writtenFields: new Map([
    ['contents', 'the messages'],
    ['systemInstruction', '`systemPrompt`'],
    ['tools', '`serverTools`'],
  ]),
};

/**
 * Checks options and fills in the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveOptions(options: GoogleOptions): GoogleConfig {
  // Callers without types come here too; what is no object is refused below.
  const { model, baseUrl = RULES.baseUrl, stream = true } = isRecord(options) ? options : { model: '' };
  const method = stream ? 'streamGenerateContent' : 'generateContent';
  const config = resolveProviderOptions(options, { ...RULES, path: endpointPath({ model, baseUrl, method }) });
  const url = new URL(config.url);
  if (config.isStreamed) url.searchParams.set('alt', 'sse');
  const isGeminiApi = url.hostname === 'generativelanguage.googleapis.com';
  return {
    ...config,
    options,
    url,
    keyType: options.keyType ?? (isProjectUrl(url) ? 'access-token' : 'api-key'),
    thinking: resolveThinking(options),
    schemaFormat: options.schemaFormat ?? (isGeminiApi && url.pathname.startsWith('/v1/') ? 'openapi' : 'json-schema'),
    isGeminiApi,
  };
}
