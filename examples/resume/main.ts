/**
 * Resume: a process that dies in the middle of its work, and the next that goes on, until the work is done.
 *
 *   npx tsx examples/resume/main.ts              dies where chance wants it, by SIGKILL, at most three times
 *   npx tsx examples/resume/main.ts --seed 7     always in the same places
 *
 * The agent books five seats, one call each. A booking that was made is never made again; one whose outcome died with its
 * process is told to the model, which looks it up before it goes on.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { defineTool, type LLM, NO_USAGE, textOf } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { fileSessionStore } from 'turnloop/sessions';
import { seededRandom } from 'turnloop/testing';

const SEATS = 5;
const MOST_DEATHS = 3;
const SESSION = 'bookings';

/** What the model does: looks up what is booked, and books the next seat. Stands for any model. */
const llm: LLM = {
  provider: 'example',
  modelId: 'booker',
  systemPrompt: '',
  chat: async ({ messages }) => {
    const last = messages.at(-1);
    const booked = last?.role === 'tool' && last.name === 'list_seats' ? Number(textOf(last)) : undefined;
    if (booked === SEATS) return { content: [{ type: 'text', text: `All ${SEATS} seats are booked.` }], stopReason: 'end_turn', usage: NO_USAGE };
    const call = booked === undefined ? { name: 'list_seats', inputText: '{}' } : { name: 'book_seat', inputText: `{"seat":${booked + 1}}` };
    return { content: [{ type: 'tool_call', ...call }], stopReason: 'tool_use', usage: NO_USAGE };
  },
};

/** One process: goes on where the one before died, or begins; dies behind so many events. */
async function work(folder: string, diesAfter: number): Promise<void> {
  const file = join(folder, 'seats.txt');
  const booked = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const tools = [
    defineTool({ name: 'list_seats', description: 'How many seats are booked.', readOnly: true, input: { type: 'object', properties: {} }, execute: () => String(booked().split('\n').length - 1) }),
    defineTool({
      name: 'book_seat',
      description: 'Books a seat.',
      input: { type: 'object', properties: { seat: { type: 'integer' } }, required: ['seat'] },
      execute: ({ seat }) => {
        appendFileSync(file, `seat ${String(seat)}\n`);
        return 'Booked.';
      },
    }),
  ];
  const agent = createAgent({ llm, tools, sessions: fileSessionStore(folder) });
  const session = await agent.openSession({ sessionId: SESSION, resumeSessionId: SESSION });
  let events = 0;
  session.subscribe(() => {
    events += 1;
    if (events === diesAfter) process.kill(process.pid, 'SIGKILL');
  });
  const input = 'Book all seats.';
  const turn = session.status === 'interrupted' ? session.resume() : session.run(input);
  const { stopReason, text } = await turn.result;
  console.log(`${stopReason}: ${text}`);
  await session.close();
}

function main(seed: number): void {
  const folder = mkdtempSync(join(tmpdir(), 'turnloop-resume-'));
  const random = seededRandom(seed);
  try {
    for (let death = 1; ; death += 1) {
      const diesAfter = death > MOST_DEATHS ? Infinity : 1 + Math.floor(random() * 25);
      const args = ['--import', 'tsx', fileURLToPath(import.meta.url), '--work', folder, '--dies', String(diesAfter)];
      const { signal, stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      if (signal !== 'SIGKILL') {
        process.stdout.write(stdout + stderr);
        process.exitCode = status ?? 1;
        break;
      }
      const seats = existsSync(join(folder, 'seats.txt')) ? readFileSync(join(folder, 'seats.txt'), 'utf8').split('\n').length - 1 : 0;
      console.log(`Process ${death} died behind its event ${diesAfter}, with ${seats} seats booked.`);
    }
    process.stdout.write(readFileSync(join(folder, 'seats.txt'), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const options = { seed: { type: 'string', default: String(Date.now()) }, work: { type: 'string' }, dies: { type: 'string', default: 'Infinity' } } as const;
const { values } = parseArgs({ options });
if (values.work === undefined) main(Number(values.seed));
else await work(values.work, Number(values.dies));
