/**
 * A llama-architecture transformer: from a sequence of tokens to the next one's logits.
 *
 * Owns the model's shape, its weights and the state of a sequence. The arithmetic is in
 * `kernels.ts`; which token to take from the logits is decided in `decoding.ts`.
 *
 * Invariants:
 * 1. The state after a list of tokens depends on those tokens only. So a sequence can be
 *    rewound to any shorter length and continued otherwise, with the same numbers as if
 *    it had been computed afresh.
 * 2. Weights are never written to; any number of sequences may share them.
 */
import type { GgufFile, GgufTensor } from './gguf.ts';
import {
  add,
  applyGate,
  attend,
  multiply,
  normalize,
  rotate,
  setRotation,
  type Matrix,
  type Memory,
  type Rotation,
} from './kernels.ts';

/** The model's sizes and constants, from the file's metadata. */
interface Shape {
  /** Numbers that stand for one token inside the model. */
  readonly width: number;
  /** Width of one attention head. */
  readonly headSize: number;
  /** Width of the feed-forward network. */
  readonly feedForwardWidth: number;
  /** Tokens that fit into one sequence. */
  readonly contextLength: number;
  /** Keeps the norm of a vector of zeros finite. */
  readonly epsilon: number;
  /** Angle per position for each pair of values of a head. */
  readonly frequencies: Float32Array;
}

interface Layer {
  readonly attentionNorm: Float32Array;
  readonly query: Matrix;
  readonly key: Matrix;
  readonly value: Matrix;
  readonly attentionOutput: Matrix;
  readonly feedForwardNorm: Float32Array;
  readonly gate: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
}

/** A model, ready to run. */
export interface Transformer {
  readonly shape: Shape;
  /** Row `t` stands for token `t`. */
  readonly embedding: Matrix;
  readonly layers: readonly Layer[];
  readonly outputNorm: Float32Array;
  readonly output: Matrix;
}

/**
 * Takes a transformer's weights out of a model file.
 *
 * @throws `TypeError` naming what is missing, or not as this code expects it.
 */
export function createTransformer(file: GgufFile): Transformer {
  const architecture = file.metadata.get('general.architecture');
  if (architecture !== 'llama') {
    throw new TypeError(`The model's architecture is "${String(architecture)}": only "llama" can be run.`);
  }
  const shape = readShape(file);
  const { width, feedForwardWidth } = shape;
  const embedding = matrixOf(file, 'token_embd', { columns: width });
  const layers = Array.from({ length: readNumber(file, 'llama.block_count') }, (_, index): Layer => {
    const name = (part: string): string => `blk.${index}.${part}`;
    return {
      attentionNorm: vectorOf(file, name('attn_norm'), width),
      query: matrixOf(file, name('attn_q'), { columns: width, rows: width }),
      key: matrixOf(file, name('attn_k'), { columns: width, rows: width }),
      value: matrixOf(file, name('attn_v'), { columns: width, rows: width }),
      attentionOutput: matrixOf(file, name('attn_output'), { columns: width, rows: width }),
      feedForwardNorm: vectorOf(file, name('ffn_norm'), width),
      gate: matrixOf(file, name('ffn_gate'), { columns: width, rows: feedForwardWidth }),
      up: matrixOf(file, name('ffn_up'), { columns: width, rows: feedForwardWidth }),
      down: matrixOf(file, name('ffn_down'), { columns: feedForwardWidth, rows: width }),
    };
  });
  return {
    shape,
    embedding,
    layers,
    outputNorm: vectorOf(file, 'output_norm', width),
    output: matrixOf(file, 'output', { columns: width, rows: embedding.rows }),
  };
}

function readShape(file: GgufFile): Shape {
  const width = readNumber(file, 'llama.embedding_length');
  const headSize = width / readNumber(file, 'llama.attention.head_count');
  if (headSize % 4 !== 0) throw new TypeError(`The model's heads have ${headSize} values: only multiples of four can be run.`);
  const base = readNumber(file, 'llama.rope.freq_base');
  return {
    width,
    headSize,
    feedForwardWidth: readNumber(file, 'llama.feed_forward_length'),
    contextLength: readNumber(file, 'llama.context_length'),
    epsilon: readNumber(file, 'llama.attention.layer_norm_rms_epsilon'),
    frequencies: Float32Array.from({ length: headSize / 2 }, (_, pair) => base ** ((-2 * pair) / headSize)),
  };
}

function readNumber(file: GgufFile, key: string): number {
  const value = file.metadata.get(key);
  if (typeof value !== 'number') throw new TypeError(`The model's metadata has no number "${key}".`);
  return value;
}

function tensorOf(file: GgufFile, name: string): GgufTensor {
  const tensor = file.tensors.get(`${name}.weight`);
  if (tensor === undefined) throw new TypeError(`The model has no tensor "${name}.weight".`);
  return tensor;
}

function vectorOf(file: GgufFile, name: string, length: number): Float32Array {
  const { values } = tensorOf(file, name);
  if (values.length !== length) throw new TypeError(`Tensor "${name}.weight" has ${values.length} values, not ${length}.`);
  return values;
}

/** @param expected - Its sizes; `rows` may be left open. */
function matrixOf(file: GgufFile, name: string, expected: { columns: number; rows?: number }): Matrix {
  const { shape, values } = tensorOf(file, name);
  const [columns = 0, rows = 0] = shape;
  if (columns !== expected.columns || rows !== (expected.rows ?? rows) || rows % 4 !== 0) {
    throw new TypeError(`Tensor "${name}.weight" has the unexpected shape [${shape.join(', ')}].`);
  }
  return { rows, columns, values };
}

/** A list of tokens, with all that the model needs to continue it. */
export interface Sequence {
  readonly transformer: Transformer;
  /** The tokens so far. Changed by {@link advance} and {@link rewind} only. */
  readonly tokens: number[];
  /** Keys and values of each layer: the cache that makes the next token cost the same as the last. */
  readonly memories: readonly Memory[];
  readonly scratch: Scratch;
}

/** Room for the numbers of one token on its way through the layers. */
interface Scratch {
  readonly hidden: Float32Array;
  readonly normalized: Float32Array;
  readonly query: Float32Array;
  readonly key: Float32Array;
  readonly value: Float32Array;
  readonly joined: Float32Array;
  readonly projected: Float32Array;
  readonly gate: Float32Array;
  readonly up: Float32Array;
  readonly scores: Float32Array;
  readonly rotation: Rotation;
  readonly logits: Float32Array;
}

/** An empty sequence, with room for as many tokens as the model's context holds. */
export function createSequence(transformer: Transformer): Sequence {
  const { width, headSize, feedForwardWidth, contextLength } = transformer.shape;
  return {
    transformer,
    tokens: [],
    memories: transformer.layers.map(() => ({
      keys: new Float32Array(contextLength * width),
      values: new Float32Array(contextLength * width),
    })),
    scratch: {
      hidden: new Float32Array(width),
      normalized: new Float32Array(width),
      query: new Float32Array(width),
      key: new Float32Array(width),
      value: new Float32Array(width),
      joined: new Float32Array(width),
      projected: new Float32Array(width),
      gate: new Float32Array(feedForwardWidth),
      up: new Float32Array(feedForwardWidth),
      scores: new Float32Array(contextLength),
      rotation: { cosines: new Float32Array(headSize / 2), sines: new Float32Array(headSize / 2) },
      logits: new Float32Array(transformer.output.rows),
    },
  };
}

/** Forgets all tokens from position `length` on. What the layers remember of them is overwritten later. */
export function rewind(sequence: Sequence, length: number): void {
  sequence.tokens.length = Math.min(length, sequence.tokens.length);
}

/**
 * Appends a token to the sequence and runs it through the layers.
 *
 * @throws `RangeError` when the context is full.
 */
export function advance(sequence: Sequence, token: number): void {
  const { transformer, scratch, tokens } = sequence;
  const { width, contextLength, frequencies } = transformer.shape;
  const position = tokens.length;
  if (position >= contextLength) throw new RangeError(`The context of ${contextLength} tokens is full.`);

  scratch.hidden.set(transformer.embedding.values.subarray(token * width, (token + 1) * width));
  setRotation(scratch.rotation, frequencies, position);
  transformer.layers.forEach((layer, index) => {
    const memory = sequence.memories[index];
    if (memory !== undefined) applyAttention(sequence, layer, memory);
    applyFeedForward(sequence, layer);
  });
  tokens.push(token);
}

/** Adds to the token's state what it finds in the tokens before it, and itself. */
function applyAttention({ transformer, scratch, tokens }: Sequence, layer: Layer, memory: Memory): void {
  const { width, headSize, epsilon } = transformer.shape;
  const { hidden, normalized, query, key, value, joined, projected, rotation } = scratch;
  const position = tokens.length;

  normalize(normalized, hidden, { weights: layer.attentionNorm, epsilon });
  multiply(query, layer.query, normalized);
  multiply(key, layer.key, normalized);
  multiply(value, layer.value, normalized);
  rotate(query, rotation);
  rotate(key, rotation);
  memory.keys.set(key, position * width);
  memory.values.set(value, position * width);
  attend(joined, query, memory, { headSize, scores: scratch.scores.subarray(0, position + 1) });
  multiply(projected, layer.attentionOutput, joined);
  add(hidden, projected);
}

/** Adds to the token's state what the layer makes of it alone. */
function applyFeedForward({ transformer, scratch }: Sequence, layer: Layer): void {
  const { hidden, normalized, gate, up, projected } = scratch;

  normalize(normalized, hidden, { weights: layer.feedForwardNorm, epsilon: transformer.shape.epsilon });
  multiply(gate, layer.gate, normalized);
  multiply(up, layer.up, normalized);
  applyGate(gate, up);
  multiply(projected, layer.down, gate);
  add(hidden, projected);
}

/**
 * How likely each token of the vocabulary is to follow the last one of the sequence, as logits.
 *
 * @returns Scratch of the sequence: valid until the next call for it, and the caller may write to it.
 */
export function readLogits({ transformer, scratch }: Sequence): Float32Array {
  const { outputNorm, output, shape } = transformer;
  normalize(scratch.normalized, scratch.hidden, { weights: outputNorm, epsilon: shape.epsilon });
  multiply(scratch.logits, output, scratch.normalized);
  return scratch.logits;
}

