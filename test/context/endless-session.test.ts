/**
 * The endless session: turns without number against a window of 32k, counted by a real tokenizer. `npm run bench -- context`
 * prints the figures over 20 seeds; here a few of them are held to what they must be. `TURNLOOP_RUNS=20` runs them all.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { figuresOf, outputLine, playSession, POLICIES, table, type SessionReport } from '../support/endless-session/index.ts';

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

it('the session is the same each time', async () => {
  const [one, other] = [await play('turnloop', { seed: 1, turns: 12 }), await play('turnloop', { seed: 1, turns: 12 })];
  expect(one).toStrictEqual(other);
});

describe('the checks see what naive policies do', () => {
  it('tail trim loses the first task, and most of what a provider had cached', async () => {
    const report = await play('tail-trim', { seed: 1, turns: 20 });
    expect(report.broken.get('first-task')?.count).toBeGreaterThan(0);
    expect(figuresOf([report]).prefixReuse).toBeLessThan(0.8);
  });

  it('a summary of everything loses the newest message', async () => {
    const report = await play('summarise-always', { seed: 1, turns: 20 });
    expect(report.broken.get('newest-message')?.count).toBeGreaterThan(0);
  });
});
