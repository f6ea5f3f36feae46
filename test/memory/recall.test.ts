/**
 * How much of what a question needs is recalled, on the set in `recall-set`: with the embedder that needs no model, without any,
 * and beside what needs no ranking at all. The questions that are held back are not read here.
 */
import { expect, it } from 'vitest';
import { hashEmbedder } from 'turnloop/memory';
import { keywords, newest, ranking, readFacts, readQuestions, recallOf } from './recall-measure.ts';

it('E4 recalls most of what a question needs among 15 entries, and more than the newest and plain keywords do', async () => {
  const [facts, questions] = [await readFacts(), await readQuestions()];
  const measured = {
    [hashEmbedder().name]: await recallOf(await ranking(facts, hashEmbedder()), questions),
    'no embedder': await recallOf(await ranking(facts), questions),
    newest: await recallOf(newest(facts), questions),
    keywords: await recallOf(keywords(facts), questions),
  };
  console.log(Object.entries(measured).map(([name, recall]) => `${name}: ${recall.toFixed(3)}`).join('   '));
  const own = measured[hashEmbedder().name]!;

  expect(facts).toHaveLength(500);
  expect(own).toBeGreaterThanOrEqual(0.8);
  expect(measured['no embedder']).toBeGreaterThanOrEqual(0.7);
  expect(own - Math.max(measured.newest, measured.keywords)).toBeGreaterThanOrEqual(0.1);
});
