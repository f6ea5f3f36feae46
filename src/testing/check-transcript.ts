/**
 * Checks a transcript against the laws of the loop, as far as they can be seen in recorded events. What only a running
 * turn shows (overlaps, timers left behind, requests) needs other tests.
 *
 * The record may stop anywhere: a recorder can die after any event. What is checked, by law:
 *
 * 1. each `tool.call` has exactly one `tool.result`; a result, start or finish belongs to a call of its step; a call that
 *    shares a result has that one, unless it was ended before; ids of calls are unique
 * 2. what a fold relies on: the version, plain JSON, unique ids of messages and steps, messages with an id
 * 3. order: `turn.begin` first and `turn.end` last and once; the input before step 1; steps 1 to n; parts by index and all
 *    of them before any tool; `tool.finished` before `tool.result`; results in the order of the calls; `step.end` last;
 *    `turn.suspend` instead of `step.end` and `turn.end`, with no result behind a suspended call. A turn that was given up
 *    ends `aborted`, and may lack `tool.finished` and `step.end`. Between turns only a compaction may stand, with its usage;
 *    anywhere the usage of work beside the turns
 * 5. tokens are numbers of at least 0, recorded before the parts they paid for, once, and the same in `step.end`; with the
 *    `result` option they add up to its usage
 * 9. no call starts twice without a resume in between, none starts or finishes again once it has finished, and its
 *    result is what it finished with
 */
import type { RecordedEvent } from '../core/events.ts';
import type { TurnStopReason } from '../core/stop-reason.ts';
import type { Usage } from '../core/usage.ts';
import type { SessionEvent } from '../sessions/session-store.ts';
import { isRecord } from '../core/json.ts';
import { findNonJson } from './plain-json.ts';
import type { Report } from './step-check.ts';
import { TurnCheck } from './turn-check.ts';
import { isOfSession } from './turn-record.ts';

/** A law that a transcript breaks. */
export interface LawViolation {
  /** Number of the law. */
  readonly law: number;
  /** What is wrong, naming the call, step or turn. */
  readonly message: string;
  /** Position of the event that shows it, 0-based. */
  readonly index: number;
}

/** Options of {@link checkTranscript}. */
export interface CheckTranscriptOptions {
  /** Whether every turn must have ended; the last may be suspended. @defaultValue false: the record may stop anywhere */
  readonly complete?: boolean | undefined;
  /** What the last turn returned, to compare. Looked at only if that turn has ended or is suspended. */
  readonly result?: CheckedResult | undefined;
}

/** The part of a turn's result that the record must agree with. */
export interface CheckedResult {
  /** Tokens spent. */
  readonly usage: Usage;
  /** Steps begun. */
  readonly steps: number;
  /** Why the turn ended. */
  readonly stopReason: TurnStopReason;
}

/**
 * Names each law that recorded events break; empty if they break none.
 *
 * @param events - A transcript, or any beginning of one; several turns may follow each other. Of a session's events those
 * that belong to no turn (queued inputs, handoffs) are passed over.
 */
export function checkTranscript(
  events: readonly SessionEvent[],
  options: CheckTranscriptOptions = {},
): readonly LawViolation[] {
  const given: unknown = events;
  if (!Array.isArray(given) || !given.every(isRecord)) throw new TypeError('checkTranscript takes a list of events. For example: checkTranscript(await session.events()).');
  const violations: LawViolation[] = [];
  let index = 0;
  const reportAt = (at: number, law: number, message: string): void => {
    violations.push({ law, message, index: at });
  };
  const report: Report = Object.assign((law: number, message: string) => reportAt(index, law, message), {
    fromHere: () => {
      const at = index;
      return (law: number, message: string) => reportAt(at, law, message);
    },
  });
  const ids = new IdCheck(report);
  let turn: TurnCheck | undefined;

  for (const event of events) {
    const nonJson = findNonJson(event, event.type);
    if (nonJson !== undefined) report(2, `not plain JSON: ${nonJson}`);
    if (isOfSession(event)) {
      index += 1;
      continue;
    }
    ids.add(event);
    if (event.type === 'turn.begin') {
      if (turn !== undefined) finishTurn(turn, options, report);
      turn = new TurnCheck(event, report);
    } else if (isBetweenTurns(event, turn)) {
      // A summary that the host asked for opens no turn, and neither does what was remembered of one.
    } else if (turn === undefined) {
      report(3, `${event.type} comes before any turn.begin`);
    } else {
      if (event.turnId !== turn.turnId) report(3, `${event.type} belongs to turn ${event.turnId}, within turn ${turn.turnId}`);
      turn.add(event);
    }
    index += 1;
  }
  index = Math.max(0, events.length - 1);
  if (turn !== undefined) {
    if (!turn.suspended) finishTurn(turn, options, report);
    if (options.result !== undefined) compareResult(turn, options.result, report);
  }
  return violations;
}

/** True for what a compaction between turns records, and for what was spent beside them, each under an id of its own. */
function isBetweenTurns(event: RecordedEvent, turn: TurnCheck | undefined): boolean {
  if (event.type === 'usage' && event.purpose === 'other') return event.turnId !== turn?.turnId;
  const isCompaction = event.type === 'compaction' || (event.type === 'usage' && event.purpose === 'compaction');
  return isCompaction && (turn === undefined || (turn.ended !== undefined && event.turnId !== turn.turnId));
}

function finishTurn(turn: TurnCheck, options: CheckTranscriptOptions, report: Report): void {
  if (options.complete === true && turn.ended === undefined) report(3, `turn ${turn.turnId} has no turn.end`);
}

function compareResult(turn: TurnCheck, result: CheckedResult, report: Report): void {
  const stopReason = turn.suspended ? 'suspended' : turn.ended?.stopReason;
  if (stopReason === undefined) return;
  if (stopReason !== result.stopReason) report(3, `the record ends "${stopReason}", the result says "${result.stopReason}"`);
  if (turn.steps !== result.steps) report(3, `the record has ${turn.steps} steps, the result says ${result.steps}`);
  const [recorded, told] = [JSON.stringify(turn.usage), JSON.stringify(result.usage)];
  if (recorded !== told) report(5, `the usage events add up to ${recorded}, the result says ${told}`);
}

/** Checks that no id is given twice. */
class IdCheck {
  readonly #report: Report;
  readonly #turns = new Set<string>();
  readonly #messages = new Set<string>();
  readonly #calls = new Set<string>();

  constructor(report: Report) {
    this.#report = report;
  }

  add(event: RecordedEvent): void {
    if (event.type === 'turn.begin') this.#take(this.#turns, event.turnId, { law: 3, what: 'turn' });
    // The reply of a step is a message with the step's id.
    else if (event.type === 'step.begin') this.#take(this.#messages, event.stepId, { law: 2, what: 'step' });
    else if (event.type === 'message') this.#take(this.#messages, event.message.id, { law: 2, what: 'message' });
    else if (event.type === 'tool.call') this.#take(this.#calls, event.toolCallId, { law: 1, what: 'call' });
  }

  #take(known: Set<string>, id: string, { law, what }: { readonly law: number; readonly what: string }): void {
    if (id === '') this.#report(law, `a ${what} has no id`);
    else if (known.has(id)) this.#report(law, `two of the record's ids are "${id}": that of a ${what} is not new`);
    known.add(id);
  }
}
