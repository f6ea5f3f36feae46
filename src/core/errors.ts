/**
 * Errors: every failure turnloop throws, hands out or records.
 *
 * - Recognised by a tag, never by `instanceof`: two copies of the package may be installed.
 * - Serialised as name, kind and message only: an error may end up in a log, and whatever hangs off it with it.
 * - A tool's own failure is a result, not one of these; misuse of the library is a `TypeError`.
 */
import type { AssistantPart, ThinkingPart, MediaPart, ProviderPart, TextPart } from './message.ts';
import { isRecord, toJson } from './json.ts';
import type { TurnStopReason } from './stop-reason.ts';
import type { Usage } from './usage.ts';

/** How an error reads in a log, an event or `JSON.stringify`. */
export interface ErrorSummary {
  /** Class of the error, such as `LLMError`. */
  readonly name: string;
  /** The kind of an {@link index.LLMError | LLMError}, the `code` of another error of ours, else `unknown`. */
  readonly kind: string;
  /** What went wrong, for people. */
  readonly message: string;
}

/** Options of {@link TurnloopError}. */
export interface TurnloopErrorOptions {
  /** What led to it. Neither serialised nor shown when the error is inspected: it may hold a request and its headers. */
  readonly cause?: unknown;
}

/**
 * Base of all errors of turnloop.
 *
 * Codes of the core: `hook_failed` `recorder_failed` `history_failed` (`buildMessages` threw) `setup_failed` (`llm` or
 * `tools` of a step could not be had) `request_failed` (a resumed turn had ended so) `internal` `user_cancel` `abort` `deadline` `tool_timeout` `unsupported_version` `stale_resume` `turn_over`.
 */
export class TurnloopError extends Error {
  /** Stable word for the failure, to switch on. */
  readonly code: string;
  /** Class of the error. */
  override readonly name: string = 'TurnloopError';

  constructor(code: string, message: string, options: TurnloopErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }

  /** The tag by which {@link isTurnloopError} knows errors of any copy of the package. */
  get isTurnloopError(): true {
    return true;
  }

  /** Name, kind and message: nothing else of an error is serialised. */
  toJSON(): ErrorSummary {
    return summarizeError(this);
  }
}

// What Node's `console.log` shows: the stack, and nothing that hangs off the cause. A no-op elsewhere.
Object.defineProperty(TurnloopError.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: TurnloopError): string {
    return this.stack ?? `${this.name}: ${this.message}`;
  },
});

/** True for errors of this or any other copy of turnloop. */
export function isTurnloopError(value: unknown): value is TurnloopError {
  return value instanceof Error && 'isTurnloopError' in value && value.isTurnloopError === true;
}

/**
 * What kind of failure a model request ended with. What each leads to:
 *
 * - passing, worth a retry: `rate_limit` `overloaded` `server` `network` `timeout` `malformed_response` (the answer is
 *   not the protocol's, or empty)
 * - the key or the account: `auth` `permission` `quota`; the name of the model or the address: `not_found`
 * - the request: `invalid_request` `invalid_history` (calls and results do not pair up) `context_overflow` (too many
 *   tokens) `request_too_large` (too many bytes) `media_rejected` `content_filter`
 * - `refused` a decorator did not send it; `aborted` the signal; `unknown` anything else
 */
export type LLMErrorKind =
  | 'rate_limit'
  | 'overloaded'
  | 'server'
  | 'network'
  | 'timeout'
  | 'auth'
  | 'permission'
  | 'not_found'
  | 'quota'
  | 'invalid_request'
  | 'invalid_history'
  | 'context_overflow'
  | 'request_too_large'
  | 'media_rejected'
  | 'content_filter'
  | 'malformed_response'
  | 'refused'
  | 'aborted'
  | 'unknown';

/** Every kind, and whether it passes by itself: then the same request may succeed later, or with another provider. */
export const LLM_ERROR_KINDS: Readonly<Record<LLMErrorKind, boolean>> = {
  rate_limit: true,
  overloaded: true,
  server: true,
  network: true,
  timeout: true,
  malformed_response: true,
  auth: false,
  permission: false,
  not_found: false,
  quota: false,
  invalid_request: false,
  invalid_history: false,
  context_overflow: false,
  request_too_large: false,
  media_rejected: false,
  content_filter: false,
  refused: false,
  aborted: false,
  unknown: false,
};

/** A part of a reply that was cut off: everything but calls, of which none may run. */
export type PartialReplyPart = TextPart | ThinkingPart | MediaPart | ProviderPart;

/** Options of {@link LLMError}. */
export interface LLMErrorOptions {
  /** What failed. */
  readonly kind: LLMErrorKind;
  /** What failed, on what, and what to do about it. Never holds a key or a header. */
  readonly message: string;
  /** Whether the same request may succeed later. @defaultValue true for the passing kinds, else false */
  readonly retryable?: boolean | undefined;
  /** The turn's stop reason, where the failure has one of its own. @defaultValue `fatal_error`, `context_overflow` for that kind */
  readonly stopReason?: TurnStopReason | undefined;
  /** Who ended the turn with it: becomes `TurnResult.stoppedBy`. @defaultValue nobody by name */
  readonly stoppedBy?: string | undefined;
  /** HTTP status, where there was one. */
  readonly status?: number | undefined;
  /** The provider's own word. @defaultValue the kind */
  readonly code?: string | undefined;
  /** The provider that failed, where a decorator chose among several: whose signatures `partial` has. @defaultValue `LLM.provider` */
  readonly provider?: string | undefined;
  /** The model that failed, where a decorator chose among several. @defaultValue `LLM.modelId` */
  readonly modelId?: string | undefined;
  /** How long the provider asked to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The provider's id of the request, for its support. */
  readonly requestId?: string | undefined;
  /** Tokens the failed request cost, where the provider told. */
  readonly usage?: Usage | undefined;
  /**
   * What had arrived, in order: finished parts with their signatures, and text as far as it came. Without it the loop
   * keeps the text it saw as deltas.
   */
  readonly partial?: readonly PartialReplyPart[] | undefined;
  /** What led to it. Not serialised. */
  readonly cause?: unknown;
}

/** A model request that failed. Adapters throw it; `kind` and `retryable` are all that policies need. */
export class LLMError extends TurnloopError {
  override readonly name: string = 'LLMError';
  /** What failed. */
  readonly kind: LLMErrorKind;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The turn's stop reason, where the failure has one of its own. */
  readonly stopReason: TurnStopReason | undefined;
  /** Who ended the turn with it, where somebody did by name. */
  readonly stoppedBy: string | undefined;
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  /** The provider that failed, where a decorator chose among several. */
  readonly provider: string | undefined;
  /** The model that failed, where a decorator chose among several. */
  readonly modelId: string | undefined;
  /** How long the provider asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The provider's id of the request, for its support. */
  readonly requestId: string | undefined;
  /** Tokens the failed request cost, where the provider told. */
  readonly usage: Usage | undefined;
  /** What had arrived, in order; no calls. */
  readonly partial: readonly PartialReplyPart[] | undefined;

  constructor(options: LLMErrorOptions) {
    super(options.code ?? options.kind, options.message, { cause: options.cause });
    this.kind = options.kind;
    this.retryable = options.retryable ?? (Object.hasOwn(LLM_ERROR_KINDS, options.kind) && LLM_ERROR_KINDS[options.kind]);
    this.stopReason = options.stopReason;
    this.stoppedBy = options.stoppedBy;
    this.status = options.status;
    this.provider = options.provider;
    this.modelId = options.modelId;
    this.retryAfterMs = options.retryAfterMs;
    this.requestId = options.requestId;
    this.usage = options.usage;
    this.partial = options.partial;
  }
}

/** The error with some of what it tells changed: for decorators that know more about a failure, or less should be told. */
export function changeLLMError(error: LLMError, changes: Partial<LLMErrorOptions>): LLMError {
  const { kind, message, retryable, stopReason, stoppedBy, status, code, provider, modelId, retryAfterMs, requestId, usage, partial, cause } = error;
  const told = { kind, message, retryable, stopReason, stoppedBy, status, code, provider, modelId, retryAfterMs, requestId, usage, partial, cause };
  return new LLMError({ ...told, ...changes });
}

/** True for an {@link index.LLMError | LLMError} of this or any other copy of turnloop. */
export function isLLMError(value: unknown): value is LLMError {
  return isTurnloopError(value) && 'kind' in value && 'retryable' in value;
}

/**
 * The one way from whatever a model request threw to an {@link index.LLMError | LLMError}.
 *
 * An `LLMError` is returned as it is. Anything else is `unknown` and not retryable, with its message and itself as
 * cause: an error that only looks like an abort is an error, since the abort that the loop caused never comes here.
 */
export function toLLMError(thrown: unknown): LLMError {
  if (isLLMError(thrown)) return thrown;
  return new LLMError({ kind: 'unknown', message: messageOf(thrown), cause: thrown });
}

/** What a thrown value says, whatever it is; never empty. */
export function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === 'string' && thrown !== '') return thrown;
    // Libraries put anything into these: only a text is a message.
    const { message, name } = Object(thrown) as { readonly message?: unknown; readonly name?: unknown };
    if (typeof message === 'string' && message !== '') return message;
    if (thrown instanceof Error && message === '' && typeof name === 'string' && name !== '') return name;
    const text: string | undefined = JSON.stringify(thrown instanceof Error ? message : thrown);
    return `a value that is not an error was thrown: ${text ?? String(thrown)}`;
  } catch {
    return 'a value that is not an error was thrown; it cannot be shown';
  }
}

const MAX_CAUSES = 6;

/** The first code on the way down the causes: runtimes wrap a socket's error in a `TypeError` that says nothing. */
export function causeCode(thrown: unknown): string | undefined {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && isRecord(error); depth += 1) {
    const { code, errors } = error;
    if (typeof code === 'string' && code !== '') return code;
    error = Array.isArray(errors) && errors.length > 0 ? (errors[0] as unknown) : error['cause'];
  }
  return undefined;
}

/** Name, kind and message of anything thrown, for events and logs. */
export function summarizeError(error: unknown): ErrorSummary {
  const kind = isLLMError(error) ? error.kind : isTurnloopError(error) ? error.code : 'unknown';
  return { name: error instanceof Error ? error.name : 'Error', kind, message: messageOf(error) };
}

/**
 * Reason of an abort that a person asked for: `control.abort(userCancel())` or `controller.abort(userCancel())`.
 *
 * The model is then told that the stop was deliberate and is not to be repeated; any other abort is worded as an
 * interruption.
 */
export function userCancel(message = 'The user cancelled.'): TurnloopError {
  return new TurnloopError('user_cancel', message);
}

/** True for the reason made by {@link userCancel}. */
export function isUserCancel(reason: unknown): boolean {
  return isTurnloopError(reason) && reason.code === 'user_cancel';
}

/** The parts of a reply that may be kept of one that was cut off: no calls, no thinking that lost its signature. */
export function partialReply(parts: readonly (AssistantPart | PartialReplyPart)[]): readonly PartialReplyPart[] {
  // Adapters without types give anything: what is no part is left out, so that the failure itself is what is told.
  const given: unknown = parts;
  return Array.isArray(given) ? given.filter(isKept) : [];
}

function isKept(part: unknown): part is PartialReplyPart {
  if (!isRecord(part) || toJson(part) === undefined) return false;
  if (part['type'] === 'text') return typeof part['text'] === 'string' && part['text'].trim() !== '';
  if (part['type'] === 'thinking') {
    return typeof part['text'] === 'string' && (part['signature'] !== undefined || part['redactedData'] !== undefined);
  }
  return part['type'] === 'media' || part['type'] === 'provider';
}
