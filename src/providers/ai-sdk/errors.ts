/**
 * Errors: from what an AI SDK model throws, or sends as an error part, to an {@link index.LLMError | LLMError}.
 *
 * Errors are known by their fields and names, never by class: several copies of the SDK may be installed. What was
 * thrown goes no further, it holds the request: its body, its address, the headers of the answer.
 */
import { isLLMError, LLMError, type LLMErrorKind } from '../../core/errors.ts';
import { isRecord, toJson } from '../../core/json.ts';
import { isErrorBody, readErrorBody } from '../shared/error-body.ts';
import type { ErrorPattern } from '../shared/error-patterns.ts';
import { type ErrorContext, errorFromBody, errorFromResponse, malformedResponse } from '../shared/errors.ts';
import { parseJson, word } from '../shared/json-values.ts';
import { toNetworkError } from '../shared/network-error.ts';
import { createErrorRedactor } from './secrets.ts';

/** What every error of one adapter shares. */
export interface ModelErrorContext {
  /** `LLM.provider`. */
  readonly provider: string;
  /** What the host sends along. */
  readonly headers: Readonly<Record<string, string>>;
  /** A host's own wordings. */
  readonly patterns: readonly ErrorPattern[];
}

type Thrown = Readonly<Record<string, unknown>>;

const MAX_CAUSES = 6;
const MAX_BODY_LENGTH = 65_536;
const MAX_SAID = 500;

/** What the SDK's own errors mean, by their names. */
const KINDS: ReadonlyMap<unknown, LLMErrorKind> = new Map<unknown, LLMErrorKind>([
  ['AI_LoadAPIKeyError', 'auth'],
  ['AI_NoSuchModelError', 'not_found'],
  ['AI_LoadSettingError', 'invalid_request'],
  ['AI_InvalidArgumentError', 'invalid_request'],
  ['AI_InvalidPromptError', 'invalid_history'],
  ['AI_UnsupportedFunctionalityError', 'invalid_request'],
  ['AI_EmptyResponseBodyError', 'malformed_response'],
  ['AI_InvalidResponseDataError', 'malformed_response'],
  ['AI_JSONParseError', 'malformed_response'],
  ['AI_NoContentGeneratedError', 'malformed_response'],
  ['AI_TypeValidationError', 'malformed_response'],
]);
const UNSUPPORTED = 'AI_UnsupportedFunctionalityError';
const ABOUT_MEDIA = /\b(?:media|file|image|audio|video|pdf)\b/i;

/** Some providers' packages see for themselves that a stream was cut. */
const CUT = /stream ended (?:without|before)/i;

/** Codes of sockets and the like, on whatever runtime; `ERR_…` are mistakes of the program. */
const NETWORK_CODE = /^(?:E[A-Z]{3,}|UND_ERR_\w+|Connection\w+|FailedToOpenSocket)$/;
const NETWORK_WORDS = /^(?:terminated|fetch failed|failed to fetch|load failed|network ?error|socket hang up|other side closed|cannot connect to api)/i;

/** The error of whatever a model threw. One of ours stays as it is. */
export function toModelError(thrown: unknown, { provider, headers, patterns }: ModelErrorContext): LLMError {
  if (isLLMError(thrown)) return thrown;
  const redactor = createErrorRedactor(headers);
  const context: ErrorContext = { provider, patterns, redact: redactor.redact };
  const call = findCall(thrown);
  const url = word(call?.['url']) ?? '';
  redactor.addUrl(url);
  const network = { origin: URL.canParse(url) ? new URL(url).origin : provider, redact: redactor.redact };

  const status = statusOf(call);
  if (call !== undefined && status !== undefined && status >= 400) {
    return errorFromResponse({ status, headers: toHeaders(call['responseHeaders'] ?? call['headers']) }, bodyText(call), context);
  }
  if (isNetworkFailure(call ?? thrown)) return toNetworkError(call ?? thrown, network);
  if (call !== undefined) return errorOfAnswer(call, context);
  const kind = isRecord(thrown) ? KINDS.get(thrown['name']) : undefined;
  if (isRecord(thrown) && kind !== undefined) return ownError(thrown, kind, context);
  if (isRecord(thrown) && !(thrown instanceof Error)) return errorFromBody(thrown, context, { headers: new Headers() });
  if (typeof thrown === 'string') return errorFromBody({ message: thrown }, context, { headers: new Headers() });
  return unknownError(thrown, context);
}

/**
 * The error that tells of an HTTP answer, on the way down the causes: gateways wrap it in their own, which says less.
 * Failing it, one that has a status.
 */
function findCall(thrown: unknown): Thrown | undefined {
  let withStatus: Thrown | undefined;
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && isRecord(error); depth += 1) {
    if ('requestBodyValues' in error || 'responseHeaders' in error || 'responseBody' in error) return error;
    if (statusOf(error) !== undefined) withStatus ??= error;
    error = error['cause'];
  }
  return withStatus;
}

/** The HTTP status, by the SDK's name or by that of most companies' libraries. */
function statusOf(error: Thrown | undefined): number | undefined {
  const status = error?.['statusCode'] ?? error?.['status'];
  return typeof status === 'number' ? status : undefined;
}

/** What of an error says most: the server's answer, parsed or not, else what the SDK made of it. */
function bodyText(call: Thrown): string {
  const text = word(call['responseBody'])?.slice(0, MAX_BODY_LENGTH);
  const bodies = [text === undefined ? undefined : parseJson(text), call['data']].map(unwrapResponse);
  const body = bodies.find((value) => readErrorBody(value).message !== '');
  if (body !== undefined) return JSON.stringify(toJson(body) ?? null);
  const { message, code, type } = call;
  if (text !== undefined && typeof bodies[0] !== 'object') return text;
  return JSON.stringify(toJson({ message: word(message) ?? text, code, type }) ?? null);
}

/** A failed answer of the Responses API has its error one level deeper. */
function unwrapResponse(body: unknown): unknown {
  const response = isRecord(body) ? body['response'] : undefined;
  return isRecord(response) && isErrorBody(response) ? response : body;
}

function toHeaders(given: unknown): Headers {
  const headers = new Headers();
  const entries: Iterable<[string, unknown]> = given instanceof Headers ? given : isRecord(given) ? Object.entries(given) : [];
  for (const [name, value] of entries) {
    if (typeof value !== 'string') continue;
    try {
      headers.set(name, value);
    } catch {
      // No header of HTTP: it says nothing that is looked for.
    }
  }
  return headers;
}

function isNetworkFailure(thrown: unknown): boolean {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && isRecord(error); depth += 1) {
    const { code, name, message } = error;
    if (typeof code === 'string' && NETWORK_CODE.test(code)) return true;
    if (name === 'TimeoutError' || name === 'AbortError') return true;
    if (typeof message === 'string' && NETWORK_WORDS.test(message)) return true;
    error = error['cause'];
  }
  return false;
}

/** An answer that was a success, and yet not what the SDK expected. */
function errorOfAnswer(call: Thrown, context: ErrorContext): LLMError {
  const text = (word(call['responseBody']) ?? '').slice(0, MAX_BODY_LENGTH);
  const body = parseJson(text) ?? call['data'];
  if (isErrorBody(body)) return errorFromBody(body, context, { headers: toHeaders(call['responseHeaders']) });
  if (statusOf(call) === undefined) return errorFromBody({ message: messageOf(call) }, context, { headers: new Headers() });
  return malformedResponse(messageOf(call), text, context);
}

/** An error of the SDK itself; its message may quote the whole of an answer. */
function ownError(thrown: Thrown, kind: LLMErrorKind, context: ErrorContext): LLMError {
  // A piece of a stream that the SDK did not expect may well be the server's error.
  if (isErrorBody(thrown['value'])) return errorFromBody(thrown['value'], context, { headers: new Headers() });
  const text = messageOf(thrown);
  const message = `${context.provider}: ${said(text, context)}`;
  if (CUT.test(text)) return new LLMError({ kind: 'network', code: 'stream_incomplete', message });
  const isMedia = thrown['name'] === UNSUPPORTED && ABOUT_MEDIA.test(text);
  return new LLMError({ kind: isMedia ? 'media_rejected' : kind, message });
}

function unknownError(thrown: unknown, context: ErrorContext): LLMError {
  const message = isRecord(thrown) ? messageOf(thrown) : 'a value that is no error was thrown';
  return new LLMError({ kind: 'unknown', message: `${context.provider} failed: ${said(message, context)}` });
}

function said(message: string, { redact }: ErrorContext): string {
  return redact(message.slice(0, MAX_BODY_LENGTH)).slice(0, MAX_SAID);
}

function messageOf({ message, name }: Thrown): string {
  return word(message) ?? word(name) ?? 'no reason given';
}
