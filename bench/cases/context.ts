/**
 * context: what a context policy makes of sessions that are far longer than the window, beside two naive ones.
 *
 * Measured: the endless session of test/support/endless-session, 20 seeds of 200 turns of 10 steps, against a model with a
 * real window of 32k that is counted with a real tokenizer. All policies live through the same sessions. Nothing of it
 * depends on the machine or the time: a run gives the same figures as the last one.
 *
 * It takes about two minutes.
 *
 * - `turns-lost`: turns that did not end with their answer.
 * - `refused-per-1000`: requests refused although their size was over what the model declares or was seen to take, for each
 *   thousand steps. What nobody could know (a model that does not say how large its window is, or takes less than it says)
 *   is in `overflows-least`: refusals of that kind, in the session with the fewest.
 * - `summary-share`: tokens in and out of summary requests, of all tokens.
 * - `prefix-reuse`: tokens of a step's request that repeat the beginning of the one before, of all of such requests.
 * - `summaries-least`: summaries in the session with the fewest.
 *
 * A naive policy loses turns, which is why its other figures are about shorter sessions than ours.
 */
import type { BenchCase, Figure, Measurement, Numbers } from '../lib/bench-case.ts';

const SEEDS = 20;
const TURNS = 200;
/** A busy machine takes its time; the figures are the same. */
const PATIENCE_MS = 600_000;

/** Ours goes without a name before its metrics. */
const OURS = 'turnloop';
const METRICS: readonly (readonly [metric: string, unit: string])[] = [
  ['turns-lost', 'turns'],
  ['refused-per-1000', 'requests'],
  ['summary-share', 'share'],
  ['prefix-reuse', 'share'],
  ['summaries-least', 'summaries'],
  ['overflows-least', 'requests'],
];

export const context: BenchCase = {
  name: 'context',
  repetitions: 1,
  measurements: [OURS, 'tail-trim', 'summarise-always'].map(sessionsOf),
  figures: [OURS, 'tail-trim', 'summarise-always'].flatMap((policy) =>
    METRICS.map(([metric, unit]): Figure => ({ metric: policy === OURS ? metric : `${policy}/${metric}`, unit, value: [policy, metric] })),
  ),
};

function sessionsOf(policy: string): Measurement {
  return {
    name: policy,
    patienceMs: PATIENCE_MS,
    measure: async (): Promise<Numbers> => {
      // Loaded here: the vocabulary of a tokenizer is megabytes that no other measurement needs.
      const { figuresOf, playSession, POLICIES } = await import('../../test/support/endless-session/index.ts');
      const createPolicy = POLICIES[policy];
      if (createPolicy === undefined) throw new Error(`There is no policy "${policy}".`);
      const reports = [];
      for (let seed = 1; seed <= SEEDS; seed += 1) reports.push(await playSession({ seed, turns: TURNS, createPolicy }));
      const figures = figuresOf(reports);
      return {
        'turns-lost': figures.turnsLost,
        'refused-per-1000': figures.refusedPer1000,
        'summary-share': figures.summaryShare,
        'prefix-reuse': figures.prefixReuse,
        'summaries-least': Math.min(...reports.map(({ model }) => model.summaries)),
        'overflows-least': Math.min(...reports.map(({ model }) => model.provoked)),
      };
    },
  };
}
