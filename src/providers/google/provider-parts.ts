/**
 * Provider parts: what of a reply only Gemini understands.
 *
 * - Parts of a kind of their own, such as code that the server ran, are kept as they came and go back so.
 * - What stands beside the parts (sources of a search) is kept for hosts to show; a request has no place for it.
 * - The signature of media stands in a part behind it, since a media part has no place for it.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isJsonObject } from '../shared/own-data.ts';

/** Kinds of parts that go back as they came. */
const KINDS: readonly string[] = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse', 'fileData', 'inlineData'];

/** Whether the data of a provider part is a part of Gemini's. */
export function isPartData(data: JsonObject): boolean {
  return KINDS.some((kind) => Object.hasOwn(data, kind));
}

/** Whether the data is that of something the server runs, and of which the result is still to come. */
export function isServerCall(data: JsonObject): boolean {
  return Object.hasOwn(data, 'executableCode') || Object.hasOwn(data, 'toolCall');
}

/** The data of a part that carries the signature of the media before it. @param model - The model that was asked. */
export function mediaSignatureData(thoughtSignature: string, model: string): JsonObject {
  return { mediaSignature: { model, thoughtSignature } };
}

/** The signature in such data; undefined if it is none, or another model's. */
export function signatureOfMedia(data: JsonValue, model: string): string | undefined {
  const signature = isJsonObject(data) ? data['mediaSignature'] : undefined;
  if (!isJsonObject(signature) || signature['model'] !== model) return undefined;
  const { thoughtSignature } = signature;
  return typeof thoughtSignature === 'string' ? thoughtSignature : undefined;
}
