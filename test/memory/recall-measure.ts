/** Measures recall: of the entries that a question needs, the share that is among the first 15, as a mean over questions. */
import type { Notice } from 'turnloop';
import { createMemory, type Embedder, inProcessMemoryStore, type MemoryEntry } from 'turnloop/memory';
import { virtualRuntime } from 'turnloop/testing';

/** What the set takes for now. */
const NOW = 1_790_000_000_000;
const LIMIT = 15;

/** A message at the start of a turn, and the ids of the facts that are relevant to it. */
export interface Question {
  readonly id: string;
  readonly text: string;
  readonly relevant: readonly string[];
}

/** Gives the ids of at most 15 facts for a question, the best first. */
export type Recaller = (question: string) => Promise<readonly string[]>;

export async function readFacts(): Promise<readonly MemoryEntry[]> {
  const { default: facts } = await import('./recall-set/facts.json', { with: { type: 'json' } });
  return (facts as readonly Omit<MemoryEntry, 'scopeId'>[]).map(({ id, text, kind, scope, importance, createdAt }) => ({
    id,
    text,
    kind,
    scope,
    scopeId: 'set',
    importance,
    createdAt,
  }));
}

/** Those that the ranking may be tuned with. */
export async function readQuestions(): Promise<readonly Question[]> {
  return (await import('./recall-set/questions.json', { with: { type: 'json' } })).default;
}

/** Those that it may not. */
export async function readHeldBack(): Promise<readonly Question[]> {
  return (await import('./recall-set/held-back.json', { with: { type: 'json' } })).default;
}

/** What `createMemory` recalls. */
export async function ranking(facts: readonly MemoryEntry[], embedder?: Embedder): Promise<Recaller> {
  const problems: Notice[] = [];
  const memory = createMemory({
    store: inProcessMemoryStore(),
    embedder,
    runtime: virtualRuntime({ start: NOW }),
    notify: (notice) => problems.push(notice),
  });
  await memory.store.add(facts.map((entry) => ({ entry })));
  return async (question) => {
    const found = await memory.find({ text: question, limit: LIMIT });
    // A memory goes on without an embedder that fails: that is not what is measured.
    if (problems.length > 0) throw new Error(JSON.stringify(problems[0]));
    return found.map(({ entry }) => entry.id);
  };
}

/** The newest facts, whatever is asked. */
export function newest(facts: readonly MemoryEntry[]): Recaller {
  const ids = [...facts].sort((a, b) => b.createdAt - a.createdAt).map(({ id }) => id);
  return async () => ids.slice(0, LIMIT);
}

/** The facts with the most words of the question; of as many, the newer ones. Words as they stand there: of Chinese, what stands between marks. */
export function keywords(facts: readonly MemoryEntry[]): Recaller {
  const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const words = facts.map((fact) => ({ fact, words: wordsOf(fact.text) }));
  return async (question) => {
    const asked = [...wordsOf(question)];
    const scored = words.map((one) => ({ fact: one.fact, score: asked.filter((word) => one.words.has(word)).length }));
    scored.sort((a, b) => b.score - a.score || b.fact.createdAt - a.fact.createdAt);
    return scored.slice(0, LIMIT).map(({ fact }) => fact.id);
  };
}

/** Mean over the questions, from 0 to 1. */
export async function recallOf(recall: Recaller, questions: readonly Question[]): Promise<number> {
  let sum = 0;
  for (const { text, relevant } of questions) {
    const recalled = new Set(await recall(text));
    sum += relevant.filter((id) => recalled.has(id)).length / relevant.length;
  }
  return sum / questions.length;
}
