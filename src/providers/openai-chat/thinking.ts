/**
 * Thinking: the fields in which servers show it, and how it goes back.
 *
 * - `reasoning_content` (DeepSeek, Qwen, Kimi, GLM, vLLM), `reasoning` (OpenRouter, Groq, Ollama, newer vLLM),
 *   `reasoning_text` (Copilot), typed parts in `content` (Mistral), `reasoning_details` (OpenRouter: with signatures and
 *   encrypted blocks). A text that comes in two fields counts once.
 * - Which one it was is noted on the part, in `providerData`, so that the part goes back as it came, also after a save
 *   and a load; and only to the provider and model it came from.
 * - Signatures and encrypted thinking stand on the part as well: they tell others that the thinking is whole.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { MessageSource, ThinkingPart } from '../../core/message.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { extraFields } from './extra-fields.ts';

/** The place of thinking text on the wire; `content` for typed parts within the content. */
export type ThinkingField = 'reasoning_content' | 'reasoning' | 'reasoning_text' | 'content';

/** What becomes of the thinking in a history. */
export type ThinkingHistory = 'keep' | 'drop' | 'fill';

const TEXT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

/** What of a detail is thinking, readable or not. */
const CONTENT_KEYS = ['text', 'summary', 'data', 'signature'];

/** Thinking as far as it has come. */
export interface PartialThinking {
  readonly type: 'thinking';
  text: string;
  field: ThinkingField | undefined;
  /** Merged `reasoning_details`, in order. */
  readonly details: Record<string, JsonValue>[];
  /** What Gemini attaches to the message. */
  extra: JsonObject | undefined;
}

/** The field of a delta that holds thinking text; undefined if none does. */
export function findThinkingField(delta: Record<string, unknown>): (typeof TEXT_FIELDS)[number] | undefined {
  // Runs for every delta: fixed names are several times faster to look up than a list of them.
  if (isText(delta['reasoning_content'])) return 'reasoning_content';
  if (isText(delta['reasoning'])) return 'reasoning';
  return isText(delta['reasoning_text']) ? 'reasoning_text' : undefined;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** The readable text of `reasoning_details`. */
export function readDetailsText(details: readonly unknown[]): string {
  let text = '';
  for (const detail of details) {
    if (!isRecord(detail)) continue;
    const { text: piece, summary } = detail;
    if (typeof piece === 'string') text += piece;
    else if (typeof summary === 'string') text += summary;
  }
  return text;
}

/**
 * Adds `reasoning_details` to those before: pieces of one block are joined, signatures kept.
 *
 * @param areWhole - Whether each is a block: those of a message that was not streamed.
 * @returns Whether they held anything.
 */
export function addDetails(thinking: PartialThinking, details: readonly unknown[], areWhole: boolean): boolean {
  let held = false;
  for (const detail of details) {
    if (!isRecord(detail)) continue;
    held ||= CONTENT_KEYS.some((key) => isText(detail[key]));
    const last = thinking.details.at(-1);
    if (!areWhole && last !== undefined && isSameBlock(last, detail)) mergeDetail(last, detail);
    // It came out of JSON.
    else thinking.details.push({ ...(detail as JsonObject) });
  }
  return held;
}

/** Not every server numbers its blocks as it should: a signature ends one, and ids tell them apart. */
function isSameBlock(last: Record<string, JsonValue>, next: Record<string, unknown>): boolean {
  if (last['type'] !== next['type'] || last['index'] !== next['index'] || next['type'] === 'reasoning.encrypted') return false;
  if (isText(last['id']) && isText(next['id']) && last['id'] !== next['id']) return false;
  if (!isText(last['signature']) || last['signature'] === next['signature']) return true;
  return !CONTENT_KEYS.some((key) => isText(next[key]));
}

function mergeDetail(last: Record<string, JsonValue>, next: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(next)) {
    if (value === null || value === undefined || key === '__proto__') continue;
    const before = last[key];
    const isText = key === 'text' || key === 'summary';
    // It came out of JSON.
    last[key] = isText && typeof before === 'string' && typeof value === 'string' ? before + value : (value as JsonValue);
  }
}

/** The part of a reply. @param model - The model that was asked. */
export function toThinkingPart({ text, field, details, extra }: PartialThinking, model: string): ThinkingPart {
  const providerData: JsonObject = {
    model,
    ...(field !== undefined && { field }),
    ...(details.length > 0 && { details }),
    ...(extra !== undefined && { extra }),
  };
  const signature = signatureOf(details, extra);
  const redactedData = lastText(details, 'data');
  return {
    type: 'thinking',
    text,
    ...(signature !== undefined && { signature }),
    ...(redactedData !== undefined && { redactedData }),
    providerData,
  };
}

/** What says that the thinking is whole; it goes back from `providerData`, where it stands as it came. */
function signatureOf(details: readonly Record<string, JsonValue>[], extra: JsonObject | undefined): string | undefined {
  const content = extra?.['extra_content'];
  const google = isJsonObject(content) ? content['google'] : undefined;
  const places = [...(isJsonObject(google) ? [google] : []), ...(extra === undefined ? [] : [extra])];
  return lastText(details, 'signature') ?? lastText(places, 'thought_signature');
}

function lastText(objects: readonly JsonObject[], key: string): string | undefined {
  const value = objects.findLast((each) => isText(each[key]))?.[key];
  return typeof value === 'string' ? value : undefined;
}

/** How thinking of the history may go back. */
export interface ThinkingEcho extends OwnTarget {
  /** The field for thinking that does not know its own; undefined sends none. */
  readonly field: ThinkingField | undefined;
  /** Whether any goes back at all, and whether its field stands on every reply. */
  readonly thinkingHistory: ThinkingHistory;
}

/** The fields of an assistant message that hold its thinking; empty if there is nothing to send. */
export function thinkingFields(
  parts: readonly ThinkingPart[],
  source: MessageSource | undefined,
  echo: ThinkingEcho,
): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {};
  const details: JsonValue[] = [];
  for (const part of parts) {
    const data = ownData(part, source, echo);
    if (data === undefined) continue;
    if (isJsonObject(data['extra'])) Object.assign(fields, extraFields(data['extra']));
    const own = Array.isArray(data['details']) ? (data['details'] as readonly JsonValue[]) : [];
    details.push(...own);
    // They mostly hold the text as well, and its signatures.
    if (readDetailsText(own) !== '') continue;
    const field = toField(data['field']) ?? echo.field;
    if (field === undefined || field === 'content' || part.text === '') continue;
    const before = fields[field];
    fields[field] = typeof before === 'string' ? before + part.text : part.text;
  }
  if (details.length > 0) fields['reasoning_details'] = details;
  if (echo.thinkingHistory === 'fill' && Object.keys(fields).length === 0) {
    fields[echo.field === undefined || echo.field === 'content' ? 'reasoning_content' : echo.field] = '';
  }
  return fields;
}

/** Whether thinking goes back as a typed part of the content. */
export function isContentThinking(part: ThinkingPart, source: MessageSource | undefined, echo: ThinkingEcho): boolean {
  const data = ownData(part, source, echo);
  return data !== undefined && part.text !== '' && (toField(data['field']) ?? echo.field) === 'content';
}

function toField(value: JsonValue | undefined): ThinkingField | undefined {
  return value === 'content' ? value : TEXT_FIELDS.find((field) => field === value);
}
