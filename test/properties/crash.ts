/**
 * Crash: a session whose process may die after any recorded event and is then gone on with by the next one, until the
 * turn has ended. Decisions are given whenever the turn is suspended.
 */
import { createTranscript, type PendingCall, type RecordedEvent, type ToolCallDecision } from 'turnloop';
import { play, type Play } from './play.ts';
import type { Scenario } from './scenario.ts';

/** A session from its first event to the end of its turn. */
export interface Session {
  /** Each process that took part, in order. */
  readonly plays: readonly Play[];
  /** All events. */
  readonly events: readonly RecordedEvent[];
  /** The last process. */
  readonly last: Play;
}

/** Processes after which a session counts as endless. */
const MOST_PROCESSES = 12;

/** Decides as a person would who looks at nothing but the name: the same for a call, however often it is asked. */
function decide({ toolCallId, name }: PendingCall): ToolCallDecision {
  switch (name.length % 4) {
    case 0:
      return { toolCallId, action: 'allow' };
    case 1:
      return { toolCallId, action: 'deny', reason: 'not this one' };
    case 2:
      return { toolCallId, action: 'edit', input: { n: 3, touch: [] } };
    default:
      return { toolCallId, action: 'answer', result: 'answered by a person' };
  }
}

/** Goes on from these events, as often as it takes, until the turn has ended. */
export async function runSession(scenario: Scenario, from: readonly RecordedEvent[] = [], generation = 0): Promise<Session> {
  const plays: Play[] = [];
  let events = from;
  do {
    if (plays.length === MOST_PROCESSES) throw new Error(`The turn is still open after ${MOST_PROCESSES} processes.`);
    const decisions = pendingOf(events).map(decide);
    const idPrefix = generation + plays.length === 0 ? '' : `p${generation + plays.length}_`;
    const played = await play(scenario, { from: events, decisions, idPrefix });
    plays.push(played);
    events = played.transcript.events;
  } while (events.at(-1)?.type === 'turn.suspend');
  return { plays, events, last: plays.at(-1)! };
}

/** What a suspended turn waits for; nothing for one that a crash left open. */
function pendingOf(events: readonly RecordedEvent[]): readonly PendingCall[] {
  const turn = createTranscript(events).openTurn();
  if (turn?.suspended !== true) return [];
  return (turn.step?.calls ?? []).flatMap((call) => call.suspended?.pending ?? []);
}
