/**
 * Memory log: operations as lines of a file. Form only: what is read and written where is `file-store.ts`'s business.
 *
 * - The first line says what the file is, which version, and which generation: each compaction makes a new one.
 * - Each further line is what one call did, a list of operations: whole or, where the line is cut off, not at all.
 */
import { isRecord } from '../core/json.ts';
import { toChange, toEntry } from './check-entry.ts';
import type { MemoryOperation } from './memory-index.ts';
import { MemoryError, type MemoryVector } from './memory-store.ts';

const FORMAT = 'turnloop.memory-log';
const VERSION = 1;
/** Operations to a line of a compacted log. */
const CHUNK = 200;

/** The first line of a log, its end included. */
export function headerLine(generation: number): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, generation })}\n`;
}

/**
 * The generation that a first line tells.
 *
 * @throws MemoryError `store_broken`, `unsupported_version`.
 */
export function readHeader(line: string, file: string): number {
  const header = parse(line);
  if (!isRecord(header) || header['format'] !== FORMAT || typeof header['version'] !== 'number' || typeof header['generation'] !== 'number') {
    throw new MemoryError('store_broken', `${file} is no memory log: its first line says something else. Nothing of it was read or changed.`);
  }
  if (header['version'] > VERSION) {
    throw new MemoryError(
      'unsupported_version',
      `${file} was written by a newer version of turnloop (version ${header['version']} of the log; this one reads ${VERSION}). Nothing of it was read or changed.`,
    );
  }
  return header['generation'];
}

/** Operations as a line, its end included. */
export function operationsLine(operations: readonly MemoryOperation[]): string {
  return `${JSON.stringify(operations.map(encode))}\n`;
}

/** All that an index has as lines of a log, the first included. */
export function* logOf(generation: number, contents: Iterable<MemoryOperation>): Generator<string> {
  yield headerLine(generation);
  let chunk: MemoryOperation[] = [];
  for (const operation of contents) {
    chunk.push(operation);
    if (chunk.length < CHUNK) continue;
    yield operationsLine(chunk);
    chunk = [];
  }
  if (chunk.length > 0) yield operationsLine(chunk);
}

/** The operations of a line; undefined if it holds anything else. */
export function readOperations(line: string): readonly MemoryOperation[] | undefined {
  const list = parse(line);
  if (!Array.isArray(list)) return undefined;
  const operations = list.map(decode);
  return operations.every((operation) => operation !== undefined) ? operations : undefined;
}

function encode(operation: MemoryOperation): unknown {
  if (operation.op === 'add') return { ...operation, vector: encodeVector(operation.vector) };
  if (operation.op === 'change') return { ...operation, change: { ...operation.change, vector: encodeVector(operation.change.vector) } };
  return operation;
}

function decode(value: unknown): MemoryOperation | undefined {
  if (!isRecord(value)) return undefined;
  switch (value['op']) {
    case 'add': {
      const entry = toEntry(value['entry']);
      return entry && { op: 'add', entry, vector: decodeVector(value['vector']) };
    }
    case 'change':
      return decodeChange(value['change']);
    case 'forget':
      return typeof value['id'] === 'string' ? { op: 'forget', id: value['id'] } : undefined;
    default:
      return undefined;
  }
}

function decodeChange(value: unknown): MemoryOperation | undefined {
  if (!isRecord(value)) return undefined;
  try {
    return { op: 'change', change: toChange({ ...value, vector: decodeVector(value['vector']) }) };
  } catch {
    return undefined;
  }
}

function encodeVector(vector: MemoryVector | undefined): unknown {
  if (vector === undefined) return undefined;
  const { buffer, byteOffset, byteLength } = vector.values;
  return { embedder: vector.embedder, values: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
}

/** Vectors can be made again: one that cannot be read is left out. */
function decodeVector(value: unknown): MemoryVector | undefined {
  if (!isRecord(value) || typeof value['embedder'] !== 'string' || typeof value['values'] !== 'string') return undefined;
  const bytes = Buffer.from(value['values'], 'base64');
  const values = new Float32Array(Math.floor(bytes.length / Float32Array.BYTES_PER_ELEMENT));
  for (let index = 0; index < values.length; index += 1) values[index] = bytes.readFloatLE(index * Float32Array.BYTES_PER_ELEMENT);
  return { embedder: value['embedder'], values };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
