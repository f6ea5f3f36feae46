/**
 * Context policy: all layers together, as hooks and recoveries for `runTurn`.
 *
 * Owns what is put together and in which order; the layers, their triggers and their records are files of their own. One
 * policy serves any number of sessions at once: what it remembers of them is what it saw them cost.
 */
import type { Hook, Recovery } from '../core/hooks.ts';
import { compactNow, type CompactionReport, type CompactOptions } from './compact-now.ts';
import { compactionHook } from './compaction-hook.ts';
import { limitMedia } from './limit-media.ts';
import { overflowRecovery } from './overflow-recovery.ts';
import { toSettings, type ContextPolicyOptions } from './policy-settings.ts';
import { preflight } from './preflight.ts';
import { reduceMedia } from './reduce-media.ts';
import { Conversations } from './request-size.ts';
import type { TokenEstimator } from './token-estimator.ts';
import { truncateToolResult } from './truncate-tool-result.ts';

/** Keeps conversations inside their model's window. Made by {@link createContextPolicy}. */
export interface ContextPolicy {
  /** For `runTurn({ hooks })`, in this order. Hooks of your own that add to the history stand before them. */
  readonly hooks: readonly Hook[];
  /** For `runTurn({ recoveries })`, behind `strictHistory()`. */
  readonly recoveries: readonly Recovery[];
  /** What it counts with. */
  readonly estimator: TokenEstimator;
  /**
   * Summarises a session now, between turns.
   *
   * @throws {@link index.TurnloopError | TurnloopError} `turn_open`, `empty_history`, `nothing_to_compact`, `summary_failed`,
   * `history_changed`, also for a session that is being compacted already; the history is then as it was. Whatever `record`
   * throws. TypeError for an option that is missing, does not exist or makes no sense.
   */
  compact(options: CompactOptions): Promise<CompactionReport>;
}

/**
 * Makes a policy that keeps conversations inside their model's window.
 *
 * | layer | when | what |
 * | --- | --- | --- |
 * | 1 `truncate` | each result | long results are cut in the middle |
 * | 2 `clear` | from 50 % of the window | old results that can be had again become a line |
 * | 3 `fold` | from 70 % | long old texts become their beginning and end |
 * | 4 `summary` | from 85 %, or when the room for the reply is touched | the older part becomes one summary |
 * | 5 `trim` | when no summary is to be had | whole exchanges go, oldest first |
 * | `overflow` | when a provider refuses a request | layers 2, 3 and 5 at once, down to half |
 *
 * Layers 2 to 5 are recorded as `compaction`: the events stay, the history changes. Each acts rarely and much: layers 2
 * and 3 only if they free a quarter of the window, unless the provider's cache is cold anyway.
 *
 * Notices: `context.compacted` `{layer, tokensBefore, tokensAfter, window, usage?}` (`usage` is what a summary cost);
 * `context.summary_failed` `{reason, failures, paused, usage}`; `context.summary_discarded` `{failures, paused, usage}`, as
 * the history had changed; `context.overflow` `{window, tokensBefore, tokensAfter, reduced}`; `context.ineffective`
 * `{layer}`: a compaction was recorded and the history stayed as it was, so no more are; `context.equal_ids` `{ids}`:
 * several messages have the same id, so no layer touches them; `context.edit_refused` `{layer, from, reason}`: a layer of
 * your own wanted what may not be (`reason` is `protected`, `unknown_id`, `reversed`, `overlapping`, `no_message` or
 * `no_edit`), and its other edits went on; `context.layer_failed` `{layer, message}`: `clear`, `fold` or `trim` threw.
 *
 * @throws TypeError for an option that does not exist, makes no sense, or contradicts another.
 *
 * @example
 * ```ts
 * const policy = createContextPolicy();
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [...policy.hooks], recoveries: [strictHistory(), ...policy.recoveries] });
 * ```
 */
export function createContextPolicy(options: ContextPolicyOptions = {}): ContextPolicy {
  const settings = toSettings(options);
  const { estimator, window, outputReserve } = settings;
  const conversations = new Conversations();
  const { truncate, limitMedia: limits, reduceMedia: reduction, preflight: maxShare } = options;
  const hooks = [
    ...(maxShare === false ? [] : [preflight({ maxShare, estimator, window, outputReserve })]),
    ...(truncate === false ? [] : [truncateToolResult(truncate)]),
    ...(limits === false ? [] : [limitMedia({ estimator, ...limits })]),
    compactionHook(settings, conversations),
  ];
  const recoveries = [overflowRecovery(settings, conversations), ...(reduction === false ? [] : reduceMedia(reduction))];
  return { hooks, recoveries, estimator, compact: (now) => compactNow(settings, now) };
}
