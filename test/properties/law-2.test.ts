/**
 * Law 2, every prefix is valid: any prefix of any transcript folds to a history that all three protocols accept. Folding
 * is pure and idempotent; each repair is reported. Black box, against hand-written rules of the protocols.
 */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createTranscript, type Finding, type Message, projectMessages, type RecordedEvent, textOf, userMessage } from 'turnloop';
import { law, expectLaws } from './law.ts';
import { messageLists } from './message-lists.ts';
import { play } from './play.ts';
import { brokenRules } from './protocol-rules.ts';
import { scenarios } from './scenario.ts';

describe('law-2 every prefix is valid', () => {
  law('law-2: every prefix of every transcript folds to a history that all protocols accept', scenarios(), async (scenario) => {
    const { transcript } = await play(scenario);

    expectLaws([2], transcript.events);
    const live = createTranscript();
    for (const event of transcript.events) {
      live.record(event);
      const messages = live.buildMessages();
      expect(brokenRules(messages)).toStrictEqual([]);
      expect(projectMessages(messages)).toStrictEqual({ messages, findings: [] });
      expect(projectMessages(messages).messages).toBe(messages);
    }
  });

  law('law-2: folding is pure: all at once or one by one, twice or once, the events unchanged', scenarios(), async (scenario) => {
    const { events } = (await play(scenario)).transcript;
    const before = JSON.stringify(events);

    const live = createTranscript();
    for (const [index, event] of events.entries()) {
      live.record(event);
      const again = createTranscript(events.slice(0, index + 1));
      expect(again.buildMessages()).toStrictEqual(live.buildMessages());
      expect(again.openTurn()).toStrictEqual(live.openTurn());
      expect(again.findings()).toStrictEqual(live.findings());
      expect(live.buildMessages()).toBe(live.buildMessages());
    }
    expect(JSON.stringify(events)).toBe(before);
  });

  law('law-2: a message or a compaction may stand anywhere in a transcript', fc.tuple(scenarios(), inserted), async ([scenario, inserts]) => {
    const events = [...(await play(scenario)).transcript.events];
    for (const { at, event } of inserts) events.splice(1 + (at % events.length), 0, event(events));

    const transcript = createTranscript();
    for (const event of events) {
      transcript.record(event);
      expect(brokenRules(transcript.buildMessages())).toStrictEqual([]);
    }
  });

  law('law-2: every result that a fold had to make up is reported', scenarios(), async (scenario) => {
    const { events } = (await play(scenario)).transcript;

    for (let length = 1; length <= events.length; length += 1) {
      const transcript = createTranscript(events.slice(0, length));
      const reported = transcript.findings().filter((finding) => finding.kind === 'result_synthesized');
      expect(madeUp(transcript.buildMessages()).sort()).toStrictEqual(callIdsOf(reported).sort());
    }
  });

  law('law-2 PJ10: any list of messages becomes one that all protocols accept, and stays as it is then', messageLists, (messages) => {
    const before = JSON.stringify(messages);
    const once = projectMessages(messages);
    const twice = projectMessages(once.messages);

    expect(brokenRules(once.messages, { wellFormed: false })).toStrictEqual([]);
    expect(twice.messages).toBe(once.messages);
    expect(twice.findings).toStrictEqual([]);
    expect(JSON.stringify(messages)).toBe(before);
    if (once.findings.length === 0) expect(once.messages).toHaveLength(messages.length);
  });

  law('law-2 PJ10: strict projection also mends duplicate ids, what stands before the user, and neighbours', messageLists, (messages) => {
    const once = projectMessages(messages, { strict: true });
    const twice = projectMessages(once.messages, { strict: true });

    expect(brokenRules(once.messages)).toStrictEqual([]);
    expect(once.messages.filter((one, index) => one.role === 'assistant' && once.messages[index - 1]?.role === 'assistant')).toStrictEqual([]);
    expect(twice.messages).toBe(once.messages);
    expect(twice.findings).toStrictEqual([]);
  });

  law('law-2: a list is handed back by reference exactly if nothing was reported or reordered', fc.tuple(messageLists, fc.boolean()), ([messages, strict]) => {
    const { messages: projected, findings } = projectMessages(messages, { strict });

    if (projected === messages) expect(findings).toStrictEqual([]);
    else expect(projected.length === messages.length && projected.every((one, index) => one === messages[index])).toBe(false);
    if (findings.length === 0) expect(sorted(projected)).toStrictEqual(sorted(messages));
  });
});

/** An event that a host recorded when it should not have. */
interface Inserted {
  readonly at: number;
  /** Made of the events that it comes between. */
  event(events: readonly RecordedEvent[]): RecordedEvent;
}

const stamp = { turnId: 'turn_1', at: 0 };

const inserted: fc.Arbitrary<readonly Inserted[]> = fc.array(
  fc.record({ at: fc.nat(), isMessage: fc.boolean(), from: fc.nat(), to: fc.nat() }).map(({ at, isMessage, from, to }) => ({
    at,
    event: (events: readonly RecordedEvent[]): RecordedEvent => {
      const message = userMessage('By the way …', { id: `inserted_${at}` });
      if (isMessage) return { type: 'message', ...stamp, message };
      const ids = createTranscript(events).buildMessages().slice(1).map(({ id }) => id);
      const edit = { from: ids[from % ids.length] ?? 'none', to: ids[to % ids.length] ?? 'none', messages: [message] };
      return { type: 'compaction', ...stamp, layer: 'fake', edits: [edit], tokensBefore: 2, tokensAfter: 1 };
    },
  })),
  { maxLength: 3 },
);

/** What the stand-in of a missing result says. */
const MADE_UP = 'The result of this call is not known';

/** Calls of a history whose answer was made up by the fold. */
function madeUp(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => (message.role === 'tool' && textOf(message).includes(MADE_UP) ? [message.toolCallId] : []));
}

function callIdsOf(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ toolCallId }) => (toolCallId === undefined ? [] : [toolCallId]));
}

function sorted(messages: readonly Message[]): readonly string[] {
  return messages.map((message) => JSON.stringify(message)).sort();
}
