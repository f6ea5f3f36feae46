/**
 * SSE: bytes of a `text/event-stream` body in, events out, as the WHATWG standard reads them, with one addition: what
 * a body leaves unfinished at its end is still delivered, since some servers leave out the last blank line.
 *
 * - Line ends are found in bytes, so a cut inside a character does no harm; whole lines are decoded in one go.
 * - No byte is looked at twice: an unfinished line waits as pieces until a chunk brings its end.
 * - Events go to a callback: no promise, no iterator result, no object per event.
 */
import { concatBytes, decodeCutUtf8, decodeUtf8 } from './utf8.ts';

/** What gets the events: the data lines joined by newlines, and the event's name, empty for none. */
export type SseHandler = (data: string, event: string) => void;

/** Turns the chunks of one body into events. */
export interface SseReader {
  /** Reads a chunk; the handler is called for each event that it completes. What the handler throws comes out here. */
  push(chunk: Uint8Array): void;
  /** Reads the end of the body, which may be a cut; an event that no blank line closed is delivered now. */
  end(): void;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const COLON = 58;
/** Names of fields, as character codes: comparing these costs a fraction of what `startsWith` does. */
const DATA = Array.from('data', (letter) => letter.charCodeAt(0));
const EVENT = Array.from('event', (letter) => letter.charCodeAt(0));

/**
 * Makes a reader for one body.
 *
 * @throws {@link index.LLMError | LLMError} of kind `malformed_response`, from `push` and `end`, for bytes that are not UTF-8.
 */
export function createSseReader(onEvent: SseHandler): SseReader {
  /** Pieces of the line that has not ended yet. */
  let pending: Uint8Array[] = [];
  let data: string | undefined;
  let event = '';
  /** The last line that named an event, with its line feed, and the name in it. */
  let latestLine = '';
  let latestName = '';
  let atStart = true;
  let skipLineFeed = false;

  function push(chunk: Uint8Array): void {
    let from = 0;
    if (skipLineFeed && chunk.length > 0) {
      skipLineFeed = false;
      if (chunk[0] === LINE_FEED) from = 1;
    }
    // Carriage returns are looked for in bytes only where no line feed follows, and in text elsewhere: that is faster.
    const lastFeed = chunk.lastIndexOf(LINE_FEED);
    const lastEnd = chunk.includes(CARRIAGE_RETURN, lastFeed + 1) ? chunk.lastIndexOf(CARRIAGE_RETURN) : lastFeed;
    if (lastEnd < from) {
      if (from < chunk.length) pending.push(chunk.subarray(from));
      return;
    }
    if (pending.length > 0) {
      // Only the line that was begun is put together, not the whole chunk with it.
      const feed = chunk.indexOf(LINE_FEED, from);
      const end = feed === -1 ? lastEnd : feed;
      readText(takePending(chunk.subarray(from, end + 1)));
      from = end + 1;
    }
    const isWhole = lastEnd === chunk.length - 1;
    skipLineFeed = isWhole && chunk[lastEnd] === CARRIAGE_RETURN;
    if (from <= lastEnd) readText(takePending(isWhole && from === 0 ? chunk : chunk.subarray(from, lastEnd + 1)));
    if (!isWhole) pending.push(chunk.subarray(lastEnd + 1));
  }

  /** Reads whole lines. */
  function readText(lines: string): void {
    if (lines.includes('\r')) readMixedLines(lines);
    else readLines(lines);
  }

  function end(): void {
    const lastLine = takePending(undefined, decodeCutUtf8);
    if (lastLine !== '') readLine(lastLine, 0, lastLine.length);
    dispatch();
  }

  function takePending(last: Uint8Array | undefined, decode = decodeUtf8): string {
    let bytes = last;
    if (pending.length > 0) {
      bytes = concatBytes(last === undefined ? pending : [...pending, last]);
      pending = [];
    }
    if (bytes === undefined) return '';
    const text = decode(bytes);
    if (!atStart) return text;
    atStart = false;
    return text.startsWith('\ufeff') ? text.slice(1) : text;
  }

  function readLines(text: string): void {
    let start = 0;
    while (start < text.length) {
      const letter = text.charCodeAt(start);
      // Every other line of most streams is blank, and most names are like the one before: no search for their ends.
      if (letter === LINE_FEED) {
        start += 1;
        dispatch();
      } else if (letter === EVENT[0] && latestLine !== '' && text.startsWith(latestLine, start)) {
        start += latestLine.length;
        event = latestName;
      } else {
        const end = text.indexOf('\n', start);
        readLine(text, start, end);
        start = end + 1;
      }
    }
  }

  /** Lines that end in CR, LF or both; the text ends with one of them. */
  function readMixedLines(text: string): void {
    let start = 0;
    let feed = text.indexOf('\n');
    let carriage = text.indexOf('\r');
    while (start < text.length) {
      if (feed !== -1 && feed < start) feed = text.indexOf('\n', start);
      if (carriage !== -1 && carriage < start) carriage = text.indexOf('\r', start);
      const end = carriage !== -1 && (feed === -1 || carriage < feed) ? carriage : feed;
      readLine(text, start, end);
      start = end === carriage && feed === carriage + 1 ? feed + 1 : end + 1;
    }
  }

  function readLine(text: string, start: number, end: number): void {
    if (start === end) {
      dispatch();
      return;
    }
    if (isNamed(text, start, DATA)) {
      const from = valueStart(text, start + DATA.length, end);
      if (from === -1) return;
      const value = text.slice(from, end);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (isNamed(text, start, EVENT)) {
      const from = valueStart(text, start + EVENT.length, end);
      if (from === -1) return;
      latestName = text.slice(from, end);
      // Not in lines that end otherwise: there the name may go on.
      latestLine = text.charCodeAt(end) === LINE_FEED ? text.slice(start, end + 1) : '';
      event = latestName;
    }
  }

  function dispatch(): void {
    const readyData = data;
    const readyEvent = event;
    data = undefined;
    event = '';
    if (readyData !== undefined) onEvent(readyData, readyEvent);
  }

  return { push, end };
}

/** Whether a line begins with a name; past the end of the text nothing does. */
function isNamed(text: string, start: number, name: readonly number[]): boolean {
  for (let at = 0; at < name.length; at += 1) if (text.charCodeAt(start + at) !== name[at]) return false;
  return true;
}

/** Where the value of a field begins whose name ends at `at`; -1 if the name goes on there. */
function valueStart(text: string, at: number, end: number): number {
  if (at >= end) return end;
  if (text.charCodeAt(at) !== COLON) return -1;
  return Math.min(text.charCodeAt(at + 1) === SPACE ? at + 2 : at + 1, end);
}
