/**
 * Last layers: brings a history down to a number of tokens without a model, by all layers that ask none.
 *
 * - Gentle ones first, and each only as long as it is needed; what they come to is one change of the past.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Notice } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import type { AnyTool } from '../core/tool.ts';
import { attemptLayer, checkedEdits } from './checked-edits.ts';
import { editsTo } from './history-edits.ts';
import { applyEdits, type LayerResult } from './layer.ts';
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
  /** Hears of a layer that threw, and of what it may not do. */
  readonly notify: (notice: Notice) => void;
}

/** A history brought down, and how. */
export interface Reduced {
  /** Empty if there was nothing to reduce. */
  readonly edits: readonly CompactionEdit[];
  readonly messages: readonly Message[];
}

/** Reduces the history of a request. */
export function reduceHistory(messages: readonly Message[], { settings, size, target, tools, notify }: LastLayersOptions): Reduced {
  const { estimator, clear, fold, trim, keepMessages } = settings;
  const targetTokens = Math.max(0, (target - size.with([])) / size.scale);
  let reduced = messages;
  const reduce = (layer: string, run: () => LayerResult): void => {
    if (estimator.estimateMessages(reduced) > targetTokens) reduced = attemptLayer({ layer, notify }, () => allowed(reduced, run(), { layer, notify })) ?? reduced;
  };
  const options = { estimator, tools, keepNewest: keepMessages, minGain: 1 };
  if (clear !== false) reduce('clear', () => clear(reduced, options));
  if (fold !== false) reduce('fold', () => fold(reduced, options));
  if (trim !== false) reduce('trim', () => trim(reduced, { estimator, targetTokens }));
  if (reduced === messages) return { edits: [], messages };
  const edits = editsTo(messages, reduced);
  return { edits, messages: applyEdits(messages, edits) };
}

/** What a layer makes of a history, less what it may not do. */
function allowed(before: readonly Message[], { messages: after }: LayerResult, whose: Parameters<typeof checkedEdits>[2]): readonly Message[] {
  if (after === before) return before;
  const edits = editsTo(before, after);
  const checked = checkedEdits(before, edits, whose);
  return checked === edits ? after : applyEdits(before, checked);
}
