/**
 * Tool conformance: what the loop expects of a tool, as cases for any test runner.
 *
 * - Each case has a tool in a world of its own, so that cases may run in any order, also side by side.
 */
import { assertOptions } from '../../core/assert.ts';
import { isRecord } from '../../core/json.ts';
import { type ConformanceCase, conformanceCases, type ConformanceSkips, runOnStage } from './conformance-case.ts';
import { toolAbortCases } from './tool-conformance-aborts.ts';
import type { ToolConformanceCaseId } from './tool-conformance-case.ts';
import { toolDefinitionCases } from './tool-conformance-definition.ts';
import { toolRunCases } from './tool-conformance-runs.ts';
import { ToolStage, type CreateTool, type ToolInputs, type ToolStageOptions } from './tool-conformance-stage.ts';

/** One thing that a tool has to do. Made by {@link toolConformance}. */
export type ToolConformanceCase = ConformanceCase<ToolConformanceCaseId>;

/** Options of {@link toolConformance}. */
export interface ToolConformanceOptions {
  /** What to run the tool with. */
  readonly inputs: ToolInputs;
  /** Texts that its world has and that nobody may see, such as a key: for `secrets`. @defaultValue none */
  readonly secrets?: readonly string[] | undefined;
  /** Cases, or groups of them, that do not apply, each with the reason. @defaultValue none */
  readonly skip?: ConformanceSkips<ToolConformanceCaseId> | undefined;
  /** How long the text of a result may be, in characters. @defaultValue 8,192: agents cut off what is longer */
  readonly maxResultCharacters?: number | undefined;
  /**
   * How long a call may take, and its end after an abort, in milliseconds.
   *
   * @defaultValue 2,000: what the loop gives a tool after an abort (`graceMs`), and less than runners give a test
   */
  readonly settleWithinMs?: number | undefined;
}

const DEFAULT_SETTLE_WITHIN_MS = 2_000;
const DEFAULT_MAX_RESULT_CHARACTERS = 8_192;

/** Every case, from what a tool is to what few get right. */
const CASES = { ...toolDefinitionCases, ...toolRunCases, ...toolAbortCases };

const OPTIONS: Readonly<Record<keyof ToolConformanceOptions, true>> = { inputs: true, secrets: true, skip: true, maxResultCharacters: true, settleWithinMs: true };
const INPUTS: Readonly<Record<keyof ToolInputs, true>> = { good: true, bad: true, failing: true, long: true };
const CORRECT_CALL = "toolConformance(() => ({ tool: search }), { inputs: { good: [{ query: 'cats' }] }, skip: { secrets: 'it has none' } })";

/**
 * The cases that a tool has to pass: definition, arguments, accesses, results, failures, aborts, calls side by side.
 *
 * @param createTool - Makes the tool in a world of its own, asked once or more for each case.
 * @param options - What to run it with. Cases whose arguments are not given fail, unless they are skipped with a reason.
 * @throws TypeError for options that make no sense, and for a `skip` that names no case or gives no reason.
 * @example
 * ```ts
 * const inputs = { good: [{ path: 'a.txt' }], bad: [{ input: { path: 1 }, field: 'path' }], failing: [{ path: 'none.txt' }] };
 * const skip = { abort: 'it reads a small file', secrets: 'it has none' };
 * for (const { name, run } of toolConformance(createTool, { inputs, skip })) it(name, run);
 * ```
 */
export function toolConformance(createTool: CreateTool, options: ToolConformanceOptions): readonly ToolConformanceCase[] {
  if (typeof createTool !== 'function') throw new TypeError(`toolConformance takes a function that makes a tool: ${CORRECT_CALL}`);
  assertOptions(options, OPTIONS, { taker: 'toolConformance', example: CORRECT_CALL });
  assertOptions(options.inputs, INPUTS, { taker: 'toolConformance: `inputs`', example: CORRECT_CALL });
  const { good, failing = [], long = [] } = options.inputs;
  if (!isList(good, isRecord) || good.length === 0) throw new TypeError(`toolConformance: \`inputs.good\` is a list of arguments that the tool takes, objects, at least one: ${CORRECT_CALL}`);
  for (const [name, list] of Object.entries({ failing, long })) {
    if (!isList(list, isRecord)) throw new TypeError(`toolConformance: \`inputs.${name}\` is a list of arguments, objects: ${CORRECT_CALL}`);
  }
  // An empty text is in everything.
  if (!isList(options.secrets ?? [], (secret) => typeof secret === 'string' && secret !== '')) throw new TypeError(`toolConformance: \`secrets\` is a list of texts, none of them empty: ${CORRECT_CALL}`);
  const { inputs, secrets = [], skip, maxResultCharacters = DEFAULT_MAX_RESULT_CHARACTERS, settleWithinMs = DEFAULT_SETTLE_WITHIN_MS } = options;
  for (const [name, value] of Object.entries({ maxResultCharacters, settleWithinMs })) {
    if (!(value > 0)) throw new TypeError(`toolConformance: \`${name}\` is ${value}, and must be more than 0.`);
  }
  const stageOptions: ToolStageOptions = { createTool, inputs, secrets, maxResultCharacters, settleWithinMs };
  return conformanceCases({
    kit: 'toolConformance',
    example: CORRECT_CALL,
    definitions: CASES,
    skip,
    run: (run) => runOnStage(new ToolStage(stageOptions), run),
  });
}

function isList(value: unknown, isItem: (item: unknown) => boolean): value is readonly unknown[] {
  return Array.isArray(value) && value.every(isItem);
}
