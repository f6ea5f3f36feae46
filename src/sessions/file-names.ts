/**
 * File names: from the id of a session to the name of its folder.
 *
 * - Two ids never have one name, also where the file system takes capitals for small letters.
 * - A name is one that every system can have: no separator, no dots alone, no device of Windows, at most 200 bytes.
 * - A name that the store gives to something of its own is that of no id.
 */
import { Buffer } from 'node:buffer';
import { createHash, randomUUID } from 'node:crypto';

/** The log of a session, in its folder. */
export const LOG_FILE = 'log.jsonl';
/** Its snapshot. */
export const SNAPSHOT_FILE = 'snapshot.json';
/** The folders of its sub-agents. */
export const AGENTS_FOLDER = 'agents';

/** Longest name; systems take 255 bytes. */
const MAX_NAME_BYTES = 200;
/** Names that Windows keeps for devices, whatever follows a dot. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/;
const ESCAPED = /^(?:[a-z0-9_-]|\.[0-9a-f]{2})+$/;
/** `h` is no digit of an escape, so no short id is written so. */
const HASHED = /^\.h[0-9a-f]{64}$/;

/**
 * The name of an id: small letters, digits, `_` and `-` as they are, each byte of anything else as `.` and two hexadecimal
 * digits. One that would be too long is named by its hash.
 *
 * @param id - Without unpaired surrogates.
 */
export function fileNameOf(id: string): string {
  const escaped = id.replace(/[^a-z0-9_-]/gu, escape).replace(DEVICE, (device) => escape(device.charAt(0)) + device.slice(1));
  if (escaped.length <= MAX_NAME_BYTES) return escaped;
  return `.h${createHash('sha256').update(id).digest('hex')}`;
}

/** Whether an id may have that name. */
export function isFileName(name: string): boolean {
  return ESCAPED.test(name) || HASHED.test(name);
}

/** The id of a name that is no hash. */
export function idOfFileName(name: string): string {
  return name.replace(/(?:\.[0-9a-f]{2})+/g, (escapes) => Buffer.from(escapes.replaceAll('.', ''), 'hex').toString());
}

function escape(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `.${byte.toString(16).padStart(2, '0')}`).join('');
}

/** What a folder that is being made is called until it is whole. `t` is no digit of an escape. */
const UNFINISHED = '.tmp-';
/** What a folder that is being deleted is called. */
const DELETED = '.gone-';

/** A new name for a folder that is being made. */
export function unfinishedName(): string {
  return UNFINISHED + randomUUID();
}

/** A new name for a folder that is being deleted. */
export function deletedName(): string {
  return DELETED + randomUUID();
}

/** Whether a name is that of a folder being made. */
export function isUnfinishedName(name: string): boolean {
  return name.startsWith(UNFINISHED);
}

/** Whether a name is that of a folder being deleted. */
export function isDeletedName(name: string): boolean {
  return name.startsWith(DELETED);
}

const TEMPORARY = '.tmp';

/** A new name for a file that takes the place of another once it is whole. */
export function temporaryName(): string {
  return randomUUID() + TEMPORARY;
}

/** Whether a name is that of such a file. */
export function isTemporaryName(name: string): boolean {
  return name.endsWith(TEMPORARY);
}
