/** Each boundary rule fires on a planted violation, as the project's own lint configuration sets it for that file. */

import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ESLint, Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { afterEach, describe, expect, it } from 'vitest';
import { ROOT } from '../../scripts/doors.js';
import boundaries, { CORE_ORDER } from '../../scripts/eslint-boundaries.js';

const OWN_RULES = ['turnloop/boundaries', 'no-restricted-properties', 'no-restricted-globals', 'no-console'];

/** Lints text as if it stood in that file of `src`, with the project's own settings for that file. */
async function lint(file: string, text: string): Promise<string[]> {
  const filename = join(ROOT, 'src', file);
  const config = (await new ESLint({ cwd: ROOT }).calculateConfigForFile(filename)) as { rules: Linter.RulesRecord };
  const rules = Object.fromEntries(OWN_RULES.flatMap((name) => (config.rules[name] ? [[name, config.rules[name]]] : [])));
  return verify({ filename, text, rules, cwd: ROOT });
}

function verify({ filename, text, rules, cwd }: { filename: string; text: string; rules: Linter.RulesRecord; cwd: string }): string[] {
  const linter = new Linter({ cwd });
  const config: Linter.Config = {
    files: ['**/*.ts'],
    languageOptions: { parser: tseslint.parser },
    plugins: { turnloop: boundaries },
    rules,
  };
  return linter.verify(text, [config], { filename }).map(({ message }) => message);
}

describe('the boundary rules', () => {
  it.each([
    ['core, of a room', 'core/llm.ts', `import { a } from '../policies/retry.ts';`, 'core imports nothing outside core'],
    ['core, of a type of a room', 'core/llm.ts', `import type { A } from '../agent/agent.ts';`, 'core imports nothing outside core'],
    ['core, of a room by import()', 'core/llm.ts', `await import('../zod/index.ts');`, "'zod/index.ts' needs 'zod'"],
    ['core, of a Node module', 'core/runtime.ts', `import { now } from 'node:process';`, "may not import 'node:process'"],
    ['core, of a library', 'core/llm.ts', `import pLimit from 'p-limit';`, "may not import 'p-limit'"],
    ['core, of its own door', 'core/llm.ts', `import type { A } from '../index.ts';`, 'core does not import its own door'],
    ['core, of a later file', 'core/message.ts', `import { a } from './usage.ts';`, "'core/message.ts' stands before 'core/usage.ts'"],
    ['core, of a type of a later file', 'core/llm.ts', `import type { A } from './run-turn.ts';`, "stands before 'core/run-turn.ts'"],
    ['core, of a later file in a type', 'core/llm.ts', `type A = import('./tool.ts').A;`, "stands before 'core/tool.ts'"],
    ['core, from a later file', 'core/llm.ts', `export { a } from './tool.ts';`, "stands before 'core/tool.ts'"],
    ['core, of all of a later file', 'core/llm.ts', `export * from './tool.ts';`, "stands before 'core/tool.ts'"],
    ['the root door, of a room', 'index.ts', `export { a } from './policies/index.ts';`, 'core imports nothing outside core'],
    ['a room, of another room', 'context/a.ts', `import { a } from '../memory/a.ts';`, 'context may not import memory'],
    ['policies, of the agent', 'policies/a.ts', `import type { A } from '../agent/a.ts';`, 'policies may not import agent'],
    ['the agent, of a provider', 'agent/a.ts', `import { a } from '../providers/anthropic/index.ts';`, 'may not import providers/anthropic'],
    ['a provider, of another', 'providers/anthropic/a.ts', `import { a } from '../openai-chat/a.ts';`, 'may not import providers/openai-chat'],
    ['providers/shared, of a provider', 'providers/shared/a.ts', `import { a } from '../openai-chat/a.ts';`, 'may not import providers/openai-chat'],
    ['a provider, of a Node module', 'providers/shared/a.ts', `import http from 'node:http';`, "may not import 'node:http'"],
    ['a room, of testing', 'agent/a.ts', `import { a } from '../testing/index.ts';`, 'agent may not import testing'],
    ['testing, of a value of sessions', 'testing/a.ts', `import { a } from '../sessions/a.ts';`, 'only types of sessions'],
    ['a room, of the agent', 'otel/a.ts', `import { a } from '../agent/a.ts';`, 'otel may not import agent'],
    ['a door’s neighbour, of its library', 'zod/other.ts', `import { z } from 'zod';`, 'is a door of its own'],
    ['a room, of its door with a library', 'policies/index.ts', `export { a } from './concurrency.ts';`, "needs 'p-limit'"],
    ['a room, of its door with Node', 'agent/index.ts', `export { a } from './files.ts';`, "'agent/files.ts' needs Node"],
    ['a door’s neighbour, of a Node module', 'agent/other.ts', `import { a } from 'node:fs';`, "may not import 'node:fs'"],
    ['a door, of another library', 'zod/index.ts', `import pLimit from 'p-limit';`, "may not import 'p-limit'"],
    ['a room, of the package by name', 'policies/a.ts', `import { runTurn } from 'turnloop';`, "may not import 'turnloop'"],
    ['a file, of one outside src', 'testing/a.ts', `import { a } from '../../test/a.ts';`, 'src imports nothing outside src'],
    ['a Node module without its prefix', 'cli/a.ts', `import fs from 'fs';`, "Write 'node:fs'"],
  ])('forbid an import by %s', async (_, file, text, message) => {
    const messages = await lint(file, text);

    expect(messages).toStrictEqual([expect.stringContaining(message)]);
  });

  it.each([
    ['the root door, of core', 'index.ts', `export { runTurn } from './core/run-turn.ts';`],
    ['core, of an earlier file', 'core/run-turn.ts', `import { a } from './json.ts';`],
    ['a room, of core', 'policies/a.ts', `import { a } from '../core/llm.ts';`],
    ['a room, of the root door', 'policies/a.ts', `import { a } from '../index.ts';`],
    ['a provider, of what providers share', 'providers/openai-chat/a.ts', `import { a } from '../shared/sse.ts';`],
    ['the agent, of sessions', 'agent/a.ts', `import { a } from '../sessions/index.ts';`],
    ['mcp, of the agent', 'mcp/a.ts', `import { a } from '../agent/index.ts';`],
    ['testing, of types of memory', 'testing/a.ts', `import type { A } from '../memory/index.ts';`],
    ['the command line, of testing', 'cli/a.ts', `import { a } from '../testing/index.ts';`],
    ['sessions, of a Node module', 'sessions/a.ts', `import fs from 'node:fs/promises';`],
    ['a door, of its library', 'zod/index.ts', `import { z } from 'zod';`],
    ['a door, of a subpath of its library', 'zod/index.ts', `import { z } from 'zod/v4';`],
  ])('allow an import by %s', async (_, file, text) => {
    const messages = await lint(file, text);

    expect(messages).toStrictEqual([]);
  });

  it('forbid a file in core that the order does not name', async () => {
    const messages = await lint('core/helpers.ts', 'export const a = 1;');

    expect(messages).toStrictEqual([expect.stringContaining("'core/helpers.ts' has no place in CORE_ORDER")]);
  });

  it('name each file of core once', () => {
    expect(CORE_ORDER).toStrictEqual([...new Set(CORE_ORDER)]);
  });

  it.each([
    ['Date.now()', 'Date.now();', 'come from `runtime`'],
    ['Math.random()', 'Math.random();', 'come from `runtime`'],
    ['crypto.randomUUID()', 'crypto.randomUUID();', 'come from `runtime`'],
    ['a timer', 'setTimeout(() => {}, 1);', '`runtime.sleep`'],
    ['the console', 'console.log(1);', 'Unexpected console statement'],
  ])('forbid the loop %s', async (_, text, message) => {
    const messages = await lint('core/turn-step.ts', text);

    expect(messages).toStrictEqual([expect.stringContaining(message)]);
  });
});

describe('the rule against import cycles', () => {
  let folder: string;

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Writes the files into a folder of their own and lints the first. */
  function lintFiles(files: Record<string, string>): string[] {
    folder = mkdtempSync(join(tmpdir(), 'turnloop-boundaries-'));
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    const [[file, text] = ['', '']] = Object.entries(files);
    return verify({ filename: join(folder, file), text, rules: { 'turnloop/boundaries': ['error', folder] }, cwd: folder });
  }

  it('finds a cycle of two files', () => {
    const messages = lintFiles({
      'zod/a.ts': `import { b } from './b.ts';`,
      'zod/b.ts': `import { a } from './a.ts';`,
    });

    expect(messages).toStrictEqual(['Import cycle: zod/a.ts → zod/b.ts → zod/a.ts.']);
  });

  it('finds a cycle that is closed by types', () => {
    const messages = lintFiles({
      'agent/a.ts': `import { b } from './b.ts';`,
      'agent/b.ts': `export type { C } from './c.ts';`,
      'agent/c.ts': `export type C = import('./a.ts').A;`,
    });

    expect(messages).toStrictEqual(['Import cycle: agent/a.ts → agent/b.ts → agent/c.ts → agent/a.ts.']);
  });

  it('leaves a diamond alone', () => {
    const messages = lintFiles({
      'agent/a.ts': `import './b.ts'; import './c.ts';`,
      'agent/b.ts': `import './d.ts';`,
      'agent/c.ts': `import './d.ts';`,
      'agent/d.ts': `export const d = 1;`,
    });

    expect(messages).toStrictEqual([]);
  });
});
