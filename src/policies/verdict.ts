/**
 * Verdict: what a host's function says about a failure: yes, no, or nothing.
 *
 * 1. Nothing else is an answer. A promise above all is not: it counts as true wherever truth is asked for, whatever it
 *    comes to. Its own failure is swallowed.
 * 2. What the failed attempt cost and left is told of also when the function itself fails.
 */
import { changeLLMError, toLLMError, type LLMError } from '../core/errors.ts';
import { isThenable } from '../core/event-dispatcher.ts';

/** Whose function it is. */
interface VerdictArgument {
  /** The function, such as `withRetry: \`shouldRetry\``. */
  readonly taker: string;
  /** A correct call. */
  readonly example: string;
}

/**
 * Asks a host's function about a failure.
 *
 * @param error - The failure.
 * @param ask - Calls the function.
 * @throws {@link index.LLMError | LLMError} of kind `unknown` for what the function throws, or for a `TypeError` if it
 * answers anything else, with that as cause and with the tokens and the parts of the failed attempt. One that throws an
 * `LLMError` has its own kind and words.
 */
export function verdictOn(error: LLMError, ask: () => unknown, { taker, example }: VerdictArgument): boolean | undefined {
  try {
    const answer = ask();
    if (answer === undefined || typeof answer === 'boolean') return answer;
    if (isThenable(answer)) answer.then(undefined, () => undefined);
    const what = isThenable(answer) ? 'a promise: it has to answer at once' : answer === null ? 'null' : `a value of type ${typeof answer}`;
    throw new TypeError(`${taker} must return true, false or undefined, and returned ${what}. For example: ${example}.`);
  } catch (thrown) {
    const own = toLLMError(thrown);
    const { usage, partial, provider, modelId } = error;
    throw changeLLMError(own, { usage: own.usage ?? usage, partial: own.partial ?? partial, provider: own.provider ?? provider, modelId: own.modelId ?? modelId });
  }
}
