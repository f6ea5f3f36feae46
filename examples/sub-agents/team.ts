/** A team: an agent that gives parts of its task to sub-agents of two kinds. One script plays all of them, so that it needs no key. */
import { defineTool, textOf, type LLMRequest } from 'turnloop';
import { createAgent, type Agent } from 'turnloop/agent';
import type { Budget } from 'turnloop/policies';
import { scriptedLLM, toolCall } from 'turnloop/testing';

const FILES: ReadonlyMap<string, string> = new Map([
  ['README.md', 'Version 1.2'],
  ['package.json', 'Version 1.3'],
]);

const readFile = defineTool({
  name: 'read_file',
  description: 'Reads a file.',
  readOnly: true,
  input: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  describe: ({ path }) => `read ${String(path)}`,
  execute: ({ path }) => FILES.get(String(path)) ?? 'There is no such file.',
});

const runTests = defineTool({
  name: 'run_tests',
  description: 'Runs the tests.',
  readOnly: true, // So that its sub-agent runs beside the others: two that change something never overlap.
  input: { type: 'object', properties: {} },
  describe: () => 'run the tests',
  execute: () => '7 tests passed',
});

/** Makes the team. What the budget has left is for all of them together: their requests, and those of the agent itself. */
export function createTeam(budget: Budget): Agent {
  return createAgent({
    llm: scriptedLLM(play),
    systemPrompt: 'You lead.',
    tools: [readFile],
    budget,
    subAgents: {
      types: {
        // Without `tools` of its own a kind has those of the agent that only read.
        explorer: { description: 'Finds things out in files.', systemPrompt: 'You explore.' },
        tester: { description: 'Runs the tests.', systemPrompt: 'You test.', tools: [runTests], maxSteps: 3 },
      },
      maxParallel: 3,
    },
  });
}

/** The script: who is asked is told by the system prompt, how far it is by the history. */
function play({ systemPrompt, messages }: LLMRequest): string | ReturnType<typeof toolCall>[] {
  const results = messages.filter(({ role }) => role === 'tool').map(textOf);
  const isLeading = systemPrompt === 'You lead.';
  if (results.length > 0) return isLeading ? `The README is behind: ${results.join('; ')}.` : results.join();
  if (!isLeading) return [systemPrompt === 'You test.' ? toolCall('run_tests') : toolCall('read_file', { path: textOf(messages[0]).replace('Read ', '') })];
  return [
    toolCall('dispatch_agent', { type: 'explorer', prompt: 'Read README.md' }),
    toolCall('dispatch_agent', { type: 'explorer', prompt: 'Read package.json' }),
    toolCall('dispatch_agent', { type: 'tester', prompt: 'Run the tests' }),
  ];
}
