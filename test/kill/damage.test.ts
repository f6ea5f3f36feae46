/**
 * What is on the disk when a process was killed, damaged further: a log cut at any byte, a snapshot that is not there, or
 * that is older or newer than its log; and a second process that wants the session while the first has it.
 */
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTranscript } from 'turnloop';
import { createAgent, type Session } from 'turnloop/agent';
import { fileSessionStore, type SessionEvent } from 'turnloop/sessions';
import { scriptedLLM } from 'turnloop/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problemsOf } from './check.ts';
import { SESSION_ID } from './child.ts';
import type { Death } from './death.ts';
import { play, turnEvents, type Play } from './play.ts';
import { buildChild, type ChildProgram } from './processes.ts';

/** In the middle of the second turn, behind a snapshot of the first. */
const IN_TURN_2: Death = { kind: 'event', at: 500, when: 'after' };
/** In the middle of the last turn, behind a snapshot of those before. */
const IN_TURN_4: Death = { kind: 'event', at: 1_200, when: 'before' };

let program: ChildProgram;
let undisturbed: Play;
beforeAll(async () => {
  program = await buildChild();
  undisturbed = await play(program, []);
});
afterAll(() => program.remove());

/** A file of the one session of a store. */
function fileIn(store: string, name: string): string {
  const [session = 'none'] = readdirSync(store);
  return join(store, session, name);
}

describe('a session whose process was killed, and whose snapshot', () => {
  it('E10 E11 was deleted since comes to the same end', async () => {
    const atDeath = (_death: number, store: string): void => rmSync(fileIn(store, 'snapshot.json'));
    const one = await play(program, [IN_TURN_2, IN_TURN_4], { atDeath });

    expect(problemsOf(one, undisturbed)).toStrictEqual([]);
    expect(one.deaths).toHaveLength(2);
  });

  it('E10 E11 is older than the log by more than a turn comes to the same end', async () => {
    const kept = join(program.newFolder(), 'snapshot.json');
    const atDeath = (death: number, store: string): void => {
      const snapshot = fileIn(store, 'snapshot.json');
      if (death === 0) copyFileSync(snapshot, kept);
      else {
        expect(coveredBy(snapshot)).toBeGreaterThan(coveredBy(kept));
        copyFileSync(kept, snapshot);
      }
    };
    const one = await play(program, [IN_TURN_2, IN_TURN_4], { atDeath });

    expect(problemsOf(one, undisturbed)).toStrictEqual([]);
    expect(one.report.repairs.map(({ kind }) => kind)).toStrictEqual(['lock_taken']);
  });

  it('E10 E11 is no JSON any more comes to the same end, and says so', async () => {
    const atDeath = (_death: number, store: string): void => truncateSync(fileIn(store, 'snapshot.json'), 100);
    const one = await play(program, [IN_TURN_4], { atDeath });

    expect(problemsOf(one, undisturbed)).toStrictEqual([]);
    expect(one.report.repairs.map(({ kind }) => kind)).toStrictEqual(['lock_taken', 'snapshot_dropped']);
  });
});

function coveredBy(snapshot: string): number {
  return (JSON.parse(readFileSync(snapshot, 'utf8')) as { readonly events: number }).events;
}

describe('the log of a session whose process was killed', () => {
  let store: string;
  let events: readonly SessionEvent[];
  beforeAll(async () => {
    store = join(program.newFolder(), 'store');
    await play(program, [IN_TURN_4], { atDeath: (_death, dead) => cpSync(dead, store, { recursive: true }) });
    ({ events } = await fileSessionStore(store).read(SESSION_ID));
  });

  /** Opens the session as another process would; nothing of it runs. */
  async function open(): Promise<Session> {
    return createAgent({ llm: scriptedLLM([]), sessions: fileSessionStore(store) }).openSession({ resumeSessionId: SESSION_ID });
  }

  it('E9 BR-017 is read up to the last whole line, wherever in its last three it was cut off', async () => {
    const log = fileIn(store, 'log.jsonl');
    const whole = readFileSync(log);
    const starts = lineStarts(whole).slice(-3);
    const expected = [3, 2, 1, 0].map((lost) => JSON.stringify(createTranscript(turnEvents(events.slice(0, events.length - lost))).buildMessages()));
    let repaired = 0;
    for (let size = starts[0]!; size <= whole.length; size += 1) {
      writeFileSync(log, whole.subarray(0, size));
      const session = await open();
      const kinds = session.repairs.map(({ kind }) => kind).filter((kind) => kind !== 'lock_taken');
      const isTorn = size !== whole.length && !starts.includes(size);
      expect(kinds, `at byte ${size}`).toStrictEqual(isTorn ? ['torn_line'] : []);
      const kept = size === whole.length ? 3 : starts.filter((start) => start <= size).length - 1;
      expect(JSON.stringify(session.messages()), `at byte ${size}`).toBe(expected[kept]);
      if (isTorn) repaired += 1;
      await session.close();
    }
    expect(repaired).toBe(whole.length - starts[0]! - 3);
    expect(readFileSync(log).equals(whole)).toBe(true);
  });

  it('E9 E11 that is shorter than its snapshot is read without the snapshot, which is kept until the next', async () => {
    const log = fileIn(store, 'log.jsonl');
    const covered = coveredBy(fileIn(store, 'snapshot.json'));
    const whole = readFileSync(log);
    // The header is the first line.
    truncateSync(log, lineStarts(whole)[covered - 50]);
    const size = statSync(fileIn(store, 'snapshot.json')).size;
    const session = await open();

    expect(session.repairs).toMatchObject([{ kind: 'snapshot_dropped', message: expect.stringContaining('covers more than the log has') }]);
    expect(session.status).toBe('interrupted');
    expect(session.messages()).toStrictEqual(createTranscript(turnEvents(events.slice(0, covered - 51))).buildMessages());
    expect(statSync(fileIn(store, 'snapshot.json')).size).toBe(size);
    await session.close();
    writeFileSync(log, whole);
  });

  it('E9 with a line in its middle that cannot be read is refused with its place, and nothing is changed', async () => {
    const log = fileIn(store, 'log.jsonl');
    const whole = readFileSync(log);
    const at = lineStarts(whole)[events.length - 10]!;
    const broken = Buffer.from(whole);
    broken[at] = 0x2f;
    writeFileSync(log, broken);

    await expect(open()).rejects.toMatchObject({ code: 'broken_log', message: expect.stringContaining(`line ${events.length - 9} (byte ${at})`) });
    expect(readFileSync(log).equals(broken)).toBe(true);
    writeFileSync(log, whole);
  });
});

/** Where the lines of a file begin. */
function lineStarts(bytes: Buffer): number[] {
  const starts = [0];
  for (let end = bytes.indexOf(0x0a); end !== -1 && end + 1 < bytes.length; end = bytes.indexOf(0x0a, end + 1)) starts.push(end + 1);
  return starts;
}

describe('two processes that want one session', () => {
  it('E9 have it one after the other: the second is told that it is locked, and goes on once the first is dead', async () => {
    let refusal = '';
    const beside = async (folder: string): Promise<void> => {
      while (!existsSync(join(folder, 'appended.jsonl'))) await sleep(5);
      refusal = await program.run({ folder, process: 1 }).then(
        () => 'none',
        (error: unknown) => String(error),
      );
    };
    const one = await play(program, [IN_TURN_4], { beside });

    expect(refusal).toContain('session_locked');
    expect(problemsOf(one, undisturbed)).toStrictEqual([]);
    expect(one.deaths).toHaveLength(1);
  });
});
