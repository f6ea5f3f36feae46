/**
 * HTTP LLM: what all adapters over HTTP do alike, around what makes their protocols differ.
 *
 * One `chat` is one request and one answer, no retries; but for a protocol that can say the same in another way, when
 * the server no longer knows what the short way relied on, and for a key that was refused, when there is another. Keys
 * live in closures and in the headers of a running request, nowhere else.
 */
import { type LLMError, toLLMError } from '../../core/errors.ts';
import type { LLM, LLMRequest, LLMResponse } from '../../core/llm.ts';
import { systemRuntime } from '../../core/runtime.ts';
import { readAnswer } from './answer-reader.ts';
import { type ErrorContext, errorFromBody, errorFromResponse, withoutSecrets } from './errors.ts';
import { type Answer, post } from './http.ts';
import type { ProviderConfig } from './options.ts';
import { createRedactor } from './redact.ts';
import type { ReplyOutlet, ReplyReader } from './reply-reader.ts';
import { withReply } from './partial-reply.ts';
import { type HeaderRules, makeHeaders, type RequestSecrets } from './request-headers.ts';
import { createRequestKey } from './request-key.ts';

/** A request, ready to be sent. */
export interface WrittenRequest {
  /** JSON text. */
  readonly body: string;
  /** Makes the reader of its reply. */
  readonly createReader: (outlet: ReplyOutlet) => ReplyReader;
  /** Called with the whole reply, before it is handed out. */
  readonly onResponse?: ((response: LLMResponse) => void) | undefined;
  /** The same request said in another way, for a failure that this may help; undefined for any other failure. */
  readonly instead?: ((error: LLMError) => WrittenRequest | undefined) | undefined;
}

/** What makes a protocol. */
export interface HttpProtocol extends HeaderRules {
  /** Writes a request. */
  readonly write: (request: LLMRequest) => WrittenRequest;
}

/** So many ways of saying one request are tried, whatever a protocol has to offer: no server's answers can make it more. */
const MAX_WAYS = 5;

/** Makes an LLM of a protocol over HTTP. */
export function createHttpLLM(config: ProviderConfig, protocol: HttpProtocol): LLM {
  const { options, provider, model } = config;

  async function chat(request: LLMRequest): Promise<LLMResponse> {
    let written = protocol.write(request);
    // One for all that is sent: what is said of a new key may quote the one before.
    const secrets: RequestSecrets = { key: createRequestKey(config), redactor: createRedactor() };
    for (let way = 1; ; way += 1) {
      try {
        return await send(written, request, secrets);
      } catch (thrown) {
        const error = toLLMError(thrown);
        const other = way < MAX_WAYS ? written.instead?.(error) : undefined;
        if (other === undefined && !(await secrets.key.renew(error, request))) throw error;
        await request.onAttemptFailed?.({ error });
        written = other ?? written;
      }
    }
  }

  async function send(written: WrittenRequest, request: LLMRequest, secrets: RequestSecrets): Promise<LLMResponse> {
    const runtime = request.scope?.runtime ?? systemRuntime;
    const startedAt = runtime.now();
    let firstDeltaMs: number | undefined;
    const { redactor } = secrets;
    const context: ErrorContext = {
      provider,
      redact: redactor.redact,
      patterns: options.errorPatterns ?? [],
      hasKey: options.apiKey !== undefined || Object.keys(options.headers ?? {}).length > 0,
    };
    let reply: ReplyReader | undefined;
    try {
      const response = await post(
        {
          ...config,
          body: written.body,
          runtime,
          fetch: options.fetch,
          signal: request.signal,
          redact: redactor.redact,
          headers: () => makeHeaders(config, protocol, secrets),
        },
        read,
      );
      written.onResponse?.(response);
      return { ...response, timing: { firstDeltaMs, totalMs: runtime.now() - startedAt } };
    } catch (thrown) {
      throw withReply(withoutSecrets(toLLMError(thrown), context), reply);
    }

    async function read(answer: Answer): Promise<LLMResponse> {
      if (answer.status < 200 || answer.status > 299) throw errorFromResponse(answer, await answer.readErrorText(), context);
      reply = written.createReader({
        toError: (errorBody) => errorFromBody(errorBody, context, answer),
        onDelta: (delta) => {
          firstDeltaMs ??= runtime.now() - startedAt;
          request.onDelta?.(delta);
        },
      });
      return readAnswer(answer, reply, context);
    }
  }

  return { provider, modelId: model, systemPrompt: options.systemPrompt ?? '', capabilities: options.capabilities, chat };
}
