/**
 * Store conformance: what agents expect of a session store, as cases for any test runner.
 *
 * - Each case has a store on a storage of its own, so that cases may run in any order, also side by side.
 * - A case that does not apply is skipped by name and with a reason, and stays in the list.
 */
import { assertSkips, groupOf, skipReason } from './conformance-skip.ts';
import { childCases } from './store-conformance-children.ts';
import type { StoreCaseDefinition, StoreConformanceCaseId, StoreConformanceGroup } from './store-conformance-case.ts';
import { idCases } from './store-conformance-ids.ts';
import { logCases } from './store-conformance-logs.ts';
import { sessionCases } from './store-conformance-sessions.ts';
import { snapshotCases } from './store-conformance-snapshots.ts';
import { StoreStage, type CreateStore } from './store-conformance-stage.ts';
import { writerCases } from './store-conformance-writers.ts';
import { startLimit } from './llm-conformance-wait.ts';

/** One thing that a session store has to do. Made by {@link storeConformance}. */
export interface StoreConformanceCase {
  /** Stable name, for `skip`. */
  readonly id: StoreConformanceCaseId;
  /** First word of the id, for `skip` too. */
  readonly group: StoreConformanceGroup;
  /** Id and a sentence; of a skipped case also why. For the test runner. */
  readonly name: string;
  /** Why the case is skipped; absent for one that runs. */
  readonly skipped?: string | undefined;
  /** Rejects with an `Error` that says what the store does wrong. A skipped case does nothing. */
  readonly run: () => Promise<void>;
}

/** Options of {@link storeConformance}. */
export interface StoreConformanceOptions {
  /** Cases, or groups of them, that do not apply, each with the reason. @defaultValue none */
  readonly skip?: Readonly<Partial<Record<StoreConformanceCaseId | StoreConformanceGroup, string>>> | undefined;
  /**
   * How long a case may take, in milliseconds: a store that hangs is found out by it.
   *
   * @defaultValue 4,000: less than runners give a test, and enough for a database far away
   */
  readonly settleWithinMs?: number | undefined;
}

const DEFAULT_SETTLE_WITHIN_MS = 4000;

/** Every case, from what a session is to what few stores get right. */
const CASES = Object.entries({
  ...sessionCases,
  ...logCases,
  ...snapshotCases,
  ...writerCases,
  ...idCases,
  ...childCases,
}) as readonly (readonly [StoreConformanceCaseId, StoreCaseDefinition])[];

const CORRECT_CALL = "storeConformance(() => ({ store: inProcessSessionStore() }), { skip: { reopen: 'it ends with its process' } })";

/**
 * The cases that a session store has to pass: sessions, logs, snapshots, writers, ids, sub-agents.
 *
 * @param createStore - Makes the store on a storage of its own, asked once for each case. What it offers beside the store
 * lets cases look at what happens between processes, and at failures: without it, skip those with a reason.
 * @throws TypeError for a `skip` that names no case or gives no reason.
 * @example
 * ```ts
 * for (const { name, run } of storeConformance(createStore)) it(name, run);
 * ```
 */
export function storeConformance(createStore: CreateStore, options: StoreConformanceOptions = {}): readonly StoreConformanceCase[] {
  const { skip = {}, settleWithinMs = DEFAULT_SETTLE_WITHIN_MS } = options;
  if (typeof createStore !== 'function') throw new TypeError(`storeConformance takes a function that makes a store: ${CORRECT_CALL}`);
  if (!(settleWithinMs > 0)) throw new TypeError(`storeConformance: \`settleWithinMs\` is ${settleWithinMs}, and must be more than 0.`);
  assertSkips(skip, CASES.map(([id]) => id), { kit: 'storeConformance', example: CORRECT_CALL });
  return CASES.map(([id, { title, run }]): StoreConformanceCase => {
    // The type of ids and that of groups say the same.
    const group = groupOf(id) as StoreConformanceGroup;
    const skipped = skipReason(skip, id);
    const name = `${id}: ${title}`;
    if (skipped !== undefined) return { id, group, name: `${name} (skipped: ${skipped})`, skipped, run: async () => undefined };
    return { id, group, name, run: () => within(settleWithinMs, runCase(createStore, run)) };
  });
}

async function runCase(createStore: CreateStore, run: StoreCaseDefinition['run']): Promise<void> {
  const stage = new StoreStage(await createStore());
  try {
    await run(stage);
  } catch (failure) {
    // What is wrong has been found: whatever else goes wrong now comes of it.
    await stage.finish().catch(() => undefined);
    throw failure;
  }
  await stage.finish();
}

function within(limitMs: number, running: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = startLimit(limitMs, () => {
      reject(new Error(`the case did not end within ${limitMs} ms (the option \`settleWithinMs\`): a call of the store never settled`));
    });
    running.then(resolve, reject).finally(cancel);
  });
}
