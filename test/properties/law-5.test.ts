/**
 * Law 5, usage is never lost: the result's usage is the sum of all `usage` events, including aborted and failed steps,
 * failed attempts where the provider told them, summaries and sub-agents. Black box.
 */
import { describe, expect } from 'vitest';
import { addUsage, NO_USAGE, type RecordedEvent, type Usage } from 'turnloop';
import { expectLaws, law } from './law.ts';
import { play, recordable } from './play.ts';
import { scenarios } from './scenario.ts';

const COUNTERS = ['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'outputTokens', 'thinkingTokens'] as const;

function sum(usages: readonly Usage[]): Usage {
  return usages.reduce(addUsage, NO_USAGE);
}

function usagesOf(events: readonly RecordedEvent[]): readonly Usage[] {
  return events.flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
}

describe('law-5 usage', () => {
  law('law-5: the result counts exactly what the record counts', scenarios(), async (scenario) => {
    const { result, transcript } = await play(scenario);

    expectLaws([5], transcript.events, { result });
    if (scenario.recorder.fault === undefined && scenario.recorder.pace === 'sync') {
      expect(result.usage).toStrictEqual(sum(usagesOf(transcript.events)));
    }
  });

  law('law-5: whatever anybody told of is counted, unless it came after an abort', scenarios(), async (scenario) => {
    const played = await play(scenario);
    const { result, world, abortedAt = Infinity } = played;

    // What is told in the moment of the abort, or while nobody waits any more, may be lost; nothing is ever made up.
    const least = sum(world.told.filter(({ at, certain }) => certain && at < abortedAt).map(({ usage }) => usage));
    const most = sum(world.told.map(({ usage }) => usage));
    const tried = sum(usagesOf(recordable(played)));
    for (const counter of COUNTERS) {
      expect(result.usage[counter]).toBeGreaterThanOrEqual(Math.max(least[counter], tried[counter]));
      expect(result.usage[counter]).toBeLessThanOrEqual(most[counter]);
    }
  });
});
