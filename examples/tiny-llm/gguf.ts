/**
 * Reads a GGUF model file: its metadata and its tensors.
 *
 * Owns the file format only. What the names and numbers mean is the business of
 * `transformer.ts`. Tensors come out as 32-bit floats, whether stored as f16 or f32;
 * quantised types are refused, since the one model here has none.
 *
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

/** A metadata value. 64-bit integers come as numbers: none here is near 2^53. */
export type GgufValue = string | number | boolean | readonly GgufValue[];

/** A tensor, as stored: the first dimension of `shape` is the one whose values are contiguous. */
export interface GgufTensor {
  /** Sizes, fastest dimension first: a matrix is `[columns, rows]`. */
  readonly shape: readonly number[];
  /** All values, row after row. */
  readonly values: Float32Array;
}

/** What a GGUF file holds. */
export interface GgufFile {
  /** Metadata by key, such as `llama.block_count`. */
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** Tensors by name, such as `blk.0.attn_q.weight`. */
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** `GGUF` as the little-endian integer that opens the file. */
const MAGIC = 0x46554747;

/** The alignment of tensor data if the metadata doesn't name one: the format's own default. */
const DEFAULT_ALIGNMENT = 32;

/**
 * Reads a whole GGUF file.
 *
 * @param bytes - The file's content.
 * @throws `TypeError` when it isn't a GGUF file, is cut short, or holds a tensor type other than f16 and f32.
 */
export function readGguf(bytes: Uint8Array): GgufFile {
  try {
    return readFile(createReader(bytes));
  } catch (error) {
    if (error instanceof RangeError) {
      throw new TypeError('The GGUF file is cut short: copy or download it again.', { cause: error });
    }
    throw error;
  }
}

/** A position in the file that moves on with each value read. */
interface Reader {
  readonly view: DataView;
  offset: number;
}

function createReader(bytes: Uint8Array): Reader {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
}

function readFile(reader: Reader): GgufFile {
  if (readUint32(reader) !== MAGIC) throw new TypeError('Not a GGUF file: it does not start with "GGUF".');
  readUint32(reader); // The format's version: all of them have been read the same way since 2.
  const tensorCount = readUint64(reader);
  const metadataCount = readUint64(reader);

  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < metadataCount; index += 1) {
    metadata.set(readText(reader), readValue(reader, readUint32(reader)));
  }
  const headers: TensorHeader[] = [];
  for (let index = 0; index < tensorCount; index += 1) headers.push(readTensorHeader(reader));

  const alignment = metadata.get('general.alignment');
  const dataStart = roundUp(reader.offset, typeof alignment === 'number' ? alignment : DEFAULT_ALIGNMENT);
  const tensors = new Map(headers.map((header) => [header.name, readTensor(reader.view, header, dataStart)]));
  return { metadata, tensors };
}

/** What the file says of a tensor before all tensor data. */
interface TensorHeader {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: number;
  /** Where the values start, in bytes from the start of all tensor data. */
  readonly offset: number;
}

function readTensorHeader(reader: Reader): TensorHeader {
  const name = readText(reader);
  const dimensions = readUint32(reader);
  const shape = Array.from({ length: dimensions }, () => readUint64(reader));
  return { name, shape, type: readUint32(reader), offset: readUint64(reader) };
}

function readTensor(view: DataView, header: TensorHeader, dataStart: number): GgufTensor {
  const count = header.shape.reduce((product, size) => product * size, 1);
  const values = new Float32Array(count);
  const start = dataStart + header.offset;
  switch (header.type) {
    case 0:
      for (let index = 0; index < count; index += 1) values[index] = view.getFloat32(start + index * 4, true);
      break;
    case 1:
      for (let index = 0; index < count; index += 1) values[index] = fromFloat16(view.getUint16(start + index * 2, true));
      break;
    default:
      throw new TypeError(`Tensor "${header.name}" has type ${header.type}: only f32 (0) and f16 (1) can be read.`);
  }
  return { shape: header.shape, values };
}

/**
 * The number that 16 bits of IEEE 754 half precision stand for.
 *
 * @param bits - One sign bit, five of exponent (bias 15), ten of fraction.
 */
export function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const ARRAY_TYPE = 9;

/** Reads one metadata value of a type number of the format. */
function readValue(reader: Reader, type: number): GgufValue {
  if (type === ARRAY_TYPE) {
    const elementType = readUint32(reader);
    return Array.from({ length: readUint64(reader) }, () => readValue(reader, elementType));
  }
  const read = valueReaders.get(type);
  if (read === undefined) throw new TypeError(`The GGUF file has metadata of the unknown type ${type}.`);
  return read(reader);
}

/** How to read each scalar type, by its number in the format. */
const valueReaders: ReadonlyMap<number, (reader: Reader) => GgufValue> = new Map<number, (reader: Reader) => GgufValue>([
  [0, (reader) => reader.view.getUint8(advance(reader, 1))],
  [1, (reader) => reader.view.getInt8(advance(reader, 1))],
  [2, (reader) => reader.view.getUint16(advance(reader, 2), true)],
  [3, (reader) => reader.view.getInt16(advance(reader, 2), true)],
  [4, readUint32],
  [5, (reader) => reader.view.getInt32(advance(reader, 4), true)],
  [6, (reader) => reader.view.getFloat32(advance(reader, 4), true)],
  [7, (reader) => reader.view.getUint8(advance(reader, 1)) !== 0],
  [8, readText],
  [10, readUint64],
  [11, (reader) => Number(reader.view.getBigInt64(advance(reader, 8), true))],
  [12, (reader) => reader.view.getFloat64(advance(reader, 8), true)],
]);

function readUint32(reader: Reader): number {
  return reader.view.getUint32(advance(reader, 4), true);
}

function readUint64(reader: Reader): number {
  return Number(reader.view.getBigUint64(advance(reader, 8), true));
}

function readText(reader: Reader): string {
  const length = readUint64(reader);
  const { buffer, byteOffset } = reader.view;
  return new TextDecoder().decode(new Uint8Array(buffer, byteOffset + advance(reader, length), length));
}

/** Moves the reader on by `size` bytes and gives the offset it stood at. */
function advance(reader: Reader, size: number): number {
  const { offset } = reader;
  reader.offset += size;
  return offset;
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
