/** Store errors: what a session store says when its disk or database fails, or when what it finds there cannot be read. */
import { messageOf } from '../core/errors.ts';
import { SessionError } from './session-store.ts';

/** Longest part of an id that a message repeats. */
const SHOWN_ID_LENGTH = 80;

/** An id in a message. */
export function shownId(id: string): string {
  return JSON.stringify(id.length > SHOWN_ID_LENGTH ? `${id.slice(0, SHOWN_ID_LENGTH)}…` : id);
}

/**
 * What failed, as a `store_failed`; an error of ours stays what it is.
 *
 * @param what - What could not be done and what is kept, as a sentence.
 */
export function storeFailed(what: string, cause: unknown): SessionError {
  if (cause instanceof SessionError) return cause;
  return new SessionError('store_failed', `${what} ${messageOf(cause)}`, { cause });
}

/** Where in a log something cannot be read. */
export interface BrokenPlace {
  /** The file. */
  readonly path: string;
  /** 1-based; the header is line 1. */
  readonly line: number;
  /** Offset of the line's first byte. */
  readonly at: number;
}

/** A line that cannot be read, as a `broken_log`; an error of ours stays what it is. */
export function brokenLog({ path, line, at }: BrokenPlace, cause: unknown): SessionError {
  if (cause instanceof SessionError) return cause;
  const before = line === 1 ? 'it is the header, without which nothing can be read' : `the ${line - 2} events before it can be read`;
  return new SessionError(
    'broken_log',
    `${path}, line ${line} (byte ${at}): ${messageOf(cause)}; ${before}. Nothing was changed or deleted: repair the line, or remove it and what stands behind it.`,
    { cause },
  );
}
