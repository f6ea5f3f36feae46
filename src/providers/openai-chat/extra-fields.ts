/**
 * Extra fields: what Gemini attaches to messages and calls over this protocol, its thought signatures. They come back as
 * they were, and nothing else does: another adapter of the same provider may have left anything on a part.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';

export const EXTRA_FIELDS: readonly string[] = ['extra_content', 'thought_signature'];

/** The extra fields among those of an object. */
export function extraFields(data: JsonObject): Record<string, JsonValue> {
  return Object.fromEntries(Object.entries(data).filter(([field]) => EXTRA_FIELDS.includes(field)));
}
