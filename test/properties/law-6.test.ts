/**
 * Law 6, no conflict overlaps; what does not conflict waits only for the parallel limit, for conflicting calls before it,
 * and for its own authorisation; nothing starves. Against `accessesConflict`, on the scheduler itself and through the loop.
 */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { accessesConflict, type ToolAccess } from 'turnloop';
// The scheduler is no part of the package's door; its law is worth a test without a turn around it.
import { createToolScheduler, type SchedulerTicket } from '../../src/core/tool-scheduler.ts';
import { accessesOf } from './fake-tools.ts';
import { law } from './law.ts';
import { play } from './play.ts';
import { scenarios, type Touch, touches } from './scenario.ts';
import { runTimedBatch, type TimedBatch, type TimedRun } from './timed-batch.ts';
import type { ToolRunLog } from './world.ts';

/** What happens to a call of a batch; which of the calls is meant is taken modulo their number. */
type Move =
  | { readonly act: 'ready' | 'release' | 'park'; readonly call: number }
  | { readonly act: 'reclaim'; readonly call: number; readonly touch: readonly Touch[] };

const moves: fc.Arbitrary<readonly Move[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('ready', 'release', 'park'), call: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('reclaim' as const), call: fc.nat(30), touch: touches }) },
  ),
  { maxLength: 40 },
);

const batches = fc.record({ calls: fc.array(touches, { minLength: 1, maxLength: 10 }), moves, maxParallel: fc.integer({ min: 1, max: 4 }) });

/** One step of calls that take their time, each authorised after a time of its own, some edited. */
const timedBatches: fc.Arbitrary<TimedBatch> = fc.record({
  calls: fc.array(
    fc.record(
      { touch: touches, ms: fc.integer({ min: 1, max: 9 }), authorizeMs: fc.nat(9), edit: touches },
      { requiredKeys: ['touch', 'ms', 'authorizeMs'] },
    ),
    { minLength: 1, maxLength: 8 },
  ),
  maxParallel: fc.integer({ min: 1, max: 4 }),
});

/** A call of a batch, as the oracle sees it. */
interface Seen {
  readonly index: number;
  readonly ticket: SchedulerTicket;
  accesses: readonly ToolAccess[];
  state: 'held' | 'ready' | 'running' | 'parked' | 'over';
  /** Later calls that had started when this one's accesses changed: they come first. */
  overtakenBy: readonly Seen[];
}

/** Calls that have to be over before a call may start. */
function inTheWay(call: Seen, calls: readonly Seen[]): readonly Seen[] {
  return calls.filter((other) => {
    if (other === call || other.state === 'over' || !accessesConflict(call.accesses, other.accesses)) return false;
    return other.index < call.index ? !other.overtakenBy.includes(call) : call.overtakenBy.includes(other);
  });
}

function isRunning(call: Seen): boolean {
  return call.state === 'running' || call.state === 'parked';
}

describe('law-6 scheduling', () => {
  law('law-6: the scheduler starts each call as soon as the oracle allows it, and never before', batches, ({ calls, moves: list, maxParallel }) => {
    const scheduler = createToolScheduler(maxParallel);
    const seen: Seen[] = calls.map((touch, index) => {
      const accesses = accessesOf(touch);
      return { index, ticket: scheduler.add(accesses), accesses, state: 'held', overtakenBy: [] };
    });
    const start = (call: Seen): void => {
      expect(call.state).toBe('ready');
      expect(inTheWay(call, seen)).toStrictEqual([]);
      call.state = 'running';
      expect(seen.filter((other) => other.state === 'running').length).toBeLessThanOrEqual(maxParallel);
      expect(seen.filter((other) => other !== call && isRunning(other) && accessesConflict(other.accesses, call.accesses))).toStrictEqual([]);
    };
    const expectNoIdleness = (): void => {
      if (seen.filter((call) => call.state === 'running').length >= maxParallel) return;
      expect(seen.filter((call) => call.state === 'ready' && inTheWay(call, seen).length === 0)).toStrictEqual([]);
    };

    for (const move of list) {
      apply(move, seen[move.call % seen.length]!, { seen, start });
      expectNoIdleness();
    }
    // Nothing starves: once all are ready and each that runs ends, all have run.
    for (const call of seen) apply({ act: 'ready', call: 0 }, call, { seen, start });
    for (let round = 0; round < seen.length; round += 1) {
      for (const call of seen) if (isRunning(call)) apply({ act: 'release', call: 0 }, call, { seen, start });
      expectNoIdleness();
    }
    expect(seen.map((call) => call.state)).toStrictEqual(seen.map(() => 'over'));
  });

  law('law-6: in a turn no two calls that conflict ever overlap, and those that were not edited keep their order', scenarios(), async (scenario) => {
    const { world } = await play(scenario);

    // Two runs overlap unless one ended before the other started; one that was cut off is not waited for.
    for (const [index, later] of world.runs.entries()) {
      for (const earlier of world.runs.slice(0, index)) {
        if (earlier.end === undefined || !accessesConflict(earlier.accesses, later.accesses)) continue;
        expect([earlier.end < later.start, describeRun(earlier), describeRun(later)]).toStrictEqual([true, describeRun(earlier), describeRun(later)]);
      }
    }
  });

  law('law-6: in a turn a call waits for nothing but its authorisation, the limit, and conflicting calls', timedBatches, async (batch) => {
    const runs = await runTimedBatch(batch);

    expect(runs).toHaveLength(batch.calls.length);
    for (const run of runs) {
      for (const time of times(runs)) {
        if (time < batch.calls[run.index]!.authorizeMs || time >= run.startedAt) continue;
        const active = runs.filter((other) => other.startedAt <= time && time < other.endedAt);
        const conflicting = runs.filter((other) => other !== run && time < other.endedAt && mayConflict(other, run, { batch, time }));
        // A later call that was running when this one's accesses were edited comes first.
        const before = conflicting.filter((other) => other.index < run.index || active.includes(other));
        expect(active.length >= batch.maxParallel || before.length > 0).toBe(true);
      }
    }
  });
});

function apply(move: Move, call: Seen, around: { readonly seen: readonly Seen[]; readonly start: (call: Seen) => void }): void {
  const { seen, start } = around;
  switch (move.act) {
    case 'ready':
      if (call.state !== 'held') return;
      call.state = 'ready';
      call.ticket.ready(() => start(call));
      return;
    case 'release':
      if (call.state === 'over') return;
      call.state = 'over';
      call.ticket.release();
      return;
    case 'park':
      if (call.state !== 'running') return;
      call.state = 'parked';
      call.ticket.park();
      return;
    case 'reclaim':
      if (call.state !== 'held') return;
      call.accesses = accessesOf(move.touch);
      call.overtakenBy = seen.filter((other) => other.index > call.index && isRunning(other));
      call.ticket.reclaim(call.accesses);
  }
}

function describeRun({ name, toolCallId, start, end }: ToolRunLog): string {
  return `${name} ${toolCallId} ${start}–${String(end)}`;
}


/** True if two calls conflict at a time: one that is still to be edited counts with what it declared first. */
function mayConflict(other: TimedRun, run: TimedRun, at: { readonly batch: TimedBatch; readonly time: number }): boolean {
  const { touch, authorizeMs } = at.batch.calls[other.index]!;
  return accessesConflict(at.time < authorizeMs ? accessesOf(touch) : other.accesses, run.accesses);
}

function times(runs: readonly TimedRun[]): readonly number[] {
  return [...new Set(runs.flatMap((run) => [run.startedAt, run.endedAt]))];
}
