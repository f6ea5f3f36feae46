/**
 * Recording tool: a tool that keeps every run of it. All other tools of this entry are made of it.
 *
 * Every member of a tool can be set, so that a test says only what it is about.
 */
import type { JsonSchema } from '../core/json.ts';
import { isRecord } from '../core/json.ts';
import type { ToolAccess } from '../core/tool-access.ts';
import type { Tool, ToolContext, ToolReplay, ToolReturn } from '../core/tool.ts';

/** Arguments of a test tool: an object, of which nothing else is known. */
export type TestToolInput = Readonly<Record<string, unknown>>;

/** What can be set about any test tool. */
export interface TestToolOptions {
  /** @defaultValue what the tool is: `echo`, `fail` … */
  readonly name?: string | undefined;
  /** @defaultValue a short sentence */
  readonly description?: string | undefined;
  /** @defaultValue any object */
  readonly inputSchema?: JsonSchema | undefined;
  /** Checks the arguments. @defaultValue none: the loop's own check */
  readonly parseInput?: ((input: unknown) => TestToolInput | Promise<TestToolInput>) | undefined;
  /** What a call touches. @defaultValue no declaration, so each call runs alone */
  readonly accesses?: readonly ToolAccess[] | ((input: TestToolInput) => readonly ToolAccess[]) | undefined;
  /** @defaultValue left out */
  readonly readOnly?: boolean | undefined;
  /** @defaultValue left out */
  readonly replay?: ToolReplay | undefined;
  /** @defaultValue left out */
  readonly timeoutMs?: number | undefined;
  /** What a call would do, in words. @defaultValue left out */
  readonly describe?: ((input: TestToolInput) => string) | undefined;
}

/** One run of a test tool. */
export interface ToolRun {
  /** Id of the call. */
  readonly toolCallId: string;
  /** What it was run with. */
  readonly input: TestToolInput;
  /** The context it was given. */
  readonly context: ToolContext;
  /** When it started, by the turn's runtime. */
  readonly startedAt: number;
  /** When it ended, by the turn's runtime; undefined while it runs. */
  readonly endedAt: number | undefined;
  /** How it stands: `aborted` is a failure after its signal aborted. */
  readonly state: 'running' | 'returned' | 'threw' | 'aborted';
}

/** A tool that keeps every run of it. */
export interface TestTool extends Tool<TestToolInput> {
  /** Every run, in order of start. */
  readonly runs: readonly ToolRun[];
  /** The arguments of every run, in order of start. */
  readonly inputs: readonly TestToolInput[];
  /** How many runs have started. */
  readonly runCount: number;
  /** How many runs have not ended. */
  readonly runningCount: number;
  /** Most runs that were under way at once. */
  readonly maxRunning: number;
}

/** What a recording tool does. */
export type TestToolExecute = (input: TestToolInput, context: ToolContext) => ToolReturn | Promise<ToolReturn>;

/** Options of {@link recordingTool}. */
export interface RecordingToolOptions extends TestToolOptions {
  /** What it does. @defaultValue returns `done` */
  readonly execute?: TestToolExecute | undefined;
}

/** Schema of a tool that takes any arguments. */
const ANY_INPUT: JsonSchema = { type: 'object', properties: {} };

/** A tool that does what you say and keeps every run of it. */
export function recordingTool(options: RecordingToolOptions = {}): TestTool {
  const { parseInput, accesses, readOnly, replay, timeoutMs, describe } = options;
  const log = new RunLog(options.execute ?? (() => 'done'));
  return {
    name: options.name ?? 'record',
    description: options.description ?? 'A tool of a test.',
    inputSchema: options.inputSchema ?? ANY_INPUT,
    ...(parseInput !== undefined && { parseInput }),
    ...(accesses !== undefined && { accesses: typeof accesses === 'function' ? accesses : () => accesses }),
    ...(readOnly !== undefined && { readOnly }),
    ...(replay !== undefined && { replay }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(describe !== undefined && { describe }),
    execute: (input, context) => log.run(input, context),
    get runs() {
      return log.runs;
    },
    get inputs() {
      return log.runs.map((run) => run.input);
    },
    get runCount() {
      return log.runs.length;
    },
    get runningCount() {
      return log.running;
    },
    get maxRunning() {
      return log.maxRunning;
    },
  };
}

/**
 * Makes a recording tool with members of its own. A spread would freeze the counts, which are getters.
 *
 * @param members - What the tool has beside a recording tool's members.
 */
export function extendTool<Members extends object>(tool: TestTool, members: Members): TestTool & NoInfer<Members> {
  // `defineProperties` has no type for what it adds.
  return Object.defineProperties(tool, Object.getOwnPropertyDescriptors(members)) as TestTool & NoInfer<Members>;
}

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

class RunLog {
  readonly runs: Mutable<ToolRun>[] = [];
  running = 0;
  maxRunning = 0;
  readonly #execute: TestToolExecute;

  constructor(execute: TestToolExecute) {
    this.#execute = execute;
  }

  /** Runs without a promise where the tool returns at once, and throws where it throws: as the tool itself would. */
  run(input: TestToolInput, context: ToolContext): ToolReturn | Promise<ToolReturn> {
    const run: Mutable<ToolRun> = {
      toolCallId: context.toolCallId,
      input,
      context,
      startedAt: context.runtime.now(),
      endedAt: undefined,
      state: 'running',
    };
    this.runs.push(run);
    this.running += 1;
    this.maxRunning = Math.max(this.maxRunning, this.running);
    const end = (state: ToolRun['state']): void => {
      this.running -= 1;
      run.endedAt = context.runtime.now();
      run.state = state;
    };
    const threw = (): ToolRun['state'] => (context.signal.aborted ? 'aborted' : 'threw');

    let returned: ToolReturn | Promise<ToolReturn>;
    try {
      returned = this.#execute(input, context);
    } catch (error) {
      end(threw());
      throw error;
    }
    if (!isPromise(returned)) {
      end('returned');
      return returned;
    }
    return returned.then(
      (value) => {
        end('returned');
        return value;
      },
      (error: unknown) => {
        end(threw());
        throw error;
      },
    );
  }
}

function isPromise<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return isRecord(value) && 'then' in value;
}
