/**
 * Last layers: brings a history down to a number of tokens without a model, by all layers that ask none.
 *
 * - Gentle ones first, and each only as long as it is needed; what they come to is one change of the past.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Message } from '../core/message.ts';
import type { AnyTool } from '../core/tool.ts';
import { editsTo } from './history-edits.ts';
import type { PolicySettings } from './policy-settings.ts';
import type { RequestSize } from './request-size.ts';

/** What is to be reached, and with what. */
interface LastLayersOptions {
  readonly settings: PolicySettings;
  /** The request whose history it is. */
  readonly size: RequestSize;
  /** Tokens that the whole request may have. */
  readonly target: number;
  readonly tools: readonly AnyTool[];
}

/** A history brought down, and how. */
export interface Reduced {
  /** Empty if there was nothing to reduce. */
  readonly edits: readonly CompactionEdit[];
  readonly messages: readonly Message[];
}

/** Reduces the history of a request. */
export function reduceHistory(messages: readonly Message[], { settings, size, target, tools }: LastLayersOptions): Reduced {
  const { estimator, clear, fold, trim, keepMessages } = settings;
  const targetTokens = Math.max(0, (target - size.with([])) / size.scale);
  let reduced = messages;
  for (const layer of [clear, fold]) {
    if (layer === false || estimator.estimateMessages(reduced) <= targetTokens) continue;
    reduced = layer(reduced, { estimator, tools, keepNewest: keepMessages, minGain: 1 }).messages;
  }
  if (trim !== false && estimator.estimateMessages(reduced) > targetTokens) reduced = trim(reduced, { estimator, targetTokens }).messages;
  return { edits: reduced === messages ? [] : editsTo(messages, reduced), messages: reduced };
}
