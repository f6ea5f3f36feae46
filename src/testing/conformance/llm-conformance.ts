/**
 * LLM conformance: what the loop expects of an adapter, as cases for any test runner.
 *
 * - The kit knows no protocol: each case tells a {@link LLMScene}, which the author's fake server plays in its own.
 * - Cases share nothing, so that they may run in any order, also side by side.
 */
import { assertOptions } from '../../core/assert.ts';
import { type ConformanceCase, conformanceCases, type ConformanceSkips, runOnStage } from './conformance-case.ts';
import { abortCases } from './llm-conformance-aborts.ts';
import type { LLMConformanceCaseId } from './llm-conformance-case.ts';
import { failureCases } from './llm-conformance-failures.ts';
import { replyCases } from './llm-conformance-replies.ts';
import { requestCases } from './llm-conformance-requests.ts';
import type { LLMScene, LLMUnderTest } from './llm-conformance-scene.ts';
import { settingsCases } from './llm-conformance-settings.ts';
import { Trial } from './llm-conformance-trial.ts';

/** One thing that an adapter has to do. Made by {@link llmConformance}. */
export type LLMConformanceCase = ConformanceCase<LLMConformanceCaseId>;

/** Options of {@link llmConformance}. */
export interface LLMConformanceOptions {
  /** Cases, or groups of them, that do not apply, each with the reason. @defaultValue none */
  readonly skip?: ConformanceSkips<LLMConformanceCaseId> | undefined;
  /**
   * How long whatever the kit waits for may take, in milliseconds: a reply of the fake server, an end after an abort.
   * Too little makes good adapters fail on a slow machine, too much makes hanging ones fail late.
   *
   * @defaultValue 2,000: what the loop gives a model after an abort (`graceMs`), and less than runners give a test
   */
  readonly settleWithinMs?: number | undefined;
}

const DEFAULT_SETTLE_WITHIN_MS = 2000;

/** Every case, in the order in which an author is best served: from what a reply is to what a conversation needs. */
const CASES = { ...replyCases, ...failureCases, ...abortCases, ...requestCases, ...settingsCases };

const OPTIONS: Readonly<Record<keyof LLMConformanceOptions, true>> = { skip: true, settleWithinMs: true };
const CORRECT_CALL = "llmConformance(createLLM, { skip: { thinking: 'the protocol has none' } })";

/**
 * The cases that an LLM adapter has to pass: replies, calls, usage, failures, aborts, requests.
 *
 * `createLLM` is asked once for each scene. It makes a fake server that does what the scene says, in the words of the
 * adapter's protocol, and the adapter on it. A server in the same process is best, since scenes wait for the case.
 *
 * @param createLLM - Makes the adapter on a fake server that plays the scene.
 * @throws TypeError for options that do not exist, and for a `skip` that names no case or gives no reason.
 * @example
 * ```ts
 * for (const { name, run } of llmConformance(createLLM)) it(name, run);
 * ```
 */
export function llmConformance(
  createLLM: (scene: LLMScene) => LLMUnderTest | Promise<LLMUnderTest>,
  options: LLMConformanceOptions = {},
): readonly LLMConformanceCase[] {
  if (typeof createLLM !== 'function') throw new TypeError(`llmConformance takes a function that makes an LLM on a scene: ${CORRECT_CALL}`);
  assertOptions(options, OPTIONS, { taker: 'llmConformance', example: CORRECT_CALL });
  const { skip, settleWithinMs = DEFAULT_SETTLE_WITHIN_MS } = options;
  if (!(settleWithinMs > 0)) throw new TypeError(`llmConformance: \`settleWithinMs\` is ${settleWithinMs}, and must be more than 0.`);
  return conformanceCases({
    kit: 'llmConformance',
    example: CORRECT_CALL,
    definitions: CASES,
    skip,
    run: (run, id) => runOnStage(new Trial({ id, createLLM, settleWithinMs }), run),
  });
}
