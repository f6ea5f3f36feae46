/**
 * Lock owner: which process holds a session, and whether that process still runs.
 *
 * - Who lives is never taken for dead while its place can be looked at: a process of the same place is judged by its pid
 *   and its start time, so that a pid given out anew does not pass for the owner.
 * - A process of another place (host, boot or container) cannot be looked at: it is dead once its heartbeat is old.
 * - An owner that was taken for dead by mistake harms nothing: stores refuse the writes of whoever lost a session.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord } from '../core/json.ts';

/** How often whoever holds a session says that it lives, in milliseconds. */
export const HEARTBEAT_MS = 10_000;
/** How old the last heartbeat of a living owner is at most, in milliseconds: a busy process may miss several. */
export const HEARTBEAT_LIMIT_MS = 60_000;

/** A process that holds a session. Plain JSON. */
export interface LockOwner {
  /** Name of its host, for people. */
  readonly host: string;
  /** Where its pid means something: host, boot and pid namespace. */
  readonly place: string;
  /** Its process id. */
  readonly pid: number;
  /** When it started, in a unit of its place: tells it from a later process with its pid. Empty where that is not known. */
  readonly started: string;
}

/** This process. */
export function describeOwner(): LockOwner {
  own ??= { host: hostname(), place: describePlace(), pid: process.pid, started: lookAt(process.pid).started };
  return own;
}

/** The owner in what a lock was read to hold; undefined if that is none. */
export function readOwner(value: unknown): LockOwner | undefined {
  if (!isRecord(value)) return undefined;
  const { host, place, pid, started } = value;
  if (typeof host !== 'string' || typeof place !== 'string' || typeof started !== 'string') return undefined;
  return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? { host, place, pid, started } : undefined;
}

/**
 * Whether an owner still runs.
 *
 * @param heartbeatAgeMs - How long ago it last said so.
 */
export function isAlive(owner: LockOwner, heartbeatAgeMs: number): boolean {
  const isFresh = heartbeatAgeMs <= HEARTBEAT_LIMIT_MS;
  if (owner.place !== describeOwner().place) return isFresh;
  const { exists, started } = lookAt(owner.pid);
  if (!exists) return false;
  // Without start times its pid may have gone to another process.
  return started === '' || owner.started === '' ? isFresh : started === owner.started;
}

/** The owner in words, for messages. */
export function ownerText({ pid, host }: LockOwner): string {
  return `process ${pid} on ${host}`;
}

let own: LockOwner | undefined;

/** Containers may have the name of their host, or of each other, but pids of their own; so may two boots of one host. */
function describePlace(): string {
  const boot = readOr('', () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  const pids = readOr('', () => readlinkSync('/proc/self/ns/pid'));
  return `${hostname()}/${boot}/${pids}`;
}

interface Sighting {
  readonly exists: boolean;
  /** Empty where it cannot be known. */
  readonly started: string;
}

/** Place of the start time in what follows the name in `/proc/<pid>/stat`. */
const START_FIELD = 19;

function lookAt(pid: number): Sighting {
  const exists = isRunning(pid);
  const stat = exists ? readOr('', () => readFileSync(`/proc/${pid}/stat`, 'utf8')) : '';
  // The name stands in parentheses, and may have spaces and parentheses in it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // Killed and not yet buried by its parent: it does nothing any more.
  const isZombie = fields[0] === 'Z' || fields[0] === 'X';
  return { exists: exists && !isZombie, started: fields[START_FIELD] ?? '' };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process may not be signalled, but is there.
    return isRecord(error) && error['code'] === 'EPERM';
  }
}

function readOr<Value>(fallback: Value, read: () => Value): Value {
  try {
    return read();
  } catch {
    return fallback;
  }
}
