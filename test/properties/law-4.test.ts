/**
 * Law 4, bounded end: after an abort the turn settles within `graceMs` whatever models, tools, hooks or recorders do.
 * After that nothing is recorded or emitted, and nothing of the loop stays behind. Black box, on virtual time.
 */
import { afterAll, beforeAll, describe, expect } from 'vitest';
import fc from 'fast-check';
import { law } from './law.ts';
import { play } from './play.ts';
import { type ActionSpec, type Scenario, scenarios } from './scenario.ts';

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => {
  unhandled.push(reason);
};

beforeAll(() => {
  process.on('unhandledRejection', onUnhandled);
});
afterAll(() => {
  process.off('unhandledRejection', onUnhandled);
});

const aborts: fc.Arbitrary<ActionSpec> = fc.record({
  at: fc.oneof(fc.record({ ms: fc.nat(25) }), fc.record({ event: fc.integer({ min: 1, max: 30 }) })),
  act: fc.constantFrom('abort_signal', 'abort_control', 'user_cancel'),
  target: fc.constant(0),
});

/** Scenarios that are aborted for sure, if they last. */
const aborted: fc.Arbitrary<Scenario> = fc
  .tuple(scenarios(), aborts)
  .map(([scenario, abort]) => ({ ...scenario, actions: [...scenario.actions, abort] }));

describe('law-4 bounded end', () => {
  law('law-4: an aborted turn settles within its grace, whatever hangs', aborted, async (scenario) => {
    const { abortedAt, settledAt } = await play(scenario);

    if (abortedAt !== undefined) expect(settledAt - abortedAt).toBeLessThanOrEqual(scenario.graceMs);
  });

  law('law-4: nothing of a turn that has settled stays behind, and late outcomes change nothing', aborted, async (scenario) => {
    const played = await play(scenario);
    const { world, controller, dispatched, steered } = played;
    const left = dispatched.length;

    expect(world.loopTimers).toBe(0);
    expect(controller.listenerCount).toBe(0);

    await world.releaseLate();
    // What was handed to a slow recorder before may become durable now; nothing new leaves the loop.
    expect(dispatched).toHaveLength(left);
    expect(steered).toHaveLength(played.steerCount);
    expect(world.loopTimers).toBe(0);
    expect(unhandled).toStrictEqual([]);
  });
});
