/**
 * Error body: what a server says about a failure, found in the many shapes that servers give it.
 *
 * Shapes seen: `{error: {message, type, code}}`, `{error: "text"}`, `{message, type, code}`, `{detail: …}`,
 * `{errors: […]}`, an array of one of these, an error within an error, the JSON of one in the message of another
 * (gateways), and plain text or HTML.
 */
import { isRecord } from '../../core/json.ts';
import { parseJson } from './json-values.ts';
import { parseDuration } from './retry-after.ts';

/** What a server said about a failure; empty texts where it said nothing. */
export interface ErrorBody {
  /** For people. */
  readonly message: string;
  /** The server's word for it; numbers as text. */
  readonly code: string;
  /** The server's wider class of it. */
  readonly type: string;
  /** A status that the body names, for errors that come with none of their own. */
  readonly status: number | undefined;
  /** A delay that the body names, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** All of it that classifies: message, words, and what a gateway quotes of the server behind it. */
  readonly text: string;
}

const MAX_TEXT_LENGTH = 8192;
const MAX_PLAIN_LENGTH = 200;

/**
 * The error in a parsed answer, if it is one: true for an `error` that is not empty, for objects that call themselves an
 * error, and for a message beside a code that is no success's.
 */
export function isErrorBody(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && isErrorBody(value[0]);
  if (!isRecord(value)) return false;
  const { error, message } = value;
  if (isRecord(error) ? Object.values(error).some(isSaid) : typeof error === 'string' && error !== '') return true;
  if (value['object'] === 'error' || value['type'] === 'error') return true;
  // Runs for every event.
  return typeof message === 'string' && message !== '' && (error === true || value['success'] === false || isFailureCode(value['code']));
}

/** Whether a field of an error says anything: servers send empty ones beside a reply. */
function isSaid(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Boolean(value);
  return Object.keys(value).length > 0;
}

function isFailureCode(code: unknown): boolean {
  return Number(wordOf(code)) >= 400;
}

/** Reads the text of an error answer, JSON or not. @param redact - Takes secrets out of what is shortened. */
export function parseErrorText(text: string, redact: (text: string) => string): ErrorBody {
  try {
    const value: unknown = JSON.parse(text);
    return readErrorBody(value);
  } catch {
    const message = plainText(redact(text)).slice(0, MAX_PLAIN_LENGTH);
    return { message, code: '', type: '', status: undefined, retryAfterMs: undefined, text: message };
  }
}

/** Reads a parsed error answer. */
export function readErrorBody(value: unknown): ErrorBody {
  const body = readOuterBody(value);
  const { message, code, type, text } = body;
  const quoted = quotedError(message);
  const status = quoted?.status ?? body.status ?? statusInText(message);
  if (quoted === undefined || quoted.message === '') return { ...body, status };
  return {
    message: quoted.message,
    code: code || quoted.code,
    type: type || quoted.type,
    status,
    retryAfterMs: body.retryAfterMs ?? quoted.retryAfterMs,
    text: `${quoted.text}\n${text}`.slice(0, MAX_TEXT_LENGTH),
  };
}

/** What a gateway quotes of the server behind it, in the place of a message of its own. */
function quotedError(message: string): ErrorBody | undefined {
  if (!message.startsWith('{') || message.length > MAX_TEXT_LENGTH) return undefined;
  const value = parseJson(message);
  return isRecord(value) ? readOuterBody(value) : undefined;
}

/** "Error code: 429 - …", "upstream status 503": only of failures that pass, since any other number may be about anything. */
function statusInText(message: string): number | undefined {
  const status = /\b(?:error code|status(?: code)?|http(?:\/[\d.]+)?)\W{0,3}(429|5\d\d)\b/i.exec(message)?.[1];
  return status === undefined ? undefined : Number(status);
}

function readOuterBody(value: unknown): ErrorBody {
  const outer = unwrap(value);
  const inner = isRecord(outer['error']) ? unwrap(outer['error']) : outer;
  const message =
    textOf(inner['message']) ||
    textOf(outer['error']) ||
    textOf(inner['detail']) ||
    textOf(outer['message']) ||
    textOf(inner['msg']) ||
    quote(inner['detail']);
  const code = googleStatus(inner) || wordOf(inner['code']) || wordOf(outer['code']) || codeOf(inner['innererror']);
  const type = wordOf(inner['type']) || wordOf(inner['status']) || (inner === outer ? '' : wordOf(outer['type']));
  const quoted = isRecord(inner['metadata']) ? textOf(inner['metadata']['raw']) : '';
  return {
    message,
    code,
    type,
    status: statusOf(inner) ?? statusOf(outer),
    retryAfterMs: retryDelayOf(inner['details']),
    text: [message, code, type, codeOf(inner['innererror']), quoted, ...reasonsOf(inner['details'])].join('\n').slice(0, MAX_TEXT_LENGTH),
  };
}

function unwrap(value: unknown): Record<string, unknown> {
  if (Array.isArray(value)) return unwrap(value[0]);
  if (!isRecord(value)) return {};
  const { errors } = value;
  if (value['error'] === undefined && value['message'] === undefined && Array.isArray(errors)) return unwrap(errors[0]);
  return value;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function wordOf(value: unknown): string {
  return typeof value === 'number' ? String(value) : textOf(value);
}

function codeOf(value: unknown): string {
  return isRecord(value) ? wordOf(value['code']) : '';
}

/** Google's word for an error, which says more than the number in `code`: `{code: 503, status: "UNAVAILABLE"}`. */
function googleStatus({ code, status }: Record<string, unknown>): string {
  return typeof code === 'number' ? textOf(status) : '';
}

function quote(value: unknown): string {
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function statusOf(error: Record<string, unknown>): number | undefined {
  for (const key of ['status_code', 'raw_status_code', 'status', 'code']) {
    const status = Number(wordOf(error[key]));
    if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  return undefined;
}

/** Google's `details: [{reason: "API_KEY_INVALID"}]`. */
function reasonsOf(details: unknown): readonly string[] {
  if (!Array.isArray(details)) return [];
  return (details as readonly unknown[]).flatMap((detail) => (isRecord(detail) ? [textOf(detail['reason'])] : []));
}

/** Google's `details: [{retryDelay: "48s"}]`. */
function retryDelayOf(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const detail of details as readonly unknown[]) {
    const delay = isRecord(detail) ? textOf(detail['retryDelay']) : '';
    if (delay !== '') return parseDuration(delay);
  }
  return undefined;
}

/** A page without its tags, for the few words that it says. */
function plainText(text: string): string {
  const head = text.slice(0, MAX_TEXT_LENGTH);
  if (!/^\s*</.test(head)) return head.trim();
  return head
    .replace(/<(script|style)\b[\s\S]*?(<\/\1>|$)/gi, ' ')
    .replace(/<[^>]*>?/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}
