/** The README's programs are these files, word for word, and they run. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createTranscript, createEventDispatcher, runTurn } from 'turnloop';
import { parrotLLM } from './custom-llm.ts';

const folder = new URL('./', import.meta.url);
const root = new URL('../../', folder);
const readme = readFileSync(new URL('README.md', root), 'utf8');
const programs = readdirSync(folder).filter((name) => name !== 'readme.test.ts');

it.each(programs)('shows %s word for word', (name) => {
  const code = readFileSync(new URL(name, folder), 'utf8').trimEnd();

  expect(readme).toContain(`<!-- examples/readme/${name} -->\n\`\`\`ts\n${code}\n\`\`\``);
});

it.each([
  ['quickstart.ts', '[weather]\nTake no umbrella.\nend_turn after 2 steps\n'],
  ['resume.ts', `suspended [ 'echo {"text":"hello"}' ]\nend_turn It said hello.\n`],
])('runs %s', (name, output) => {
  const printed = execFileSync(process.execPath, ['--import', 'tsx', fileURLToPath(new URL(name, folder))], {
    cwd: fileURLToPath(root),
    encoding: 'utf8',
  });

  expect(printed).toBe(output);
});

it('runs a turn on the model of custom-llm.ts', async () => {
  const transcript = createTranscript();

  const result = await runTurn({
    llm: parrotLLM(),
    input: 'hello you',
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({ record: transcript.record }),
  });

  expect(result).toMatchObject({ stopReason: 'end_turn', text: 'hello you ' });
});
