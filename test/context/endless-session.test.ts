/**
 * The endless session: turns without number against a window of 32k, counted by a real tokenizer. `npm run bench -- context`
 * prints the figures over 20 seeds; here a few of them are held to what they must be. `TURNLOOP_RUNS=20` runs them all.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { decorateLLM, userMessage, type Hook, type LLM, type Message } from 'turnloop';
import { figuresOf, outputLine, playSession, POLICIES, table, type Rule, type SessionReport } from '../support/endless-session/index.ts';

/** Seeds 1, 2 …: CI takes a sample, as they are all alike. */
const SEEDS = Number(process.env['TURNLOOP_RUNS'] ?? 3);
const TURNS = 200;
const STEPS = 10;
const MINUTE_MS = 60_000;

async function play(policy: string, options: { readonly seed: number; readonly turns: number }): Promise<SessionReport> {
  return playSession({ ...options, createPolicy: POLICIES[policy]! });
}

describe('a session of 200 turns of 10 steps in a window of 32k', () => {
  let reports: SessionReport[];

  beforeAll(async () => {
    reports = [];
    for (let seed = 1; seed <= SEEDS; seed += 1) reports.push(await play('turnloop', { seed, turns: TURNS }));
    console.log(`${table(reports)}\n${outputLine(reports)}`);
  }, SEEDS * MINUTE_MS);

  it('loses no turn: each ends with its answer after all its steps', () => {
    expect(reports.map(({ firstLoss }) => firstLoss)).toStrictEqual(reports.map(() => undefined));
    expect(reports.map(({ model }) => model.steps)).toStrictEqual(reports.map(() => TURNS * STEPS));
  });

  it('goes through at least 15 summaries and 10 overflows that nobody could foresee', () => {
    expect(Math.min(...reports.map(({ model }) => model.summaries))).toBeGreaterThanOrEqual(15);
    expect(Math.min(...reports.map(({ model }) => model.provoked))).toBeGreaterThanOrEqual(10);
  });

  it('D7 keeps the first task, the newest message, whole pairs and one summary at most in every request, by every protocol’s rules', () => {
    expect(reports.map(({ broken }) => Object.fromEntries(broken))).toStrictEqual(reports.map(() => ({})));
  });

  it('sends at most one request in a thousand steps that it could have known to be too long', () => {
    for (const report of reports) expect(figuresOf([report]).refusedPer1000).toBeLessThanOrEqual(1);
  });

  it('spends less than 5 % of all tokens on summaries', () => {
    for (const report of reports) expect(figuresOf([report]).summaryShare).toBeLessThan(0.05);
  });

  it('D9 repeats at least 90 % of each request from the one before', () => {
    for (const report of reports) expect(figuresOf([report]).prefixReuse).toBeGreaterThanOrEqual(0.9);
  });
});

describe('the session itself', { timeout: MINUTE_MS }, () => {
  it('is the same each time', async () => {
    const [one, other] = [await play('turnloop', { seed: 1, turns: 12 }), await play('turnloop', { seed: 1, turns: 12 })];
    expect(one).toStrictEqual(other);
  });

  it('shows that tail trim loses the first task, and most of what a provider had cached', async () => {
    const report = await play('tail-trim', { seed: 1, turns: 20 });
    expect(report.broken.get('first-task')?.count).toBeGreaterThan(0);
    expect(figuresOf([report]).prefixReuse).toBeLessThan(0.8);
  });

  it('shows that a summary of everything loses the newest message', async () => {
    const report = await play('summarise-always', { seed: 1, turns: 20 });
    expect(report.broken.get('newest-message')?.count).toBeGreaterThan(0);
  });

  it('counts the first refusal of a model that does not declare its window as provoked, and the next as foreseeable', async () => {
    const { model, turnsLost } = await playSession({ seed: 1, turns: 20, createPolicy: () => ({ hooks: [] }) });
    expect(model.refusals[0]).toMatch(/^FORESEEABLE .* declared 32768$/);
    const undeclared = model.refusals.filter((refusal) => refusal.endsWith('declared Infinity'));
    expect(undeclared.map((refusal) => refusal.split(' ')[0])).toStrictEqual(['provoked', ...undeclared.slice(1).map(() => 'FORESEEABLE')]);
    expect(undeclared.length).toBeGreaterThan(1);
    expect(turnsLost).toBe(model.provoked + model.foreseeable);
  });

  it.each<[Rule, (messages: readonly Message[]) => readonly Message[]]>([
    ['first-task', (messages) => messages.slice(1)],
    ['newest-message', (messages) => messages.filter((message) => message !== messages.findLast(({ role }) => role === 'user'))],
    ['pairs', (messages) => messages.filter((message) => message !== messages.find(({ role }) => role === 'tool'))],
    ['one-summary', (messages) => [messages[0]!, said('So far.', 'summary'), said('So far.', 'summary'), ...messages.slice(1)]],
    ['markers', (messages) => [messages[0]!, said('Left out.', 'reminder'), said('Left out.', 'reminder'), ...messages.slice(1)]],
    ['markers', (messages) => [...messages.slice(0, 1), said('a\n[… 9 characters left out …]\nb\n[… 8 characters left out …]\nc', 'summary'), ...messages.slice(1)]],
    ['protocol', (messages) => messages.slice(1)],
  ])('sees a broken rule: %s', async (rule, sabotage) => {
    const decorate = (llm: LLM): LLM => decorateLLM(llm, (request) => llm.chat({ ...request, messages: sabotage(request.messages) }));
    const { broken } = await playSession({ seed: 1, turns: 3, createPolicy: () => ({ hooks: [], decorate }) });
    expect([...broken.keys()]).toContain(rule);
  });

  it('sees a broken rule: findings', async () => {
    const edits = [{ from: 'no such message', to: 'no such message', messages: [] }];
    const record: Hook = { name: 'record', beforeStep: ({ record: add }) => add({ type: 'compaction', layer: 'x', edits, tokensBefore: 1, tokensAfter: 1 }) };
    const { broken } = await playSession({ seed: 1, turns: 1, createPolicy: () => ({ hooks: [record] }) });
    expect([...broken.keys()]).toStrictEqual(['findings']);
  });
});

function said(text: string, origin: 'summary' | 'reminder'): Message {
  return userMessage(text, { id: `${origin}-1`, origin });
}
