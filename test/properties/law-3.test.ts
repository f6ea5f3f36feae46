/**
 * Law 3, order: the recorded events of a step, `tool.start` and `tool.finished` apart, stand in provider order for every
 * interleaving of tools; once `turn.begin` is recorded, `turn.end` is last and comes exactly once (a suspended turn has
 * none yet; a dead recorder may swallow it). Black box.
 *
 * Checked twice, by `checkTranscript` and by a grammar: an event is a letter, and the word must be one of the language.
 */
import { describe, expect } from 'vitest';
import type { RecordedEvent } from 'turnloop';
import { expectLaws, law } from './law.ts';
import { play, recordable } from './play.ts';
import { scenarios, type Scenario } from './scenario.ts';

const LETTERS: Readonly<Record<RecordedEvent['type'], string>> = {
  'turn.begin': 'B',
  message: 'm',
  'step.begin': 'b',
  usage: 'u',
  'content.part': 'p',
  'tool.call': 'c',
  'tool.start': 's',
  'tool.finished': 'f',
  'tool.result': 'r',
  'step.end': 'e',
  compaction: 'k',
  'turn.suspend': 'S',
  'turn.resume': 'R',
  'turn.end': 'E',
};

/** A whole step: its request's tokens, its parts, its tools, its end. Tokens of others may come anywhere. */
const STEP = 'bu*[pcu]*[sfru]*e';
/** The last step of a turn may lack its end: the request failed, or was aborted with a part of its reply kept. */
const LAST_STEP = 'bu*p*u*m?';
const TURN = new RegExp(`^B(?:[muk]*${STEP})*[muk]*(?:E|(?:${LAST_STEP})E|bu*[pcu]*[sfru]*S)$`);

function word(events: readonly RecordedEvent[]): string {
  return events.map((event) => LETTERS[event.type]).join('');
}

/** The events of each step. */
function byStep(events: readonly RecordedEvent[]): readonly (readonly RecordedEvent[])[] {
  const stepIds = new Set(events.flatMap((event) => ('stepId' in event && event.stepId !== undefined ? [event.stepId] : [])));
  return Array.from(stepIds, (stepId) => events.filter((event) => 'stepId' in event && event.stepId === stepId));
}

/** True if nothing can keep the turn from recording its end. */
function recordsAll({ recorder }: Scenario): boolean {
  return recorder.fault === undefined && recorder.pace === 'sync';
}

describe('law-3 order', () => {
  law('law-3: the events of a turn stand in their order, and turn.end is last and comes once', scenarios(), async (scenario) => {
    const played = await play(scenario);
    const { transcript, result } = played;

    expectLaws([3], transcript.events, { complete: recordsAll(scenario), result: recordsAll(scenario) ? result : undefined });
    if (recordsAll(scenario) && transcript.events.length > 0) expect(word(transcript.events)).toMatch(TURN);
    // What was recorded is a beginning of what the loop wanted to record: nothing overtakes a slow or broken recorder.
    expect(recordable(played).slice(0, transcript.events.length)).toStrictEqual(transcript.events);
  });

  law('law-3: calls and results stand in provider order, and no result before its call has finished', scenarios(), async (scenario) => {
    const { transcript } = await play(scenario);

    for (const events of byStep(transcript.events)) {
      const ids = (type: string): string[] => events.flatMap((event) => (event.type === type && 'toolCallId' in event ? [event.toolCallId] : []));
      const indexes = events.flatMap((event) => ('index' in event ? [event.index] : []));
      expect(indexes).toStrictEqual(indexes.map((_, index) => index));
      expect(ids('tool.result')).toStrictEqual(ids('tool.call').slice(0, ids('tool.result').length));
      for (const [index, event] of events.entries()) {
        if (event.type !== 'tool.result') continue;
        const finished = events.slice(0, index).find((one) => one.type === 'tool.finished' && one.toolCallId === event.toolCallId);
        expect(finished).toMatchObject({ result: event.result });
      }
    }
  });
});
