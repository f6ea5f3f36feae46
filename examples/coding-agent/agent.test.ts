/**
 * The whole agent with the embedded model on a copy of the sample workspace: what is asked is what is done. The model is
 * a real one, and always gives the same reply to the same request.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolCallEvent, TurnResult } from 'turnloop';
import type { AgentTurnEvent } from 'turnloop/agent';
import { describe, expect, it } from 'vitest';
import { tinyLLM } from '../tiny-llm/index.ts';
import { createCodingAgent } from './agent.ts';
import { DEMO_CONVERSATIONS } from './demo/requests.ts';
import { makeSample } from './test-support.ts';
import { openWorkspace } from './workspace.ts';

const llm = tinyLLM();

/** Asks questions of one conversation; gives what was called, step by step, and what was answered. */
async function ask(folder: string, ...questions: readonly string[]): Promise<{ calls: string[][]; answers: string[]; events: AgentTurnEvent[] }> {
  const session = await createCodingAgent({ llm, isTiny: true }, openWorkspace(folder)).openSession();
  const events: AgentTurnEvent[] = [];
  const results: TurnResult[] = [];
  for (const question of questions) {
    const turn = session.run(question);
    for await (const event of turn) events.push(event);
    results.push(await turn.result);
  }
  await session.close();

  expect(results.map((result) => result.stopReason)).toStrictEqual(questions.map(() => 'end_turn'));
  const steps = new Map<string, string[]>();
  for (const call of events.filter((event): event is ToolCallEvent => event.type === 'tool.call')) {
    steps.set(call.stepId, [...(steps.get(call.stepId) ?? []), call.description ?? call.name]);
  }
  const calls = [...steps.values()];
  return { calls, answers: results.map((result) => result.text), events };
}

describe('the coding agent', () => {
  it('reads a file', async () => {
    const { calls, answers } = await ask(makeSample(), 'read README.md');

    expect(calls).toStrictEqual([['read README.md']]);
    expect(answers).toStrictEqual(['README.md begins: # turn-demo']);
  });

  it('reads two files at once', async () => {
    const { calls, answers } = await ask(makeSample(), 'read README.md and package.json');

    expect(calls).toStrictEqual([['read README.md', 'read package.json']]);
    expect(answers).toStrictEqual(['File 1 begins: # turn-demo\nFile 2 begins: {']);
  });

  it('reads what a search found', async () => {
    const { calls, answers } = await ask(makeSample(), 'search for BASE_DELAY in src and read the first file');

    expect(calls).toStrictEqual([['search for BASE_DELAY in src'], ['read src/core/retry-policy.ts']]);
    expect(answers).toStrictEqual(['src/core/retry-policy.ts begins: export const BASE_DELAY = 250;']);
  });

  it('edits a file, then runs a command, and shows its output as it comes', async () => {
    const folder = makeSample();
    const { calls, answers, events } = await ask(folder, 'replace 1.2.0 by 1.3.0 in package.json and run the tests');

    expect(calls).toStrictEqual([['edit package.json'], ['run npm test']]);
    expect(answers).toHaveLength(1);
    expect(readFileSync(join(folder, 'package.json'), 'utf8')).toContain('"version": "1.3.0"');
    expect(JSON.stringify(events.filter((event) => event.type === 'tool.progress'))).toContain('2 tests passed');
  });

  it('says that a command failed', async () => {
    const { calls, answers, events } = await ask(makeSample(), 'run cat missing.txt');

    expect(calls).toStrictEqual([['run cat missing.txt']]);
    expect(answers).toStrictEqual(['That failed: Error: command failed with exit code 1']);
    expect(events.filter((event) => event.type === 'tool.finished').map((event) => event.result)).toStrictEqual([
      {
        content: [{ type: 'text', text: 'Error: command failed with exit code 1\ncat: missing.txt: No such file or directory' }],
        isError: true,
      },
    ]);
  });

  it('remembers the turns before', async () => {
    const folder = makeSample();
    const { calls } = await ask(folder, 'read docs/guide.md', 'replace Guide by Manual in docs/guide.md', 'show me the file');

    expect(calls).toStrictEqual([['read docs/guide.md'], ['edit docs/guide.md'], ['read docs/guide.md']]);
    expect(readFileSync(join(folder, 'docs/guide.md'), 'utf8')).toBe('# Manual\n\nStart with `runTurn()`.\n');
  });

  it('gets every request of the demo right', async () => {
    const folder = makeSample();
    const seen: string[] = [];
    for (const questions of DEMO_CONVERSATIONS) {
      const { calls, answers } = await ask(folder, ...questions);
      seen.push(...questions.map((question) => `> ${question}`), ...calls.map((step) => `[${step.join(' | ')}]`), ...answers);
    }

    // What `npm test` prints first is npm's own.
    expect(seen.join('\n').replace(/^Output: .*/gm, 'Output: …')).toMatchInlineSnapshot(`
      "> hello
      > What can you do?
      Hello! What should I do?
      I can list, read, search and edit files and run commands.
      > list the files
      [list .]
      Found: .env.example, CHANGELOG.md, README.md, ...
      > read README.md and package.json
      [read README.md | read package.json]
      File 1 begins: # turn-demo
      File 2 begins: {
      > search for BASE_DELAY in src and read the first file
      [search for BASE_DELAY in src]
      [read src/core/retry-policy.ts]
      src/core/retry-policy.ts begins: export const BASE_DELAY = 250;
      > replace 1.2.0 by 1.3.0 in package.json and run the tests
      [edit package.json]
      [run npm test]
      Output: …
      > read docs/guide.md
      > replace Guide by Manual in docs/guide.md
      > show me the file
      [read docs/guide.md]
      [edit docs/guide.md]
      [read docs/guide.md]
      docs/guide.md begins: # Guide
      Replaced Guide by Manual in docs/guide.md.
      docs/guide.md begins: # Manual
      > read missing.txt
      [read missing.txt]
      That failed: Error: no such file: missing.txt
      > run cat missing.txt
      [run cat missing.txt]
      That failed: Error: command failed with exit code 1
      > What is the weather in Paris?
      I have no tool for that."
    `);
  });
});
