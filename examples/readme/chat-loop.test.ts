/** The loop of chat-loop.ts, killed at every line of its file and started again. */
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTranscript, type LLM, type RecordedEvent, textOf, type TurnResult } from 'turnloop';
import { checkTranscript, recordingTool, scriptedLLM, toolCall } from 'turnloop/testing';
import { chat } from './chat-loop.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'chat-loop-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Calls the tool once for each input, and then says what came of it. */
function caller(): LLM {
  return scriptedLLM(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool' ? `Done: ${textOf(last)}` : ['I start.', toolCall('note', { text: textOf(last) })];
  });
}

/** Starts the program, types the lines and ends the input. */
async function start(file: string, lines: readonly string[]) {
  const note = recordingTool({ name: 'note', execute: () => 'noted' });
  const results: TurnResult[] = [];
  await chat({ file, input: Readable.from(lines.map((line) => `${line}\n`)), llm: caller(), tools: [note], show: (result) => results.push(result) });
  return { results, runs: note.runs.length };
}

async function eventsIn(file: string): Promise<RecordedEvent[]> {
  const text = await readFile(file, 'utf8');
  expect(text.endsWith('\n')).toBe(true);
  return text.trimEnd().split('\n').map((line) => JSON.parse(line) as RecordedEvent);
}

it('goes on with the conversation in the file', async () => {
  const file = join(folder, 'twice.jsonl');

  await start(file, ['one', '', 'two']);
  const { results } = await start(file, ['three']);

  expect(results.map(({ stopReason, text }) => [stopReason, text])).toStrictEqual([['end_turn', 'Done: noted']]);
  const events = await eventsIn(file);
  expect(checkTranscript(events, { complete: true })).toStrictEqual([]);
  const inputs = createTranscript(events).buildMessages().filter(({ role }) => role === 'user');
  expect(inputs.map(textOf)).toStrictEqual(['one', 'two', 'three']);
});

it('goes on after a kill at any line, with and without half of the next one behind it', async () => {
  const whole = join(folder, 'whole.jsonl');
  await start(whole, ['one', 'twö']);
  const bytes = await readFile(whole);
  const ends = [0, ...Array.from(bytes.entries()).flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []))];
  expect(ends.length).toBeGreaterThan(20);

  for (const [index, end] of ends.entries()) {
    const next = ends[index + 1] ?? end;
    for (const cut of new Set([end, Math.ceil((end + next) / 2), Math.max(end, next - 1)])) {
      const file = join(folder, `cut-${cut}.jsonl`);
      await writeFile(file, bytes.subarray(0, cut));
      const before = bytes.subarray(0, end).toString().split('\n').slice(0, -1).map((line) => JSON.parse(line) as RecordedEvent);

      const { runs } = await start(file, ['last']);

      const events = await eventsIn(file);
      const where = `cut at byte ${cut}, after ${before.at(-1)?.type}`;
      expect(events.slice(0, before.length), where).toStrictEqual(before);
      expect(checkTranscript(events, { complete: true }), where).toStrictEqual([]);
      const transcript = createTranscript(events);
      expect(transcript.openTurn(), where).toBeUndefined();
      expect(textOf(transcript.buildMessages().at(-1)), where).toBe('Done: noted');
      // The tool is `never`: a call that had started, or finished, does not run again; one that had not, does.
      const isPending = pendingCall(before);
      expect(runs, where).toBe(isPending ? 2 : 1);
    }
  }
});

/** Whether a resume has a call to run: the last turn is open, and its call has not started or is not made yet. */
function pendingCall(before: readonly RecordedEvent[]): boolean {
  const open = createTranscript(before).openTurn();
  if (open === undefined || open.missingInput > 0) return false;
  return !before.some((event) => event.type === 'tool.start' && event.turnId === open.turnId);
}

it('stops when the file cannot be written, and starts again from what is in it', async () => {
  const file = join(folder, 'full.jsonl');
  await start(file, ['one']);
  const llm = scriptedLLM(async () => {
    await rename(file, `${file}.kept`);
    await mkdir(file);
    return 'Nobody keeps this.';
  });

  await expect(chat({ file, input: Readable.from(['two\n', 'three\n']), llm, show: () => {} })).rejects.toMatchObject({ code: 'recorder_failed' });
  await rm(file, { recursive: true });
  await rename(`${file}.kept`, file);
  const events = await eventsIn(file);
  await appendFile(file, '{"type":"usa');
  const { results } = await start(file, ['four']);

  expect(results.map(({ stopReason }) => stopReason)).toStrictEqual(['end_turn', 'end_turn']);
  const after = await eventsIn(file);
  expect(after.slice(0, events.length)).toStrictEqual(events);
  expect(checkTranscript(after, { complete: true })).toStrictEqual([]);
});
