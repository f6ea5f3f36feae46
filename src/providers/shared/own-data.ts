/**
 * Own data: what a provider attached to a part goes back to the same provider and model only.
 *
 * A server may answer under a longer name than it was asked by, so parts note the one they were asked by: the `model`
 * in their `providerData`.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { MessageSource } from '../../core/message.ts';

/** Who is asked. */
export interface OwnTarget {
  /** The `LLM.provider`. */
  readonly provider: string;
  /** The model. */
  readonly model: string;
}

/** What a part carries for this provider and model; empty if it carries nothing, undefined where it is another's. */
export function ownData(
  part: { readonly providerData?: JsonValue | undefined },
  source: MessageSource | undefined,
  target: OwnTarget,
): JsonObject | undefined {
  if (source?.provider !== target.provider) return undefined;
  const data = part.providerData;
  if (!isJsonObject(data)) return source.modelId === target.model ? {} : undefined;
  return (data['model'] ?? source.modelId) === target.model ? data : undefined;
}

/** {@link isRecord} for what is known to be JSON. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return isRecord(value);
}
