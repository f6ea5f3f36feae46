/**
 * Workspace: the one folder that the file tools may touch.
 *
 * - A path is looked up through all symbolic links before it is used, so neither `..` nor a link leads out.
 * - This keeps a model's mistakes inside the folder; it is not a sandbox. `run_command` can do whatever you can.
 *
 * Error messages are written for the model, and name paths as the model did.
 */
import { realpathSync } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { PathOptions } from 'turnloop';

/** Larger files are refused: nobody wants them in a prompt, and searching them is slow. */
const MAX_FILE_BYTES = 5_000_000;

/** Where the agent keeps its sessions and its memory, in the root of a workspace. */
export const DATA_FOLDER = '.turnloop';

/** Folders that are neither listed nor searched: full of files that nobody here wrote. */
const SKIPPED_FOLDERS: ReadonlySet<string> = new Set(['.git', 'node_modules', DATA_FOLDER]);

/** A folder, and the ways into it. */
export interface Workspace {
  /** The folder's real path. */
  readonly root: string;
  /** How paths in it are compared; for the accesses of a tool. */
  readonly pathOptions: PathOptions;
  /** A path as it is called from the root, links followed; for the accesses of a tool. Never throws. */
  nameOf(path: string): string;
  /** The names in a folder, sorted; those of folders end with `/`. */
  list(path: string): Promise<readonly string[]>;
  /** The text of a file. */
  readText(path: string): Promise<string>;
  /** Replaces the text of a file that exists. */
  writeText(path: string, text: string): Promise<void>;
  /** All files in a folder and below, sorted, named from the root. Links are not followed. A file gives itself. */
  files(path: string): AsyncIterable<string>;
}

/**
 * Opens a folder as a workspace.
 *
 * @throws Error if there is no such folder.
 */
export function openWorkspace(folder: string): Workspace {
  const root = realpathSync(folder);

  /** Where a path really is. @throws Error with a message for the model if it is nowhere, or outside. */
  function locate(path: string): string {
    const wanted = resolve(root, path);
    // First by its words: whether a file outside exists is not the model's business either.
    if (!isInside(root, wanted)) throw new Error(`${path} is outside the workspace`);
    let real: string;
    try {
      real = realpathSync(wanted);
    } catch (error) {
      throw toReadableError(error, path);
    }
    if (!isInside(root, real)) throw new Error(`${path} is outside the workspace`);
    return real;
  }

  async function* filesBelow(folder: string): AsyncGenerator<string> {
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isFile()) yield toName(root, path);
      else if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) yield* filesBelow(path);
    }
  }

  return {
    root,
    pathOptions: { root, ignoreCase: process.platform === 'darwin' || process.platform === 'win32' },

    nameOf(path) {
      try {
        return toName(root, locate(path));
      } catch {
        return path; // Nothing will come of the call; its error is told when it runs.
      }
    },

    async list(path) {
      const real = locate(path);
      try {
        const entries = await readdir(real, { withFileTypes: true });
        return entries
          .filter((entry) => !SKIPPED_FOLDERS.has(entry.name))
          .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
          .sort();
      } catch (error) {
        throw toReadableError(error, path);
      }
    },

    async readText(path) {
      const real = locate(path);
      try {
        const stats = await stat(real);
        if (stats.isDirectory()) throw new Error(`${path} is a directory`);
        // Reading a pipe or a device may never end.
        if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
        if (stats.size > MAX_FILE_BYTES) throw new Error(`${path} is too large (${stats.size} bytes)`);
        return decode(await readFile(real), path);
      } catch (error) {
        throw toReadableError(error, path);
      }
    },

    async writeText(path, text) {
      const real = locate(path);
      try {
        await writeFile(real, text);
      } catch (error) {
        throw toReadableError(error, path);
      }
    },

    async *files(path) {
      const real = locate(path);
      if ((await stat(real)).isDirectory()) yield* filesBelow(real);
      else yield toName(root, real);
    },
  };
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function toName(root: string, path: string): string {
  return relative(root, path).split(sep).join('/') || '.';
}

/** Text of bytes that are text: decoding anything else would lose something, and an edit would write the loss back. */
function decode(bytes: Uint8Array, path: string): string {
  const isBinary = bytes.includes(0);
  try {
    if (!isBinary) return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8: told below.
  }
  throw new Error(`${path} is not a text file`);
}

/** An error of the file system in words, without the real path in it. */
function toReadableError(error: unknown, path: string): Error {
  if (!(error instanceof Error && 'code' in error)) return error instanceof Error ? error : new Error(String(error));
  switch (error.code) {
    case 'ENOENT':
      return new Error(`no such file: ${path}`);
    case 'ENOTDIR':
      return new Error(`${path} is not a folder`);
    case 'EACCES':
    case 'EPERM':
      return new Error(`permission denied: ${path}`);
    default:
      return new Error(`cannot use ${path}: ${String(error.code)}`);
  }
}
