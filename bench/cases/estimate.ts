/**
 * estimate: how far the token estimator is off, against a real tokenizer.
 *
 * Measured: conversations of 200 requests of English, Chinese, code, JSON and a mix of them, and every switch from one kind
 * to another in the middle: once the new kind is added to the history, once the whole history is replaced by it. A request
 * is estimated whole, before what it had is observed. The figure is the largest error over requests 16 to 200, of
 * three sets of texts; none was used to fit the estimator (test/support/estimate). Nothing of it depends on the machine.
 *
 * - `worst-error-percent`: of all kinds and switches, with o200k_base. Below it the kinds alone, and the switches.
 * - `first-guess-percent`: the same without observing anything.
 * - `cl100k/…`: with cl100k_base, which needs half as much again for Chinese and nothing more for English. A history
 *   that is replaced by a kind whose classes no request had is left out: what it costs there nobody could know.
 */
import type { BenchCase, Figure, Numbers } from '../lib/bench-case.ts';

const SEEDS = [1, 2, 3];
const KIND_NAMES = ['english', 'chinese', 'code', 'json', 'mixed'];
const METRICS = ['worst-error-percent', ...[...KIND_NAMES, 'switch-grows', 'switch-replaced', 'first-guess'].map((name) => `${name}-percent`)];
const CL100K_METRICS = ['worst-error-percent', 'switch-grows-percent'];

export const estimate: BenchCase = {
  name: 'estimate',
  repetitions: 1,
  measurements: [
    { name: 'o200k', measure: () => measure('o200k') },
    { name: 'cl100k', measure: () => measure('cl100k') },
  ],
  figures: [
    ...METRICS.map((metric): Figure => ({ metric, unit: '%', value: ['o200k', metric] })),
    ...CL100K_METRICS.map((metric): Figure => ({ metric: `cl100k/${metric}`, unit: '%', value: ['cl100k', metric] })),
  ],
};

async function measure(tokenizer: 'o200k' | 'cl100k'): Promise<Numbers> {
  // Loaded here: a vocabulary is megabytes that no other measurement needs.
  const { encode } = tokenizer === 'o200k' ? await import('gpt-tokenizer/encoding/o200k_base') : await import('gpt-tokenizer/encoding/cl100k_base');
  const { measureHistories } = await import('../../test/support/estimate/worst-error.ts');
  const switches = tokenizer === 'o200k' ? (['grows', 'replaced'] as const) : (['grows'] as const);
  const histories = SEEDS.flatMap((seed) => measureHistories((text) => encode(text).length, { seed, switches }));
  const percent = (errors: readonly number[]): number => Math.max(...errors) * 100;
  const errorsOf = (how: string, kind?: string): readonly number[] =>
    histories.filter((history) => history.how === how && (kind === undefined || history.first === kind)).map(({ error }) => error);
  return {
    'worst-error-percent': percent(histories.map(({ error }) => error)),
    ...Object.fromEntries(KIND_NAMES.map((kind) => [`${kind}-percent`, percent(errorsOf('stays', kind))])),
    'switch-grows-percent': percent(errorsOf('grows')),
    ...(tokenizer === 'o200k' && { 'switch-replaced-percent': percent(errorsOf('replaced')) }),
    'first-guess-percent': percent(histories.map(({ firstGuess }) => firstGuess)),
  };
}
