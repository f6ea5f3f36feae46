/**
 * reduceMedia: the two recoveries alone, as black boxes. What a turn makes of them is in `recoveries-in-a-turn.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import {
  assistantMessage,
  type HookRecord,
  LLMError,
  type LLMErrorKind,
  type LLMRequest,
  type MediaPart,
  type Message,
  type MessagePart,
  type Recovery,
  type RecoveryContext,
  toolMessage,
  userMessage,
} from 'turnloop';
import { reduceMedia } from 'turnloop/context';
import { scriptedLLM, virtualRuntime } from 'turnloop/testing';

function image(data: string, mediaType = 'image/png'): MediaPart {
  return { type: 'media', mediaType, data };
}

function requestOf(messages: readonly Message[]): LLMRequest {
  return { systemPrompt: '', messages, tools: [], signal: new AbortController().signal };
}

/** One recovery of one turn: `fail` asks it after a failure, `later` for a later request. */
function inTurn(recovery: Recovery) {
  const state = new Map<string, unknown>();
  const records: HookRecord[] = [];
  const apply = async (messages: readonly Message[], error: LLMError | undefined): Promise<readonly Message[] | undefined> => {
    const context: RecoveryContext = {
      turnId: 'turn_1',
      step: 1,
      error,
      llm: scriptedLLM([]),
      signal: new AbortController().signal,
      runtime: virtualRuntime(),
      state,
      record: async (event) => void records.push(event),
      messages: async () => messages,
      notify: () => undefined,
    };
    const changed = await recovery.apply(requestOf(messages), context);
    return changed?.messages;
  };
  return {
    records,
    fail: (messages: readonly Message[], kind: LLMErrorKind = 'request_too_large') =>
      apply(messages, new LLMError({ kind, message: 'Too large.' })),
    later: (messages: readonly Message[]) => apply(messages, undefined),
  };
}

/** The media that are shown, by content. */
function shown(messages: readonly Message[] = []): readonly (string | undefined)[] {
  const parts = messages.flatMap((message): readonly MessagePart[] => message.content);
  return parts.filter((part) => part.type === 'media').map(({ data }) => data);
}

const question = userMessage([{ type: 'text', text: 'Compare.' }, image('A')], { id: 'message_1' });
const call = assistantMessage(
  [{ type: 'tool_call', id: 'call_1', name: 'shoot', inputText: '{}', input: {} }],
  { id: 'step_1' },
);
const shot = toolMessage([{ type: 'text', text: 'Two shots.' }, image('B'), image('C')], {
  id: 'result_call_1',
  toolCallId: 'call_1',
  name: 'shoot',
});
const plain = userMessage('And now?', { id: 'message_2' });
const history: readonly Message[] = [question, call, shot, plain];

describe('reduceMedia', () => {
  it('gives the gentler recovery first, and each its kinds', () => {
    expect(reduceMedia().map(({ name, kinds }) => ({ name, kinds }))).toStrictEqual([
      { name: 'reduceMedia.older', kinds: ['request_too_large'] },
      { name: 'reduceMedia.all', kinds: ['request_too_large', 'media_rejected'] },
    ]);
  });

  it('PJ11 keeps the newest two, and puts a note where the others were', async () => {
    const [older] = reduceMedia();

    expect(await inTurn(older).fail(history)).toStrictEqual([
      {
        ...question,
        content: [
          { type: 'text', text: 'Compare.' },
          { type: 'text', text: '[image/png left out: the request was refused with it.]' },
        ],
      },
      call,
      shot,
      plain,
    ]);
  });

  it.each([
    [0, []],
    [1, ['C']],
    [2, ['B', 'C']],
  ])('PJ11 keeps the newest %i where told so', async (keepNewest, expected) => {
    const [older] = reduceMedia({ keepNewest });

    expect(shown(await inTurn(older).fail(history))).toStrictEqual(expected);
  });

  it('PJ11 has nothing to change when there are no more media than it keeps', async () => {
    const [older, all] = reduceMedia({ keepNewest: 3 });

    expect(await inTurn(older).fail(history)).toBeUndefined();
    expect(await inTurn(all).fail([plain, call])).toBeUndefined();
  });

  it('PJ12 leaves an older copy of what it keeps, which is the same to the provider', async () => {
    const [older] = reduceMedia({ keepNewest: 1 });

    expect(shown(await inTurn(older).fail([userMessage([image('A'), image('B'), image('A')])]))).toStrictEqual(['A', 'A']);
  });

  it('PJ11 returns untouched messages by reference and mutates nothing', async () => {
    const before = structuredClone(history);
    const [older] = reduceMedia();

    const changed = await inTurn(older).fail(history);

    expect(changed?.map((message, index) => message === history[index])).toStrictEqual([false, true, true, true]);
    expect(history).toStrictEqual(before);
  });

  it('PJ11 gives a changed message as the same object on every step', async () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);

    const first = await turn.fail(history);
    const second = await turn.later([...history, userMessage('More.', { id: 'message_3' })]);

    expect(second?.slice(0, history.length).map((message, index) => message === first?.[index])).toStrictEqual([true, true, true, true]);
  });

  it('takes all media out of messages of every role', async () => {
    const [, all] = reduceMedia();
    const drawn = assistantMessage([image('D')], { id: 'step_2' });
    const linked = userMessage([{ type: 'media', mediaType: 'application/pdf', url: 'https://example.com/a.pdf' }]);

    const changed = await inTurn(all).fail([...history, drawn, linked]);

    expect(shown(changed)).toStrictEqual([]);
    expect(changed?.at(-1)?.content).toStrictEqual([
      { type: 'text', text: '[application/pdf left out: the request was refused with it.]' },
    ]);
  });

  it('words the note as told', async () => {
    const [, all] = reduceMedia({ note: ({ mediaType }) => `(${mediaType})` });

    expect((await inTurn(all).fail([userMessage([image('A')])]))?.[0]?.content).toStrictEqual([{ type: 'text', text: '(image/png)' }]);
  });

  it('TD4 shows new media after a strip, and keeps the same media out', async () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    await turn.fail(history);

    const sameAgain = toolMessage([image('B')], { toolCallId: 'call_2', name: 'shoot' });
    const fresh = toolMessage([image('D')], { toolCallId: 'call_3', name: 'shoot' });
    const later = await turn.later([...history, sameAgain, fresh]);

    expect(shown(later)).toStrictEqual(['D']);
  });

  it('PJ12 knows media by type and content, not by object', async () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    await turn.fail([userMessage([image('A')])]);

    const rebuilt = userMessage([image('A'), image('A', 'image/jpeg')]);

    expect((await turn.later([rebuilt]))?.[0]?.content).toStrictEqual([
      { type: 'text', text: '[image/png left out: the request was refused with it.]' },
      image('A', 'image/jpeg'),
    ]);
  });

  it('FB13 keeps what was the newest when it was decided, however many come later', async () => {
    const [older] = reduceMedia();
    const turn = inTurn(older);
    await turn.fail(history);

    const later = await turn.later([...history, userMessage([image('D'), image('E')])]);

    expect(shown(later)).toStrictEqual(['B', 'C', 'D', 'E']);
  });

  it('FB9 has nothing more to give when a reduced request fails again', async () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    await turn.fail(history);

    expect(await turn.fail([...history, userMessage([image('D')])])).toBeUndefined();
  });

  it('keeps turns apart', async () => {
    const [, all] = reduceMedia();
    await inTurn(all).fail(history);

    expect(await inTurn(all).later(history)).toBeUndefined();
  });

  it('law-11 turns an equal prefix into an equal prefix, whatever comes later', async () => {
    const part = fc.constantFrom<MediaPart>(image('A'), image('B'), image('C'), image('A', 'image/jpeg'));
    const message = fc.array(part, { maxLength: 3 }).map((parts) => userMessage([{ type: 'text', text: 'x' }, ...parts]));
    const messages = fc.array(message, { maxLength: 6 });

    await fc.assert(
      fc.asyncProperty(messages, messages, fc.nat(3), fc.boolean(), async (first, more, keepNewest, useAll) => {
        const [older, all] = reduceMedia({ keepNewest });
        const turn = inTurn(useAll ? all : older);
        const failed = await turn.fail(first);
        fc.pre(failed !== undefined);

        const later = (await turn.later([...first, ...more])) ?? [...first, ...more];

        expect(later.slice(0, first.length).every((changed, index) => changed === failed?.[index])).toBe(true);
      }),
    );
  });

  it('law-10 looks at each message once, and never copies a content', async () => {
    let reads = 0;
    const counted: MediaPart = {
      type: 'media',
      mediaType: 'image/png',
      get data() {
        reads += 1;
        return 'A';
      },
    };
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    const messages = [userMessage([counted])];
    await turn.fail(messages);
    const afterFirst = reads;

    for (let step = 0; step < 100; step += 1) await turn.later(messages);

    expect(reads).toBe(afterFirst);
  });

  it('BR-002 records what went out, so that later turns begin without it', async () => {
    const [older] = reduceMedia();
    const turn = inTurn(older);

    const changed = await turn.fail(history);
    await turn.later(history);

    expect(turn.records).toStrictEqual([
      {
        type: 'compaction',
        layer: 'reduceMedia.older',
        edits: [{ from: 'message_1', to: 'message_1', messages: [changed?.[0]] }],
        tokensBefore: expect.any(Number),
        tokensAfter: expect.any(Number),
      },
    ]);
  });

  it.each([
    ['built for one request', userMessage([image('A')], { id: 'head', transient: true })],
    ['without an id', userMessage([image('A')])],
    ['pinned', userMessage([image('A')], { id: 'pinned', pinned: true })],
  ])('records nothing of a message that is %s', async (_what, message) => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);

    expect(shown(await turn.fail([message]))).toStrictEqual([]);
    expect(turn.records).toStrictEqual([]);
  });

  it('records nothing where told so', async () => {
    const [, all] = reduceMedia({ lasting: false });
    const turn = inTurn(all);

    await turn.fail(history);

    expect(turn.records).toStrictEqual([]);
  });

  it.each([-1, 1.5, NaN])('refuses to keep %s and shows a correct call', (keepNewest) => {
    const make = (): unknown => reduceMedia({ keepNewest });

    expect(make).toThrow(TypeError);
    expect(make).toThrow('recoveries: [...reduceMedia({ keepNewest: 2 })]');
  });

  it.each([
    [2, 'reduceMedia: the options are not an object, but 2.'],
    [[], 'reduceMedia: the options are not an object, but a list.'],
    [{ keep: 2 }, 'reduceMedia has no option `keep`; it takes keepNewest, note, lasting.'],
  ])('refuses the options %j, says why and shows a correct call', (options, message) => {
    const make = (): unknown => Reflect.apply(reduceMedia, undefined, [options]);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(`${message} For example: recoveries: [...reduceMedia({ keepNewest: 2 })].`);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ note: 'gone' }, 'reduceMedia: `note` must be a function, not a value of type string. For example: recoveries: [...reduceMedia({ note: '],
    [{ note: null }, 'reduceMedia: `note` must be a function, not null.'],
    [{ lasting: 'no' }, 'reduceMedia: `lasting` must be a boolean, not a value of type string. For example: recoveries: [...reduceMedia({ lasting: false })].'],
  ])('refuses %j, says why and shows a correct call', (options, message) => {
    const make = (): unknown => reduceMedia(options);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});
