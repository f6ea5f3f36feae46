/** What every layer that asks no model promises alike, over generated histories. Each layer's own is in its own file. */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { clearOldResults, foldOldTexts, type LayerResult, trimHistory } from 'turnloop/context';
import { it } from 'vitest';
import type { Message } from 'turnloop';
import { expectSound, histories } from './histories.ts';

const RUNS = Number(process.env['TURNLOOP_RUNS'] ?? 300);
const SEED = Number(process.env['TURNLOOP_SEED'] ?? 20_260_401);



function sound(layer: (messages: readonly Message[], level: number) => LayerResult): number {
  let changed = 0;
  fc.assert(
    fc.property(histories, fc.nat(24), (history, level) => {
      const { edits } = expectSound(history, (messages) => layer(messages, level));
      if (edits.length > 0) changed += 1;
    }),
    { numRuns: RUNS, seed: SEED },
  );
  return changed;
}

describe('a layer leaves pairs whole, valid for all protocols, no longer than before, with nothing more to do:', () => {
  it('D3 D7 CX2 clearOldResults', () => {
    expect(sound((messages, keepNewest) => clearOldResults(messages, { canReobtain: () => true, keepNewest }))).toBeGreaterThan(RUNS / 10);
  });

  it('D3 D7 clearOldResults of results of any size', () => {
    const changed = sound((messages, keepNewest) => clearOldResults(messages, { canReobtain: () => true, keepNewest, minTokens: 0 }));
    expect(changed).toBeGreaterThan(RUNS / 10);
  });

  it('D4 D7 CX2 foldOldTexts', () => {
    expect(sound((messages, keepNewest) => foldOldTexts(messages, { keepNewest }))).toBeGreaterThan(RUNS / 10);
  });

  it('D4 D7 foldOldTexts of the shortest texts', () => {
    expect(sound((messages, keepNewest) => foldOldTexts(messages, { keepNewest, maxCharacters: 200 }))).toBeGreaterThan(RUNS / 10);
  });

  it('D6 D7 trimHistory', () => {
    expect(sound((messages, level) => trimHistory(messages, { targetTokens: level * level * 10 }))).toBeGreaterThan(RUNS / 10);
  });
});
