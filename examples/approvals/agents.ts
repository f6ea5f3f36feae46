/** The agents of this example: what they may do, and who is asked first. Scripts stand in for models, so that it needs no key. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineTool, textOf, type AnyTool, type LLM } from 'turnloop';
import { createAgent, type Agent } from 'turnloop/agent';
import { planFirst } from 'turnloop/policies';
import { fileSessionStore } from 'turnloop/sessions';
import { scriptedLLM, toolCall } from 'turnloop/testing';

const DELETE = toolCall('delete_file', { path: 'old.log' });
const MAIL = toolCall('send_mail', { to: 'the team' });

/** Tells the team, and has a sub-agent delete. Each call that changes something waits for a person. */
export function cleaningAgent(folder: string): Agent {
  const cleaner = { description: 'Deletes files.', llm: script([DELETE]), tools: [tool(folder, 'delete_file')] };
  return createAgent({
    llm: script([toolCall('dispatch_agent', { type: 'cleaner', prompt: 'Delete old.log.' }), MAIL]),
    tools: [tool(folder, 'send_mail')],
    subAgents: { types: { cleaner } },
    // Without `ask` the turn ends suspended. Calls of sub-agents are asked about by the same rules.
    approval: { rules: [{ tool: 'dispatch_agent', decision: 'allow' }] },
    sessions: fileSessionStore(join(folder, 'cleaning')),
  });
}

/** Makes a plan first: only tools that read run until the host says that it is confirmed. */
export function planningAgent(folder: string): Agent {
  return createAgent({
    llm: script([DELETE], 'My plan: I delete old.log.'),
    tools: [tool(folder, 'delete_file')],
    hooks: [planFirst({ isConfirmed: ({ host }) => host === 'confirmed' })],
    sessions: fileSessionStore(join(folder, 'planning')),
  });
}

/** A tool whose effect is a line in a file. */
function tool(folder: string, name: string): AnyTool {
  return defineTool({
    name,
    description: 'Changes the world.',
    input: { type: 'object', properties: { path: { type: 'string' }, to: { type: 'string' } } },
    describe: ({ path, to }) => `${name} ${String(path ?? to)}`,
    execute: ({ path, to }) => {
      appendFileSync(join(folder, 'done.txt'), `${name} ${String(path ?? to)}\n`);
      return `${name} is done`;
    },
  });
}

/** A model that makes its calls when somebody has spoken, then tells what came of them. All it knows is the history, like any model. */
function script(calls: readonly ReturnType<typeof toolCall>[], ifRefused?: string): LLM {
  return scriptedLLM(({ messages }) => {
    const results = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1).filter((message) => message.role === 'tool');
    if (results.length === 0) return calls;
    const isRefused = results.some(({ isError }) => isError === true);
    return isRefused && ifRefused !== undefined ? ifRefused : results.map(textOf).join('; ');
  });
}
