/**
 * Open files: a disk of which a store has only so many files open at once, however many sessions it holds.
 *
 * - A log is kept: it is closed while others need the room, the longest unused first, and opened again when it is used.
 *   Opened again by its path, it may be somebody else's by then: it is used only if its session is still held after that.
 * - Any other file has its room from its opening to its closing. Whoever has one open waits for no other: else all could
 *   wait for each other.
 */
import type { FileInfo, FileSystem, FolderEntry, OpenFile } from './file-system.ts';

/** Files that a store has open at once: far below the 256 that the strictest of systems lets a process have. */
const MAX_OPEN_FILES = 64;

/** A disk with room for so many open files. */
export class OpenFiles implements FileSystem {
  readonly #disk: FileSystem;
  readonly #waiting: (() => void)[] = [];
  /** Kept files that are open and not in use, the longest unused first. */
  readonly #idle = new Set<KeptFile>();
  #room: number;

  constructor(disk: FileSystem, room: number = MAX_OPEN_FILES) {
    this.#disk = disk;
    this.#room = room;
  }

  async open(path: string, use: 'read' | 'change' | 'new'): Promise<OpenFile> {
    await this.#takeRoom();
    try {
      const file = await this.#disk.open(path, use);
      let closing: Promise<void> | undefined;
      return {
        look: () => file.look(),
        read: (offset, length) => file.read(offset, length),
        write: (offset, bytes) => file.write(offset, bytes),
        truncate: (length) => file.truncate(length),
        flush: () => file.flush(),
        close: () => (closing ??= file.close().finally(() => this.#giveRoom())),
      };
    } catch (error) {
      this.#giveRoom();
      throw error;
    }
  }

  /**
   * A file to change, which is opened when it is used.
   *
   * @param assertHeld - Asked whenever it was opened: throws if the file may be somebody else's.
   */
  keep(path: string, assertHeld: () => Promise<void>): OpenFile {
    const file: KeptFile = new KeptFile({
      open: () => this.open(path, 'change'),
      assertHeld,
      onUse: () => void this.#idle.delete(file),
      onIdle: () => this.#addIdle(file),
    });
    return file;
  }

  look(path: string): Promise<FileInfo | undefined> {
    return this.#disk.look(path);
  }

  list(folder: string): Promise<readonly FolderEntry[]> {
    return this.#disk.list(folder);
  }

  makeFolder(path: string): Promise<void> {
    return this.#disk.makeFolder(path);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#disk.rename(from, to);
  }

  remove(path: string): Promise<void> {
    return this.#disk.remove(path);
  }

  flushFolder(path: string): Promise<void> {
    return this.#disk.flushFolder(path);
  }

  async #takeRoom(): Promise<void> {
    if (this.#room > 0) {
      this.#room -= 1;
      return;
    }
    const given = new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#closeUnused();
    await given;
  }

  #giveRoom(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#room += 1;
    else next();
  }

  #addIdle(file: KeptFile): void {
    this.#idle.add(file);
    if (this.#waiting.length > 0) this.#closeUnused();
  }

  #closeUnused(): void {
    const [file] = this.#idle;
    if (file === undefined) return;
    this.#idle.delete(file);
    file.suspend();
  }
}

interface KeptFileParts {
  readonly open: () => Promise<OpenFile>;
  readonly assertHeld: () => Promise<void>;
  /** Called before it is used. */
  readonly onUse: () => void;
  /** Called when it is open and nobody uses it. */
  readonly onIdle: () => void;
}

/** A file that is open only if it has to be. */
class KeptFile implements OpenFile {
  readonly #parts: KeptFileParts;
  #file: Promise<OpenFile> | undefined;
  #users = 0;
  /** Its last closing: it may fail, which is for whoever uses the file next. */
  #closed: Promise<void> = Promise.resolve();

  constructor(parts: KeptFileParts) {
    this.#parts = parts;
  }

  look(): Promise<FileInfo> {
    return this.#use((file) => file.look());
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    return this.#use((file) => file.read(offset, length));
  }

  write(offset: number, bytes: Uint8Array): Promise<void> {
    return this.#use((file) => file.write(offset, bytes));
  }

  truncate(length: number): Promise<void> {
    return this.#use((file) => file.truncate(length));
  }

  flush(): Promise<void> {
    return this.#use((file) => file.flush());
  }

  async close(): Promise<void> {
    this.#parts.onUse();
    this.suspend();
    await this.#takeClosed();
  }

  /** Closes it until it is used again. */
  suspend(): void {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    this.#closed = file.then((opened) => opened.close());
    this.#closed.catch(() => undefined);
  }

  async #use<Value>(action: (file: OpenFile) => Promise<Value>): Promise<Value> {
    this.#parts.onUse();
    this.#users += 1;
    try {
      this.#file ??= this.#open();
      return await action(await this.#file);
    } finally {
      this.#users -= 1;
      if (this.#users === 0 && this.#file !== undefined) this.#parts.onIdle();
    }
  }

  async #open(): Promise<OpenFile> {
    try {
      await this.#takeClosed();
      const file = await this.#parts.open();
      try {
        await this.#parts.assertHeld();
        return file;
      } catch (error) {
        await file.close();
        throw error;
      }
    } catch (error) {
      this.#file = undefined;
      throw error;
    }
  }

  async #takeClosed(): Promise<void> {
    const closed = this.#closed;
    this.#closed = Promise.resolve();
    await closed;
  }
}
