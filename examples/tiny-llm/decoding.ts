/**
 * Greedy decoding: runs a prompt through the model and takes the likeliest token, again and again.
 *
 * Owns which token comes next and when other work gets a chance. What the tokens mean is
 * the business of `reply.ts`.
 */
import { setImmediate } from 'node:timers/promises';
import { indexOfHighest } from './kernels.ts';
import { MARKS } from './tokenizer.ts';
import { advance, readLogits, rewind, type Sequence } from './transformer.ts';

/**
 * Tokens between two looks at the event loop. Eight take some four milliseconds:
 * short enough for a smooth stream and a prompt abort, and too long for the pause itself to count.
 */
const TOKENS_PER_PAUSE = 8;

/** How to decode. */
export interface DecodingOptions {
  /** Stops before the next token; decoding then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Tokens that the reply has to begin with, whatever the model would say. */
  readonly beginning?: readonly number[] | undefined;
  /** A token that is never taken, however likely. */
  readonly excludedToken?: number | undefined;
}

/**
 * Rewinds a sequence to the longest beginning it shares with the prompt.
 *
 * At least the prompt's last token is left to run, as its logits are needed.
 *
 * @returns How many tokens of the prompt the sequence holds already.
 */
export function keepCommonPrefix(sequence: Sequence, prompt: readonly number[]): number {
  const limit = Math.min(sequence.tokens.length, prompt.length - 1);
  let length = 0;
  while (length < limit && sequence.tokens[length] === prompt[length]) length += 1;
  rewind(sequence, length);
  return length;
}

/**
 * Runs what the sequence lacks of the prompt, then generates tokens.
 *
 * @param sequence - Holds a beginning of the prompt, or nothing; see {@link keepCommonPrefix}.
 * @param prompt - The whole prompt, not empty.
 * @returns The tokens of the reply, each as soon as it is known, the token that ends a message last. If the
 * model never comes to that, they go on until the context is full.
 */
export async function* generateTokens(
  sequence: Sequence,
  prompt: readonly number[],
  { signal, beginning = [], excludedToken }: DecodingOptions = {},
): AsyncGenerator<number, void, undefined> {
  const append = async (token: number): Promise<void> => {
    signal?.throwIfAborted();
    advance(sequence, token);
    if (sequence.tokens.length % TOKENS_PER_PAUSE === 0) await setImmediate();
  };

  for (const token of prompt.slice(sequence.tokens.length)) await append(token);
  for (let index = 0; ; index += 1) {
    signal?.throwIfAborted();
    const token = beginning[index] ?? takeLikeliest(readLogits(sequence), excludedToken);
    yield token;
    const isFull = sequence.tokens.length === sequence.transformer.shape.contextLength;
    if (isFull || token === MARKS.messageEnd.token) return;
    await append(token);
  }
}

function takeLikeliest(logits: Float32Array, excludedToken: number | undefined): number {
  if (excludedToken !== undefined) logits[excludedToken] = -Infinity;
  return indexOfHighest(logits);
}
