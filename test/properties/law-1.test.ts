/**
 * Law 1, pairing: every recorded `tool.call` has exactly one `tool.result`, on every path except a turn still suspended
 * and the death of the process or of the recorder. Black box.
 */
import { describe, expect } from 'vitest';
import { expectLaws, law } from './law.ts';
import { play } from './play.ts';
import { scenarios } from './scenario.ts';

describe('law-1 pairing', () => {
  law('law-1: every call of an ended turn has exactly one result, whatever happens to it', scenarios(), async (scenario) => {
    const { transcript, result } = await play(scenario);

    expectLaws([1], transcript.events, { complete: result.error?.code !== 'recorder_failed' });
    const calls = idsOf(transcript.events, 'tool.call');
    const results = idsOf(transcript.events, 'tool.result');
    if (transcript.events.at(-1)?.type === 'turn.end') expect(results).toStrictEqual(calls);
    else expect(results).toStrictEqual(calls.slice(0, results.length));
  });
});

function idsOf(events: Awaited<ReturnType<typeof play>>['transcript']['events'], type: 'tool.call' | 'tool.result'): string[] {
  return events.flatMap((event) => (event.type === type && 'toolCallId' in event ? [event.toolCallId] : []));
}
