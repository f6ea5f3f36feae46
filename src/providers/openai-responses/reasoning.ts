/**
 * Reasoning: the protocol's thinking items as thinking parts, and back.
 *
 * - One item is one part. Its text is the summary, or the thinking itself where the server shows that; the other of the
 *   two, if there is one, stands beside it in `providerData`.
 * - `redactedData` is the item's encrypted content: with it a server that keeps nothing knows what it thought. Parts with
 *   the same encrypted content are one item, with several summaries.
 * - It goes back to the same provider and model only, and only if it holds what it was: encrypted, or as text. An id
 *   alone points at what the server may not have.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { MessageSource, ThinkingPart } from '../../core/message.ts';
import { ownData, type OwnTarget } from '../shared/own-data.ts';
import { cleanText } from '../shared/wire-text.ts';
import { toItemId } from './item-ids.ts';

/** What stands between two summaries of one item, for people. */
export const BETWEEN_SUMMARIES = '\n\n';

/** A reasoning item as far as it has come. */
export interface PartialReasoning {
  readonly kind: 'reasoning';
  readonly type: 'reasoning';
  itemId: string | undefined;
  /** By their index; in the order in which they began. */
  readonly summaries: Map<number, string>;
  /** The thinking itself, in pieces by their index. */
  readonly raw: Map<number, string>;
  /** What of it is the part's text: what came first. */
  shows: 'summary' | 'raw' | undefined;
  encrypted: string | undefined;
  isDone: boolean;
}

/** The part of a reply. @param model - The model that was asked. */
export function toThinkingPart({ itemId, summaries, raw, shows, encrypted }: PartialReasoning, model: string): ThinkingPart {
  const texts = [...summaries.values()];
  const rawText = [...raw.values()].join('');
  const isRaw = shows === 'raw';
  const providerData: JsonObject = {
    model,
    type: 'reasoning',
    ...(itemId !== undefined && { id: itemId }),
    ...(isRaw && { raw: true }),
    ...(!isRaw && rawText !== '' && { raw: rawText }),
    ...(isRaw && texts.length > 0 && { summary: texts }),
    ...(!isRaw && texts.length > 1 && { lengths: texts.map((text) => text.length) }),
  };
  return {
    type: 'thinking',
    text: isRaw ? rawText : texts.join(BETWEEN_SUMMARIES),
    ...(encrypted !== undefined && { redactedData: encrypted }),
    providerData,
  };
}

/** A reasoning item that goes back. */
export interface ReasoningDraft {
  readonly kind: 'reasoning';
  readonly id: string | undefined;
  readonly encrypted: string | undefined;
  readonly summary: readonly string[];
  /** The thinking itself; empty for none. */
  readonly raw: string;
}

/** What of a thinking part goes back; undefined for nothing. */
export function toReasoningDraft(part: ThinkingPart, source: MessageSource | undefined, target: OwnTarget): ReasoningDraft | undefined {
  const data = ownData(part, source, target);
  // What another adapter of this provider attached is for that adapter's protocol.
  if (data === undefined || (part.providerData !== undefined && data['type'] !== 'reasoning')) return undefined;
  const encrypted = part.redactedData === '' ? undefined : part.redactedData;
  const isRaw = data['raw'] === true;
  const raw = isRaw ? part.text : textOf(data['raw']);
  if (encrypted === undefined && raw === '') return undefined;
  const summary = isRaw ? textsOf(data['summary']) : splitSummary(part.text, data['lengths']);
  return { kind: 'reasoning', id: toItemId(data['id'], 'reasoning'), encrypted, summary: summary.map(cleanText), raw: cleanText(raw) };
}

/** One item of two that hold the same encrypted content; undefined if they are two. */
export function joinReasoning(left: ReasoningDraft, right: ReasoningDraft): ReasoningDraft | undefined {
  if (left.encrypted === undefined || left.encrypted !== right.encrypted) return undefined;
  return { ...left, id: left.id ?? right.id, summary: [...left.summary, ...right.summary], raw: left.raw + right.raw };
}

/** The item. @param withId - Whether the server is told which one of its own it is. */
export function toReasoningItem({ id, encrypted, summary, raw }: ReasoningDraft, withId: boolean): JsonObject {
  return {
    type: 'reasoning',
    ...(withId && id !== undefined && { id }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
    ...(raw !== '' && { content: [{ type: 'reasoning_text', text: raw }] }),
    ...(encrypted !== undefined && { encrypted_content: encrypted }),
  };
}

/** The summaries that a text was put together from; the text is one where that cannot be told. */
function splitSummary(text: string, lengths: JsonValue | undefined): readonly string[] {
  if (text === '') return [];
  const given = isList(lengths) ? lengths.map(Number) : [];
  const whole = given.reduce((sum, length) => sum + length, BETWEEN_SUMMARIES.length * (given.length - 1));
  if (given.length < 2 || whole !== text.length) return [text];
  let start = 0;
  return given.map((length) => {
    const end = start + length;
    const summary = text.slice(start, end);
    start = end + BETWEEN_SUMMARIES.length;
    return summary;
  });
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  return isList(value) ? value.filter((each) => typeof each === 'string') : [];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
