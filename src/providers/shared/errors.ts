/**
 * Errors: from what a server answered to an {@link index.LLMError | LLMError}, for all protocols alike.
 *
 * Owns the order in which status, codes and words are believed. The words are in `error-patterns.ts`, the shapes in
 * `error-body.ts`.
 *
 * 1. A host's own patterns.
 * 2. Throttling is never an overflow, whatever else its text says.
 * 3. A code that means one thing.
 * 4. Wording, where the status leaves it open: 400, 413, 422, none, and overflows that come as 500.
 * 5. The status.
 */
import { LLMError, type LLMErrorKind, type LLMErrorOptions } from '../../core/errors.ts';
import { type ErrorBody, parseErrorText, readErrorBody } from './error-body.ts';
import {
  CODE_KINDS,
  CONTENT_FILTER,
  type ErrorPattern,
  INVALID_HISTORY,
  MEDIA_REJECTED,
  MEDIA_UNSUPPORTED,
  OVERFLOW,
  STREAM_CODE_KINDS,
  THROTTLING,
  TOO_LARGE,
} from './error-patterns.ts';
import { retryAfterFromHeaders, retryAfterFromText } from './retry-after.ts';

/** What every error of one adapter shares. */
export interface ErrorContext {
  /** Name of the provider, for the message. */
  readonly provider: string;
  /** Takes secrets out of texts. */
  readonly redact: (text: string) => string;
  /** A host's own wordings. */
  readonly patterns: readonly ErrorPattern[];
  /** Whether the host gave anything to prove who it is; undefined where that is not known. */
  readonly hasKey?: boolean | undefined;
}

/** A classified failure, before it becomes an error. */
interface Classification {
  readonly kind: LLMErrorKind;
  readonly retryable?: boolean | undefined;
}

const STATUS_KINDS: ReadonlyMap<number, Classification> = new Map<number, Classification>([
  [400, { kind: 'invalid_request' }],
  [401, { kind: 'auth' }],
  [402, { kind: 'quota' }],
  [403, { kind: 'permission' }],
  [404, { kind: 'not_found' }],
  [408, { kind: 'timeout' }],
  [409, { kind: 'server' }],
  [413, { kind: 'request_too_large' }],
  [422, { kind: 'invalid_request' }],
  [429, { kind: 'rate_limit' }],
  [503, { kind: 'overloaded' }],
  [504, { kind: 'timeout' }],
  [529, { kind: 'overloaded' }],
]);

const REQUEST_ID_HEADERS = ['x-request-id', 'request-id', 'apim-request-id', 'x-amzn-requestid', 'msh-trace-id'];

// A message is for a log line or a model's eyes: what servers echo of a request can be as long as the request.
const MAX_MESSAGE_LENGTH = 1000;
const MAX_HINT_LENGTH = 100;
const EXCERPT_LENGTH = 200;
// Far more than an excerpt needs, so that what is left of it after redaction does not reach this cut.
const MAX_REDACTED_LENGTH = 65_536;

/** The error of an HTTP answer that is not a success. */
export function errorFromResponse(
  response: { readonly status: number; readonly headers: Headers },
  bodyText: string,
  context: ErrorContext,
): LLMError {
  const body = parseErrorText(bodyText, context.redact);
  return toError(body, context, {
    status: response.status,
    retryAfterMs: retryAfterFromHeaders(response.headers),
    requestId: requestIdOf(response.headers, context),
  });
}

/** The error that a success answer or a stream carries in its body. */
export function errorFromBody(
  value: unknown,
  context: ErrorContext,
  response: { readonly headers: Headers },
): LLMError {
  const body = readErrorBody(value);
  return toError(body, context, { status: body.status, requestId: requestIdOf(response.headers, context) });
}

/**
 * The error for an answer that is not the protocol's: says what was wrong and how the answer began.
 *
 * @param begin - As much as there is of it: it is shortened here, after redaction.
 */
export function malformedResponse(what: string, begin: string, context: ErrorContext): LLMError {
  const excerpt = begin === '' ? '' : `: ${JSON.stringify(context.redact(begin.slice(0, MAX_REDACTED_LENGTH)).slice(0, EXCERPT_LENGTH))}`;
  return new LLMError({ kind: 'malformed_response', message: clip(`${context.provider}: ${context.redact(what)}${excerpt}`) });
}

/**
 * An error that a reader of replies threw, as it may go out: readers quote a server's words, and know no secrets.
 */
export function withoutSecrets(error: LLMError, { redact }: ErrorContext): LLMError {
  const message = clip(redact(error.message), MAX_MESSAGE_LENGTH + MAX_HINT_LENGTH);
  const code = clip(redact(error.code));
  if (message === error.message && code === error.code) return error;
  const { kind, retryable, stopReason, status, retryAfterMs, requestId, usage, partial } = error;
  return new LLMError({ kind, message, retryable, stopReason, status, code, retryAfterMs, requestId, usage, partial });
}

/** The provider's id of a request, if it gave one. */
function requestIdOf(headers: Headers, { redact }: ErrorContext): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id !== null && id !== '') return redact(id).slice(0, EXCERPT_LENGTH);
  }
  return undefined;
}

/**
 * What kind of failure a server's error is.
 *
 * @param status - The HTTP status, or the one that the body names; undefined for neither.
 */
function classifyError(body: ErrorBody, status: number | undefined, patterns: readonly ErrorPattern[]): Classification {
  for (const { pattern, kind, status: only, retryable } of patterns) {
    pattern.lastIndex = 0;
    if ((only === undefined || only === status) && pattern.test(body.text)) return { kind, retryable };
  }
  const byCode = CODE_KINDS.get(body.code) ?? CODE_KINDS.get(body.type) ?? codeInText(body);
  if (status === 429) return { kind: byCode === 'quota' ? 'quota' : 'rate_limit' };
  // Of what is too large, the text says whether it is the bytes.
  if (byCode !== undefined && byCode !== 'request_too_large') return { kind: byCode };

  if (status !== 401 && status !== 403 && matches(MEDIA_UNSUPPORTED, body.text)) return { kind: 'media_rejected' };
  const byWording = isOpen(status) ? classifyWording(body.text, status) : undefined;
  if (byWording !== undefined) return { kind: byWording };
  if (byCode !== undefined) return { kind: byCode };
  return classifyStatus(status) ?? { kind: STREAM_CODE_KINDS.get(body.code) ?? STREAM_CODE_KINDS.get(body.type) ?? 'server' };
}

/** An inner code, which `text` holds on a line of its own. */
function codeInText(body: ErrorBody): LLMErrorKind | undefined {
  for (const line of body.text.split('\n')) {
    const kind = CODE_KINDS.get(line);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

function isOpen(status: number | undefined): boolean {
  return status === undefined || status === 400 || status === 413 || status === 415 || status === 422 || status === 500;
}

function classifyWording(text: string, status: number | undefined): LLMErrorKind | undefined {
  if (THROTTLING.test(text)) return status === 500 ? undefined : 'rate_limit';
  if (matches(OVERFLOW, text)) return 'context_overflow';
  if (status === 413) return /token/i.test(text) ? 'context_overflow' : 'request_too_large';
  if (status === 500) return undefined;
  if (matches(CONTENT_FILTER, text)) return 'content_filter';
  if (matches(INVALID_HISTORY, text)) return 'invalid_history';
  if (matches(TOO_LARGE, text)) return 'request_too_large';
  if (matches(MEDIA_REJECTED, text)) return 'media_rejected';
  return undefined;
}

function classifyStatus(status: number | undefined): Classification | undefined {
  if (status === undefined) return undefined;
  const known = STATUS_KINDS.get(status);
  if (known !== undefined) return known;
  if (status >= 500) return { kind: 'server' };
  return status >= 400 ? { kind: 'invalid_request' } : undefined;
}

function matches(patterns: readonly RegExp[], text: string): boolean {
  return patterns.some((pattern) => pattern.test(text));
}

function toError(body: ErrorBody, context: ErrorContext, facts: Partial<LLMErrorOptions>): LLMError {
  const { kind, retryable } = classifyError(body, facts.status, context.patterns);
  const said = body.message === '' ? 'without a message' : body.message;
  const hint = hintFor(kind, body.text, context);
  const message = `${context.provider} answered ${facts.status ?? 'with an error'}: ${said}`;
  const isWaiting = kind === 'rate_limit' || kind === 'overloaded';
  return new LLMError({
    ...facts,
    kind,
    retryable,
    message: clip(context.redact(message)) + hint,
    code: body.code === '' ? undefined : clip(context.redact(body.code)),
    retryAfterMs: facts.retryAfterMs ?? body.retryAfterMs ?? (isWaiting ? retryAfterFromText(body.message) : undefined),
  });
}

/** What to look at, for failures that a wrong option of the adapter's may have caused. */
function hintFor(kind: LLMErrorKind, text: string, { hasKey }: ErrorContext): string {
  if (kind === 'auth') return hasKey === false ? ' (no `apiKey` was given)' : ' (is `apiKey` right?)';
  if (kind === 'permission') return ' (may this `apiKey` use this `model`?)';
  if (kind === 'not_found') return ' (are `model` and `baseUrl` right?)';
  if (kind !== 'invalid_request') return '';
  if (/\bthinking\.type\b/.test(text)) return ' (the `thinkingMode` option sets this)';
  const isAboutEffort = /reasoning[_ .]effort|thinking[_ ](?:effort|level)|effort level|output_config\.effort/i.test(text);
  return isAboutEffort ? ' (the `thinkingEffort` option sets this)' : '';
}

/** At most 1 KB, also in UTF-8: a character takes up to 3 bytes a code unit. */
function clip(text: string, most = MAX_MESSAGE_LENGTH): string {
  if (text.length * 3 <= most) return text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, most - 8)).replace(/\ufffd+$/, '')}…`;
}
