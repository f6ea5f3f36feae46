/**
 * Chat Completions as an LLM: one request, one answer, no retries.
 *
 * The key lives in this closure and in the headers of a running request, nowhere else.
 */
import { isLLMError, LLMError, toLLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest, LLMResponse } from '../../core/llm.ts';
import { systemRuntime } from '../../core/runtime.ts';
import { type ErrorContext, errorFromBody, errorFromResponse } from '../shared/errors.ts';
import { type Answer, post } from '../shared/http.ts';
import { addHeaderSecrets, addUrlSecrets, createRedactor, type Redactor } from '../shared/redact.ts';
import { readAnswer } from './answer-reader.ts';
import { type OpenAIChatConfig, type OpenAIChatOptions, resolveOptions } from './options.ts';
import { createReplyReader, type ReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';
import type { ThinkingField } from './thinking.ts';

/**
 * Makes an LLM of a server that speaks Chat Completions: OpenAI, and all that are compatible with it.
 *
 * Dialects are recognised from the answers, so a server needs no profile. Thinking is read from wherever it stands and
 * goes back to the same provider and model as it came.
 *
 * @throws TypeError for options that are missing or wrong.
 * @example
 * ```ts
 * const llm = openAIChat({ model: 'gpt-4.1-mini', apiKey: process.env.OPENAI_API_KEY, systemPrompt: 'Be brief.' });
 * ```
 */
export function openAIChat(options: OpenAIChatOptions): LLM {
  const config = resolveOptions(options);
  const { provider } = config;
  let learnedField: ThinkingField | undefined;
  const requests = createRequestWriter(config, () => ({
    provider,
    model: options.model,
    field: options.thinkingField ?? learnedField,
    mediaTypes: options.capabilities?.mediaTypes,
    keepsThinking: options.thinkingHistory !== 'drop',
  }));

  async function chat(request: LLMRequest): Promise<LLMResponse> {
    const runtime = request.scope?.runtime ?? systemRuntime;
    const startedAt = runtime.now();
    let firstDeltaMs: number | undefined;
    const redactor = createRedactor();
    const context: ErrorContext = { provider, redact: redactor.redact, patterns: options.errorPatterns ?? [] };
    let reply: ReplyReader | undefined;
    try {
      const { body, toolName } = requests.write(request);
      const response = await post(
        { ...config, body, runtime, fetch: options.fetch, signal: request.signal, redact: redactor.redact, headers },
        (answer) => read(answer, toolName),
      );
      learnedField = reply?.thinkingField ?? learnedField;
      return { ...response, timing: { firstDeltaMs, totalMs: runtime.now() - startedAt } };
    } catch (thrown) {
      throw withReply(toLLMError(thrown), reply);
    }

    async function read(answer: Answer, toolName: (wireName: string) => string): Promise<LLMResponse> {
      if (answer.status < 200 || answer.status > 299) throw errorFromResponse(answer, await answer.readErrorText(), context);
      reply = createReplyReader({
        provider,
        model: options.model,
        toolName,
        toError: (errorBody) => errorFromBody(errorBody, context, answer),
        onDelta: (delta) => {
          firstDeltaMs ??= runtime.now() - startedAt;
          request.onDelta?.(delta);
        },
      });
      return readAnswer(answer, reply, context);
    }

    function headers(): Promise<Headers> {
      return makeHeaders(config, redactor);
    }
  }

  return { provider, modelId: options.model, systemPrompt: options.systemPrompt ?? '', capabilities: options.capabilities, chat };
}

async function makeHeaders({ options, url, isStreamed, provider }: OpenAIChatConfig, redactor: Redactor): Promise<Headers> {
  addUrlSecrets(redactor, url);
  const key = await resolveKey(options.apiKey, provider);
  redactor.add(key);
  const given = Object.entries(options.headers ?? {});
  addHeaderSecrets(redactor, given);
  try {
    const headers = new Headers({ 'content-type': 'application/json', accept: isStreamed ? 'text/event-stream' : 'application/json' });
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    for (const [name, value] of given) headers.set(name, value);
    return headers;
  } catch {
    // The runtime's message quotes the value.
    const message = `${provider}: the API key or a header holds characters that a header cannot carry.`;
    throw new LLMError({ kind: 'auth', code: 'invalid_header', message });
  }
}

async function resolveKey(apiKey: OpenAIChatOptions['apiKey'], provider: string): Promise<string | undefined> {
  if (typeof apiKey !== 'function') return cleanKey(apiKey);
  try {
    return cleanKey(await apiKey());
  } catch (thrown) {
    if (isLLMError(thrown)) throw thrown;
    // What was thrown may hold what the key is made from.
    throw new LLMError({ kind: 'auth', code: 'api_key_failed', message: `${provider}: the \`apiKey\` function failed, so nothing was sent.` });
  }
}

/** A key read from a file ends in a line break. */
function cleanKey(key: string | undefined): string | undefined {
  const trimmed = key?.trim();
  return trimmed === '' ? undefined : trimmed;
}

/** The error, with what had arrived of the reply. */
function withReply(error: LLMError, reply: ReplyReader | undefined): LLMError {
  const partial = reply?.partial() ?? [];
  const usage = reply?.usage;
  if (partial.length === 0 && usage === undefined) return error;
  const { kind, message, retryable, stopReason, status, code, retryAfterMs, requestId } = error;
  return new LLMError({
    kind,
    message,
    retryable,
    stopReason,
    status,
    code,
    retryAfterMs,
    requestId,
    usage: error.usage ?? usage,
    partial: error.partial ?? (partial.length === 0 ? undefined : partial),
  });
}
