/** Layers of a host's own, under the context policy: what may be recorded of what they want, and what becomes of a bad one. */
import { describe, expect, it } from 'vitest';
import { type CompactionEdit, LLMError, type Message, textOf, userMessage } from 'turnloop';
import { type ContextLayer, createContextPolicy, type LayerResult, type TrimLayer } from 'turnloop/context';
import { toolCall } from 'turnloop/testing';
import { layersOf, longHistory, noticesOf, readTool, runWith, sessionModel, transcriptOf, windowFor } from './sessions.ts';

const ONLY_CLEAR = { fold: false, summarize: false, trim: false } as const;
const tools = [readTool()];
const steps = Array.from({ length: 30 }, () => [toolCall('read')]);

/** The history with a text behind it that is recalled for each request, and is now short, now long. */
function withRecalled(buildMessages: () => readonly Message[]): () => readonly Message[] {
  let count = 0;
  return () => {
    count += 1;
    return [...buildMessages(), userMessage('recalled '.repeat(count % 2 === 0 ? 2_000 : 10), { id: `recalled_${count}`, origin: 'memory', transient: true })];
  };
}

describe('a text of varying length that is built for each request', () => {
  it('D7 makes no compaction ineffective that leaves out and brings nothing', async () => {
    const leavesOut: ContextLayer = (messages) => {
      const first = messages.findIndex(({ role }) => role === 'assistant');
      const [from, to] = [messages[first], messages[first + 1]];
      if (messages.length < 12 || from === undefined || to === undefined) return { edits: [], messages, tokensBefore: 0, tokensAfter: 0 };
      return { edits: [{ from: from.id, to: to.id, messages: [] }], messages: messages.filter((message) => message !== from && message !== to), tokensBefore: 0, tokensAfter: 0 };
    };
    const history = longHistory({ exchanges: 8 });
    const policy = createContextPolicy({ ...ONLY_CLEAR, clear: leavesOut, window: windowFor(history, 0.3, tools), clearAt: 0.2 });
    const transcript = transcriptOf(history);

    const outcome = await runWith(policy, {
      llm: sessionModel({ steps: [...steps, 'ok'] }), tools, transcript, buildMessages: withRecalled(transcript.buildMessages),
    });

    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
    expect(layersOf(outcome).length).toBeGreaterThan(20);
  });
});

describe('a layer that finds nothing worth a change', () => {
  it('D9 is asked again when the request has grown by a fiftieth of the window, not at each step', async () => {
    let asked = 0;
    const finds: ContextLayer = (messages) => {
      asked += 1;
      return { edits: [], messages, tokensBefore: 0, tokensAfter: 0 };
    };
    const small = [readTool(10)];
    const history = longHistory({ exchanges: 40 });
    const policy = createContextPolicy({ ...ONLY_CLEAR, clear: finds, window: windowFor(history, 0.6, small) });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: [...steps, 'ok'] }), tools: small, transcript: transcriptOf(history) });

    expect(outcome.result.steps).toBe(31);
    expect(asked).toBeGreaterThan(1);
    expect(asked).toBeLessThan(16);
  });
});

describe('an edit of a host’s own layer', () => {
  const PINNED = userMessage('The build is red on purpose.', { id: 'pinned', origin: 'host', pinned: true });
  const history = [PINNED, ...longHistory({ exchanges: 12 })];
  const window = windowFor(history, 0.9);
  /** Layer 5, which runs the others once more, is not due. */
  const roomy = windowFor(history, 0.7);
  const note = userMessage('Older messages were left out.', { id: 'note', origin: 'reminder' });
  const good = { from: 'reply_2', to: 'result_call_2', messages: [] };
  const resultOf = (messages: readonly Message[], edits: readonly CompactionEdit[]): LayerResult => ({ edits, messages, tokensBefore: 0, tokensAfter: 0 });
  const bad: readonly (readonly [string, string, CompactionEdit])[] = [
    ['takes the first task', 'protected', { from: 'task', to: 'reply_1', messages: [note] }],
    ['takes what is pinned', 'protected', { from: 'pinned', to: 'pinned', messages: [note] }],
    ['names a message that is not there', 'unknown_id', { from: 'nobody', to: 'nowhere', messages: [] }],
    ['has no end', 'unknown_id', { from: 'reply_4', to: 'nowhere', messages: [] }],
    ['is the wrong way round', 'reversed', { from: 'reply_5', to: 'reply_4', messages: [] }],
    ['takes what another took', 'overlapping', { from: 'result_call_2', to: 'result_call_3', messages: [] }],
    ['brings what is no message', 'no_message', { from: 'reply_4', to: 'result_call_4', messages: [{ foo: 1 } as unknown as Message] }],
    ['names what was built for one request', 'unknown_id', { from: 'reply_4', to: 'built', messages: [] }],
  ];
  const built = userMessage('What was recalled.', { id: 'built', origin: 'memory', transient: true });

  it.each(bad)('that %s is refused and told, and the others go on', async (_name, reason, edit) => {
    for (const slot of ['clear', 'fold', 'summarize'] as const) {
      const layer = (messages: readonly Message[]): LayerResult => resultOf(messages, messages.some(({ id }) => id === 'reply_2') ? [good, edit] : []);
      const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim: false, window, foldAt: 0.5, clearAt: 0.5, [slot]: slot === 'summarize' ? (messages: readonly Message[]) => Promise.resolve(layer(messages)) : layer });
      const transcript = transcriptOf(history);

      const outcome = await runWith(policy, {
        llm: sessionModel({ steps: ['ok'] }), transcript, buildMessages: () => [...transcript.buildMessages(), built],
      });

      expect(outcome.result.stopReason).toBe('end_turn');
      const name = slot === 'summarize' ? 'summary' : slot;
      expect(noticesOf(outcome, 'context.edit_refused')).toStrictEqual([{ layer: name, from: edit.from, reason }]);
      expect(layersOf(outcome)).toStrictEqual([name]);
      expect(transcript.buildMessages().slice(0, -2)).toStrictEqual(history.filter(({ id }) => id !== 'reply_2' && id !== 'result_call_2'));
      expect(transcript.findings()).toStrictEqual([]);
    }
  });

  it('that alone is there and refused leaves the history as it is, and layer 5 takes over from the summary', async () => {
    const takesAll = (messages: readonly Message[]): Promise<LayerResult> => Promise.resolve(resultOf(messages, [{ from: 'pinned', to: 'result_call_9', messages: [note] }]));
    const policy = createContextPolicy({ clear: false, fold: false, summarize: takesAll, window });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(history) });

    expect(noticesOf(outcome, 'context.edit_refused')).toStrictEqual([{ layer: 'summary', from: 'pinned', reason: 'protected' }]);
    expect(noticesOf(outcome, 'context.summary_failed')).toHaveLength(1);
    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
    expect(layersOf(outcome)).toStrictEqual(['trim']);
  });

  it('of layer 5 never names what was built for one request', async () => {
    const trim: TrimLayer = (messages) => resultOf(messages.filter(({ id }) => id !== 'reply_2' && id !== 'result_call_2' && id !== 'built'), []);
    const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim, window });
    const transcript = transcriptOf(history);

    const outcome = await runWith(policy, {
      llm: sessionModel({ steps: ['ok'] }),
      transcript,
      buildMessages: () => transcript.buildMessages().flatMap((message) => (message.id === 'reply_3' ? [built, message] : [message])),
    });

    expect(outcome.recorded.find(({ type }) => type === 'compaction')).toMatchObject({ edits: [{ from: 'reply_2', to: 'result_call_2', messages: [] }] });
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('of layer 5 may take the first task, but nothing that is pinned, and not what a person said last', async () => {
    const without = (id: string) => async (): Promise<readonly unknown[]> => {
      const trim: TrimLayer = (messages) => resultOf(messages.filter((message) => message.id !== id && textOf(message) !== id), []);
      const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim, window: Math.round(window * 0.9) });
      const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(history), input: 'Go on.' });
      return noticesOf(outcome, 'context.edit_refused');
    };

    expect(await without('task')()).toStrictEqual([]);
    expect(await without('pinned')()).toMatchObject([{ layer: 'trim', from: 'pinned', reason: 'protected' }]);
    expect(await without('Go on.')()).toMatchObject([{ layer: 'trim', reason: 'protected' }]);
  });

  it.each<readonly [string, (messages: readonly Message[]) => unknown, RegExp]>([
    ['throws', () => { throw new Error('Boom.'); }, /Boom/],
    ['gives nothing', () => undefined, /gave no result.*edits/],
    ['gives no list', () => ({ edits: [], messages: 5 }), /gave no result.*edits/],
    ['rejects', () => Promise.reject(new Error('Late.')), /gave no result.*edits/],
    ['gives a list of nothing', () => ({ edits: [null], messages: [null] }), /./],
  ])('is nothing, if the layer %s: it is told and the turn goes on', async (_name, layer, message) => {
    for (const slot of ['clear', 'fold', 'trim'] as const) {
      const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim: false, clearAt: 0.5, foldAt: 0.5, window: slot === 'trim' ? window : roomy, [slot]: layer });
      const overflow = new LLMError({ kind: 'context_overflow', message: 'Too long.' });

      const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(history) });
      const refused = await runWith(policy, { llm: sessionModel({ steps: [overflow] }), transcript: transcriptOf(history) });

      expect(outcome.result.stopReason).toBe('end_turn');
      expect(refused.result).toMatchObject({ stopReason: 'context_overflow' });
      expect(layersOf(outcome)).toStrictEqual([]);
      const told = [...noticesOf(outcome, 'context.layer_failed'), ...noticesOf(outcome, 'context.edit_refused')];
      expect(told).toMatchObject([{ layer: slot }]);
      expect(JSON.stringify(told)).toMatch(message);
    }
  });
});
