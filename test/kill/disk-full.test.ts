/**
 * A turn whose disk is full: it ends with an error that says so, loses nothing, and is gone on with once there is room. On a
 * small disk in memory where one can be mounted, and on one that fails.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from 'turnloop';
import { createAgent, type Session } from 'turnloop/agent';
import { fileSessionStore, nodeFileSystem, type FileSystem } from 'turnloop/sessions';
import { checkTranscript } from 'turnloop/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { faultyDisk } from '../sessions/support/disk.ts';
import { linesOf, turnEvents } from './play.ts';
import { FIRST_INPUT, scriptModel, STEPS_OF_TURN, UNKNOWN } from './script.ts';
import { World, worldTools } from './world.ts';

/** What the first turn's log, with those of its sub-agents, is larger than. */
const ROOM_BYTES = 64 * 1024;

/** A disk with little room. */
interface SmallDisk {
  readonly files: FileSystem;
  /** Gives it room. */
  readonly grow: () => void;
  readonly remove: () => void;
}

function run(program: string, ...options: readonly string[]): void {
  execFileSync(program, options, { stdio: 'ignore' });
}

function mountedDisk(folder: string): SmallDisk {
  mkdirSync(folder, { recursive: true });
  run('mount', '-t', 'tmpfs', '-o', `size=${ROOM_BYTES}`, 'tmpfs', folder);
  return {
    files: nodeFileSystem,
    grow: () => {
      run('mount', '-o', 'remount,size=16m', folder);
    },
    // Also where a test that failed left files open.
    remove: () => {
      run('umount', '-l', folder);
    },
  };
}

function failingDisk(): SmallDisk {
  let left = ROOM_BYTES;
  const files = faultyDisk(({ call, bytes }) => {
    if (call !== 'file.write') return undefined;
    const taken = Math.min(bytes, left);
    left -= taken;
    return taken < bytes ? { code: 'ENOSPC', afterBytes: taken } : undefined;
  });
  return {
    files,
    grow: () => {
      left = Infinity;
    },
    remove: () => undefined,
  };
}

let above: string;
beforeEach(() => {
  above = mkdtempSync(join(tmpdir(), 'turnloop-kill-'));
});
afterEach(() => {
  rmSync(above, { recursive: true });
});

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'turnloop-kill-'));
  try {
    mountedDisk(folder).remove();
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const mounts = canMount();

/** A session that plays the first turn of the script: its tools write elsewhere. */
async function openSession(files: FileSystem, folder = above): Promise<{ readonly session: Session; readonly world: World }> {
  const world = new World(folder);
  const pause = (): Promise<void> => Promise.resolve();
  const { writing, hosting } = worldTools({ world, process: 0, pause, host: { queue: pause, steer: () => undefined } });
  const agent = createAgent({
    llm: scriptModel({ pause, onReply: () => undefined }),
    tools: [...writing, ...hosting],
    subAgents: { types: { writer: { description: 'Writes.', tools: writing } }, accesses: () => [] },
    maxSteps: STEPS_OF_TURN + 5,
    sessions: fileSessionStore(join(folder, 'disk'), { files }),
  });
  return { session: await agent.openSession({ sessionId: 's', resumeSessionId: 's' }), world };
}

/** What a session comes to that has room, and what it appended itself: what is unknown to a sub-agent is not in its history. */
async function undisturbed(): Promise<{ readonly messages: readonly Message[]; readonly labels: readonly string[] }> {
  const { session, world } = await openSession(nodeFileSystem, mkdtempSync(join(above, 'undisturbed-')));
  await session.run(FIRST_INPUT).result;
  await session.close();
  return { messages: session.messages(), labels: world.appended.map(({ label }) => label).filter((label) => /^s\d+\.\d+$/.test(label)) };
}

describe('a turn whose disk is full', () => {
  const disks: readonly (readonly [name: string, make: () => SmallDisk, skip: boolean])[] = [
    ['a disk that fails', failingDisk, false],
    [mounts ? 'a small disk' : 'a small disk (skipped: none can be mounted here)', () => mountedDisk(join(above, 'disk')), !mounts],
  ];

  describe.each(disks)('on %s', (_name, makeDisk, skip) => {
    it.skipIf(skip).each([
      ['in the same process', false],
      ['in a session that was opened anew', true],
    ])('E9 TD20 law-9 ends as fatal_error, and goes on once there is room, %s', async (_where, isReopened) => {
      const disk = makeDisk();
      try {
        const { session, world } = await openSession(disk.files);
        const failed = await session.run(FIRST_INPUT).result;
        expect(failed).toMatchObject({ stopReason: 'fatal_error', error: { name: 'SessionError', code: 'store_failed', message: expect.stringContaining('ENOSPC') } });
        expect(session.status).toBe('interrupted');
        const before = session.messages();
        expect(before.length).toBeGreaterThan(10);
        expect(turnEvents(await session.events()).at(-1)?.type).not.toBe('turn.end');
        // There is no more room than before.
        expect(await session.resume().result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'store_failed' } });

        disk.grow();
        if (isReopened) await session.close();
        const later = isReopened ? (await openSession(disk.files)).session : session;
        expect(later.repairs).toStrictEqual([]);
        expect(await later.resume().result).toMatchObject({ stopReason: 'end_turn', text: 'Turn of s14 is over.' });
        const lines = linesOf(later.messages());
        expect(lines.slice(0, before.length - 10)).toStrictEqual(linesOf(before).slice(0, -10));
        const unknown = new Set(lines.flatMap((line) => (UNKNOWN.test(line) ? [/^result of (.+?):/.exec(line)?.[1] ?? ''] : [])));
        const { messages, labels } = await undisturbed();
        expect(linesOf(later.messages(), unknown)).toStrictEqual(linesOf(messages, unknown));
        expect(checkTranscript(turnEvents(await later.events()), { complete: true })).toStrictEqual([]);

        // Nothing was done twice, and only of what was said to be unknown it may be that it was not done.
        const appended = world.appended.map(({ label }) => label);
        expect(appended).toHaveLength(new Set(appended).size);
        expect(labels.filter((label) => !unknown.has(label) && !appended.includes(label))).toStrictEqual([]);
        expect(world.service.map(({ key }) => key)).toHaveLength(new Set(world.service.map(({ key }) => key)).size);
        await later.close();
      } finally {
        disk.remove();
      }
    });
  });
});
