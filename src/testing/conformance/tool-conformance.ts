/**
 * Tool conformance: what the loop expects of a tool, as cases for any test runner.
 *
 * - Each case has a tool in a world of its own, so that cases may run in any order, also side by side.
 * - A case that does not apply is skipped by name and with a reason, and stays in the list.
 */
import { assertOptions } from '../../core/assert.ts';
import { assertSkips, groupOf, skipReason } from './conformance-skip.ts';
import { toolAbortCases } from './tool-conformance-aborts.ts';
import type { ToolCaseDefinition, ToolConformanceCaseId, ToolConformanceGroup } from './tool-conformance-case.ts';
import { toolDefinitionCases } from './tool-conformance-definition.ts';
import { toolRunCases } from './tool-conformance-runs.ts';
import { ToolStage, type CreateTool, type ToolInputs, type ToolStageOptions } from './tool-conformance-stage.ts';

/** One thing that a tool has to do. Made by {@link toolConformance}. */
export interface ToolConformanceCase {
  /** Stable name, for `skip`. */
  readonly id: ToolConformanceCaseId;
  /** First word of the id, for `skip` too. */
  readonly group: ToolConformanceGroup;
  /** Id and a sentence; of a skipped case also why. For the test runner. */
  readonly name: string;
  /** Why the case is skipped; absent for one that runs. */
  readonly skipped?: string | undefined;
  /** Rejects with an `Error` that says what the tool does wrong. A skipped case does nothing. */
  readonly run: () => Promise<void>;
}

/** Options of {@link toolConformance}. */
export interface ToolConformanceOptions {
  /** What to run the tool with. */
  readonly inputs: ToolInputs;
  /** Texts that its world has and that nobody may see, such as a key: for `secrets`. @defaultValue none */
  readonly secrets?: readonly string[] | undefined;
  /** Cases, or groups of them, that do not apply, each with the reason. @defaultValue none */
  readonly skip?: Readonly<Partial<Record<ToolConformanceCaseId | ToolConformanceGroup, string>>> | undefined;
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
const CASES = Object.entries({ ...toolDefinitionCases, ...toolRunCases, ...toolAbortCases }) as readonly (readonly [ToolConformanceCaseId, ToolCaseDefinition])[];

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
  if (!isFilledList(options.inputs.good)) throw new TypeError(`toolConformance: \`inputs.good\` is a list of arguments that the tool takes, at least one: ${CORRECT_CALL}`);
  const { inputs, secrets = [], skip = {}, maxResultCharacters = DEFAULT_MAX_RESULT_CHARACTERS, settleWithinMs = DEFAULT_SETTLE_WITHIN_MS } = options;
  for (const [name, value] of Object.entries({ maxResultCharacters, settleWithinMs })) {
    if (!(value > 0)) throw new TypeError(`toolConformance: \`${name}\` is ${value}, and must be more than 0.`);
  }
  assertSkips(skip, CASES.map(([id]) => id), { kit: 'toolConformance', example: CORRECT_CALL });
  const stageOptions: ToolStageOptions = { createTool, inputs, secrets, maxResultCharacters, settleWithinMs };
  return CASES.map(([id, { title, run }]): ToolConformanceCase => {
    // The type of ids and that of groups say the same.
    const group = groupOf(id) as ToolConformanceGroup;
    const skipped = skipReason(skip, id);
    const name = `${id}: ${title}`;
    if (skipped !== undefined) return { id, group, name: `${name} (skipped: ${skipped})`, skipped, run: async () => undefined };
    return { id, group, name, run: () => runCase(new ToolStage(stageOptions), run) };
  });
}

async function runCase(stage: ToolStage, run: ToolCaseDefinition['run']): Promise<void> {
  try {
    await run(stage);
  } catch (failure) {
    // What is wrong has been found: whatever else goes wrong now comes of it.
    await stage.finish().catch(() => undefined);
    throw failure;
  }
  await stage.finish();
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
