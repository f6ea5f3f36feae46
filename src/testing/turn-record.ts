/**
 * Turn record: what a test asks about the events of a turn, wherever it has them from: a list, a transcript, what
 * `runScripted` or `finishTurn` gave.
 *
 * Live events and those of sub-agents do not count: they are not part of the record.
 */
import { isRecordedEvent } from '../core/event-dispatcher.ts';
import type { LoopEvent, RecordedEvent } from '../core/events.ts';
import type { JsonValue } from '../core/json.ts';
import { textOf } from '../core/message.ts';
import type { SessionEvent } from '../sessions/session-store.ts';

/** An event of a turn, live or recorded, or of a session. */
export type AnyEvent = LoopEvent | SessionEvent;

/** Anything that holds events, such as a transcript. */
export interface EventHolder {
  /** The events, in order. */
  readonly events: readonly AnyEvent[];
}

/** What has the events of a turn, or of several: a list of them, a transcript, what `runScripted` or `finishTurn` gave. */
export type TurnRecord = readonly AnyEvent[] | EventHolder;

/** A call that a model made, and what became of it. Made by {@link toolCallsOf}. */
export interface RecordedCall {
  /** Id of the call. */
  readonly toolCallId: string;
  /** Name of the tool, as the model wrote it. */
  readonly name: string;
  /** The arguments, as a hook or a decision left them; undefined where the model's text was no JSON object. */
  readonly input: JsonValue | undefined;
  /** Text of what the model was told; undefined for a call that has no result yet. */
  readonly output: string | undefined;
  /** Whether the result is a failure; a call that was denied or not executed is one too. */
  readonly isError: boolean;
}

/** Types of events that a session has beside those of its turns. */
const OF_SESSION: ReadonlySet<string> = new Set<Exclude<SessionEvent['type'], RecordedEvent['type']>>(['input.queued', 'input.removed', 'handoff']);

/** True for an event of a session that belongs to none of its turns. */
export function isOfSession(event: AnyEvent): event is Exclude<SessionEvent, RecordedEvent> {
  return OF_SESSION.has(event.type);
}

/** The recorded events of a record. */
export function recordedEventsOf(record: TurnRecord): readonly RecordedEvent[] {
  const events = 'events' in record ? record.events : record;
  return events.filter((event): event is RecordedEvent => !isOfSession(event) && isRecordedEvent(event));
}

/**
 * The recorded events of a record that has its turns whole.
 *
 * @param taker - Who asks, for the message.
 * @throws TypeError for what a turn recorded from its resume on, which says nothing of what came before.
 */
export function wholeRecordOf(record: TurnRecord, taker: string): readonly RecordedEvent[] {
  const events = recordedEventsOf(record);
  if (events[0]?.type !== 'turn.resume') return events;
  throw new TypeError(`${taker} got what a turn recorded from its resume on. What came before is in the events of its session: give it \`await session.events()\`.`);
}

/**
 * The calls that the model made, in its order, each with what became of it: for assertions of any test runner.
 *
 * A call is one whether or not it ran: one that was denied has a result that says so.
 *
 * @throws TypeError for what a turn recorded from its resume on: the calls came before, and are in `await session.events()`.
 * @example
 * ```ts
 * assert.deepEqual(toolCallsOf(outcome).map(({ name, input }) => [name, input]), [['weather', { city: 'Oslo' }]]);
 * ```
 */
export function toolCallsOf(record: TurnRecord): readonly RecordedCall[] {
  const events = wholeRecordOf(record, 'toolCallsOf');
  const calls = new Map<string, RecordedCall>();
  for (const event of events) {
    if (event.type === 'tool.call') {
      const { toolCallId, name, input } = event;
      calls.set(toolCallId, { toolCallId, name, input, output: undefined, isError: false });
      continue;
    }
    if (event.type !== 'tool.start' && event.type !== 'tool.finished' && event.type !== 'tool.result') continue;
    const call = calls.get(event.toolCallId);
    if (call === undefined) continue;
    if (event.type !== 'tool.start') calls.set(event.toolCallId, { ...call, output: textOf(event.result.content), isError: event.result.isError === true });
    else if (event.input !== undefined) calls.set(event.toolCallId, { ...call, input: event.input });
  }
  return [...calls.values()];
}
