/**
 * Matchers: what tests say about turns, in the shape that `expect.extend` takes. Needs no test runner: whoever has such a
 * shape can use them.
 *
 * A matcher that is given what it cannot judge throws, negated or not: it never passes unlooked at.
 */
import { isThenable } from '../../core/event-dispatcher.ts';
import { isRecord } from '../../core/json.ts';
import { isTurnStopReason, type TurnStopReason } from '../../core/stop-reason.ts';
import { checkTranscript, type CheckedResult } from '../check-transcript.ts';
import { recordedEventsOf, toolCallsOf, wholeRecordOf, type RecordedCall, type TurnRecord } from '../turn-record.ts';

/** What a test runner hands to a matcher, as far as these look at it. */
export interface MatcherContext {
  /** Whether the assertion is negated. */
  readonly isNot: boolean;
  /** Deep equality, asymmetric matchers such as `expect.objectContaining` included. */
  equals(left: unknown, right: unknown): boolean;
  /** Helpers. */
  readonly utils: {
    /** A value for a message. */
    stringify(value: unknown): string;
  };
}

/** What a matcher gives back. */
export interface MatcherOutcome {
  /** Whether it matches. */
  readonly pass: boolean;
  /** What to say if that is not what the test expects. */
  readonly message: () => string;
}

/** A matcher, as `expect.extend` takes it. */
export type Matcher<Expected extends readonly unknown[]> = (this: MatcherContext, received: unknown, ...expected: Expected) => MatcherOutcome;

/** The matchers. */
// Not an interface: `expect.extend` takes what can have no further members.
export type Matchers = {
  /** @see {@link TurnMatchers.toHaveCalledTool} */
  readonly toHaveCalledTool: Matcher<[name: string, input?: unknown]>;
  /** @see {@link TurnMatchers.toEndWith} */
  readonly toEndWith: Matcher<[stopReason: TurnStopReason]>;
  /** @see {@link TurnMatchers.toFollowLaws} */
  readonly toFollowLaws: Matcher<[]>;
};

const GIVE = 'what finishTurn or runScripted gave, a transcript, or a list of events such as `await session.events()`';
const SHOWN_LENGTH = 200;

/** For `expect.extend(matchers)`. */
export const matchers: Matchers = {
  toHaveCalledTool(received, name, input) {
    if (typeof name !== 'string' || name === '') throw new TypeError(`toHaveCalledTool takes the name of a tool, such as 'weather', not ${this.utils.stringify(name)}.`);
    const calls = toolCallsOf(wholeRecordOf(recordOf(received, 'toHaveCalledTool'), 'toHaveCalledTool'));
    const pass = calls.some((call) => call.name === name && (input === undefined || this.equals(call.input, input)));
    const meant = `${name}${input === undefined ? '' : ` with ${this.utils.stringify(input)}`}`;
    const made = calls.length === 0 ? 'no tool was called' : `the calls were:\n${calls.map(callLine).join('\n')}`;
    return { pass, message: () => `expected the turn ${this.isNot ? 'not ' : ''}to have called ${meant}; ${made}` };
  },

  toEndWith(received, stopReason) {
    if (!isTurnStopReason(stopReason)) throw new TypeError(`toEndWith takes a stop reason, such as 'end_turn', not ${JSON.stringify(stopReason)}.`);
    const end = endOf(received);
    const ended = end === undefined ? 'it has not ended' : `it ended with "${end.stopReason}"${detailsOf(end)}`;
    return {
      pass: end?.stopReason === stopReason,
      message: () => `expected the turn ${this.isNot ? 'not ' : ''}to end with "${stopReason}"; ${ended}`,
    };
  },

  toFollowLaws(received) {
    const events = wholeRecordOf(recordOf(received, 'toFollowLaws'), 'toFollowLaws');
    const result = resultOf(received);
    const violations = checkTranscript(events, result === undefined ? {} : { complete: true, result });
    const lines = violations.map(({ law, message, index }) => `  law ${law}, recorded event ${index}: ${message}`);
    const broken = violations.length === 0 ? 'it breaks none' : `it breaks ${violations.length}:\n${lines.join('\n')}`;
    return {
      pass: violations.length === 0,
      message: () => `expected the record ${this.isNot ? 'not ' : ''}to follow the laws of the loop; ${broken}`,
    };
  },
};

function callLine({ name, input, output, isError }: RecordedCall): string {
  const shown = input === undefined ? '(arguments that are no JSON object)' : short(JSON.stringify(input));
  if (output === undefined) return `  ${name} ${shown} → no result yet`;
  return `  ${name} ${shown} → ${isError ? 'error: ' : ''}${short(JSON.stringify(output))}`;
}

function short(text: string): string {
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text;
}

/** How a turn ended, as far as a result or a record tells. */
interface TurnEnding {
  readonly stopReason: TurnStopReason;
  readonly stoppedBy?: string | undefined;
  readonly stopMessage?: string | undefined;
  readonly error?: { readonly message: string } | undefined;
}

function detailsOf({ stoppedBy, stopMessage, error }: TurnEnding): string {
  const details = [stoppedBy !== undefined && `by ${stoppedBy}`, stopMessage, error?.message];
  return details.filter((detail) => typeof detail === 'string').map((detail) => `, ${detail}`).join('');
}

/** How the turn ended; of a record its last. Undefined if it has not. */
function endOf(received: unknown): TurnEnding | undefined {
  if (isEnding(received)) return received;
  if (isRecord(received) && isEnding(received['result'])) return received['result'];
  const last = recordedEventsOf(recordOf(received, 'toEndWith')).findLast(({ type }) => type.startsWith('turn.'));
  if (last?.type === 'turn.end') return last;
  return last?.type === 'turn.suspend' ? { stopReason: 'suspended' } : undefined;
}

function isEnding(value: unknown): value is TurnEnding {
  return isRecord(value) && isTurnStopReason(value['stopReason']);
}

/** The result beside a record, for what both of them say. */
function resultOf(received: unknown): CheckedResult | undefined {
  const result = isRecord(received) ? received['result'] : undefined;
  // Whatever has a stop reason beside events is the result of a turn.
  return isEnding(result) ? (result as TurnEnding & CheckedResult) : undefined;
}

function recordOf(received: unknown, matcher: string): TurnRecord {
  const events = isRecord(received) ? received['events'] : received;
  if (Array.isArray(events) && events.every((event) => isRecord(event) && typeof event['type'] === 'string')) {
    // What has a type in a list is an event: of which, the record's readers look at those that they know.
    return events as TurnRecord;
  }
  throw new TypeError(`${matcher} got ${whatIs(received)}. It takes ${GIVE}.`);
}

function whatIs(received: unknown): string {
  if (isEnding(received)) return 'the result of a turn, which does not have its events';
  if (isRecord(received) && Symbol.asyncIterator in received) return 'a turn, which may be running: give it `await finishTurn(turn, runtime)`';
  if (isRecord(received) && typeof received['openTurn'] === 'function') return 'a session';
  if (isThenable(received)) return 'a promise that was not awaited';
  return Array.isArray(received) ? 'a list of something else than events' : `a value of type ${typeof received}`;
}
