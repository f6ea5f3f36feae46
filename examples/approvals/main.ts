/**
 * Approvals across processes: each command is a process of its own, and nothing but files connects them.
 *
 *   npx tsx examples/approvals/main.ts start             the agent works until it needs a person, and the process ends
 *   npx tsx examples/approvals/main.ts decide ID allow   … or: deny "not today", edit '{"path":"older.log"}'
 *   npx tsx examples/approvals/main.ts plan              an agent that may not change anything yet makes a plan
 *   npx tsx examples/approvals/main.ts confirm           the plan is good: now it may
 *
 * `--dir FOLDER` is where sessions are kept, and what was done (default: .turnloop/approvals).
 */
import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { JsonValue, ToolCallDecision } from 'turnloop';
import type { Agent, Session, Turn } from 'turnloop/agent';
import { cleaningAgent, planningAgent } from './agents.ts';

async function main(folder: string, [command, ...args]: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const [cleaning, planning] = [cleaningAgent(folder), planningAgent(folder)];
  switch (command) {
    case 'start':
      return runIn(await cleaning.openSession(), (session) => session.run('Delete old logs and tell the team.'));
    case 'decide':
      return runIn(await openNewest(cleaning), (session) => session.resume({ decisions: [decisionOf(args)] }));
    case 'plan':
      return runIn(await planning.openSession(), (session) => session.run('Delete old logs.'));
    case 'confirm':
      return runIn(await openNewest(planning), (session) => session.run('The plan is good.', { host: 'confirmed' }));
    default:
      throw new Error('Say start, decide, plan or confirm: see the head of this file.');
  }
}

async function openNewest(agent: Agent): Promise<Session> {
  const [newest] = await agent.sessions.list();
  if (newest === undefined) throw new Error('There is no session yet: start one.');
  return agent.openSession({ resumeSessionId: newest.sessionId });
}

async function runIn(session: Session, start: (session: Session) => Turn): Promise<void> {
  try {
    const { stopReason, text, error } = await start(session).result;
    console.log([stopReason, error?.message ?? text].join('\n').trim());
    for (const { toolCallId, description, agentPath } of session.pending()) {
      console.log(`${toolCallId}: ${description ?? '?'}${agentPath.length > 0 ? ', by a sub-agent' : ''}`);
    }
  } finally {
    await session.close();
  }
}

function decisionOf([toolCallId = '', action, words = '']: readonly string[]): ToolCallDecision {
  if (action === 'allow') return { toolCallId, action };
  if (action === 'deny') return { toolCallId, action, ...(words !== '' && { reason: words }) };
  if (action === 'edit') return { toolCallId, action, input: JSON.parse(words) as JsonValue };
  throw new Error('A decision is allow, deny or edit: decide ID allow.');
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { dir: { type: 'string', default: '.turnloop/approvals' } } });
await main(values.dir, positionals);
