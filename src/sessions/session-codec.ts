/**
 * Session codec: what stores write of a session and read back, whatever they keep it in.
 *
 * - A line is JSON without a line break; its event reads back as the JSON it was.
 * - A `tool.result` does not repeat a body that the `tool.finished` of its call had: reading puts it back. It never refers
 *   to a line before the encoder began or was told to forget, so that reading may begin there too.
 * - What is read was written by any release, or by anybody: it is checked, and what is missing and may be gets its default.
 * - A newer version is a `SessionError`; anything else that cannot be read is an `Error` that says why, and the store adds where.
 */
import { isRecord, type JsonObject } from '../core/json.ts';
import { TRANSCRIPT_VERSION, type RecordedToolResult } from '../core/events.ts';
import { messageOf } from '../core/errors.ts';
import type { UserMessage } from '../core/message.ts';
import type { TranscriptSnapshot } from '../core/transcript.ts';
import { NO_USAGE, type Usage } from '../core/usage.ts';
import { type NewSession, SESSION_VERSION, SessionError, type SessionEvent, type SessionFork, type SessionHeader, type SessionSnapshot } from './session-store.ts';

/** Longest id of a session, in bytes of UTF-8. */
const MAX_ID_BYTES = 1_000;

/**
 * Refuses what is no id of a session, or of a sub-agent: before anything is done with it.
 *
 * @throws SessionError `invalid_session_id`.
 */
export function assertSessionId(id: unknown): asserts id is string {
  const wrong = wrongOfId(id);
  if (wrong === undefined) return;
  throw new SessionError('invalid_session_id', `A session id is any text of 1 to ${MAX_ID_BYTES} bytes, such as 'chat-42'; this one ${wrong}.`);
}

function wrongOfId(id: unknown): string | undefined {
  if (typeof id !== 'string') return `is of type ${typeof id}`;
  if (id === '') return 'is empty';
  if (id.length > MAX_ID_BYTES || new TextEncoder().encode(id).length > MAX_ID_BYTES) return 'is longer';
  return /\p{Surrogate}/u.test(id) ? 'has half a character in it (an unpaired surrogate)' : undefined;
}

/**
 * What a new session begins with.
 *
 * @throws SessionError `invalid_session_id`.
 * @throws TypeError for what is not a new session.
 */
export function headerOf(session: NewSession): SessionHeader {
  if (!isRecord(session)) throw new TypeError(`create takes a new session. ${CREATE_EXAMPLE}`);
  const { sessionId, createdAt, forkedFrom, metadata } = session;
  assertSessionId(sessionId);
  const header = {
    version: SESSION_VERSION,
    sessionId,
    createdAt,
    ...(forkedFrom !== undefined && { forkedFrom }),
    ...(metadata !== undefined && { metadata }),
  };
  try {
    // Whatever could not be read back is refused now.
    return decodeHeader(encodeHeader(header));
  } catch (error) {
    throw new TypeError(`create: the new session cannot be written: ${messageOf(error)}. ${CREATE_EXAMPLE}`, { cause: error });
  }
}

const CREATE_EXAMPLE = "For example: create({ sessionId: 'chat-42', createdAt: Date.now() }).";

/** The line of a header. */
export function encodeHeader(header: SessionHeader): string {
  return JSON.stringify({ type: 'session', ...header });
}

/**
 * Reads the line of a header.
 *
 * @throws SessionError `unsupported_version`.
 * @throws Error if it is none.
 */
export function decodeHeader(line: string): SessionHeader {
  const value = parseLine(line);
  if (value['type'] !== 'session') throw new Error('it is not the header of a session');
  assertVersion(value['version'], SESSION_VERSION, 'session');
  const { sessionId, createdAt, forkedFrom, metadata } = value;
  if (typeof sessionId !== 'string') throw new Error('its `sessionId` is not a text');
  if (typeof createdAt !== 'number') throw new Error('its `createdAt` is not a time in milliseconds');
  if (forkedFrom !== undefined && !isFork(forkedFrom)) throw new Error('its `forkedFrom` is not a session and a turn');
  if (metadata !== undefined && !isRecord(metadata)) throw new Error('its `metadata` is not an object');
  return {
    version: SESSION_VERSION,
    sessionId,
    createdAt,
    ...(forkedFrom !== undefined && { forkedFrom }),
    // What JSON.parse gives is JSON.
    ...(metadata !== undefined && { metadata: metadata as JsonObject }),
  };
}

function isFork(value: unknown): value is SessionFork {
  return isRecord(value) && typeof value['sessionId'] === 'string' && ['string', 'undefined'].includes(typeof value['turnId']);
}

/** @throws TypeError for what callers without types append that is no event. */
export function assertEvent(event: unknown): asserts event is SessionEvent {
  if (isRecord(event) && typeof event['type'] === 'string') return;
  throw new TypeError("append takes events, which have a `type`. For example: append([{ type: 'input.removed', at, messageId }]).");
}

/**
 * @param call - Which call takes them, for the message.
 * @throws TypeError for what callers without types give that is no list.
 */
export function assertEventList(events: unknown, call: 'append' | 'create'): asserts events is readonly SessionEvent[] {
  if (Array.isArray(events)) return;
  throw new TypeError(`${call} takes a list of events. For example: append([{ type: 'input.removed', at, messageId }]).`);
}

/** Writes events as lines, in the order of the log. */
export class EventEncoder {
  readonly #finished = new Map<string, RecordedToolResult>();

  /**
   * The line of an event, without a line break.
   *
   * @throws TypeError for what is not an event, or not JSON.
   */
  encode(event: SessionEvent): string {
    assertEvent(event);
    try {
      return JSON.stringify(this.#shorten(event));
    } catch (error) {
      throw new TypeError(`append: an event of type ${event.type} is not JSON: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Has later lines refer to none before: for when those may not have been written, or will not be read. */
  forget(): void {
    this.#finished.clear();
  }

  #shorten(event: SessionEvent): unknown {
    if (event.type === 'turn.end') this.#finished.clear();
    if (event.type === 'tool.finished') this.#finished.set(event.toolCallId, event.result);
    if (event.type !== 'tool.result') return event;
    const finished = this.#finished.get(event.toolCallId);
    this.#finished.delete(event.toolCallId);
    return finished !== undefined && isSame(finished, event.result) ? { ...event, result: undefined } : event;
  }
}

function isSame(left: RecordedToolResult, right: RecordedToolResult): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}

/** Reads lines back into events, in the order of the log. */
export class EventDecoder {
  readonly #finished = new Map<string, RecordedToolResult>();

  /** @throws Error if the line is not that of an event. */
  decode(line: string): SessionEvent {
    const value = parseLine(line);
    if (typeof value['type'] !== 'string') throw new Error('it has no `type`, as events have');
    // Whether an event has what its type needs is asked by whoever folds it; types of later releases are kept.
    const event = value as unknown as SessionEvent;
    if (event.type === 'turn.end') this.#finished.clear();
    if (event.type === 'tool.finished') this.#finished.set(event.toolCallId, event.result);
    return event.type === 'tool.result' && value['result'] === undefined ? this.#complete(event) : event;
  }

  #complete(event: SessionEvent & { readonly type: 'tool.result' }): SessionEvent {
    const result = this.#finished.get(event.toolCallId);
    if (result === undefined) throw new Error('its result is that of a tool.finished which is not there');
    this.#finished.delete(event.toolCallId);
    return { ...event, result };
  }
}

/**
 * A snapshot as it was read, whole: what a release that wrote it did not know of gets its default.
 *
 * @param value - What JSON.parse gave.
 * @param sessionId - The session that it has to be of.
 * @throws SessionError `unsupported_version`.
 * @throws Error if it cannot be used.
 */
export function checkSnapshot(value: unknown, sessionId: string): SessionSnapshot {
  if (!isRecord(value)) throw new Error('it is not an object');
  assertVersion(value['version'], SESSION_VERSION, 'snapshot');
  if (value['sessionId'] !== sessionId) throw new Error('it is of another session');
  // What a release before had not yet is as it begins.
  const { events, turns = 0, steps = 0, usage = NO_USAGE, queue = [], agent, state = {} } = value;
  if (!isCount(events)) throw new Error('it does not say how many events it covers');
  if (!Array.isArray(queue) || !queue.every(isUserMessage)) throw new Error('its `queue` is not a list of user messages');
  for (const [name, count] of Object.entries({ turns, steps })) if (!isCount(count)) throw new Error(`its \`${name}\` is no number of them`);
  if (!isUsage(usage)) throw new Error('its `usage` is not one');
  if (agent !== undefined && typeof agent !== 'string') throw new Error('its `agent` is not a name');
  if (!isRecord(state)) throw new Error('its `state` is not an object');
  return {
    version: SESSION_VERSION,
    sessionId,
    at: typeof value['at'] === 'number' ? value['at'] : 0,
    events,
    transcript: checkTranscript(value['transcript']),
    turns: Number(turns),
    steps: Number(steps),
    usage,
    queue,
    ...(agent !== undefined && { agent }),
    // What JSON.parse gives is JSON.
    state: state as JsonObject,
  };
}

function checkTranscript(value: unknown): TranscriptSnapshot {
  if (!isRecord(value) || !Array.isArray(value['messages'])) throw new Error('it has no transcript');
  assertVersion(value['version'], TRANSCRIPT_VERSION, 'transcript in the snapshot');
  // Whether the messages can be read is asked by the transcript that begins with them.
  return value as unknown as TranscriptSnapshot;
}

function isUserMessage(value: unknown): value is UserMessage {
  return isRecord(value) && value['role'] === 'user' && typeof value['id'] === 'string';
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isUsage(value: unknown): value is Usage {
  return isRecord(value) && Object.keys(NO_USAGE).every((counter) => isCount(value[counter]));
}

function assertVersion(version: unknown, newest: number, what: string): void {
  if (!Number.isSafeInteger(version) || Number(version) < 1) throw new Error(`it has no version of a ${what}`);
  if (Number(version) <= newest) return;
  throw new SessionError(
    'unsupported_version',
    `The ${what} has version ${String(version)}; this turnloop reads up to ${newest}. Nothing was changed: update turnloop to read it.`,
  );
}

function parseLine(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // The engine's message would put the session's content into logs.
    throw new Error('it is not JSON');
  }
  if (!isRecord(value)) throw new Error('it is not a JSON object');
  return value;
}
