/**
 * Sub-agents: several at once, each shown below the call that started it.
 *
 *   npx tsx examples/sub-agents/main.ts
 */
import type { AgentTurnEvent } from 'turnloop/agent';
import { createBudget } from 'turnloop/policies';
import { createTeam } from './team.ts';

/** What each call is about, by its id: an event of a sub-agent names the calls that lead to it. */
const calls = new Map<string, string>();

function show(event: AgentTurnEvent): void {
  const path = 'agentPath' in event ? (event.agentPath ?? []) : [];
  const who = path.map((toolCallId) => `[${calls.get(toolCallId) ?? '?'}] `).join('');
  if (event.type === 'tool.call') {
    const what = event.description ?? event.name;
    calls.set(event.toolCallId, what);
    console.log(`${who}→ ${what}`);
  }
  if (event.type === 'content.part' && event.part.type === 'text') console.log(`${who}${event.part.text}`);
}

const budget = createBudget({ maxTokens: 100_000 });
const turn = createTeam(budget).run('Is the README up to date, and do the tests pass?');
for await (const event of turn) show(event);
const { stopReason, usage } = await turn.result;
console.log(`${stopReason}: ${usage.inputTokens + usage.outputTokens} tokens spent by all, ${budget.remaining.tokens ?? 0} left`);
