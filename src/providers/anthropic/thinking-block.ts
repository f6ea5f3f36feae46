/**
 * Thinking block: the thinking of a history as it goes back.
 *
 * - Only to the provider and model it came from, with its signature, unchanged and in its place.
 * - A reply may hold thinking without a signature. It is noted on the part, and goes back as it came: servers refuse a
 *   reply in work whose thinking was taken out. Any other unsigned thinking is somebody's own, and no Claude takes it.
 */
import type { JsonObject } from '../../core/json.ts';
import type { MessageSource, ThinkingPart } from '../../core/message.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { cleanText } from '../shared/wire-text.ts';

/** What of the thinking goes back: all, what was received, what is signed, or none. */
export type ThinkingHistory = 'keep' | 'received' | 'signed' | 'drop';

/** Whom thinking goes to, and what of it. */
interface ThinkingTarget extends OwnTarget {
  readonly thinkingHistory: ThinkingHistory;
}

/** Notes on thinking that it came without a signature. */
export const UNSIGNED = 'unsigned';

/** The block of a thinking part; undefined for one that stays behind. */
export function toThinkingBlock(part: ThinkingPart, source: MessageSource | undefined, target: ThinkingTarget): JsonObject | undefined {
  const { thinkingHistory } = target;
  const data = thinkingHistory === 'drop' ? undefined : ownData(part, source, target);
  if (data === undefined) return undefined;
  const extra = isJsonObject(data['extra']) ? data['extra'] : {};
  if (isGiven(part.redactedData)) return { ...extra, type: 'redacted_thinking', data: part.redactedData };
  const isKept = isGiven(part.signature) || thinkingHistory === 'keep' || (thinkingHistory === 'received' && data[UNSIGNED] === true);
  return isKept ? { ...extra, type: 'thinking', thinking: cleanText(part.text), signature: part.signature ?? '' } : undefined;
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
