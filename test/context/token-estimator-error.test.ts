/** How far the estimator is off, against real tokenizers and on texts that were not used to fit it. */
import { encode as encodeCl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { encode as encodeO200k } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { KINDS } from '../support/estimate/texts.ts';
import { measureHistories } from '../support/estimate/worst-error.ts';

const TIMEOUT_MS = 60_000;

describe('the worst error over requests 16 to 200 of a conversation, the whole request estimated', () => {
  it('D1 is below 5 % of o200k_base for every kind, and after every switch of kind', { timeout: TIMEOUT_MS }, () => {
    const histories = measureHistories((text) => encodeO200k(text).length);

    expect(histories).toHaveLength(KINDS.length + 2 * KINDS.length * (KINDS.length - 1));
    expect(histories.filter(({ error }) => error >= 0.05)).toStrictEqual([]);
    // As long as a history grows, also into another kind, it is far below.
    expect(histories.filter(({ how, error }) => how !== 'replaced' && error >= 0.01)).toStrictEqual([]);
    // Before anything was observed as well.
    expect(histories.filter(({ firstGuess }) => firstGuess >= 0.05)).toStrictEqual([]);
  });

  it('D1 is below 5 % of a tokenizer that needs half as much again for Chinese, also after a switch to Chinese', { timeout: TIMEOUT_MS }, () => {
    const histories = measureHistories((text) => encodeCl100k(text).length, { switches: ['grows'] });

    expect(histories.filter(({ error }) => error >= 0.05)).toStrictEqual([]);
    // Not by luck: without observing it is far off.
    expect(Math.max(...histories.map(({ firstGuess }) => firstGuess))).toBeGreaterThan(0.2);
  });
});
