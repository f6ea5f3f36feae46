/**
 * Network errors: what a failed `fetch` or a broken body means.
 *
 * The thrown value itself goes no further: it may hold the address with its query, or the request with its headers.
 */
import { causeCode, isLLMError, LLMError } from '../../core/errors.ts';

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'ConnectionTimeout',
]);

/** Nobody was there: the address may be wrong, or the server not running. */
const UNREACHED_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ConnectionRefused']);

const MAX_SAID = 200;

/** What a network error is told with. */
export interface NetworkContext {
  /** Where the request went: origin only. */
  readonly origin: string;
  /** Takes secrets out of texts. */
  readonly redact: (text: string) => string;
}

/** An {@link index.LLMError | LLMError} of kind `timeout` or `network`; one that is thrown already stays as it is. */
export function toNetworkError(thrown: unknown, { origin, redact }: NetworkContext): LLMError {
  if (isLLMError(thrown)) return thrown;
  const code = causeCode(thrown);
  const safeCode = code === undefined ? undefined : redact(code).slice(0, MAX_SAID);
  const said = safeCode ?? (thrown instanceof Error ? redact(thrown.message).replace(/https?:\/\/\S+/gi, origin) : 'no reason given');
  const hint = code !== undefined && UNREACHED_CODES.has(code) ? ' (is `baseUrl` right, and does the server run?)' : '';
  return new LLMError({
    kind: code !== undefined && TIMEOUT_CODES.has(code) ? 'timeout' : 'network',
    message: `The connection to ${origin} failed: ${said.slice(0, MAX_SAID)}${hint}`,
    code: safeCode,
  });
}
