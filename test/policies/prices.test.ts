/** createPrices and costOf as a black box. */
import { describe, expect, it } from 'vitest';
import { toUsage } from 'turnloop';
import { costOf, createPrices, type ModelPrice } from 'turnloop/policies';

const MILLION = 1_000_000;

describe('costOf', () => {
  it('C5 takes each counter at its own rate per million tokens', () => {
    const prices = createPrices({ m: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } });

    expect(costOf(toUsage({ inputTokens: MILLION }), 'm', prices)).toBe(3);
    expect(costOf(toUsage({ outputTokens: MILLION }), 'm', prices)).toBe(15);
    expect(costOf(toUsage({ cacheReadTokens: MILLION }), 'm', prices)).toBe(0.3);
    expect(costOf(toUsage({ cacheWriteTokens: MILLION }), 'm', prices)).toBe(3.75);
    expect(costOf(toUsage({ inputTokens: 1000, outputTokens: 200, cacheReadTokens: 10_000 }), 'm', prices)).toBeCloseTo(0.009, 10);
  });

  it('C5 counts thinking once, as the output it is a part of', () => {
    const prices = createPrices({ m: { input: 1, output: 10 } });

    expect(costOf(toUsage({ outputTokens: 100, thinkingTokens: 80 }), 'm', prices)).toBe(0.001);
  });

  it('C5 takes the cache at the rate of the prompt where the table does not say', () => {
    const prices = createPrices({ m: { input: 4, output: 0 } });

    expect(costOf(toUsage({ cacheReadTokens: MILLION, cacheWriteTokens: MILLION }), 'm', prices)).toBe(8);
  });

  it.each(['gpt-5-mini-2025-08', 'gpt-5', '', 'constructor', '__proto__', 'toString'])(
    'C5 knows no cost of %j, which is not in the table',
    (modelId) => {
      const prices = createPrices({ 'gpt-5-mini': { input: 0.25, output: 2 } });

      expect(costOf(toUsage({ inputTokens: 1 }), modelId, prices)).toBeUndefined();
    },
  );

  it.each(['gpt-5-mini-2025-08-07', 'gpt-5-mini-20250807', 'gpt-5-mini-0807'])('C5 takes %s for a dated snapshot of the model in the table', (modelId) => {
    const prices = createPrices({ 'gpt-5-mini': { input: 0.25, output: 2 } });

    expect(costOf(toUsage({ outputTokens: MILLION }), modelId, prices)).toBe(2);
  });

  it('C5 takes a name of a model as data, whatever it says', () => {
    const table = JSON.parse('{ "__proto__": { "input": 1, "output": 1 } }') as Record<string, ModelPrice>;

    expect(costOf(toUsage({ inputTokens: MILLION }), '__proto__', createPrices(table))).toBe(1);
  });

  it('C5 knows no cost where prices of the host say what is no number', () => {
    expect(costOf(toUsage({ inputTokens: 1 }), 'm', { get: () => ({ input: NaN, output: 1 }) })).toBeUndefined();
    expect(costOf(toUsage({ inputTokens: 1 }), 'm', { get: () => ({ input: -1, output: 1 }) })).toBeUndefined();
  });
});

describe('createPrices', () => {
  it('C5 takes a map as well, and is not changed with its table', () => {
    const table = new Map([['m', { input: 1, output: 1 }]]);
    const prices = createPrices(table);

    table.set('m', { input: 9, output: 9 });

    expect(costOf(toUsage({ inputTokens: MILLION }), 'm', prices)).toBe(1);
  });

  it('C5 knows models that are free', () => {
    expect(costOf(toUsage({ inputTokens: MILLION }), 'local', createPrices({ local: { input: 0, output: 0 } }))).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ['no table', undefined, 'needs a table of prices'],
    ['a price that is none', { m: 3 }, 'there is no price of "m"'],
    ['a price without output', { m: { input: 1 } }, '`output` must be a number of at least 0, not undefined, in the price of "m"'],
    ['a negative rate', { m: { input: 1, output: -2 } }, '`output` must be a number of at least 0, not -2'],
    ['a rate that is a text', { m: { input: '1', output: 2 } }, '`input` must be a number of at least 0, not 1'],
    ['a rate without end', { m: { input: 1, output: 2, cacheRead: Infinity } }, '`cacheRead` must be'],
    ['a rate that does not exist', { m: { input: 1, output: 2, cached: 1 } }, 'there is no rate `cached`'],
  ])('C5 refuses %s, and shows a correct table', (_what, table, message) => {
    const make = (): unknown => createPrices(table as Record<string, ModelPrice>);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow("createPrices({ 'gpt-5-mini': { input: 0.25, output: 2, cacheRead: 0.025 } })");
  });
});
