/** Ids of sessions are data: what folder a store of files makes of them, and that it never leads out of its own. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileSessionStore, type SessionStore } from 'turnloop/sessions';
import { storeFolder, lockOf, faultyDisk } from './support/disk.ts';
import { note } from './support/samples.ts';

/** Hundreds of folders take seconds where others run beside them. */
const MANY = { timeout: 30_000 };

let place: ReturnType<typeof storeFolder>;
let store: SessionStore;

beforeEach(() => {
  place = storeFolder();
  store = fileSessionStore(place.folder);
});
afterEach(() => place.remove());

const keep = async (sessionId: string, text = ''): Promise<void> => {
  await (await store.create({ sessionId, createdAt: 7, events: [note(0, text)] })).close();
};

/** The folder of a session, in a store of its own. */
async function folderOf(sessionId: string): Promise<string> {
  const before = new Set(readdirSync(place.folder));
  await keep(sessionId);
  const [name = '', ...others] = readdirSync(place.folder).filter((one) => !before.has(one));
  expect(others).toStrictEqual([]);
  return name;
}

/** What no system takes for a file name of more than one part, of a device, or of the folder itself. */
const PORTABLE = /^(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9_.-]{1,200}(?<![. ])$/;

const HOSTILE = [
  '../../etc/x', '..\\..\\x', '/abs', 'C:\\x', 'C:x', 'a/b', 'a_b', 'a\\b', '.', '..', '...', 'a\u0000b', 'a', 'A', 'Ａ', 'CON', 'con', 'nul.txt', 'COM1', 'lpt9',
  '%2e%2e%2f', '%2e', '.2e', '.63on', '~', '~root', '*', '?', 'a b', ' a', 'a ', 'a.', '-rf', '--', '\n', '\u202e', 'é', 'e\u0301', 'ß', '日本語', '👩‍👩‍👧', '__proto__', 'constructor',
  'log.jsonl', 'lock.free', 'snapshot.json', '.tmp-x', '.gone-x', 'x:stream', '${HOME}', '$(id)', '`id`', 'a\tb', '.git', 'x'.repeat(200), 'x'.repeat(201), 'x'.repeat(1000), '/'.repeat(1000), 'é'.repeat(500),
  `.h${'0'.repeat(64)}`, 'h'.repeat(66),
];

describe('E11 BR-007 the folder of a session', () => {
  it('E11 BR-007 BR-148 is one of its own inside the store for any id, whatever it looks like', MANY, async () => {
    const aboveBefore = readdirSync(place.above);
    for (const id of HOSTILE) await keep(id, id);

    expect(readdirSync(place.above)).toStrictEqual(aboveBefore);
    const names = readdirSync(place.folder);
    expect(names).toHaveLength(new Set(HOSTILE).size);
    // Nor on a file system that takes capitals for small letters.
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(PORTABLE);
    for (const id of HOSTILE) expect((await store.read(id)).events).toStrictEqual([note(0, id)]);
    expect((await store.list()).map(({ sessionId }) => sessionId).sort()).toStrictEqual([...HOSTILE].sort());
    for (const id of HOSTILE) expect(await store.delete(id)).toBe(true);
    expect(readdirSync(place.folder)).toStrictEqual([]);
    expect(readdirSync(place.above)).toStrictEqual(aboveBefore);
  });

  it('E11 BR-007 BR-148 is told from any other, for any two texts', MANY, async () => {
    const names = new Map<string, string>();
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ minLength: 1, unit: 'binary', maxLength: 300 }), fc.stringMatching(/^[a-cA-C.0-9/\\]{1,6}$/)), async (id) => {
        fc.pre(!names.has(id) && new TextEncoder().encode(id).length <= 1000);
        names.set(id, await folderOf(id));
        expect(names.get(id)).toMatch(PORTABLE);
        await store.delete(id);
      }),
      { numRuns: 200 },
    );
    expect(new Set(names.values()).size).toBe(names.size);
  });

  it('E11 can be read by people where the id can', async () => {
    expect(await folderOf('session_k3j-42')).toBe('session_k3j-42');
    expect(await folderOf('Chat 1')).toBe('.43hat.201');
    expect(await folderOf('con')).toBe('.63on');
    expect(await folderOf('x'.repeat(201))).toMatch(/^\.h[0-9a-f]{64}$/);
  });

  it('E11 BR-007 is asked for nothing if the id is none: the disk is not touched', async () => {
    const files = faultyDisk(({ call }) => {
      throw new Error(`${call} was called`);
    });
    const untouched = fileSessionStore(place.folder, { files });
    for (const id of ['', 'x'.repeat(1001), 'é'.repeat(501), '\ud800', 'a\udc00b', undefined, 7, null]) {
      for (const call of [untouched.open(id as string), untouched.read(id as string), untouched.delete(id as string), untouched.create({ sessionId: id as string, createdAt: 1 })]) {
        await expect(call).rejects.toMatchObject({ name: 'SessionError', code: 'invalid_session_id' });
      }
    }
  });

  it('E11 BR-007 of a sub-agent is inside that of its session, whatever its id looks like', MANY, async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    for (const id of HOSTILE) {
      const child = await log.child(id);
      await child.append([note(1, id)]);
    }
    await log.close();

    expect(readdirSync(place.folder)).toStrictEqual(['s']);
    expect(readdirSync(join(place.folder, 's')).sort()).toStrictEqual(['agents', 'lock.free', 'log.jsonl']);
    const again = await store.open('s');
    for (const id of HOSTILE) expect((await (await again.child(id)).load()).events).toStrictEqual([note(1, id)]);
    await expect(again.child('')).rejects.toMatchObject({ code: 'invalid_session_id' });
    await again.close();
  });
});

describe.skipIf(process.platform === 'win32')('E11 BR-007 a symbolic link', () => {
  /** Session `s`, a sub-agent `c` of it, and a folder outside with what a session has. */
  async function scene(): Promise<{ readonly outside: string; readonly session: string; readonly before: string }> {
    const log = await store.create({ sessionId: 's', createdAt: 7, events: [note(0)] });
    await (await log.child('c')).append([note(1)]);
    await log.close();
    const session = join(place.folder, 's');
    const outside = join(place.above, 'outside');
    mkdirSync(outside);
    return { outside, session, before: readFileSync(join(session, 'log.jsonl'), 'utf8') };
  }

  it('E11 BR-007 in place of a session is not followed: not to open, read, list, make or delete it', async () => {
    const { outside, session, before } = await scene();
    renameSync(session, join(outside, 's'));
    symlinkSync(join(outside, 's'), session);

    await expect(store.open('s')).rejects.toMatchObject({ code: 'store_failed' });
    await expect(store.read('s')).rejects.toMatchObject({ code: 'store_failed' });
    await expect(store.delete('s')).rejects.toMatchObject({ code: 'store_failed' });
    await expect(store.create({ sessionId: 's', createdAt: 1 })).rejects.toMatchObject({ code: 'session_exists' });
    expect(await store.list()).toStrictEqual([]);
    expect(readFileSync(join(outside, 's', 'log.jsonl'), 'utf8')).toBe(before);
    expect(lockOf(join(outside, 's'))).toBe('lock.free');
  });

  it('E11 BR-007 in place of a session that leads nowhere is not followed to make one there', async () => {
    symlinkSync(join(place.above, 'nowhere'), join(place.folder, 's'));

    await expect(store.create({ sessionId: 's', createdAt: 1 })).rejects.toMatchObject({ code: 'session_exists' });
    expect(existsSync(join(place.above, 'nowhere'))).toBe(false);
  });

  it.each(['log.jsonl', 'lock.free'])('E11 BR-007 in place of %s is refused, and what it leads to stays as it is', async (name) => {
    const { outside, session } = await scene();
    const target = join(outside, 'target');
    renameSync(join(session, name), target);
    symlinkSync(target, join(session, name));
    const before = readFileSync(target, 'utf8');
    writeFileSync(target, `${before}torn`);

    await expect(store.open('s')).rejects.toMatchObject({ code: 'store_failed' });
    if (name === 'log.jsonl') {
      await expect(store.read('s')).rejects.toMatchObject({ code: 'store_failed' });
      expect(await store.list()).toStrictEqual([]);
    }
    expect(readFileSync(target, 'utf8')).toBe(`${before}torn`);
  });

  it.each(['agents', 'agents/c', 'agents/c/log.jsonl'])('E11 BR-007 in place of %s is refused', async (name) => {
    const { outside, session } = await scene();
    renameSync(join(session, name), join(outside, 'target'));
    symlinkSync(join(outside, 'target'), join(session, name));

    const log = await store.open('s');
    await expect(log.child('c')).rejects.toMatchObject({ code: 'store_failed' });
    await log.close();
  });

  it('E11 BR-007 in a session is deleted with it, and what it leads to stays', async () => {
    const { outside, session } = await scene();
    writeFileSync(join(outside, 'kept'), 'kept');
    symlinkSync(outside, join(session, 'link'));

    expect(await store.delete('s')).toBe(true);
    expect(readFileSync(join(outside, 'kept'), 'utf8')).toBe('kept');
  });
});

describe('E11 a list of sessions', () => {
  it('E11 has sessions alone, whatever else lies in the folder', async () => {
    await keep('a');
    await keep('b');
    await keep('c');
    writeFileSync(join(place.folder, 'notes.txt'), 'mine');
    writeFileSync(join(place.folder, 'd'), 'a file');
    mkdirSync(join(place.folder, 'empty'));
    mkdirSync(join(place.folder, 'A copy of a'));
    mkdirSync(join(place.folder, 'copy'));
    writeFileSync(join(place.folder, 'copy', 'log.jsonl'), readFileSync(join(place.folder, 'a', 'log.jsonl')));
    rmSync(join(place.folder, 'c', 'log.jsonl'));

    expect((await store.list()).map(({ sessionId }) => sessionId).sort()).toStrictEqual(['a', 'b']);
    await expect(store.open('empty')).rejects.toMatchObject({ code: 'broken_log' });
    await expect(store.open('d')).rejects.toMatchObject({ code: 'store_failed' });
  });

  it('E11 of a folder that is not there is empty, and makes none', async () => {
    const missing = join(place.folder, 'not', 'there');
    const none = fileSessionStore(missing);

    expect(await none.list()).toStrictEqual([]);
    expect(await none.delete('s')).toBe(false);
    await expect(none.read('s')).rejects.toMatchObject({ code: 'session_not_found' });
    expect(existsSync(missing)).toBe(false);
    await (await none.create({ sessionId: 's', createdAt: 7 })).close();
    expect(await none.list()).toHaveLength(1);
  });

  it('E11 reads the headers alone, however long the logs are', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    await log.append([note(0, 'x'.repeat(3_000_000))]);
    await log.close();
    let bytes = 0;
    const files = faultyDisk(() => undefined);
    const counting = {
      ...files,
      open: async (path: string, use: 'read' | 'change' | 'new') => {
        const file = await files.open(path, use);
        return { ...file, read: async (offset: number, length: number) => ((bytes += length), file.read(offset, length)) };
      },
    };

    expect(await fileSessionStore(place.folder, { files: counting }).list()).toHaveLength(1);
    expect(bytes).toBeLessThan(100_000);
  });

  it('E11 fails if the folder is a file', async () => {
    const file = join(place.above, 'file');
    writeFileSync(file, '');

    await expect(fileSessionStore(file).list()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining(`${file} is not a folder`) });
  });

  it('E11 fails if the folder cannot be read', async () => {
    const files = faultyDisk(({ call }) => (call === 'list' ? { code: 'EACCES' } : undefined));

    await expect(fileSessionStore(place.folder, { files }).list()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining(place.folder) });
  });
});
