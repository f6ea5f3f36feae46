/** What every layer that asks no model promises alike, over generated histories. Each layer's own is in its own file. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from 'turnloop';
import { clearOldResults, createTokenEstimator, foldOldTexts, type LayerResult, trimHistory } from 'turnloop/context';
import { law } from '../properties/law.ts';
import { expectSound, histories } from './histories.ts';

const estimator = createTokenEstimator();

/** A layer, and how hard it is asked to work: 0 is hardest. */
type Layer = (messages: readonly Message[], level: number) => LayerResult;

const layers: readonly (readonly [name: string, layer: Layer])[] = [
  ['D3 D7 CX2 clearOldResults', (messages, keepNewest) => clearOldResults(messages, { canReobtain: () => true, keepNewest, estimator })],
  ['D3 D7 clearOldResults, of the shortest', (messages, keepNewest) => clearOldResults(messages, { canReobtain: () => true, keepNewest, minTokens: 0, estimator })],
  ['D4 D7 CX2 foldOldTexts', (messages, keepNewest) => foldOldTexts(messages, { keepNewest, estimator })],
  ['D4 D7 foldOldTexts, of the shortest', (messages, keepNewest) => foldOldTexts(messages, { keepNewest, maxCharacters: 200, estimator })],
  ['D6 D7 trimHistory', (messages, level) => trimHistory(messages, { targetTokens: level * level * 10, estimator })],
];

describe('a layer leaves pairs whole, valid for all protocols, never longer, with nothing more to do:', () => {
  for (const [name, layer] of layers) {
    law(name, fc.tuple(histories, fc.nat(24)), ([history, level]) => {
      expectSound(history, (messages) => layer(messages, level));
    });
  }

  law('D6 D9 D7 trimHistory, of what the others left', fc.tuple(histories, fc.nat(8)), ([history, level]) => {
    const cleared = clearOldResults(history, { canReobtain: () => true, keepNewest: level, estimator }).messages;
    const folded = foldOldTexts(cleared, { keepNewest: level, estimator }).messages;
    expectSound(folded, (messages) => trimHistory(messages, { targetTokens: level * 100, estimator }));
  });

  it.each(layers)('%s does have something to do in these histories', (_name, layer) => {
    const samples = fc.sample(histories, { numRuns: 200, seed: 20_260_401 });

    expect(samples.filter((history) => layer(history, 3).edits.length > 0).length).toBeGreaterThan(20);
  });
});
