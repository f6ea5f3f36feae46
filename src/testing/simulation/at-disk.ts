/** Disks: each call of them fails, a write also in its middle, and the process dies before, within and behind it. */
import type { FileSystem, OpenFile } from '../../sessions/file-system.ts';
import type { SimulatedProcess, Passage } from './simulated-process.ts';

/** A disk of one process. */
export function simulatedDisk(process: SimulatedProcess, files: FileSystem): FileSystem {
  const pass = <Value>(what: string, call: () => Promise<Value>): Promise<Value> => passDisk(process, what, () => call());
  return {
    open: (path, use) => pass(`opens ${path}`, async () => simulatedFile(process, path, await files.open(path, use))),
    look: (path) => pass(`looks at ${path}`, () => files.look(path)),
    list: (folder) => pass(`lists ${folder}`, () => files.list(folder)),
    makeFolder: (path) => pass(`makes ${path}`, () => files.makeFolder(path)),
    rename: (from, to) => pass(`renames ${from} to ${to}`, () => files.rename(from, to)),
    remove: (path) => pass(`removes ${path}`, () => files.remove(path)),
    flushFolder: (path) => pass(`flushes ${path}`, () => files.flushFolder(path)),
  };
}

function simulatedFile(process: SimulatedProcess, path: string, file: OpenFile): OpenFile {
  const pass = <Value>(what: string, call: () => Promise<Value>): Promise<Value> => passDisk(process, `${what} ${path}`, () => call());
  return {
    look: () => pass('looks at', () => file.look()),
    read: (offset, length) => pass('reads', () => file.read(offset, length)),
    write: (offset, bytes) => passDisk(process, `writes ${bytes.length} bytes to ${path}`, (passage) => write(file, { offset, bytes }, passage)),
    truncate: (length) => pass('cuts', () => file.truncate(length)),
    flush: () => pass('flushes', () => file.flush()),
    // Closing neither fails nor takes time: it is how a process cleans up.
    close: () => process.alive(file.close()),
  };
}

async function write(file: OpenFile, { offset, bytes }: { readonly offset: number; readonly bytes: Uint8Array }, passage: Passage): Promise<void> {
  const { fault, dice } = passage;
  const taken = fault === 'cut' || fault === 'crash_within' ? Math.floor(dice * bytes.length) : bytes.length;
  await file.write(offset, bytes.subarray(0, taken));
  await passage.dieWithin();
  if (taken < bytes.length) throw diskError('ENOSPC');
}

function passDisk<Value>(process: SimulatedProcess, what: string, call: (passage: Passage) => Promise<Value>): Promise<Value> {
  return process.pass('disk', undefined, async (passage) => {
    process.world.tell('disk', what);
    if (passage.fault === 'error') throw diskError('EIO');
    return call(passage);
  });
}

/** As Node says that a disk failed. */
function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: simulated: the disk fails`), { code });
}
