/**
 * Lines of a file: a log's bytes, of which only whole lines count.
 *
 * - Lines are added behind the last whole one, by one write. One that failed is cut off again, before anything else is
 *   written: what is behind the last whole line is never taken for a part of the log.
 * - A last line that has no line break, or is no JSON, was being written when the writer died. Any other line is never
 *   dropped: it is read, or refused with its place.
 * - Memory is that of a piece of the file, and of the longest line.
 */
import { Buffer, isUtf8 } from 'node:buffer';
import type { OpenFile } from './file-system.ts';

/** Bytes read at once. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** Bytes read at once where a line or two are looked for: few lines are longer. */
const LOOK_BYTES = 16 * 1024;
const LINE_BREAK = 0x0a;

/** A line, and where it begins. */
export interface Line {
  /** The text, without its line break. */
  readonly text: string;
  /** Offset of its first byte. */
  readonly at: number;
}

/** The lines of a file. */
export class FileLines {
  /** Where it is. */
  readonly path: string;
  /** Bytes of whole lines. */
  size: number;
  /** Where the last of them begins. */
  lastLineAt: number;
  /** Bytes behind the last whole line. */
  tornBytes: number;
  readonly #file: OpenFile;

  private constructor(path: string, file: OpenFile, end: LinesEnd) {
    this.path = path;
    this.#file = file;
    this.size = end.size;
    this.lastLineAt = end.lastLineAt;
    this.tornBytes = end.tornBytes;
  }

  /** Finds the last whole line of a file, which is closed if that fails. */
  static async of(file: OpenFile, path: string): Promise<FileLines> {
    try {
      const { kind, size } = await file.look();
      if (kind !== 'file') throw new Error('it is not a file');
      return new FileLines(path, file, await findEnd(file, size));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The first line; undefined if there is none within so many bytes. */
  async firstLine(maxBytes: number): Promise<string | undefined> {
    return firstLine(this.#file, Math.min(maxBytes, this.size));
  }

  /**
   * Reads lines in their order.
   *
   * @param from - Where the first begins.
   * @param take - Gets each of them.
   * @throws What `take` throws, and what is wrong with the bytes of a line.
   */
  async each(from: number, take: (line: Line) => void): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    for (let at = from; at < this.size; ) {
      const piece = bufferOf(await this.#file.read(at, Math.min(PIECE_BYTES, this.size - at)));
      if (piece.length === 0) throw new Error('the file ends before its size');
      at += piece.length;
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      rest = bytes.subarray(takeLines(bytes, at - bytes.length, take));
    }
  }

  /** Bytes of the file. */
  async read(from: number, to: number): Promise<Uint8Array> {
    return this.#file.read(from, to - from);
  }

  /**
   * Adds lines: all, or it throws and is as it was.
   *
   * @param confirm - What has to succeed, once they are written, before they count.
   */
  async add(lines: readonly string[], confirm: () => Promise<void>): Promise<void> {
    await this.cut();
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    try {
      this.tornBytes = bytes.length;
      await this.#file.write(this.size, bytes);
      await confirm();
    } catch (error) {
      // If this fails too, the next to be added tries it again before it is written.
      await this.cut().catch(() => undefined);
      throw error;
    }
    const last = bytes.lastIndexOf(LINE_BREAK, -2);
    this.lastLineAt = this.size + last + 1;
    this.size += bytes.length;
    this.tornBytes = 0;
  }

  /** Cuts off what is behind the last whole line. */
  async cut(): Promise<void> {
    if (this.tornBytes === 0) return;
    await this.#file.truncate(this.size);
    this.tornBytes = 0;
  }

  /** Waits until what was added survives a loss of power. */
  async flush(): Promise<void> {
    await this.#file.flush();
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#file.close();
  }
}

/**
 * The first line of a file; undefined if there is none within so many bytes.
 *
 * @param maxBytes - At most the size of the file.
 */
export async function firstLine(file: OpenFile, maxBytes: number): Promise<string | undefined> {
  for (let length = Math.min(LOOK_BYTES, maxBytes); length > 0; length = Math.min(maxBytes, length * 8)) {
    const bytes = bufferOf(await file.read(0, length));
    const end = bytes.indexOf(LINE_BREAK);
    if (end !== -1) return textOf(bytes.subarray(0, end));
    if (bytes.length < length || length === maxBytes) break;
  }
  return undefined;
}

/** Hands out the whole lines; returns how many bytes they are. */
function takeLines(bytes: Buffer, offset: number, take: (line: Line) => void): number {
  let start = 0;
  for (let end = bytes.indexOf(LINE_BREAK); end !== -1; end = bytes.indexOf(LINE_BREAK, start)) {
    take({ text: textOf(bytes.subarray(start, end)), at: offset + start });
    start = end + 1;
  }
  return start;
}

/** The text of bytes. What is not UTF-8 reads as no JSON, rather than as other characters. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString();
  return text.includes('\uFFFD') && !isUtf8(bytes) ? '' : text;
}

/** Where the whole lines of a file end. */
interface LinesEnd {
  readonly size: number;
  readonly lastLineAt: number;
  readonly tornBytes: number;
}

async function findEnd(file: OpenFile, bytes: number): Promise<LinesEnd> {
  const size = await lineStart(file, bytes);
  const lastLineAt = await lineStart(file, size - 1);
  // Something stands behind it, or it is the header, without which a log is none: then it is not what was torn.
  const isAnyLine = size < bytes || lastLineAt === 0;
  if (isAnyLine || (await isJson(file, lastLineAt, size - 1))) return { size, lastLineAt, tornBytes: bytes - size };
  return { size: lastLineAt, lastLineAt: await lineStart(file, lastLineAt - 1), tornBytes: bytes - lastLineAt };
}

async function isJson(file: OpenFile, from: number, to: number): Promise<boolean> {
  try {
    JSON.parse(textOf(bufferOf(await file.read(from, to - from))));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Where the line begins that has the byte before `end`, or that follows it: behind the last line break before `end`. */
async function lineStart(file: OpenFile, end: number): Promise<number> {
  for (let to = end; to > 0; ) {
    const from = Math.max(0, to - LOOK_BYTES);
    const found = bufferOf(await file.read(from, to - from)).lastIndexOf(LINE_BREAK);
    if (found !== -1) return from + found + 1;
    to = from;
  }
  return 0;
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
