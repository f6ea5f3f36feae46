/** Law 7, listeners are harmless: with a listener that fails on every event the transcript is the same. Black box. */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { faultyListener, recordEvents } from 'turnloop/testing';
import { law } from './law.ts';
import { play } from './play.ts';
import { scenarios } from './scenario.ts';

const modes = fc.constantFrom('throws', 'rejects', 'hangs');

describe('law-7 listeners', () => {
  law('law-7: a listener that fails on every event changes nothing', fc.tuple(scenarios(), modes), async ([scenario, mode]) => {
    const calm = await play(scenario, { listener: recordEvents().emit });
    const listener = faultyListener(mode);
    const disturbed = await play(scenario, { listener });

    expect(disturbed.transcript.events).toStrictEqual(calm.transcript.events);
    expect(disturbed.result).toStrictEqual(calm.result);
    expect(disturbed.dispatched).toStrictEqual(calm.dispatched);
    expect(disturbed.settledAt).toBe(calm.settledAt);
    // It was told of everything that left the loop, and was recorded where it had to be.
    expect(listener.events.length).toBeLessThanOrEqual(disturbed.dispatched.length);
    if (scenario.recorder.fault === undefined && scenario.recorder.pace === 'sync') {
      expect(listener.events).toStrictEqual(disturbed.dispatched.map(({ event }) => event));
    }
  });
});
