/** What lasts from one process to the next: conversations, what was learned from them, and the project's rules. A script plays a large model. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { textOf, type LLMRequest } from 'turnloop';
import type { AgentTurnEvent } from 'turnloop/agent';
import { scriptedLLM, toolCall, type ScriptedLLM } from 'turnloop/testing';
import { expect, it } from 'vitest';
import { createCodingAgent } from './agent.ts';
import { listSessions, openSession } from './sessions.ts';
import { makeFolder } from './test-support.ts';
import { openWorkspace } from './workspace.ts';

type Played = (request: LLMRequest) => string | ReturnType<typeof toolCall>[];

/** A model that answers extractions with `learned`, and everything else by `play`. */
function model(play: Played, learned: readonly string[] = []): ScriptedLLM {
  const entries = learned.map((text) => ({ text, kind: 'fact', scope: 'project', importance: 0.8 }));
  return scriptedLLM((request) => (isExtraction(request) ? JSON.stringify({ entries }) : play(request)), { systemPrompt: 'You code.' });
}

function isExtraction({ tools }: LLMRequest): boolean {
  return tools.length === 0;
}

/** One question in a process's life: open, ask, close. */
async function ask(folder: string, llm: ScriptedLLM, { question = 'Hello', ...options }: { question?: string; resume?: string; fork?: string } = {}) {
  const problems: Error[] = [];
  const agent = createCodingAgent({ llm, isTiny: false }, openWorkspace(folder), (problem) => void problems.push(problem));
  const session = await openSession(agent, { resume: undefined, fork: undefined, ...options });
  const turn = session.run(question);
  const events: AgentTurnEvent[] = [];
  for await (const event of turn) events.push(event);
  const { text } = await turn.result;
  await session.close();
  expect(problems).toStrictEqual([]);
  return { sessionId: session.sessionId, text, events, agent };
}

/** What people said, as far as a request shows it. */
function said({ messages }: LLMRequest): readonly string[] {
  return messages.flatMap((message) => (message.role === 'user' && message.origin === 'user' ? textOf(message) : []));
}

it('goes on with the newest session, with one of an id, and with a fork, which leaves the other as it was', async () => {
  const folder = makeFolder();
  const llm = model((request) => said(request).join(', '));

  const first = await ask(folder, llm, { question: 'one' });
  const second = await ask(folder, llm, { question: 'two' });

  expect((await ask(folder, llm, { question: 'three', resume: 'newest' })).text).toBe('two, three');
  expect((await ask(folder, llm, { question: 'four', resume: first.sessionId })).text).toBe('one, four');
  const fork = await ask(folder, llm, { question: 'five', fork: second.sessionId });
  expect(fork.text).toBe('two, three, five');
  expect((await ask(folder, llm, { question: 'six', resume: second.sessionId })).text).toBe('two, three, six');

  const lines = await listSessions(fork.agent.sessions, 100);
  expect(lines.map((line) => line.split(' ').filter((word) => word !== ''))).toStrictEqual([
    [second.sessionId, expect.stringMatching(/^\d{4}-\d\d-\d\d$/), expect.stringMatching(/^\d\d:\d\d$/), 'two'],
    [fork.sessionId, expect.any(String), expect.any(String), 'two'],
    [first.sessionId, expect.any(String), expect.any(String), 'one'],
  ]);
});

it('says that there is nothing to go on with', async () => {
  const llm = model(() => 'Hello.');

  await expect(ask(makeFolder(), llm, { resume: 'newest' })).rejects.toThrow('There is no session in this folder yet');
  await expect(ask(makeFolder(), llm, { resume: 'session_1' })).rejects.toMatchObject({ code: 'session_not_found' });
});

it('remembers in a new session what it learned in another one', async () => {
  const folder = makeFolder();
  await ask(folder, model(() => 'Noted.', ['The tests of this project run with make check.']), { question: 'Our tests run with make check.' });
  const llm = model(() => 'make check');

  await ask(folder, llm, { question: 'How do the tests run?' });

  const [request] = llm.requests;
  expect(textOf(request?.messages[0])).toContain('The tests of this project run with make check.');
  expect(request?.systemPrompt).not.toContain('make check');
  expect(request?.tools.map(({ name }) => name)).toContain('recall_memory');
});

it('follows the rules of the project, as they are when a turn begins', async () => {
  const folder = makeFolder({ 'AGENTS.md': 'Use tabs.' });
  const llm = model(() => 'Yes.');

  await ask(folder, llm);
  writeFileSync(join(folder, 'AGENTS.md'), 'Use spaces.');
  await ask(folder, llm);

  const prompts = llm.requests.filter((request) => !isExtraction(request)).map(({ systemPrompt }) => systemPrompt);
  expect(prompts).toStrictEqual(['You code.\n\n# Project rules\n\nUse tabs.', 'You code.\n\n# Project rules\n\nUse spaces.']);
});

it('has explorers that only read, side by side, and workers with all tools', async () => {
  const folder = makeFolder({ 'a.txt': 'one', 'b.txt': 'two' });
  const toolsOf: Record<string, readonly string[]> = {};
  const llm = model((request) => {
    const task = said(request)[0] ?? '';
    toolsOf[task] = request.tools.map(({ name }) => name);
    if (request.messages.at(-1)?.role === 'tool') return 'Done.';
    if (task === 'work') return [toolCall('edit_file', { path: 'a.txt', old_text: 'one', new_text: 'three' })];
    if (task !== 'all') return [toolCall('read_file', { path: task })];
    return [
      toolCall('dispatch_agent', { type: 'explorer', prompt: 'a.txt' }),
      toolCall('dispatch_agent', { type: 'explorer', prompt: 'b.txt' }),
      toolCall('dispatch_agent', { type: 'worker', prompt: 'work' }),
    ];
  });

  const { events } = await ask(folder, llm, { question: 'all' });

  expect(toolsOf['a.txt']).toStrictEqual(['list_files', 'read_file', 'search']);
  expect(toolsOf['work']).toStrictEqual(['list_files', 'read_file', 'search', 'edit_file', 'run_command']);
  const results = events.flatMap((event) => (event.type === 'tool.result' && 'agentPath' in event ? textOf(event.result.content) : []));
  // Which explorer is done first is chance.
  expect(results.slice(0, 2).sort()).toStrictEqual(['one', 'two']);
  expect(results.slice(2)).toStrictEqual(['Edited a.txt']);
});

it('keeps its files out of git, and out of what the model is shown', async () => {
  const folder = makeFolder({ 'a.txt': 'one' });
  const llm = model(({ messages }) => (messages.at(-1)?.role === 'tool' ? textOf(messages.at(-1)) : [toolCall('list_files', { path: '.' })]));

  const { text, sessionId } = await ask(folder, llm);

  expect(text).toBe('a.txt');
  expect(readFileSync(join(folder, '.turnloop/.gitignore'), 'utf8')).toBe('*\n');
  expect(existsSync(join(folder, '.turnloop/sessions', sessionId))).toBe(true);
});
