/** Summary budget: how much of what a window has for messages each part may take of what a summary leaves. */
import type { SummarizeHistoryOptions } from './summarize-history.ts';

/** The newest messages, a person's older ones, and the summary itself: together less than half, so that there is room to go on. */
const TAIL_SHARE = 0.15;
const USER_SHARE = 0.125;
const SUMMARY_SHARE = 0.125;

/**
 * The limits of a summary.
 *
 * @param room - Tokens that there are for messages, not calibrated.
 * @param userMessageTokens - Most tokens of a person's older messages, whatever the room.
 */
export function summaryBudget(
  room: number,
  userMessageTokens: number,
): Pick<SummarizeHistoryOptions, 'keepTokens' | 'userMessageTokens' | 'maxSummaryTokens'> {
  return {
    keepTokens: room * TAIL_SHARE,
    userMessageTokens: Math.min(userMessageTokens, room * USER_SHARE),
    maxSummaryTokens: Math.max(1, room * SUMMARY_SHARE),
  };
}
