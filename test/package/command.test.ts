/** The installed command: what it prints, and how it ends. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';

/** A scenario that is well, and one whose tool pays twice after a crash. */
const SCENARIOS = `
import { createTranscript, createEventDispatcher, runTurn } from 'turnloop';
import { scriptedLLM } from 'turnloop/testing';

const scenario = (name, isWrong) => ({
  name,
  build: () => {
    const log = [];
    return {
      live: async (life) => {
        const transcript = createTranscript(isWrong ? log.filter(({ type }) => type !== 'tool.start') : [...log]);
        const open = transcript.openTurn();
        if (open === undefined && log.length > 0) return;
        const record = life.recorder(log);
        const llm = scriptedLLM(({ messages }) => (messages.at(-1).role === 'user' ? [{ type: 'tool_call', name: 'pay', inputText: '{}' }] : 'Done.'));
        await runTurn({
          llm: life.llm(llm),
          tools: [life.tool({ name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, execute: () => 'paid' })],
          buildMessages: transcript.buildMessages,
          dispatchEvent: createEventDispatcher({ record: async (event) => { await record(event); transcript.record(event); }, emit: life.listener() }),
          input: 'Pay.',
          signal: life.signal,
          runtime: life.runtime,
          ...(open && { resume: { turn: open } }),
        });
      },
    };
  },
});
export const right = scenario('right', false);
export const wrong = scenario('wrong', true);
`;

/** A scenario that does not take its runtime from where it has to, and leaves a timer behind. */
const ESCAPED = `
import { createAgent } from 'turnloop/agent';
import { inProcessSessionStore } from 'turnloop/sessions';
import { scriptedLLM } from 'turnloop/testing';

export const escaped = {
  name: 'escaped',
  build: () => ({
    live: async (life) => {
      setTimeout(() => {}, 3_600_000);
      const agent = createAgent({ llm: life.llm(scriptedLLM(['Done.'])), sessions: life.sessions(inProcessSessionStore()) });
      const session = await agent.openSession({ sessionId: 's' });
      await session.run('Go.').result;
      await session.close();
    },
  }),
};
`;

/** Scenarios that fail by themselves, end the process, or wait for nothing. */
const ODD = `
const scenario = (name, live) => ({ name, build: () => ({ live }) });
setInterval(() => {}, 3_600_000);
export const spaced = scenario("it's broken", async () => { throw new Error('broken'); });
export const leaving = scenario('leaving', async () => process.exit(1));
export const fine = scenario('fine', async () => {});
`;

let folder: string;
beforeAll(async () => {
  const { error, consumer } = inject('packed');
  if (error !== undefined) throw new Error(error);
  folder = consumer;
  await writeFile(join(folder, 'scenarios.mjs'), SCENARIOS);
  await writeFile(join(folder, 'escaped.mjs'), ESCAPED);
  await writeFile(join(folder, 'odd.mjs'), ODD);
  await writeFile(join(folder, 'same.mjs'), "const one = { name: 'one', build: () => ({ live: async () => {} }) };\nexport const first = one;\nexport const second = { ...one };");
  await writeFile(join(folder, 'typed.ts'), 'export {};');
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function turnloop(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(join(folder, 'node_modules', '.bin', 'turnloop'), args, { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('turnloop simulate', () => {
  it('F5 plays what a module exports, in several processes, and sums up', async () => {
    const { code, stdout, stderr } = await turnloop('simulate', 'scenarios.mjs', '--scenario', 'right', '--seeds', '600', '--jobs', '2');
    expect([code, stderr]).toStrictEqual([0, '']);
    expect(stdout).toMatch(/^right +600 runs +5\d\d with a fault$/m);
    expect(stdout).toMatch(/^crash_after +[1-9]/m);
    expect(stdout).toMatch(/^600 runs, 5\d\d with a fault \(\d\d %\)$/m);
  });

  it('F5 ends 1 at a failure and tells how to repeat it, which does repeat it', async () => {
    const { code, stdout, stderr } = await turnloop('simulate', 'scenarios.mjs', '--seeds', '300');
    expect([code, stdout]).toStrictEqual([1, '']);
    expect(stderr).toContain('Scenario "wrong" fails with seed 0');
    const [, args = ''] = /^To repeat it: npx turnloop (simulate .* --fault .* --calm)$/m.exec(stderr) ?? [];
    const again = await turnloop(...args.split(' '));
    expect([again.code, again.stderr]).toStrictEqual([1, stderr]);
  });

  it('F5 ends though a scenario left a timer, and names the runtime that it forgot', async () => {
    const { code, stderr } = await turnloop('simulate', 'escaped.mjs', '--seeds', '2');
    expect(code).toBe(1);
    expect(stderr).toContain('No turn took its ids from `life.runtime`: give it to whatever runs turns, as in createAgent({ runtime: life.runtime }).');
  });

  it('F5 ends 1 if the fault that was asked for never came', async () => {
    const { code, stderr } = await turnloop('simulate', 'scenarios.mjs', '--scenario', 'right', '--seeds', '3', '--fault', 'http:error@1');
    expect([code, stderr]).toStrictEqual([1, 'Nothing went wrong: no run came as far as http:error@1.\n']);
  });

  it('F5 tells how to repeat a scenario whatever its name is', async () => {
    const { stderr } = await turnloop('simulate', 'odd.mjs', '--scenario', "it's broken", '--seeds', '1');
    expect(stderr).toContain(`To repeat it: npx turnloop simulate odd.mjs --scenario 'it'\\''s broken' --from 0 --seeds 1 --calm`);
  });

  it('F5 says so when a scenario ends the process', async () => {
    const { code, stderr } = await turnloop('simulate', 'odd.mjs', '--scenario', 'leaving', '--seeds', '1');
    expect([code, stderr]).toStrictEqual([1, 'The process that played "leaving" from seed 0 ended with code 1 before it had told what came of it: something in it waits for what never comes, or ends the process.\n']);
  });

  it('F5 ends though the file of the scenarios left something running', async () => {
    const { code, stdout } = await turnloop('simulate', 'odd.mjs', '--scenario', 'fine', '--seeds', '2');
    expect([code, stdout]).toStrictEqual([0, expect.stringContaining('2 runs')]);
  });

  it('F5 shows its help', async () => {
    const { code, stdout } = await turnloop('simulate', '--help');
    expect([code, stdout]).toStrictEqual([0, expect.stringMatching(/^Usage: turnloop simulate FILE \[options\]\n/)]);
  });

  it('F5 ends 1 if a fault never went wrong, where none may be left out', async () => {
    const { code, stderr } = await turnloop('simulate', 'scenarios.mjs', '--scenario', 'right', '--seeds', '3', '--complete');
    expect([code, stderr]).toStrictEqual([1, expect.stringMatching(/^Never went wrong: .*\. Play more seeds\.\n$/)]);
  });

  it.each([
    [[], 'Say what to do.'],
    [['simulat'], 'There is no command "simulat".'],
    [['simulate'], 'turnloop simulate takes one file.'],
    [['simulate', 'scenarios.mjs', '--seeds', 'many'], '--seeds takes a whole number of at least 1, such as --seeds 1000, and not "many".'],
    [['simulate', 'scenarios.mjs', '--fault', 'x'], '"x" is no fault'],
    [['simulate', 'scenarios.mjs', '--scenario', 'other'], 'scenarios.mjs has no scenario "other", only right, wrong.'],
    [['simulate', 'scenarios.mjs', '--seed', '1'], "Unknown option '--seed'"],
    [['simulate', 'nowhere.mjs'], 'There is no file '],
    [['simulate', 'same.mjs'], 'same.mjs has two scenarios named "one": rename one.'],
    [['simulate', 'scenarios.mjs', '--seeds', '0'], '--seeds'],
    [['simulate', 'scenarios.mjs', '--jobs', '0'], '--jobs'],
    [['simulate', 'typed.ts'], "For TypeScript, install tsx: NODE_OPTIONS='--import tsx' npx turnloop simulate typed.ts"],
  ])('F5 ends 2 for %j, and says what is wrong and what there is', async (args, message) => {
    const { code, stderr } = await turnloop(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain('Usage: turnloop <command>');
  });
});
