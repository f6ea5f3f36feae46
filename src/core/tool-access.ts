/**
 * Tool accesses: what a call reads and writes, so that calls which do not get in each other's way may overlap.
 *
 * Everything is one kind of thing: a read or a write of a place in a tree of names, alone or with all below it. The
 * root stands for everything. Who may run when is `tool-scheduler.ts`'s business.
 */

import { isRecord } from './json.ts';

/** One thing that a call touches. Made by {@link ToolAccesses}. */
export interface ToolAccess {
  /** Two reads never conflict. */
  readonly mode: 'read' | 'write';
  /** Names from the root of the tree; empty for everything. */
  readonly place: readonly string[];
  /** Whether everything below the place is meant too. */
  readonly below: boolean;
}

/** How paths are compared. */
export interface PathOptions {
  /**
   * Folder that relative paths start from. Without it a relative and an absolute path are never the same file, so tools
   * that take both should give it.
   */
  readonly root?: string | undefined;
  /** Whether names that differ only by case are the same file, as on Windows and macOS. @defaultValue false */
  readonly ignoreCase?: boolean | undefined;
}

/** Makes accesses. Lists join: `[...ToolAccesses.readFile(from), ...ToolAccesses.writeFile(to)]`. */
export const ToolAccesses: {
  /** Touches nothing: overlaps with every call. */
  none(): readonly ToolAccess[];
  /** Touches everything: runs alone. What a tool without a declaration gets. */
  all(): readonly ToolAccess[];
  /** Reads everything: overlaps with reads, conflicts with any write. */
  readAll(): readonly ToolAccess[];
  /** Reads a named resource, such as `db:users`. */
  read(resource: string): readonly ToolAccess[];
  /** Writes a named resource. */
  write(resource: string): readonly ToolAccess[];
  /** Reads one file. */
  readFile(path: string, options?: PathOptions): readonly ToolAccess[];
  /** Writes one file. */
  writeFile(path: string, options?: PathOptions): readonly ToolAccess[];
  /** Reads a folder and all it contains. */
  readTree(path: string, options?: PathOptions): readonly ToolAccess[];
  /** Writes a folder and all it contains. */
  writeTree(path: string, options?: PathOptions): readonly ToolAccess[];
} = {
  none: () => [],
  all: () => [{ mode: 'write', place: [], below: true }],
  readAll: () => [{ mode: 'read', place: [], below: true }],
  read: (resource) => [{ mode: 'read', place: ['resource', resource], below: false }],
  write: (resource) => [{ mode: 'write', place: ['resource', resource], below: false }],
  readFile: (path, options) => [{ mode: 'read', place: placeOf(path, options), below: false }],
  writeFile: (path, options) => [{ mode: 'write', place: placeOf(path, options), below: false }],
  readTree: (path, options) => [{ mode: 'read', place: placeOf(path, options), below: true }],
  writeTree: (path, options) => [{ mode: 'write', place: placeOf(path, options), below: true }],
};

/** True for a list of accesses, whatever a tool without types returned. */
export function isAccessList(value: unknown): value is readonly ToolAccess[] {
  return (
    Array.isArray(value) &&
    value.every(
      (access: unknown) =>
        isRecord(access) &&
        (access['mode'] === 'read' || access['mode'] === 'write') &&
        Array.isArray(access['place']) &&
        access['place'].every((name) => typeof name === 'string') &&
        typeof access['below'] === 'boolean',
    )
  );
}

/** True if two calls with these accesses may not overlap. */
export function accessesConflict(left: readonly ToolAccess[], right: readonly ToolAccess[]): boolean {
  return left.some((one) => right.some((other) => conflict(one, other)));
}

function conflict(left: ToolAccess, right: ToolAccess): boolean {
  if (left.mode === 'read' && right.mode === 'read') return false;
  const [upper, lower] = left.place.length <= right.place.length ? [left, right] : [right, left];
  if (!upper.place.every((name, index) => name === lower.place[index])) return false;
  return upper.below || upper.place.length === lower.place.length;
}

const DRIVE = /^[a-zA-Z]:/;

/**
 * A path as a place: slashes of both kinds, `.` and `..` resolved, drive letters without case. A relative path that
 * climbs above its start keeps its `..`, and the tree above such a path is not known: give a `root`.
 */
function placeOf(path: string, options: PathOptions = {}): readonly string[] {
  const joined = options.root === undefined || isAbsolute(path) ? path : `${options.root}/${path}`;
  const names: string[] = [];
  const absolute = isAbsolute(joined);
  const drive = DRIVE.exec(joined)?.[0].toLowerCase() ?? '';
  for (const name of joined.slice(drive.length).split(/[/\\]+/)) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(options.ignoreCase === true ? name.toLowerCase() : name);
    else if (names.length > 0 && names.at(-1) !== '..') names.pop();
    else if (!absolute) names.push('..');
  }
  return ['path', absolute ? `${drive}/` : '.', ...names];
}

function isAbsolute(path: string): boolean {
  return /^[/\\]/.test(path) || DRIVE.test(path);
}
