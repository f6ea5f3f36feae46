/** What the example shows: sub-agents side by side, whose events say where they belong, and who pay from one purse. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { AgentTurnEvent } from 'turnloop/agent';
import { createBudget } from 'turnloop/policies';
import { createTeam } from './team.ts';

/** How deep an event comes from. */
function depthOf(event: AgentTurnEvent): number {
  return 'agentPath' in event ? (event.agentPath?.length ?? 0) : 0;
}

it('runs as a program', () => {
  const printed = execFileSync(process.execPath, ['--import', 'tsx', fileURLToPath(new URL('main.ts', import.meta.url))], { encoding: 'utf8' });

  const lines = printed.trim().split('\n');
  expect(lines.slice(0, 3)).toStrictEqual(['→ Read README.md', '→ Read package.json', '→ Run the tests']);
  // Sub-agents run beside each other: each keeps its own order.
  for (const [task, call, answer] of [
    ['Read README.md', 'read README.md', 'Version 1.2'],
    ['Read package.json', 'read package.json', 'Version 1.3'],
    ['Run the tests', 'run the tests', '7 tests passed'],
  ]) {
    expect(lines.filter((line) => line.startsWith(`[${task}] `))).toStrictEqual([`[${task}] → ${call}`, `[${task}] ${answer}`]);
  }
  expect(lines.slice(9)).toStrictEqual([
    'The README is behind: Version 1.2; Version 1.3; 7 tests passed.',
    expect.stringMatching(/^end_turn: \d+ tokens spent by all, \d+ left$/),
  ]);
});

it('has all sub-agents at work before the first one ends, and pays for all from one budget', async () => {
  const budget = createBudget({ maxTokens: 100_000 });
  const turn = createTeam(budget).run('Go.');
  const events: AgentTurnEvent[] = [];
  for await (const event of turn) events.push(event);
  const { usage } = await turn.result;

  const begun = events.flatMap((event, index) => (event.type === 'step.begin' && event.step === 1 && depthOf(event) === 1 ? [index] : []));
  const firstEnd = events.findIndex((event) => event.type === 'turn.end' && depthOf(event) === 1);
  expect(begun).toHaveLength(3);
  expect(Math.max(...begun)).toBeLessThan(firstEnd);
  expect(budget.spent.tokens).toBe(usage.inputTokens + usage.outputTokens);
});

it('ends when the sub-agents have spent what there was', async () => {
  const budget = createBudget({ maxTokens: 500, outputReserve: 20 });
  const { stopReason } = await createTeam(budget).run('Go.').result;

  expect(stopReason).toBe('max_budget');
  expect(budget.spent.tokens).toBeLessThanOrEqual(500);
});
