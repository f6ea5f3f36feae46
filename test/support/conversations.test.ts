/** The generator of conversations: what it promises of each, and that it comes to what it is there for. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonValue, type Message, projectMessages } from 'turnloop';
import { brokenRules } from '../properties/protocol-rules.ts';
import { scenarios } from '../properties/scenario.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from './conversations.ts';

const TARGET: ConversationTarget = {
  provider: 'ours',
  modelId: 'model',
  thinkingData: [{ thinking: 1 }],
  textData: [{ text: 1 }],
  callData: [{ call: 1 }],
  providerRuns: [[{ search: 1 }, { found: 1 }]],
};

const SEED = 20_260_401;

function isTransient(message: Message): boolean {
  return message.role === 'user' && message.transient === true;
}

describe('conversations', () => {
  const samples = fc.sample(conversations(TARGET), { numRuns: 500, seed: SEED });

  it('begin with a user who says something, and are transient at head and tail only', () => {
    for (const messages of samples) {
      const start = messages.findIndex((message) => !isTransient(message));
      const end = messages.findLastIndex((message) => !isTransient(message));
      expect(messages[start]).toMatchObject({ role: 'user', content: [{ text: 'first' }] });
      expect(messages.slice(start, end).some(isTransient)).toBe(false);
    }
  });

  it('have a result for each call right behind it, and ids of their own', () => {
    for (const messages of samples) {
      const kinds = new Set(projectMessages(messages).findings.map(({ kind }) => kind));
      for (const kind of ['result_moved', 'result_synthesized', 'orphan_result_dropped'] as const) expect(kinds.has(kind)).toBe(false);
      expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
    }
  });

  it('come from the model, an older one, another provider and nobody; whole and interrupted; in a row', () => {
    const replies = samples.flatMap((messages) => messages.filter((message) => message.role === 'assistant'));
    const sources = new Set(replies.map(({ source }) => (source === undefined ? 'none' : `${source.provider}/${source.modelId}`)));
    expect([...sources].sort()).toStrictEqual(['none', 'ours/model', 'ours/model-older', 'someone-else/their-model']);
    expect(new Set(replies.map(({ status }) => status))).toStrictEqual(new Set([undefined, 'interrupted']));
    for (const role of ['user', 'assistant'] as const) {
      expect(samples.some((messages) => messages.some((message, at) => message.role === role && messages[at - 1]?.role === role))).toBe(true);
    }
  });

  it('hold less than a whole run of provider parts only where the reply was interrupted', () => {
    const runs = samples.flat().flatMap((message) => {
      if (message.role !== 'assistant') return [];
      const blocks = message.content.flatMap((part) => (part.type === 'provider' && part.provider === 'ours' ? [JSON.stringify(part.data)] : []));
      return blocks.length === 0 ? [] : [{ status: message.status, isWhole: blocks.length % 2 === 0 && blocks.at(-1) === '{"found":1}' }];
    });
    expect(runs.some(({ isWhole }) => isWhole)).toBe(true);
    expect(runs.every(({ isWhole, status }) => isWhole || status === 'interrupted')).toBe(true);
    expect(runs.some(({ isWhole }) => !isWhole)).toBe(true);
  });

  it('carry what other adapters attached, unless told otherwise', () => {
    const texts = (target: ConversationTarget): string => JSON.stringify(fc.sample(conversations(target), { numRuns: 200, seed: SEED }));
    expect(texts(TARGET)).toContain('rs_strange');
    expect(texts({ ...TARGET, hasStrangeData: false })).not.toContain('rs_strange');
  });

  it('hold samples that are made of a number once each', () => {
    const made = (count: number): JsonValue => ({ made: count });
    const target: ConversationTarget = { ...TARGET, thinkingData: [made], textData: [made], callData: [made], providerRuns: [(count) => [made(count)]] };
    let total = 0;
    for (const messages of fc.sample(conversations(target), { numRuns: 200, seed: SEED })) {
      const numbers = [...JSON.stringify(messages).matchAll(/"made":(\d+)/g)].map(([, number]) => number);
      expect(new Set(numbers).size).toBe(numbers.length);
      total += numbers.length;
    }
    expect(total).toBeGreaterThan(200);
  });

  it('were asked for before each reply, and are at the end', () => {
    for (const messages of samples) {
      const sizes = requestSizes(messages);
      expect(sizes.at(-1)).toBe(messages.length);
      for (const size of sizes.slice(0, -1)) expect(messages[size]?.role).toBe('assistant');
    }
  });
});

describe('histories of transcripts', () => {
  it('are valid, grow, keep each reply, and come from the target', async () => {
    for (const scenario of fc.sample(scenarios(), { numRuns: 50, seed: SEED })) {
      const histories = await transcriptHistories(scenario, TARGET, { mixed: true });
      const known = new Map<string, Message>();
      for (const history of histories) {
        expect(brokenRules(history)).toStrictEqual([]);
        for (const message of history) {
          // What stands in for a missing result is made anew each time.
          if (message.role !== 'assistant') continue;
          expect(['ours', 'someone-else']).toContain(message.source?.provider);
          const before = known.get(message.id);
          if (before !== undefined && JSON.stringify(before) === JSON.stringify(message)) expect(message).toBe(before);
          known.set(message.id, message);
        }
      }
    }
  });
});
