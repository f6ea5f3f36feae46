/** The system prompt of a turn, and the project's rules out of its files. */
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isTurnloopError } from 'turnloop';
import { assembleSystemPrompt, withSystemPrompt } from 'turnloop/agent';
import { readProjectRules } from 'turnloop/agent/files';
import { withRetry } from 'turnloop/policies';
import { runScripted, scriptedLLM } from 'turnloop/testing';

describe('assembleSystemPrompt', () => {
  it('E1 puts base, skill, project rules, application rules and project context in this order, each under its heading', () => {
    const prompt = assembleSystemPrompt({ projectContext: 'five', appRules: 'four', projectRules: 'three', skill: 'two', base: 'one' });

    expect(prompt).toBe('one\n\n# Skill\n\ntwo\n\n# Project rules\n\nthree\n\n# Application rules\n\nfour\n\n# Project context\n\nfive');
  });

  it('E1 skips what is missing or blank', () => {
    expect(assembleSystemPrompt({})).toBe('');
    expect(assembleSystemPrompt({ base: 'one', skill: undefined, appRules: ' \n' })).toBe('one');
    expect(assembleSystemPrompt({ appRules: 'rule' })).toBe('# Application rules\n\nrule');
  });

  it.each([
    ['projectRules', 8_000],
    ['appRules', 8_000],
    ['projectContext', 12_000],
  ] as const)('E1 cuts %s to %i characters, and says how much is missing', (name, limit) => {
    const body = (prompt: string): string => prompt.slice(prompt.indexOf('\n\n') + 2);

    expect(body(assembleSystemPrompt({ [name]: 'x'.repeat(limit) }))).toBe('x'.repeat(limit));
    const cut = body(assembleSystemPrompt({ [name]: 'x'.repeat(limit + 1) }));
    expect(cut.length).toBeLessThanOrEqual(limit);
    const [, kept, missing] = /^(x+)\n\[… (\d+) of \d+ characters left out …\]$/.exec(cut)!;
    expect(kept!.length + Number(missing)).toBe(limit + 1);
  });

  it('E1 cuts neither base nor skill', () => {
    const long = 'x'.repeat(20_000);

    expect(assembleSystemPrompt({ base: long, skill: long })).toBe(`${long}\n\n# Skill\n\n${long}`);
  });

  it('E1 B13 cuts no character in two', () => {
    for (const shift of ['', 'a']) {
      const prompt = assembleSystemPrompt({ projectRules: shift + '😀'.repeat(5_000) });
      // It throws for half a character.
      expect(() => encodeURIComponent(prompt)).not.toThrow();
      expect(prompt).toContain('characters left out');
    }
  });

  it('E1 refuses a section that does not exist, or is no text', () => {
    expect(() => assembleSystemPrompt({ rules: 'x' } as never)).toThrow(/no option `rules`; it takes base, skill/);
    expect(() => assembleSystemPrompt({ base: ['x'] } as never)).toThrow(/`base` must be a text, not a value of type object. For example: assembleSystemPrompt/);
  });
});

describe('withSystemPrompt', () => {
  it('E1 gives the model another system prompt, and leaves it as it is otherwise', async () => {
    const { llm, result } = await runScripted({
      replies: ['hello'],
      llmOptions: { systemPrompt: 'old', capabilities: { contextWindow: 1_000 } },
      decorate: (inner) => {
        const decorated = withSystemPrompt(inner, 'new');
        expect(decorated).toMatchObject({ systemPrompt: 'new', modelId: inner.modelId, provider: inner.provider, capabilities: { contextWindow: 1_000 } });
        return decorated;
      },
    });

    expect(result.text).toBe('hello');
    expect(llm.requests.map(({ systemPrompt }) => systemPrompt)).toStrictEqual(['new']);
    expect(llm.systemPrompt).toBe('old');
  });

  it('E1 keeps the prompt through decorators around it', () => {
    expect(withRetry(withSystemPrompt(scriptedLLM([]), 'new')).systemPrompt).toBe('new');
  });

  it('E1 refuses what is no model and what is no text', () => {
    expect(() => withSystemPrompt(undefined as never, 'x')).toThrow(/withSystemPrompt needs an LLM/);
    expect(() => withSystemPrompt(scriptedLLM([]), undefined as never)).toThrow(/withSystemPrompt takes a text. For example/);
  });
});

describe('readProjectRules', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rules-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('E1 reads AGENTS.md, else CLAUDE.md, else nothing', async () => {
    expect(await readProjectRules(folder)).toBeUndefined();
    await writeFile(join(folder, 'CLAUDE.md'), 'from claude');
    expect(await readProjectRules(folder)).toBe('from claude');
    await writeFile(join(folder, 'AGENTS.md'), '\ufefffrom agents — 规则');
    expect(await readProjectRules(folder)).toBe('from agents — 规则');
  });

  it('E1 takes an empty AGENTS.md for the rules, and skips it', async () => {
    await writeFile(join(folder, 'AGENTS.md'), '');
    await writeFile(join(folder, 'CLAUDE.md'), 'from claude');

    expect(assembleSystemPrompt({ base: 'one', projectRules: await readProjectRules(folder) })).toBe('one');
  });

  it('E1 takes a link whose file is gone for no file', async () => {
    await symlink(join(folder, 'gone.md'), join(folder, 'AGENTS.md'));

    expect(await readProjectRules(folder)).toBeUndefined();
  });

  it.each([
    ['there is no such folder', async (at: string) => join(at, 'nowhere')],
    ['the folder is a file', async (at: string) => {
      await writeFile(join(at, 'file'), '');
      return join(at, 'file');
    }],
    ['AGENTS.md is a folder', async (at: string) => {
      await mkdir(join(at, 'AGENTS.md'));
      return at;
    }],
  ])('E1 says so if %s', async (_what, prepare) => {
    const error: unknown = await readProjectRules(await prepare(folder)).catch((thrown: unknown) => thrown);

    expect(isTurnloopError(error)).toBe(true);
    expect(error).toMatchObject({ code: 'project_rules_unreadable', message: expect.stringContaining(JSON.stringify(folder).slice(1, -1)) });
  });

  it.skipIf(process.getuid?.() === 0)('E1 says so if the file may not be read', async () => {
    await writeFile(join(folder, 'AGENTS.md'), 'secret');
    await chmod(join(folder, 'AGENTS.md'), 0);

    await expect(readProjectRules(folder)).rejects.toMatchObject({ code: 'project_rules_unreadable' });
  });

  it('E1 refuses to look nowhere', async () => {
    await expect(readProjectRules('')).rejects.toThrow(/readProjectRules needs a folder. For example/);
  });
});
