/** A disk in memory, for a store of files: it outlives the simulated process, and tells what a dead one still held. */
import type { FileInfo, FileSystem, FolderEntry, OpenFile } from 'turnloop/sessions';

type Node = { readonly kind: 'file'; bytes: Uint8Array; modifiedAt: number } | { readonly kind: 'folder'; readonly children: Map<string, Node>; modifiedAt: number };

/** More than any process id. */
const NO_PID = String(2 ** 30);

/** A disk in memory. */
export class MemoryDisk implements FileSystem {
  readonly #root: Node & { kind: 'folder' } = { kind: 'folder', children: new Map(), modifiedAt: 0 };

  async open(path: string, use: 'read' | 'change' | 'new'): Promise<OpenFile> {
    const { folder, name } = this.#placeOf(path);
    let node = folder.children.get(name);
    if (use === 'new') {
      if (node !== undefined) throw failure('EEXIST', path);
      node = { kind: 'file', bytes: new Uint8Array(), modifiedAt: Date.now() };
      folder.children.set(name, node);
    }
    if (node === undefined) throw failure('ENOENT', path);
    if (node.kind !== 'file') throw failure('EISDIR', path);
    return openFile(node);
  }

  async look(path: string): Promise<FileInfo | undefined> {
    const node = this.#find(path);
    return node === undefined ? undefined : infoOf(node);
  }

  async list(path: string): Promise<readonly FolderEntry[]> {
    return [...this.#folder(path).children].map(([name, { kind }]) => ({ name, kind }));
  }

  async makeFolder(path: string): Promise<void> {
    let node: Node & { kind: 'folder' } = this.#root;
    for (const name of partsOf(path)) {
      const next: Node = node.children.get(name) ?? { kind: 'folder', children: new Map(), modifiedAt: Date.now() };
      if (next.kind !== 'folder') throw failure('ENOTDIR', path);
      node.children.set(name, next);
      node = next;
    }
  }

  async rename(from: string, to: string): Promise<void> {
    const source = this.#placeOf(from);
    const node = source.folder.children.get(source.name);
    if (node === undefined) throw failure('ENOENT', from);
    const target = this.#placeOf(to);
    const there = target.folder.children.get(target.name);
    if (there?.kind === 'folder' && there.children.size > 0) throw failure('ENOTEMPTY', to);
    source.folder.children.delete(source.name);
    target.folder.children.set(target.name, node);
  }

  async remove(path: string): Promise<void> {
    if (this.#find(path) === undefined) return;
    const { folder, name } = this.#placeOf(path);
    folder.children.delete(name);
  }

  async flushFolder(): Promise<void> {
    // Memory needs none.
  }

  /** Makes each lock that is held look like that of a process which is dead, as it is once its life is over. */
  buryOwners(node: Node = this.#root): void {
    if (node.kind === 'file') return;
    for (const [name, child] of [...node.children]) {
      this.buryOwners(child);
      const fields = name.split('.');
      if (fields[0] !== 'lock' || fields.length < 5) continue;
      node.children.delete(name);
      node.children.set(fields.with(3, NO_PID).join('.'), child);
    }
  }

  #find(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const name of partsOf(path)) node = node?.kind === 'folder' ? node.children.get(name) : undefined;
    return node;
  }

  #folder(path: string): Node & { kind: 'folder' } {
    const node = this.#find(path);
    if (node === undefined) throw failure('ENOENT', path);
    if (node.kind !== 'folder') throw failure('ENOTDIR', path);
    return node;
  }

  #placeOf(path: string): { readonly folder: Node & { kind: 'folder' }; readonly name: string } {
    const parts = partsOf(path);
    const name = parts.pop() ?? '';
    return { folder: this.#folder(parts.join('/')), name };
  }
}

function openFile(node: Node & { kind: 'file' }): OpenFile {
  return {
    look: async () => infoOf(node),
    read: async (offset, length) => node.bytes.slice(offset, offset + length),
    write: async (offset, bytes) => {
      const grown = new Uint8Array(Math.max(node.bytes.length, offset + bytes.length));
      grown.set(node.bytes);
      grown.set(bytes, offset);
      node.bytes = grown;
      node.modifiedAt = Date.now();
    },
    truncate: async (length) => {
      node.bytes = node.bytes.slice(0, length);
    },
    flush: async () => undefined,
    close: async () => undefined,
  };
}

function infoOf(node: Node): FileInfo {
  return { kind: node.kind, size: node.kind === 'file' ? node.bytes.length : 0, modifiedAt: node.modifiedAt };
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
