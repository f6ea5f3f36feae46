/** limitMedia inside a turn: no request has a medium that the provider would refuse, and none has too many. */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import {
  assistantMessage,
  createTranscript,
  type LLMRequest,
  type MediaPart,
  type Message,
  type MessagePart,
  projectMessages,
  type RecordedEvent,
  type ToolReturn,
  toolMessage,
  type Transcript,
  type UserMessage,
  userMessage,
} from 'turnloop';
import { limitMedia, type LimitMediaOptions } from 'turnloop/context';
import { recordingTool, runScripted, type ScriptedLLMOptions, type ScriptedOutcome, startScripted, toolCall } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { eventsOf } from './histories.ts';

function image(size: number, mediaType = 'image/png', letter = 'A'): MediaPart {
  return { type: 'media', mediaType, data: letter.repeat(size) };
}

/** The media of a request: how large each is. */
function sizesIn(request: Pick<LLMRequest, 'messages'> | undefined): readonly number[] {
  const parts = (request?.messages ?? []).flatMap((message): readonly MessagePart[] => message.content);
  return parts.flatMap((part) => (part.type === 'media' ? [part.data?.length ?? 0] : []));
}

function textsIn(messages: readonly Message[] | undefined): readonly string[] {
  const parts = (messages ?? []).flatMap((message): readonly MessagePart[] => message.content);
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

interface Scene extends LimitMediaOptions {
  readonly input?: readonly UserMessage[];
  /** What the tool returns, call by call; then the model is done. */
  readonly results?: readonly ToolReturn[];
  readonly llmOptions?: ScriptedLLMOptions;
  readonly transcript?: Transcript;
  readonly history?: readonly Message[];
}

async function run({ input = [userMessage('Look.')], results = [], llmOptions, transcript, history, ...options }: Scene): Promise<ScriptedOutcome> {
  const left = [...results];
  const tool = recordingTool({ name: 'shoot', execute: () => left.shift() ?? 'none' });
  return runScripted({
    input,
    replies: [...results.map(() => toolCall('shoot', {})), 'done'],
    tools: [tool],
    hooks: [limitMedia(options)],
    ...(llmOptions !== undefined && { llmOptions }),
    ...(transcript !== undefined && { transcript }),
    ...(history !== undefined && { history }),
  });
}

function compactions({ transcript }: ScriptedOutcome): readonly Extract<RecordedEvent, { type: 'compaction' }>[] {
  return transcript.events.filter((event) => event.type === 'compaction').filter(({ layer }) => layer !== 'seed');
}

function notices({ events }: ScriptedOutcome): readonly unknown[] {
  return events.flatMap((event) => (event.type === 'notice' ? [[event.name, event.data]] : []));
}

const NOTHING_ELSE = { size: 0, type: 0, total: 0 };

describe('limitMedia', () => {
  it('BR-002 A puts a note in place of an image over 5 MB as the result enters; the record never has it', async () => {
    const outcome = await run({ results: [[{ type: 'text', text: 'A shot.' }, image(6_000_000), image(5_000_000)]] });

    expect(outcome.llm.requests.map(sizesIn)).toStrictEqual([[], [5_000_000]]);
    expect(textsIn(outcome.transcript.buildMessages())).toContain('[image/png left out: 6 MB of base64 are more than the 5 MB that are taken.]');
    expect(JSON.stringify(outcome.transcript.events).length).toBeLessThan(11_000_000);
    expect(compactions(outcome)).toStrictEqual([]);
    expect(notices(outcome)).toStrictEqual([['limitMedia.replaced', { ...NOTHING_ELSE, size: 1 }]]);
  });

  it('BR-002 A TD2 puts a note in place of an image over the limit in a prompt, before the first request and for good', async () => {
    const outcome = await run({ input: [userMessage([{ type: 'text', text: 'What is this?' }, image(101), image(100)])], maxItemCharacters: 100 });

    expect(outcome.llm.requests.map(sizesIn)).toStrictEqual([[100]]);
    expect(textsIn(outcome.llm.requests[0]?.messages)).toContain('What is this?');
    expect(compactions(outcome)).toMatchObject([{ layer: 'limitMedia', edits: [{ messages: [{ role: 'user' }] }] }]);

    const later = await run({ transcript: outcome.transcript, maxItemCharacters: 100 });
    expect(later.llm.requests.map(sizesIn)).toStrictEqual([[100]]);
    expect(compactions(later)).toHaveLength(1);
  });

  it('BR-002 B keeps the newest image where one part object stands in two messages', async () => {
    const part = image(60);
    const limits = { maxTotalCharacters: 100, keepTotalCharacters: 70 };
    const first = await run({ input: [userMessage([{ type: 'text', text: 'Look.' }, part])], ...limits });
    const second = await run({ transcript: first.transcript, input: [userMessage([{ type: 'text', text: 'Again.' }, part])], ...limits });

    const [request] = second.llm.requests;
    expect(request?.messages.map((message) => sizesIn({ messages: [message] })).filter((sizes) => sizes.length > 0)).toStrictEqual([[60]]);
    expect(sizesIn({ messages: request?.messages.slice(-1) ?? [] })).toStrictEqual([60]);
    expect(notices(second)).toStrictEqual([['limitMedia.replaced', { ...NOTHING_ELSE, total: 1 }]]);
  });

  it('BR-002 B keeps the newest of one part object that stands twice in a message', async () => {
    const part = image(60);
    const outcome = await run({ input: [userMessage([part, { type: 'text', text: 'Twice?' }, part])], maxTotalCharacters: 100 });

    expect(outcome.llm.requests[0]?.messages[0]?.content.map(({ type }) => type)).toStrictEqual(['text', 'text', 'media']);
  });

  it('TD2 puts a note in place of a format that the model does not take, in a prompt, in steering and in a result', async () => {
    const prompt = userMessage([{ type: 'text', text: 'See.' }, image(10, 'image/tiff'), image(11), image(12, 'IMAGE/JPEG; q=1')]);
    const left = [[image(13, 'image/tiff'), image(14)]];
    const tool = recordingTool({
      name: 'shoot',
      execute: () => {
        void turn.control.steer(userMessage([{ type: 'text', text: 'Also this.' }, image(15, 'image/tiff'), image(16, 'audio/wav')]));
        return left.shift() ?? [];
      },
    });
    const capabilities = { mediaTypes: ['image/png', 'image/jpeg', 'audio/'] };
    const turn = startScripted({ input: [prompt], replies: [toolCall('shoot', {}), 'done'], llmOptions: { capabilities }, tools: [tool], hooks: [limitMedia()] });
    const outcome = await turn.finish();

    expect(outcome.llm.requests.map(sizesIn)).toStrictEqual([[11, 12], [11, 12, 14, 16]]);
    expect(textsIn(outcome.llm.requests[1]?.messages).filter((text) => text === '[image/tiff left out: the model does not take media of this type.]')).toHaveLength(3);
    expect(notices(outcome)).toStrictEqual(Array.from({ length: 3 }, () => ['limitMedia.replaced', { ...NOTHING_ELSE, type: 1 }]));
  });

  it.each<[string, LimitMediaOptions, ScriptedLLMOptions, readonly number[]]>([
    ['anything of a model that says nothing', {}, {}, [10, 11]],
    ['nothing of a model that takes no media', {}, { capabilities: { mediaTypes: [] } }, []],
    ['what the option says, whatever the model does', { mediaTypes: ['image/'] }, { capabilities: { mediaTypes: [] } }, [10]],
  ])('TD2 lets in %s', async (_what, options, llmOptions, expected) => {
    const { llm } = await run({ input: [userMessage([image(10), image(11, 'application/pdf')])], ...options, llmOptions });

    expect(llm.requests.map(sizesIn)).toStrictEqual([expected]);
  });

  it('BR-002 B keeps a request with 40 images of 1 MB within 20 MB; the oldest go, in batches, pairs whole', async () => {
    const outcome = await run({ results: Array.from({ length: 40 }, (_, index) => [image(1_000_000 + index)]) });

    const totals = outcome.llm.requests.map((request) => sizesIn(request).reduce((sum, size) => sum + size, 0));
    expect(Math.max(...totals)).toBeLessThanOrEqual(20_000_000);
    // From above 20 MB down to below 10 each time: the past changes twice in 40 steps.
    expect(compactions(outcome)).toHaveLength(2);
    const last = outcome.llm.requests.at(-1);
    expect(sizesIn(last)).toStrictEqual(Array.from({ length: sizesIn(last).length }, (_, index) => 1_000_040 - sizesIn(last).length + index));
    expect(textsIn(last?.messages)).toContain('[image/png left out: newer media take the room there is.]');
    expect(brokenRules(outcome.transcript.buildMessages())).toStrictEqual([]);
    expect(outcome.transcript.findings()).toStrictEqual([]);
  });

  it('BR-002 B D9 begins each request between two batches with the one before', async () => {
    const { llm } = await run({ results: Array.from({ length: 12 }, () => [image(100)]), maxTotalCharacters: 500 });

    const changes = llm.requests.slice(1).filter((request, index) => {
      const before = llm.requests[index]?.messages ?? [];
      return before.some((message, at) => message !== request.messages[at]);
    });
    expect(changes).toHaveLength(2);
  });

  it('BR-002 B keeps what the model has not answered yet before anything older', async () => {
    const history = [userMessage([image(60), image(61)], { id: 'old' }), assistantMessage('Seen.', { id: 'step_old' })];
    const transcript = createTranscript(eventsOf(history));

    const { llm } = await run({ transcript, input: [userMessage([image(30), image(31), image(32)])], maxTotalCharacters: 200, keepTotalCharacters: 50 });

    expect(llm.requests.map(sizesIn)).toStrictEqual([[30, 31, 32]]);
  });

  it('BR-002 B leaves nothing in that is older than what went out', async () => {
    const history = [userMessage([image(10), image(200), image(40)], { id: 'old' }), assistantMessage('Seen.', { id: 'step_old' })];

    const { llm } = await run({ transcript: createTranscript(eventsOf(history)), maxTotalCharacters: 200, keepTotalCharacters: 60 });

    expect(llm.requests.map(sizesIn)).toStrictEqual([[40]]);
  });

  it('BR-002 B leaves the oldest out of one message that is too much alone', async () => {
    const { llm } = await run({ input: [userMessage([image(90), image(91), image(92)])], maxTotalCharacters: 200 });

    expect(llm.requests.map(sizesIn)).toStrictEqual([[91, 92]]);
  });

  it('leaves media by address, whose size is not known', async () => {
    const linked: MediaPart = { type: 'media', mediaType: 'image/png', url: `https://example.com/${'a'.repeat(300)}` };
    const { llm } = await run({ input: [userMessage([linked, image(150)])], maxItemCharacters: 200, maxTotalCharacters: 100, keepTotalCharacters: 0 });

    expect(llm.requests.map(sizesIn)).toStrictEqual([[0]]);
  });

  it.each([
    ['pinned', userMessage([image(300)], { id: 'pinned', pinned: true })],
    ['built for one request', userMessage([image(300)], { id: 'head', transient: true })],
  ])('leaves a message that is %s, and counts it', async (_what, message) => {
    const outcome = await run({ history: [message], input: [userMessage([image(100)])], maxItemCharacters: 200, maxTotalCharacters: 350 });

    expect(outcome.llm.requests.map(sizesIn)).toStrictEqual([[300]]);
  });

  it('D7 records a change once in a turn if the record does not take it', async () => {
    const history = [userMessage([image(300)], { id: 'of_the_host' })];
    const outcome = await run({ history, results: ['one', 'two', 'three'], maxItemCharacters: 200 });

    expect(outcome.llm.requests).toHaveLength(4);
    expect(compactions(outcome)).toHaveLength(1);
  });

  it('leaves what a model drew, unless it is too much with the rest', async () => {
    const history = [userMessage('Draw.', { id: 'message_0' }), assistantMessage([image(100, 'image/x-drawn')], { id: 'step_0' })];
    const options = { mediaTypes: ['image/png'], maxItemCharacters: 90 };

    const { llm } = await run({ transcript: createTranscript(eventsOf(history)), ...options });
    const crowded = await run({ transcript: createTranscript(eventsOf(history)), ...options, maxTotalCharacters: 99 });

    expect(llm.requests.map(sizesIn)).toStrictEqual([[100]]);
    expect(crowded.llm.requests.map(sizesIn)).toStrictEqual([[]]);
  });

  it('law-10 looks at each message once, and never copies a content', async () => {
    let reads = 0;
    const counted = new Proxy([{ type: 'text', text: 'x' } as const], {
      get: (target, key, receiver) => {
        if (key === 'filter' || key === 'map') reads += 1;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    const history: readonly Message[] = [{ ...userMessage('x', { id: 'message_0' }), content: counted }];
    const before = await run({ history, results: ['a'] });
    const afterTwo = reads;
    reads = 0;

    await run({ history, results: Array.from({ length: 20 }, () => 'a') });

    expect(before.llm.requests).toHaveLength(2);
    expect(reads).toBe(afterTwo);
  });

  it('BR-002 keeps any history within the limits, valid and without repairs, and has nothing more to do the next time', async () => {
    const part = fc.record({ size: fc.integer({ min: 1, max: 120 }), type: fc.constantFrom('image/png', 'image/tiff') });
    const media = fc.array(part.map(({ size, type }) => image(size, type)), { maxLength: 3 });
    const steps = fc.array(fc.record({ prompt: media, result: media, pinned: fc.boolean() }), { minLength: 1, maxLength: 6 });
    const limits = { maxItemCharacters: 100, maxTotalCharacters: 250, mediaTypes: ['image/png'] };

    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const history = list.flatMap(({ prompt, result, pinned }, index): readonly Message[] => [
          userMessage([{ type: 'text', text: 'Look.' }, ...prompt], { id: `message_${index}`, pinned: pinned && prompt.length === 0 }),
          assistantMessage([{ type: 'tool_call', id: `call_${index}`, name: 'shoot', inputText: '{}' }], { id: `step_${index}` }),
          toolMessage([{ type: 'text', text: 'Shot.' }, ...result], { id: `result_${index}`, toolCallId: `call_${index}`, name: 'shoot' }),
        ]);
        const transcript = createTranscript(eventsOf(history));

        const first = await run({ transcript, ...limits });
        const [request] = first.llm.requests;
        const count = compactions(first).length;

        expect(sizesIn(request).every((size) => size <= 100)).toBe(true);
        expect(sizesIn(request).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(250);
        expect(JSON.stringify(request?.messages)).not.toContain('"mediaType":"image/tiff"');
        expect(brokenRules(request?.messages ?? [])).toStrictEqual([]);
        expect(projectMessages(request?.messages ?? []).findings).toStrictEqual([]);
        for (const message of history) {
          const kept = request?.messages.find(({ id }) => id === message.id);
          expect(kept === message).toBe(JSON.stringify(kept) === JSON.stringify(message));
        }
        expect(compactions(await run({ transcript, ...limits })).length).toBe(count);
      }),
      { numRuns: 200, seed: 20_260_401 },
    );
  });

  it.each<[Record<string, unknown>, string]>([
    [{ maxItemCharacters: -1 }, '`maxItemCharacters` must be a number of at least 0, or Infinity, not -1.'],
    [{ maxTotalCharacters: 10, keepTotalCharacters: 11 }, '`keepTotalCharacters` (11) must not be more than `maxTotalCharacters` (10).'],
    [{ estimator: 3 }, '`estimator`'],
    [{ mediaTypes: 'image/png' }, '`mediaTypes` must be a list of MIME types.'],
    [{ maxItem: 1 }, 'limitMedia has no option `maxItem`'],
  ])('refuses the options %j, says why and shows a correct call', (options, message) => {
    const make = (): unknown => limitMedia(options);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('For example: hooks: [limitMedia({');
  });
});
