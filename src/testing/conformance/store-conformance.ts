/**
 * Store conformance: what agents expect of a session store, as cases for any test runner.
 *
 * - Each case has a store on a storage of its own, so that cases may run in any order, also side by side.
 */
import { assertOptions } from '../../core/assert.ts';
import { type ConformanceCase, conformanceCases, type ConformanceSkips, runOnStage } from './conformance-case.ts';
import { childCases } from './store-conformance-children.ts';
import type { StoreConformanceCaseId } from './store-conformance-case.ts';
import { idCases } from './store-conformance-ids.ts';
import { logCases } from './store-conformance-logs.ts';
import { sessionCases } from './store-conformance-sessions.ts';
import { snapshotCases } from './store-conformance-snapshots.ts';
import { StoreStage, type CreateStore } from './store-conformance-stage.ts';
import { writerCases } from './store-conformance-writers.ts';
import { startLimit } from './llm-conformance-wait.ts';

/** One thing that a session store has to do. Made by {@link storeConformance}. */
export type StoreConformanceCase = ConformanceCase<StoreConformanceCaseId>;

/** Options of {@link storeConformance}. */
export interface StoreConformanceOptions {
  /** Cases, or groups of them, that do not apply, each with the reason. @defaultValue none */
  readonly skip?: ConformanceSkips<StoreConformanceCaseId> | undefined;
  /**
   * How long a case may take, in milliseconds: a store that hangs is found out by it.
   *
   * @defaultValue 4,000: less than runners give a test, and enough for a database far away
   */
  readonly settleWithinMs?: number | undefined;
}

const DEFAULT_SETTLE_WITHIN_MS = 4000;

/** Every case, from what a session is to what few stores get right. */
const CASES = { ...sessionCases, ...logCases, ...snapshotCases, ...writerCases, ...idCases, ...childCases };

const OPTIONS: Readonly<Record<keyof StoreConformanceOptions, true>> = { skip: true, settleWithinMs: true };
const CORRECT_CALL = "storeConformance(() => ({ store: inProcessSessionStore() }), { skip: { reopen: 'it ends with its process' } })";

/**
 * The cases that a session store has to pass: sessions, logs, snapshots, writers, ids, sub-agents.
 *
 * @param createStore - Makes the store on a storage of its own, asked once for each case. What it offers beside the store
 * lets cases look at what happens between processes, and at failures: without it, skip those with a reason.
 * @throws TypeError for options that do not exist, and for a `skip` that names no case or gives no reason.
 * @example
 * ```ts
 * for (const { name, run } of storeConformance(createStore)) it(name, run);
 * ```
 */
export function storeConformance(createStore: CreateStore, options: StoreConformanceOptions = {}): readonly StoreConformanceCase[] {
  if (typeof createStore !== 'function') throw new TypeError(`storeConformance takes a function that makes a store: ${CORRECT_CALL}`);
  assertOptions(options, OPTIONS, { taker: 'storeConformance', example: CORRECT_CALL });
  const { skip, settleWithinMs = DEFAULT_SETTLE_WITHIN_MS } = options;
  if (!(settleWithinMs > 0)) throw new TypeError(`storeConformance: \`settleWithinMs\` is ${settleWithinMs}, and must be more than 0.`);
  const runCase = async (run: (stage: StoreStage) => Promise<void>): Promise<void> => runOnStage(new StoreStage(await createStore()), run);
  return conformanceCases({
    kit: 'storeConformance',
    example: CORRECT_CALL,
    definitions: CASES,
    skip,
    run: (run) => within(settleWithinMs, runCase(run)),
  });
}

function within(limitMs: number, running: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = startLimit(limitMs, () => {
      reject(new Error(`the case did not end within ${limitMs} ms (the option \`settleWithinMs\`): a call of the store never settled`));
    });
    running.then(resolve, reject).finally(cancel);
  });
}
