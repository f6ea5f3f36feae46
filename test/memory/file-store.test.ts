/** The store in a folder: what a crash, a full disk, a broken file and other processes do to it. */
import { execFile } from 'node:child_process';
import { appendFile, mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { fileMemoryStore, type MemoryStore } from 'turnloop/memory';
import { virtualRuntime } from 'turnloop/testing';
import { addAll, entryOf, temporaryFolder } from './support.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const textsOf = async (store: MemoryStore): Promise<readonly string[]> => (await store.list()).map(({ text }) => text).sort();

describe('a file memory store', () => {
  let folder: string;
  let log: string;
  beforeEach(async () => {
    folder = path.join(await temporaryFolder(), 'a', 'b');
    log = path.join(folder, 'memory.jsonl');
  });
  const openWith = async (...texts: readonly string[]): Promise<MemoryStore> => {
    const store = fileMemoryStore(folder);
    await addAll(store, texts.map((text) => entryOf({ id: text, text })));
    return store;
  };

  it('E8 makes nothing until something is written', async () => {
    const store = fileMemoryStore(folder);

    expect(await store.list()).toStrictEqual([]);
    await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('E8 has what was written when it is opened again: entries, changes, vectors, and what was forgotten is gone', async () => {
    const vector = { embedder: 'e', values: Float32Array.of(0.6, -0.8) };
    const store = await openWith('one', 'two');
    await store.add([{ entry: entryOf({ id: 'v', text: 'three' }), vector }]);
    await store.update([{ id: 'one', usedAt: 5, pinned: true }]);
    await store.forget({ ids: ['two'] });
    await store.close();

    const again = fileMemoryStore(folder);

    expect(await again.list()).toStrictEqual([entryOf({ id: 'one', text: 'one', pinned: true, uses: 1, lastUsedAt: 5 }), entryOf({ id: 'v', text: 'three' })]);
    expect((await again.find({ vector, limit: 1 }))[0]?.similarity).toBeCloseTo(1, 6);
  });

  it('E8 is readable for its owner alone, and holds no file named by an id', async () => {
    await addAll(fileMemoryStore(folder), [entryOf({ id: '../../x', scopeId: '../y' })]);

    expect(await readdir(folder)).toStrictEqual(['memory.jsonl']);
    expect(((await stat(log)).mode & 0o777).toString(8)).toBe('600');
    expect(((await stat(folder)).mode & 0o777).toString(8)).toBe('700');
  });

  it.each([1, 10, 40])('E8 E9 cuts off a torn last line (%s bytes short), and goes on', async (missing) => {
    await (await openWith('one')).close();
    await addAll(fileMemoryStore(folder), [entryOf({ id: 'two' })]);
    await truncate(log, (await stat(log)).size - missing);

    const store = fileMemoryStore(folder);

    expect(await textsOf(store)).toStrictEqual(['one']);
    await addAll(store, [entryOf({ id: 'three', text: 'three' })]);
    expect(await textsOf(store)).toStrictEqual(['one', 'three']);
    expect(await textsOf(fileMemoryStore(folder))).toStrictEqual(['one', 'three']);
  });

  it('E8 takes a first line that was cut off for none', async () => {
    await mkdir(folder, { recursive: true });
    await writeFile(log, '{"format":"turn');

    const store = await openWith('one');

    expect(await textsOf(fileMemoryStore(folder))).toStrictEqual(['one']);
    expect(await textsOf(store)).toStrictEqual(['one']);
  });

  it('E8 adds all entries of a call or none', async () => {
    const store = await openWith('one');
    await addAll(store, Array.from({ length: 50 }, (_, index) => entryOf({ id: `many ${index}` })));
    await truncate(log, (await stat(log)).size - 1);

    expect(await textsOf(fileMemoryStore(folder))).toStrictEqual(['one']);
  });

  it.each(['no JSON', '{"op":"add"}', '[{"op":"add","entry":{"id":"x"}}]', '[{"op":"explode"}]', ''])('E8 refuses a broken line in the middle, says where, and changes nothing: %s', async (line) => {
    await openWith('one');
    await appendFile(log, `${line}\n`);
    await appendFile(log, '[{"op":"forget","id":"one"}]\n');
    const before = await readFile(log, 'utf8');
    const store = fileMemoryStore(folder);

    for (const call of [() => store.list(), () => store.list(), () => addAll(store, [entryOf({ id: 'two' })])]) {
      await expect(call()).rejects.toMatchObject({ name: 'MemoryError', code: 'store_broken', message: expect.stringContaining(`Line 3 of ${log}`) });
      await expect(call()).rejects.toThrow('The 2 lines before it are whole (1 entries)');
    }
    expect(await readFile(log, 'utf8')).toBe(before);
  });

  it('E8 goes on once the broken line was taken out', async () => {
    const store = await openWith('one');
    const whole = await readFile(log, 'utf8');
    await appendFile(log, 'broken\n');
    await expect(store.list()).rejects.toMatchObject({ code: 'store_broken' });

    await writeFile(log, whole);

    expect(await textsOf(store)).toStrictEqual(['one']);
  });

  it.each([
    ['another file', 'My diary\n', 'store_broken'],
    ['another file without a line end', 'My diary', 'store_broken'],
    ['the log of a newer version', '{"format":"turnloop.memory-log","version":2,"generation":1}\n', 'unsupported_version'],
  ])('E8 leaves %s alone', async (_what, text, code) => {
    await mkdir(folder, { recursive: true });
    await writeFile(log, text);
    const store = fileMemoryStore(folder);

    await expect(store.list()).rejects.toMatchObject({ code, message: expect.stringContaining(log) });
    await expect(addAll(store, [entryOf({ id: 'a' })])).rejects.toMatchObject({ code });
    expect(await readFile(log, 'utf8')).toBe(text);
  });

  it('E8 compacts a log that is mostly history, and keeps all of it', async () => {
    const store = await openWith('one', 'two', 'three');
    await store.forget({ ids: ['two'] });
    for (let round = 0; round < 12; round += 1) await store.update(Array.from({ length: 100 }, () => ({ id: 'one', usedAt: 1 })));
    const small = (await stat(log)).size;
    const other = fileMemoryStore(folder);

    expect(small).toBeLessThan(20_000);
    expect(await store.list()).toStrictEqual(await other.list());
    expect((await other.get('one'))?.uses).toBe(1_200);
    expect(await readdir(folder)).toStrictEqual(['memory.jsonl']);
  });

  it('E8 sees what other stores of the folder wrote, also when they compacted it or it was deleted', async () => {
    const first = await openWith('one');
    const second = fileMemoryStore(folder);
    await addAll(second, [entryOf({ id: 'two', text: 'two' })]);

    expect(await textsOf(first)).toStrictEqual(['one', 'two']);
    for (let round = 0; round < 12; round += 1) await second.update(Array.from({ length: 100 }, () => ({ id: 'one', usedAt: 1 })));
    expect((await first.get('one'))?.uses).toBe(1_200);
    await addAll(first, [entryOf({ id: 'three', text: 'three' })]);
    expect(await textsOf(second)).toStrictEqual(['one', 'three', 'two']);

    await rm(log);
    expect(await textsOf(first)).toStrictEqual([]);
    await addAll(second, [entryOf({ id: 'four', text: 'four' })]);
    expect(await textsOf(first)).toStrictEqual(['four']);
  });

  it('E8 does not lose what stores of one folder write at the same time', async () => {
    const stores = Array.from({ length: 4 }, () => fileMemoryStore(folder));

    await Promise.all(stores.flatMap((store, which) => Array.from({ length: 10 }, (_, index) => addAll(store, [entryOf({ id: `${which}/${index}` })]))));

    for (const store of [...stores, fileMemoryStore(folder)]) expect(await store.list()).toHaveLength(40);
    expect(await readdir(folder)).toStrictEqual(['memory.jsonl']);
  });

  it('E8 takes over the lock of a process that is dead, and one that is too old', async () => {
    const store = await openWith('one');
    const lock = path.join(folder, 'memory.lock');
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', 'console.log(process.pid)']);
    await writeFile(lock, JSON.stringify({ pid: Number(stdout), host: hostname(), name: 'dead' }));
    await addAll(store, [entryOf({ id: 'two', text: 'two' })]);

    await writeFile(lock, JSON.stringify({ pid: 1, host: 'elsewhere', name: 'old' }));
    await utimes(lock, 1, 1);
    await addAll(store, [entryOf({ id: 'three', text: 'three' })]);

    await writeFile(lock, '');
    await utimes(lock, Date.now() / 1_000 - 2, Date.now() / 1_000 - 2);
    await addAll(store, [entryOf({ id: 'four', text: 'four' })]);

    expect(await textsOf(store)).toStrictEqual(['four', 'one', 'three', 'two']);
    expect(await readdir(folder)).toStrictEqual(['memory.jsonl']);
  });

  it('E8 waits 5 seconds for a writer that lives, then says who it is', async () => {
    await openWith('one');
    const runtime = virtualRuntime({ start: Date.now() });
    const store = fileMemoryStore(folder, { runtime });
    await writeFile(path.join(folder, 'memory.lock'), JSON.stringify({ pid: process.pid, host: hostname(), name: 'alive' }));

    const adding = addAll(store, [entryOf({ id: 'two' })]).catch((error: unknown) => error);
    let error: unknown;
    void adding.then((thrown) => (error = thrown));
    // Files answer on their own time, so the clock is moved only while it is waited for.
    while (error === undefined) {
      if (runtime.pendingTimers > 0) await runtime.advance(20);
      await new Promise(setImmediate);
    }

    expect(error).toMatchObject({ code: 'store_locked', message: expect.stringContaining(`"pid":${process.pid}`) });
    expect(await textsOf(store)).toStrictEqual(['one']);
  });

  it('E8 tells of a disk that fails, and keeps what was there', async () => {
    const store = await openWith('one');
    await mkdir(path.join(folder, 'memory.lock'));

    await expect(addAll(store, [entryOf({ id: 'two' })])).rejects.toMatchObject({ name: 'MemoryError', code: 'store_failed', message: expect.stringContaining(log) });
    expect(await textsOf(store)).toStrictEqual(['one']);
  });

  it('E8 is whole after any number of processes wrote to it and were killed', async () => {
    const script = `
      import { fileMemoryStore } from ${JSON.stringify(path.join(ROOT, 'src/memory/index.ts'))};
      const store = fileMemoryStore(process.argv[2]);
      for (let index = 0; ; index += 1) {
        const id = process.argv[3] + '/' + index;
        await store.add([{ entry: { id, kind: 'fact', scope: 'user', scopeId: 'ada', text: 'Note ' + id, importance: 0.5, createdAt: 1 } }]);
        console.log(id);
      }`;
    await mkdir(folder, { recursive: true });
    const file = path.join(folder, '..', 'writer.mts');
    await writeFile(file, script);
    const acknowledged = await Promise.all(
      ['a', 'b'].map(async (name) => {
        const child = execFile(process.execPath, ['--import', 'tsx', file, folder, name], { cwd: ROOT });
        let out = '';
        child.stdout?.on('data', (chunk: string) => {
          out += chunk;
          if (out.length > 150) child.kill('SIGKILL');
        });
        await new Promise((resolve) => child.on('close', resolve));
        return out.split('\n').slice(0, -1);
      }),
    );

    const there = new Set((await fileMemoryStore(folder).list()).map(({ id }) => id));

    expect(acknowledged.flat().length).toBeGreaterThan(20);
    expect(acknowledged.flat().filter((id) => !there.has(id))).toStrictEqual([]);
    await addAll(fileMemoryStore(folder), [entryOf({ id: 'after' })]);
  }, 20_000);

  it.each([
    ['no path', () => fileMemoryStore(undefined as never), 'needs the path of a folder, not undefined'],
    ['an empty path', () => fileMemoryStore(''), 'not an empty text'],
    ['an unknown option', () => fileMemoryStore('x', { folder: 'y' } as never), 'has no option `folder`'],
  ])('refuses %s', (_what, create, message) => {
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
  });
});
