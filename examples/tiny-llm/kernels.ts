/**
 * The arithmetic of the transformer, on flat typed arrays.
 *
 * Owns the loops that take nearly all the time, and nothing about the model. Each
 * writes its result into an `output` that the caller allocated once: a token costs
 * no allocation. Lengths are checked where weights are read, not here.
 */

/** A matrix whose rows lie one after the other. Their number is a multiple of four, as `multiply` takes four at once. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/**
 * The value at an index that the caller knows to be inside the array.
 *
 * The compiler types every indexed read as possibly `undefined`. Here each index comes
 * from a loop bounded by the array's own size, so this cast is the one place that says
 * so. The function is inlined: measured, it costs nothing.
 */
function at(array: Float32Array, index: number): number {
  return array[index] as number;
}

/** `output = matrix × input`. */
export function multiply(output: Float32Array, matrix: Matrix, input: Float32Array): void {
  const { rows, columns, values } = matrix;
  // Four rows share each read of the input and add up independently of each other, which
  // is half as fast again as one row at a time, however that is unrolled.
  for (let row = 0; row < rows; row += 4) {
    const row0 = row * columns;
    const row1 = row0 + columns;
    const row2 = row1 + columns;
    const row3 = row2 + columns;
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let column = 0; column < columns; column += 1) {
      const value = at(input, column);
      sum0 += at(values, row0 + column) * value;
      sum1 += at(values, row1 + column) * value;
      sum2 += at(values, row2 + column) * value;
      sum3 += at(values, row3 + column) * value;
    }
    output[row] = sum0;
    output[row + 1] = sum1;
    output[row + 2] = sum2;
    output[row + 3] = sum3;
  }
}

/** `vector += addition`. */
export function add(vector: Float32Array, addition: Float32Array): void {
  for (let index = 0; index < vector.length; index += 1) vector[index] = at(vector, index) + at(addition, index);
}

/** Scales the input to a root mean square of one, then by a learned weight for each value. */
export function normalize(output: Float32Array, input: Float32Array, norm: { weights: Float32Array; epsilon: number }): void {
  let squares = 0;
  for (let index = 0; index < input.length; index += 1) squares += at(input, index) ** 2;
  const scale = 1 / Math.sqrt(squares / input.length + norm.epsilon);
  for (let index = 0; index < input.length; index += 1) {
    output[index] = at(input, index) * scale * at(norm.weights, index);
  }
}

/** The gate of the feed-forward network: `gate = silu(gate) * up`. */
export function applyGate(gate: Float32Array, up: Float32Array): void {
  for (let index = 0; index < gate.length; index += 1) {
    const value = at(gate, index);
    gate[index] = (value / (1 + Math.exp(-value))) * at(up, index);
  }
}

/** One angle for each pair of values of a head, as cosines and sines. */
export interface Rotation {
  readonly cosines: Float32Array;
  readonly sines: Float32Array;
}

/** Sets the rotation for a position: pair `i` turns by `position * frequencies[i]`. */
export function setRotation(rotation: Rotation, frequencies: Float32Array, position: number): void {
  for (let pair = 0; pair < frequencies.length; pair += 1) {
    const angle = position * at(frequencies, pair);
    rotation.cosines[pair] = Math.cos(angle);
    rotation.sines[pair] = Math.sin(angle);
  }
}

/** Turns the pairs (0, 1), (2, 3) … of every head, which tells attention where a token stands. */
export function rotate(vector: Float32Array, rotation: Rotation): void {
  const pairs = rotation.cosines.length;
  for (let index = 0; index < vector.length; index += 2) {
    const pair = (index / 2) % pairs;
    const cosine = at(rotation.cosines, pair);
    const sine = at(rotation.sines, pair);
    const first = at(vector, index);
    const second = at(vector, index + 1);
    vector[index] = first * cosine - second * sine;
    vector[index + 1] = first * sine + second * cosine;
  }
}

/** What one layer remembers of the tokens so far. */
export interface Memory {
  /** Keys, one row of the model's width for each token. */
  readonly keys: Float32Array;
  /** Values, likewise. */
  readonly values: Float32Array;
}

/**
 * Attention of one token: each head looks with its part of the query at the keys of all
 * tokens so far, and takes their values in the proportions it finds.
 *
 * @param output - As wide as `query`; the heads side by side.
 * @param memory - Keys and values up to and with this token.
 * @param shape - Size of a head, and `scores`: room for one number for each token, whose length is the number of tokens.
 */
export function attend(
  output: Float32Array,
  query: Float32Array,
  memory: Memory,
  shape: { headSize: number; scores: Float32Array },
): void {
  const { headSize, scores } = shape;
  for (let head = 0; head < query.length; head += headSize) {
    const part = { start: head, end: head + headSize };
    scoreKeys(scores, query, memory.keys, part);
    toProportions(scores);
    mixValues(output, scores, memory.values, part);
  }
}

/** The part of a vector that belongs to one head. Its size is a multiple of four. */
interface HeadPart {
  readonly start: number;
  readonly end: number;
}

/** How well one head's query fits the key of each token. */
function scoreKeys(scores: Float32Array, query: Float32Array, keys: Float32Array, { start, end }: HeadPart): void {
  const scale = 1 / Math.sqrt(end - start);
  for (let token = 0; token < scores.length; token += 1) {
    const row = token * query.length;
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let index = start; index < end; index += 4) {
      sum0 += at(query, index) * at(keys, row + index);
      sum1 += at(query, index + 1) * at(keys, row + index + 1);
      sum2 += at(query, index + 2) * at(keys, row + index + 2);
      sum3 += at(query, index + 3) * at(keys, row + index + 3);
    }
    scores[token] = (sum0 + sum1 + sum2 + sum3) * scale;
  }
}

/** What one head takes of all tokens' values. Four sums at a time stay in registers. */
function mixValues(output: Float32Array, proportions: Float32Array, values: Float32Array, { start, end }: HeadPart): void {
  const width = output.length;
  for (let index = start; index < end; index += 4) {
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let token = 0; token < proportions.length; token += 1) {
      const proportion = at(proportions, token);
      const first = token * width + index;
      sum0 += proportion * at(values, first);
      sum1 += proportion * at(values, first + 1);
      sum2 += proportion * at(values, first + 2);
      sum3 += proportion * at(values, first + 3);
    }
    output[index] = sum0;
    output[index + 1] = sum1;
    output[index + 2] = sum2;
    output[index + 3] = sum3;
  }
}

/** Softmax: makes scores positive numbers that add up to one. */
function toProportions(scores: Float32Array): void {
  let highest = -Infinity;
  for (let index = 0; index < scores.length; index += 1) highest = Math.max(highest, at(scores, index));
  let sum = 0;
  for (let index = 0; index < scores.length; index += 1) {
    const weight = Math.exp(at(scores, index) - highest);
    scores[index] = weight;
    sum += weight;
  }
  for (let index = 0; index < scores.length; index += 1) scores[index] = at(scores, index) / sum;
}

/** The index of the highest value; of equal ones, the first. */
export function indexOfHighest(values: Float32Array): number {
  let best = 0;
  for (let index = 1; index < values.length; index += 1) {
    if (at(values, index) > at(values, best)) best = index;
  }
  return best;
}
