/**
 * Overflow recovery: what to do when a provider refuses a request as larger than its window.
 *
 * - The window is learned from it. The history is then brought down to half of the window, and of what there was:
 *   estimates have just been wrong.
 * - It is recorded as one compaction before the request is sent again; only messages of the history change.
 * - A refusal for bytes is taken for an overflow only if the estimate is near the window.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Recovery } from '../core/hooks.ts';
import type { Message } from '../core/message.ts';
import { projectMessages } from '../core/projection.ts';
import { windowTokens } from './context-window.ts';
import { withoutEqualIds } from './history-edits.ts';
import { reduceHistory } from './last-layers.ts';
import { applyEdits } from './layer.ts';
import { learnWindow } from './learn-window.ts';
import type { PolicySettings } from './policy-settings.ts';
import { requestSize, type Conversations } from './request-size.ts';

const TARGET_SHARE = 0.5;
/** Below this share of the window a request that is too large has too many bytes, not too many tokens. */
const NEAR_SHARE = 0.7;

/** Makes the recovery. */
export function overflowRecovery(settings: PolicySettings, conversations: Conversations): Recovery {
  const { estimator } = settings;
  return {
    name: 'context.overflow',
    kinds: ['context_overflow', 'request_too_large'],
    apply: async (request, context) => {
      const { llm, error } = context;
      // What it did is in the record: the next requests have it without us.
      if (error === undefined) return undefined;
      const known = windowTokens(llm, settings);
      const estimate = estimator.estimateRequest(request, llm);
      if (error.kind === 'request_too_large' && (known === undefined || estimate < known * NEAR_SHARE)) return undefined;
      learnWindow({ request, llm, error }, settings);

      const size = requestSize(request, llm, { estimator });
      const window = windowTokens(llm, settings) ?? size.tokens;
      const before = await context.messages();
      const { tools } = conversations.of(context.signal, before);
      const target = Math.floor(Math.min(window, size.tokens) * TARGET_SHARE);
      const notify: typeof context.notify = (notice) => {
        context.notify(notice);
      };
      const { edits, messages } = reduceHistory(withoutEqualIds(before).messages, { settings, size, target, tools, notify });
      const tokensBefore = size.tokens;
      const tokensAfter = size.with(messages);
      context.notify({ name: 'context.overflow', data: { window, tokensBefore, tokensAfter, reduced: edits.length > 0 } });
      if (edits.length === 0) return undefined;
      await context.record({ type: 'compaction', layer: 'overflow', edits, tokensBefore, tokensAfter });
      context.notify({ name: 'context.compacted', data: { layer: 'overflow', tokensBefore, tokensAfter, window } });
      const isAsRecorded = isSameList(request.messages, before);
      return { ...request, messages: isAsRecorded ? await context.messages() : reduceOwn(request.messages, edits) };
    },
  };
}

function isSameList(left: readonly Message[], right: readonly Message[]): boolean {
  return left.length === right.length && left.every((message, index) => message === right[index]);
}

/** The messages of a request that other recoveries have changed, reduced as far as the edits find theirs. */
function reduceOwn(messages: readonly Message[], edits: readonly CompactionEdit[]): readonly Message[] {
  const ids = new Set(messages.map(({ id }) => id));
  const found = edits.filter(({ from, to }) => ids.has(from) && ids.has(to));
  return projectMessages(applyEdits(messages, found)).messages;
}
