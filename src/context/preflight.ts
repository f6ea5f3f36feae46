/**
 * Preflight: refuses a turn whose input alone is too large, before anything is sent for it.
 *
 * Nothing that comes later could help: what a person has just said is neither summarised nor cut.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { Hook } from '../core/hooks.ts';
import { contextWindow } from './context-window.ts';
import { tokensOf } from './layer.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';

/** What is left is for the prompt, the tools, and a few steps of work on it. */
const DEFAULT_MAX_SHARE = 0.6;

const ARGUMENT = { taker: 'preflight', example: 'hooks: [preflight({ maxShare: 0.6 })]' };
const OPTIONS: Readonly<Record<keyof PreflightOptions, true>> = { maxShare: true, estimator: true, window: true, outputReserve: true };

/** Options of {@link preflight}. */
export interface PreflightOptions {
  /** Share of the input budget (the window less the output reserve) that a turn's input may take. @defaultValue 0.6 */
  readonly maxShare?: number | undefined;
  /** Counts tokens, and knows the window. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /** Tokens of the window. @defaultValue what the estimator has seen, else what the model declares */
  readonly window?: number | undefined;
  /** Tokens kept free for the reply. @defaultValue what the model declares, else an eighth of the window, at most 4,096 */
  readonly outputReserve?: number | undefined;
}

/**
 * Hook that ends a turn `context_overflow` before its first step if its input alone takes more than 60 % of the input
 * budget. The reason names the figures. No recovery runs, and no model is asked. With an unknown window it lets all pass.
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
  const { maxShare = DEFAULT_MAX_SHARE, estimator = createTokenEstimator(), outputReserve } = options;
  return {
    name: 'preflight',
    beforeStep: ({ step, input, llm }) => {
      if (step !== 1 || input.length === 0) return undefined;
      const known = options.window ?? estimator.windowOf(llm);
      if (known === undefined) return undefined;
      const window = contextWindow(known, llm, outputReserve);
      const tokens = Math.ceil(tokensOf(input, estimator) * estimator.factorOf(llm));
      const most = Math.floor(window.inputTokens * maxShare);
      if (tokens <= most) return undefined;
      const reason =
        `The input takes about ${tokens} tokens. Of the model's window of ${window.tokens} tokens, ${window.outputTokens} are kept ` +
        `for the reply, and of the rest an input may take ${Math.round(maxShare * 100)} %, which is ${most}. Send less at once.`;
      return { block: { stopReason: 'context_overflow', reason } };
    },
  };
}
