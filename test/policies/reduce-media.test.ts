/**
 * reduceMedia: the two recoveries alone, as black boxes. What a turn makes of them is in `recoveries-in-a-turn.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import {
  assistantMessage,
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
import { reduceMedia } from 'turnloop/policies';
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
  const apply = (messages: readonly Message[], error: LLMError | undefined): readonly Message[] | undefined => {
    const context: RecoveryContext = {
      turnId: 'turn_1',
      step: 1,
      error,
      llm: scriptedLLM([]),
      signal: new AbortController().signal,
      runtime: virtualRuntime(),
      state,
      record: async () => undefined,
      messages: async () => [],
      notify: () => undefined,
    };
    const changed = recovery.apply(requestOf(messages), context) as LLMRequest | undefined;
    return changed?.messages;
  };
  return {
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

  it('PJ11 keeps the newest two, and puts a note where the others were', () => {
    const [older] = reduceMedia();

    expect(inTurn(older).fail(history)).toStrictEqual([
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
  ])('PJ11 keeps the newest %i where told so', (keepNewest, expected) => {
    const [older] = reduceMedia({ keepNewest });

    expect(shown(inTurn(older).fail(history))).toStrictEqual(expected);
  });

  it('PJ11 has nothing to change when there are no more media than it keeps', () => {
    const [older, all] = reduceMedia({ keepNewest: 3 });

    expect(inTurn(older).fail(history)).toBeUndefined();
    expect(inTurn(all).fail([plain, call])).toBeUndefined();
  });

  it('PJ12 leaves an older copy of what it keeps, which is the same to the provider', () => {
    const [older] = reduceMedia({ keepNewest: 1 });

    expect(shown(inTurn(older).fail([userMessage([image('A'), image('B'), image('A')])]))).toStrictEqual(['A', 'A']);
  });

  it('PJ11 returns untouched messages by reference and mutates nothing', () => {
    const before = structuredClone(history);
    const [older] = reduceMedia();

    const changed = inTurn(older).fail(history);

    expect(changed?.map((message, index) => message === history[index])).toStrictEqual([false, true, true, true]);
    expect(history).toStrictEqual(before);
  });

  it('PJ11 gives a changed message as the same object on every step', () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);

    const first = turn.fail(history);
    const second = turn.later([...history, userMessage('More.', { id: 'message_3' })]);

    expect(second?.slice(0, history.length).map((message, index) => message === first?.[index])).toStrictEqual([true, true, true, true]);
  });

  it('takes all media out of messages of every role', () => {
    const [, all] = reduceMedia();
    const drawn = assistantMessage([image('D')], { id: 'step_2' });
    const linked = userMessage([{ type: 'media', mediaType: 'application/pdf', url: 'https://example.com/a.pdf' }]);

    const changed = inTurn(all).fail([...history, drawn, linked]);

    expect(shown(changed)).toStrictEqual([]);
    expect(changed?.at(-1)?.content).toStrictEqual([
      { type: 'text', text: '[application/pdf left out: the request was refused with it.]' },
    ]);
  });

  it('words the note as told', () => {
    const [, all] = reduceMedia({ note: ({ mediaType }) => `(${mediaType})` });

    expect(inTurn(all).fail([userMessage([image('A')])])?.[0]?.content).toStrictEqual([{ type: 'text', text: '(image/png)' }]);
  });

  it('TD4 shows new media after a strip, and keeps the same media out', () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    turn.fail(history);

    const sameAgain = toolMessage([image('B')], { toolCallId: 'call_2', name: 'shoot' });
    const fresh = toolMessage([image('D')], { toolCallId: 'call_3', name: 'shoot' });
    const later = turn.later([...history, sameAgain, fresh]);

    expect(shown(later)).toStrictEqual(['D']);
  });

  it('PJ12 knows media by type and content, not by object', () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    turn.fail([userMessage([image('A')])]);

    const rebuilt = userMessage([image('A'), image('A', 'image/jpeg')]);

    expect(turn.later([rebuilt])?.[0]?.content).toStrictEqual([
      { type: 'text', text: '[image/png left out: the request was refused with it.]' },
      image('A', 'image/jpeg'),
    ]);
  });

  it('FB13 keeps what was the newest when it was decided, however many come later', () => {
    const [older] = reduceMedia();
    const turn = inTurn(older);
    turn.fail(history);

    const later = turn.later([...history, userMessage([image('D'), image('E')])]);

    expect(shown(later)).toStrictEqual(['B', 'C', 'D', 'E']);
  });

  it('FB9 has nothing more to give when a reduced request fails again', () => {
    const [, all] = reduceMedia();
    const turn = inTurn(all);
    turn.fail(history);

    expect(turn.fail([...history, userMessage([image('D')])])).toBeUndefined();
  });

  it('keeps turns apart', () => {
    const [, all] = reduceMedia();
    inTurn(all).fail(history);

    expect(inTurn(all).later(history)).toBeUndefined();
  });

  it('law-11 turns an equal prefix into an equal prefix, whatever comes later', () => {
    const part = fc.constantFrom<MediaPart>(image('A'), image('B'), image('C'), image('A', 'image/jpeg'));
    const message = fc.array(part, { maxLength: 3 }).map((parts) => userMessage([{ type: 'text', text: 'x' }, ...parts]));
    const messages = fc.array(message, { maxLength: 6 });

    fc.assert(
      fc.property(messages, messages, fc.nat(3), fc.boolean(), (first, more, keepNewest, useAll) => {
        const [older, all] = reduceMedia({ keepNewest });
        const turn = inTurn(useAll ? all : older);
        const failed = turn.fail(first);
        fc.pre(failed !== undefined);

        const later = turn.later([...first, ...more]) ?? [...first, ...more];

        expect(later.slice(0, first.length).every((changed, index) => changed === failed?.[index])).toBe(true);
      }),
    );
  });

  it('law-10 looks at each message once, and never copies a content', () => {
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
    turn.fail(messages);
    const afterFirst = reads;

    for (let step = 0; step < 100; step += 1) turn.later(messages);

    expect(reads).toBe(afterFirst);
  });

  it.each([-1, 1.5, NaN])('refuses to keep %s and shows a correct call', (keepNewest) => {
    const make = (): unknown => reduceMedia({ keepNewest });

    expect(make).toThrow(TypeError);
    expect(make).toThrow('recoveries: [...reduceMedia({ keepNewest: 2 })]');
  });
});
