/**
 * Continue paused: sends a reply back that the provider paused, so that the model goes on with it.
 *
 * Owns how often in a row; that the reply goes back as it is, without a message behind it, is the loop's doing.
 */
import type { Hook } from '../core/hooks.ts';
import { assertOptions } from '../core/assert.ts';

/** A server pauses after about ten rounds of its own tools: a hundred rounds. */
const DEFAULT_MAX_CONTINUATIONS = 10;

const ARGUMENT = { taker: 'continuePaused', example: 'hooks: [continuePaused({ maxContinuations: 10 })]' };
const OPTIONS: Readonly<Record<keyof ContinuePausedOptions, true>> = { maxContinuations: true };

/** Options of {@link continuePaused}. */
export interface ContinuePausedOptions {
  /**
   * How many pauses in a row are gone on from, a whole number of at least 1; `Infinity` leaves it to the loop, which ends
   * any turn after 100 continuations.
   *
   * @defaultValue 10: a pause comes after about ten rounds of the server's tools, and whoever needs more than a hundred
   * for one answer is going in circles
   */
  readonly maxContinuations?: number | undefined;
}

/**
 * Hook that goes on with a turn whose reply the provider paused, as Anthropic does (`pause_turn`) when tools that run on
 * its servers take long: the reply goes back as it is, and the model goes on where it was.
 *
 * Each time is a step of the turn, so that limits of steps, tokens and time hold. Calls of your own tools in a paused
 * reply are not run; the model is told, and may make them again. When the bound is reached the turn ends `paused`, and a
 * notice `continuePaused.exhausted` says why. Any reply that is not paused begins the count anew.
 *
 * One hook serves many turns at once. It counts in memory: in a turn resumed after a crash it takes all continuations
 * of the turn before for pauses, until a reply that is not paused. So the bound holds there too, and may come early.
 *
 * @param options - How often.
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [continuePaused()] });
 * ```
 */
export function continuePaused(options: ContinuePausedOptions = {}): Hook {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { maxContinuations = DEFAULT_MAX_CONTINUATIONS } = options;
  if (maxContinuations !== Infinity && (!Number.isSafeInteger(maxContinuations) || maxContinuations < 1)) {
    throw new TypeError(
      `continuePaused: \`maxContinuations\` must be a whole number of at least 1, or Infinity, not ${String(maxContinuations)}. ` +
        `For example: ${ARGUMENT.example}.`,
    );
  }
  /** Pauses gone on from in a row, by what a turn has of its own: with the turn its count is gone. */
  const continued = new WeakMap<AbortSignal, number>();
  return {
    name: 'continuePaused',
    afterStep: ({ signal }, { stopReason }) => {
      if (stopReason !== 'paused') continued.set(signal, 0);
    },
    shouldContinueAfterStop: (context, { stopReason, limit, continuations }) => {
      if (stopReason !== 'paused' || limit) return undefined;
      const count = continued.get(context.signal) ?? continuations;
      if (count >= maxContinuations) {
        context.notify({ name: 'continuePaused.exhausted', data: { maxContinuations } });
        return undefined;
      }
      continued.set(context.signal, count + 1);
      return true;
    },
  };
}
