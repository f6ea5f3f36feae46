/**
 * Provider data: what a provider attaches to the parts of its replies, and the parts that only it understands, on their
 * way into a history and back.
 *
 * - The SDK calls it `providerMetadata` in a reply and wants it back as `providerOptions`, unchanged.
 * - Every part notes the model that was asked. What came from another model, another provider or another adapter is
 *   never sent.
 * - A cut reply's data names items that the server never finished: none of it goes back.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { AssistantMessage, MessagePart, ProviderPart } from '../../core/message.ts';
import { parseJson } from '../shared/json-values.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { salvageJson } from './salvage-json.ts';
import type { PromptPart } from './prompt-types.ts';

/** Metadata of a part, by the SDK's name of who attached it. */
export type Metadata = JsonObject;

/** Metadata with more of it, as JSON: it comes piece by piece, and the later piece of one name wins. */
export function mergeMetadata(before: Metadata | undefined, more: unknown): Metadata | undefined {
  const json = isRecord(more) ? salvageJson(more) : undefined;
  if (!isJsonObject(json)) return before;
  if (before === undefined) return json;
  const merged = Object.entries(json).map(([name, value]): [string, JsonValue] => {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    return [name, isJsonObject(known) && isJsonObject(value) ? { ...known, ...value } : value];
  });
  return { ...before, ...Object.fromEntries(merged) };
}

/** `providerData` for a part. @param model - The model that was asked. */
export function toProviderData(metadata: Metadata | undefined, model: string): JsonObject {
  return metadata === undefined || Object.keys(metadata).length === 0 ? { model } : { model, metadata };
}

/** Where thinking shows that it is whole, by the names that providers give it. */
const SIGNATURES = ['signature', 'thoughtSignature'];
const REDACTED = ['redactedData', 'reasoningEncryptedContent'];

/** Signature and encrypted thinking, for those who only ask whether thinking is whole; both go back in the metadata. */
export function thinkingSeals(metadata: Metadata | undefined): { readonly signature?: string; readonly redactedData?: string } {
  const signature = findText(metadata, SIGNATURES);
  const redactedData = findText(metadata, REDACTED);
  return { ...(signature !== undefined && { signature }), ...(redactedData !== undefined && { redactedData }) };
}

function findText(metadata: Metadata | undefined, names: readonly string[]): string | undefined {
  for (const attached of Object.values(metadata ?? {})) {
    for (const name of names) {
      const value = isJsonObject(attached) ? attached[name] : undefined;
      if (typeof value === 'string' && value !== '') return value;
    }
  }
  return undefined;
}

/** A block that only its provider understands, as a part of a reply; undefined if it is no JSON. */
export function toProviderPart(block: Readonly<Record<string, unknown>>, { provider, model }: OwnTarget): ProviderPart | undefined {
  const json = salvageJson(block);
  return json === undefined ? undefined : { type: 'provider', provider, data: { model, block: json } };
}

/** Block that stands behind media and has its metadata, since a media part has no place for it. */
export const MEDIA_DATA = 'media-data';

/** What of a message may go back to its model as it came. */
export interface OwnParts {
  /** The `providerOptions` of a part; undefined if there are none to send. */
  optionsOf(part: MessagePart): JsonObject | undefined;
  /** Whether a part came from this model. */
  isOwn(part: MessagePart): boolean;
  /** The block of a provider part; undefined if it is another's. */
  blockOf(part: ProviderPart): JsonObject | undefined;
}

/** Looks at a message for the model that is asked. */
export function ownParts({ source, status }: AssistantMessage, target: OwnTarget): OwnParts {
  const owner = status === 'interrupted' ? undefined : source;

  function dataOf(part: MessagePart): JsonObject | undefined {
    return ownData({ providerData: 'providerData' in part ? part.providerData : undefined }, owner, target);
  }

  return {
    optionsOf: (part) => toOptions(dataOf(part)?.['metadata']),
    isOwn: (part) => dataOf(part) !== undefined,
    blockOf(part) {
      if (part.provider !== target.provider || !isJsonObject(part.data)) return undefined;
      const data = ownData({ providerData: part.data }, owner, target);
      const block = data?.['block'];
      return isJsonObject(block) ? block : undefined;
    },
  };
}

/** Metadata as the SDK takes it back: an object for each name, and nothing else. */
export function toOptions(metadata: JsonValue | undefined): JsonObject | undefined {
  const attached = isJsonObject(metadata) ? Object.entries(metadata).filter(([, value]) => isJsonObject(value)) : [];
  return attached.length === 0 ? undefined : Object.fromEntries(attached);
}

/** A block of a reply as a part of the prompt; undefined for one that does not go back. */
export function toPromptPart(block: JsonObject, isV4: boolean): PromptPart | undefined {
  const { type, toolCallId, toolName, mediaType } = block;
  const providerOptions = toOptions(block['providerMetadata']);
  const more = providerOptions === undefined ? {} : { providerOptions };
  if (type === 'tool-call' && typeof toolCallId === 'string' && typeof toolName === 'string') {
    return { type, toolCallId, toolName, input: parseInput(block['input']), providerExecuted: true, ...more };
  }
  if (type === 'tool-result' && typeof toolCallId === 'string' && typeof toolName === 'string') {
    return { type, toolCallId, toolName, output: toOutput(block['result'] ?? null, block['isError'] === true), ...more };
  }
  if (isV4 && type === 'custom' && typeof block['kind'] === 'string') return { type, kind: block['kind'], ...more };
  if (isV4 && type === 'reasoning-file' && typeof mediaType === 'string' && isJsonObject(block['data'])) {
    return { type, mediaType, data: fileData(block['data']), ...more };
  }
  return undefined;
}

function parseInput(input: JsonValue | undefined): unknown {
  return typeof input === 'string' ? (parseJson(input) ?? {}) : (input ?? {});
}

function toOutput(result: JsonValue, isError: boolean): JsonObject {
  if (isError) return { type: 'error-json', value: result };
  return typeof result === 'string' ? { type: 'text', value: result } : { type: 'json', value: result };
}

/** An address is an object for the SDK, and a text in JSON. */
function fileData(data: JsonObject): unknown {
  const { type, url } = data;
  return type === 'url' && typeof url === 'string' && URL.canParse(url) ? { type, url: new URL(url) } : data;
}
