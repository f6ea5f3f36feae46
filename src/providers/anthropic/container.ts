/**
 * Container: where the provider runs code for a conversation, and what of it has to be named in requests.
 *
 * A reply names its container, and while code in it waits for a call's result the server takes no request without the name.
 * It is kept with one of the reply's parts, so that it is saved and loaded with the history; in a request it is a field,
 * never a block.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { ReplyPart } from '../../core/llm.ts';
import type { AssistantMessage, AssistantPart } from '../../core/message.ts';
import { word } from '../shared/json-values.ts';
import { isJsonObject, type OwnTarget } from '../shared/own-data.ts';

/** A container that a reply named. */
export interface Container {
  readonly id: string;
  /** Milliseconds since the epoch; undefined if the server did not say, or not so that it can be read. */
  readonly expiresAt: number | undefined;
}

/** What a history says of its container. */
export interface ContainerState {
  /** The newest one. */
  readonly container: Container | undefined;
  /** Whether the last reply is still in work: gone on with, or waiting for results. */
  readonly isInWork: boolean;
}

/** What a part keeps of the container that an answer names; undefined if it names none. */
export function containerData(raw: unknown): JsonObject | undefined {
  const id = isRecord(raw) ? word(raw['id']) : undefined;
  if (!isRecord(raw) || id === undefined) return undefined;
  const expiresAt = word(raw['expires_at']);
  return { id, ...(expiresAt !== undefined && { expires_at: expiresAt }) };
}

/**
 * Parts of a reply with its container: on the last one that can carry something of the provider's, or as a provider part
 * that is no block.
 */
export function keepContainer(parts: readonly ReplyPart[], container: JsonObject, { provider, model }: OwnTarget): readonly ReplyPart[] {
  const carrier = parts.findLastIndex(({ type }) => type !== 'provider' && type !== 'media');
  if (carrier < 0) return [...parts, { type: 'provider', provider, data: { container } }];
  return parts.map((part, at) => {
    if (at !== carrier || part.type === 'provider' || part.type === 'media') return part;
    const known = isJsonObject(part.providerData) ? part.providerData : { model };
    return { ...part, providerData: { ...known, container } };
  });
}

/** The container that a reply of this provider names. */
export function containerOf({ content, source }: AssistantMessage, { provider }: OwnTarget): Container | undefined {
  if (source?.provider !== provider) return undefined;
  for (const part of content) {
    const { container } = dataOf(part);
    if (!isJsonObject(container) || typeof container['id'] !== 'string') continue;
    const expiresAt = Date.parse(word(container['expires_at']) ?? '');
    return { id: container['id'], expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt };
  }
  return undefined;
}

/** What a part carries of the provider's, beside what is a block. */
function dataOf(part: AssistantPart): JsonObject {
  if (part.type === 'media') return {};
  const data = part.type === 'provider' ? part.data : part.providerData;
  const isBlock = part.type === 'provider' && isJsonObject(data) && data['type'] !== undefined;
  return isJsonObject(data) && !isBlock ? data : {};
}

/** Whether a host's own field leaves open which container is meant: skills without an id. */
export function isOpenContainer(given: JsonValue | undefined): given is JsonObject {
  return isJsonObject(given) && typeof given['id'] !== 'string';
}

/**
 * The field `container`; undefined to leave it out.
 *
 * @param given - What the host says of it, if that leaves open which one is meant.
 * @param now - Milliseconds since the epoch.
 */
export function toContainerField({ container, isInWork }: ContainerState, given: JsonObject | undefined, now: number): JsonValue | undefined {
  if (container === undefined) return given;
  const { id, expiresAt } = container;
  // In work it is sent in any case: the server takes nothing without it, and its clock may be another.
  if (!isInWork && expiresAt !== undefined && now >= expiresAt) return given;
  return given === undefined ? id : { ...given, id };
}
