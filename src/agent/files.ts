/**
 * What a project says to agents that work on it. A door of its own, since it reads from a disk.
 *
 * @module
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, TurnloopError } from '../core/errors.ts';

/** Names of the file, the first that exists counts. */
const NAMES = ['AGENTS.md', 'CLAUDE.md'] as const;

/**
 * Reads the rules that a project has for agents: `AGENTS.md` in its folder, else `CLAUDE.md`. The whole text;
 * `assembleSystemPrompt` limits it.
 *
 * @param folder - The project's folder.
 * @returns The text, or undefined if the folder has neither file.
 * @throws {@link index.TurnloopError | TurnloopError} `project_rules_unreadable` if there is no such folder, or a file of this
 * name that cannot be read. TypeError without a folder.
 */
export async function readProjectRules(folder: string): Promise<string | undefined> {
  if (typeof folder !== 'string' || folder === '') throw new TypeError("readProjectRules needs a folder. For example: await readProjectRules('.').");
  await assertFolder(folder);
  for (const name of NAMES) {
    const text = await readIfThere(join(folder, name));
    if (text !== undefined) return text;
  }
  return undefined;
}

async function assertFolder(folder: string): Promise<void> {
  let isFolder: boolean;
  try {
    isFolder = (await stat(folder)).isDirectory();
  } catch (error) {
    throw unreadable(folder, error);
  }
  if (!isFolder) throw unreadable(folder, 'it is not a folder');
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    // A byte order mark is the file's, not the text's.
    return (await readFile(path, 'utf8')).replace(/^\ufeff/, '');
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return undefined;
    throw unreadable(path, error);
  }
}

function unreadable(path: string, why: unknown): TurnloopError {
  const message = `The rules of the project could not be read from ${JSON.stringify(path)}: ${messageOf(why)}`;
  return new TurnloopError('project_rules_unreadable', message, { cause: why });
}
