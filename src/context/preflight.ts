/**
 * Preflight: refuses a turn whose input alone is too large, before anything is sent for it.
 *
 * - Nothing that comes later could help: what a person has just said is neither summarised nor cut.
 * - It goes by what the host or the model says of the window, never by what was seen: else nothing would be sent that could
 *   show that it was seen wrongly.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { Hook } from '../core/hooks.ts';
import { assertEstimator, assertReserve } from './assert-context.ts';
import { contextWindow } from './context-window.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';

/** What is left is for the prompt, the tools, and a few steps of work on it. */
const DEFAULT_MAX_SHARE = 0.6;

const ARGUMENT = { taker: 'preflight', example: 'hooks: [preflight({ maxShare: 0.6 })]' };
const OPTIONS: Readonly<Record<keyof PreflightOptions, true>> = { maxShare: true, estimator: true, window: true, outputReserve: true };

/** Options of {@link preflight}. */
export interface PreflightOptions {
  /** Share of the input budget (the window less the output reserve) that a turn's input may take. @defaultValue 0.6 */
  readonly maxShare?: number | undefined;
  /** Counts tokens. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /**
   * Tokens of the window.
   *
   * @defaultValue what the model declares. What was learned from refusals does not count: only a request that is sent can
   * show that it was wrong
   */
  readonly window?: number | undefined;
  /** Tokens kept free for the reply. @defaultValue what the model declares, else an eighth of the window, at most 4,096 */
  readonly outputReserve?: number | undefined;
}

/**
 * Hook that ends a turn `context_overflow` before its first step if its input alone takes more than 60 % of the input
 * budget. The reason names the figures. No recovery runs, and no model is asked. With a window that nobody declares it lets all pass.
 *
 * Put it before hooks that compact.
 *
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [preflight()] });
 * ```
 */
export function preflight(options: PreflightOptions = {}): Hook {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { maxShare: { least: 0, most: 1 }, window: { least: 1 }, outputReserve: { least: 1 } }, ARGUMENT);
  if (options.estimator !== undefined) assertEstimator(options.estimator, ARGUMENT);
  assertReserve(options, ARGUMENT);
  const { maxShare = DEFAULT_MAX_SHARE, estimator = createTokenEstimator(), outputReserve } = options;
  return {
    name: 'preflight',
    beforeStep: ({ step, input, llm }) => {
      if (step !== 1 || input.length === 0) return undefined;
      const window = contextWindow(llm, { window: options.window, outputReserve });
      if (window === undefined) return undefined;
      const tokens = Math.ceil(estimator.estimateMessages(input) * estimator.factorOf(llm));
      const most = Math.floor(window.inputTokens * maxShare);
      if (tokens <= most) return undefined;
      const reason =
        `The input takes about ${tokens} tokens. Of the model's window of ${window.tokens} tokens, ${window.tokens - window.inputTokens} are kept ` +
        `for the reply, and of the rest an input may take ${Math.round(maxShare * 100)} %, which is ${most}. Send less at once.`;
      return { block: { stopReason: 'context_overflow', reason } };
    },
  };
}
