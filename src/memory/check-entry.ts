/**
 * Check entry: what callers without types, files and exports hold is an entry, a filter, a change, or none.
 *
 * Both ways to say it are here: a boolean for data from outside, a `TypeError` for misuse.
 */
import { isRecord } from '../core/json.ts';
import type { MemoryChange, MemoryEntry, MemoryFilter, MemoryKind, MemoryScope } from './memory-store.ts';

/** Every kind. */
const MEMORY_KINDS: readonly MemoryKind[] = ['fact', 'experience', 'working'];
/** Every scope. */
const MEMORY_SCOPES: readonly MemoryScope[] = ['user', 'agent', 'project', 'session'];

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string' && value.trim() !== '';
const isId: Check = (value) => typeof value === 'string' && value !== '';
const isTime: Check = (value) => typeof value === 'number' && Number.isFinite(value);
const isShare: Check = (value) => typeof value === 'number' && value >= 0 && value <= 1;
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isBoolean: Check = (value) => typeof value === 'boolean';
const isKind: Check = (value) => MEMORY_KINDS.some((kind) => kind === value);
const isScope: Check = (value) => MEMORY_SCOPES.some((scope) => scope === value);
const isOwner: Check = (value) => isRecord(value) && isScope(value['scope']) && isId(value['scopeId']);
const isSource: Check = (value) => isRecord(value) && isId(value['sessionId']) && optional(isId)(value['turnId']);
const isVector: Check = (value) => isRecord(value) && isId(value['embedder']) && value['values'] instanceof Float32Array;
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

const ENTRY: Readonly<Record<keyof MemoryEntry, Check>> = {
  id: isId,
  kind: isKind,
  scope: isScope,
  scopeId: isId,
  text: isText,
  importance: isShare,
  pinned: optional(isBoolean),
  createdAt: isTime,
  lastUsedAt: optional(isTime),
  uses: optional(isCount),
  source: optional(isSource),
};

const FILTER: Readonly<Record<keyof MemoryFilter, Check>> = {
  ids: optional(isListOf(isId)),
  owners: optional(isListOf(isOwner)),
  kinds: optional(isListOf(isKind)),
  createdFrom: optional(isTime),
  createdBefore: optional(isTime),
  pinned: optional(isBoolean),
};

const CHANGE: Readonly<Record<keyof MemoryChange, Check>> = {
  id: isId,
  text: optional(isText),
  vector: optional(isVector),
  kind: optional(isKind),
  importance: optional(isShare),
  pinned: optional(isBoolean),
  usedAt: optional(isTime),
};

/** The entry that a value is, with the members of an entry and nothing else; undefined if it is none. */
export function toEntry(value: unknown): MemoryEntry | undefined {
  if (!isRecord(value) || wrongMember(value, ENTRY) !== undefined) return undefined;
  // Every member was checked.
  const { id, kind, scope, scopeId, text, importance, pinned, createdAt, lastUsedAt, uses, source } = value as unknown as MemoryEntry;
  return {
    id,
    kind,
    scope,
    scopeId,
    text,
    importance,
    ...(pinned === true && { pinned }),
    createdAt,
    ...(lastUsedAt !== undefined && { lastUsedAt }),
    ...(uses !== undefined && uses > 0 && { uses }),
    ...(source !== undefined && {
      source: { sessionId: source.sessionId, ...(source.turnId !== undefined && { turnId: source.turnId }) },
    }),
  };
}

/** The change that a value is. @throws TypeError if it is none */
export function toChange(value: unknown): MemoryChange {
  assertMembers(value, CHANGE, 'a change, such as { id, pinned: true }');
  // Every member was checked.
  return value as unknown as MemoryChange;
}

/** @throws TypeError if it is no entry, saying which member is wrong. */
export function assertEntry(value: unknown): asserts value is MemoryEntry {
  assertMembers(value, ENTRY, "an entry, such as { id, kind: 'fact', scope: 'user', scopeId: 'ada', text: 'Likes tea.', importance: 0.5, createdAt: 0 }");
}

/** @throws TypeError if it is no vector. */
export function assertVector(value: unknown): void {
  if (optional(isVector)(value)) return;
  throw new TypeError("memory: a vector is { embedder: 'its name', values: Float32Array }, of length 1.");
}

/** @throws TypeError for what is no filter; members of `also` may stand in it too. */
export function assertFilter(value: unknown, also: Readonly<Record<string, (value: unknown) => boolean>> = {}): void {
  assertMembers(value, { ...FILTER, ...also }, "a filter, such as { owners: [{ scope: 'user', scopeId: 'ada' }], kinds: ['fact'] }");
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(FILTER, name) && !Object.hasOwn(also, name));
  if (unknown === undefined) return;
  throw new TypeError(`memory: a filter has no \`${unknown}\`; it has ${[...Object.keys(FILTER), ...Object.keys(also)].join(', ')}.`);
}

/** @throws TypeError for owners that are none. */
export function assertOwners(value: unknown, taker: string): void {
  if (isListOf(isOwner)(value)) return;
  throw new TypeError(`${taker}: \`owners\` must be a list of owners, such as [{ scope: 'user', scopeId: 'ada' }]; scopes are ${MEMORY_SCOPES.join(', ')}.`);
}

function assertMembers(value: unknown, checks: Readonly<Record<string, Check>>, what: string): asserts value is Record<string, unknown> {
  const members = isRecord(value) ? value : undefined;
  const wrong = members === undefined ? undefined : wrongMember(members, checks);
  if (members !== undefined && wrong === undefined) return;
  const why = wrong === undefined ? '' : `: \`${wrong}\` cannot be ${shown(members?.[wrong])}`;
  throw new TypeError(`memory: this is not ${what}${why}.`);
}

function wrongMember(value: Record<string, unknown>, checks: Readonly<Record<string, Check>>): string | undefined {
  return Object.entries(checks).find(([name, check]) => !check(value[name]))?.[0];
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined) return String(value);
  return Array.isArray(value) ? 'this list' : `a value of type ${typeof value}`;
}
