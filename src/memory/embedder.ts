/** Embedder: makes vectors of texts, so that what means the same is found whatever its words. The interface and its one use. */
import { isRecord } from '../core/json.ts';
import { messageOf } from '../core/errors.ts';
import { MemoryError, type MemoryVector } from './memory-store.ts';

/** Options of {@link Embedder.embed}. */
export interface EmbedOptions {
  /** Ends the work; the promise then rejects soon. */
  readonly signal?: AbortSignal | undefined;
}

/** Makes vectors of texts. `hashEmbedder` is ours; a host plugs in a model the same way. */
export interface Embedder {
  /** Names model and version: vectors of different names are never compared, and texts are embedded anew. */
  readonly name: string;
  /** Numbers in each vector. */
  readonly dimensions: number;
  /** How much its vectors count where `weights.vector` does not say. @defaultValue 1, as much as words */
  readonly weight?: number | undefined;
  /** One vector for each text, in their order, of any length but 0: they are made unit vectors here. */
  embed(texts: readonly string[], options?: EmbedOptions): Promise<readonly Float32Array[]>;
}

/** Texts to a call: what embedding services take at once. */
export const EMBED_BATCH = 64;

/** @throws TypeError if it is no embedder. */
export function assertEmbedder(value: unknown, taker: string): void {
  const { weight = 1 }: { readonly weight?: unknown } = isRecord(value) ? value : {};
  if (typeof weight !== 'number' || !(weight >= 0)) throw new TypeError(`${taker}: \`embedder.weight\` must be a number of at least 0. Leave it out for 1.`);
  const isOne = isRecord(value) && typeof value['name'] === 'string' && value['name'] !== '' && typeof value['embed'] === 'function';
  if (isOne && Number.isSafeInteger(value['dimensions']) && Number(value['dimensions']) > 0) return;
  throw new TypeError(`${taker}: \`embedder\` must have a name, dimensions and embed. For example: createMemory({ store, embedder: hashEmbedder() }).`);
}

/**
 * Vectors of texts, of length 1.
 *
 * @throws MemoryError `embedder_failed`, also if it gives anything but vectors of its dimensions.
 */
export async function embedTexts(embedder: Embedder, texts: readonly string[], options: EmbedOptions = {}): Promise<readonly MemoryVector[]> {
  const vectors: MemoryVector[] = [];
  for (let start = 0; start < texts.length; start += EMBED_BATCH) {
    const batch = texts.slice(start, start + EMBED_BATCH);
    vectors.push(...(await embedBatch(embedder, batch, options)));
  }
  return vectors;
}

async function embedBatch(embedder: Embedder, texts: readonly string[], options: EmbedOptions): Promise<readonly MemoryVector[]> {
  let given: unknown;
  try {
    given = await embedder.embed(texts, options);
  } catch (error) {
    throw new MemoryError('embedder_failed', `The embedder "${embedder.name}" failed: ${messageOf(error)}. Entries are kept, and found by their words.`, { cause: error });
  }
  const { dimensions, name } = embedder;
  if (Array.isArray(given) && given.length === texts.length && given.every((one) => one instanceof Float32Array && one.length === dimensions)) {
    return given.map((values: Float32Array) => ({ embedder: name, values: toUnit(values) }));
  }
  throw new MemoryError(
    'embedder_failed',
    `The embedder "${name}" must give a Float32Array of ${dimensions} numbers for each of ${texts.length} texts, and gave something else. Entries are kept, and found by their words.`,
  );
}

/** A copy of length 1; one of length 0 stays, and is like nothing. */
function toUnit(values: Float32Array): Float32Array {
  let sum = 0;
  for (const value of values) sum += value * value;
  const length = Math.sqrt(sum);
  return length > 0 && Number.isFinite(length) ? values.map((value) => value / length) : new Float32Array(values.length);
}
