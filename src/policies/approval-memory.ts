/**
 * Approval memory: what people decided once and for all.
 *
 * - A decision is found by the key that the approval hook made of the call; what the key means is the hook's business.
 * - Keys come from a model's arguments: they are kept in a map, and as data where they are written down.
 */
import { isRecord } from '../core/json.ts';

/** A decision that is remembered. */
export type RememberedDecision = 'allow' | 'deny';

/** Where decisions are remembered: in process, or behind it the host's own store. */
export interface ApprovalMemory {
  /** What was decided of this key; anything but `allow` and `deny` stands for nothing. A failure denies the call. */
  get(key: string): RememberedDecision | undefined | Promise<RememberedDecision | undefined>;
  /** Remembers a decision, in place of one before. A failure leaves the decision standing for the one call. */
  set(key: string, decision: RememberedDecision): void | Promise<void>;
}

/** A remembered decision, as plain JSON. */
export interface ApprovalEntry {
  /** What it was decided of. */
  readonly key: string;
  /** What was decided. */
  readonly decision: RememberedDecision;
}

/** A memory in process that can be written down. Made by {@link createApprovalMemory}. */
export interface ApprovalMemoryInProcess extends ApprovalMemory {
  get(key: string): RememberedDecision | undefined;
  set(key: string, decision: RememberedDecision): void;
  /** Takes a decision back. @returns False if there was none. */
  forget(key: string): boolean;
  /** All decisions, oldest first: to be written down, and given to the memory of the next process. */
  entries(): readonly ApprovalEntry[];
}

const EXAMPLE = "createApprovalMemory([{ key: callKey({ name: 'bash', input: { command: 'ls' } }), decision: 'allow' }])";

/**
 * Makes a memory of decisions. Approval hooks and agents that are given the same one share what was decided.
 *
 * @param entries - What a memory before it gave as `entries()`. @defaultValue nothing
 * @throws TypeError for an entry that is none.
 *
 * @example
 * ```ts
 * const memory = createApprovalMemory(JSON.parse(await readFile('approvals.json', 'utf8')));
 * // … later
 * await writeFile('approvals.json', JSON.stringify(memory.entries()));
 * ```
 */
export function createApprovalMemory(entries: readonly ApprovalEntry[] = []): ApprovalMemoryInProcess {
  const given: unknown = entries;
  if (!Array.isArray(given)) throw new TypeError(`createApprovalMemory takes a list of entries, not a value of type ${typeof given}. For example: ${EXAMPLE}.`);
  const decisions = new Map<string, RememberedDecision>();
  const set = (key: string, decision: RememberedDecision): void => {
    // A decision that is none of the two would be taken for no decision, and asked for again each time.
    if (typeof key !== 'string' || !isRemembered(decision)) {
      throw new TypeError(`createApprovalMemory: a key is a text and a decision 'allow' or 'deny', not ${JSON.stringify({ key, decision })}. For example: ${EXAMPLE}.`);
    }
    decisions.delete(key);
    decisions.set(key, decision);
  };
  for (const [index, entry] of Array.from<unknown>(given).entries()) {
    if (!isEntry(entry)) {
      throw new TypeError(`createApprovalMemory: entry ${index} must have a \`key\`, which is a text, and a \`decision\`, 'allow' or 'deny'. For example: ${EXAMPLE}.`);
    }
    set(entry.key, entry.decision);
  }
  return {
    get: (key) => decisions.get(key),
    set,
    forget: (key) => decisions.delete(key),
    entries: () => Array.from(decisions, ([key, decision]) => ({ key, decision })),
  };
}

function isEntry(value: unknown): value is ApprovalEntry {
  return isRecord(value) && typeof value['key'] === 'string' && isRemembered(value['decision']);
}

/** True for a decision that can be remembered, whatever a store gave. */
export function isRemembered(value: unknown): value is RememberedDecision {
  return value === 'allow' || value === 'deny';
}
