/**
 * Stage: one run of one case. Makes tools, runs their calls as the loop would, and cleans up.
 *
 * - No call is waited for without a limit.
 * - However a case ends: calls are aborted, what was made is closed.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { LLM } from '../../core/llm.ts';
import type { Runtime } from '../../core/runtime.ts';
import { checkToolInput } from '../../core/tool-input.ts';
import type { AnyTool } from '../../core/tool.ts';
import { toolContext, type TestToolContext } from '../builders.ts';
import { nextTask } from '../next-task.ts';
import { watchedController, type WatchedController } from '../watched-controller.ts';
import { fail, shown } from './llm-conformance-checks.ts';
import { countingRuntime, pause, startLimit } from './llm-conformance-wait.ts';
import { imageOf } from './tool-conformance-image.ts';

/** A tool, and what its author knows of the world around it. */
export interface ToolUnderTest {
  /** The tool. */
  readonly tool: AnyTool;
  /** The host's own value, for tools that look at `context.host`. */
  readonly host?: unknown;
  /** The model, for tools that ask `context.llm`. @defaultValue one that refuses every request */
  readonly llm?: LLM | undefined;
  /** What the tool may change, as JSON, such as the files of its folder: for `replay`. */
  readonly state?: (() => unknown) | undefined;
  /** Throws its world away. */
  readonly close?: (() => void | Promise<void>) | undefined;
}

/** Makes a tool in a world of its own, which looks the same each time. */
export type CreateTool = () => ToolUnderTest | Promise<ToolUnderTest>;

/** Arguments that a tool has to refuse. */
export interface BadToolInput {
  /** The arguments. */
  readonly input: JsonValue;
  /** Name of the field that is wrong, which the refusal has to tell the model. */
  readonly field: string;
}

/** What the cases run a tool with. */
export interface ToolInputs {
  /** Arguments that it takes and succeeds with, soon; at least one. */
  readonly good: readonly JsonObject[];
  /** Arguments that it has to refuse: for `input.bad`. @defaultValue none */
  readonly bad?: readonly BadToolInput[] | undefined;
  /** Arguments that it takes and then fails with, such as the name of a file that is not there: for `failure`. @defaultValue none */
  readonly failing?: readonly JsonObject[] | undefined;
  /** Arguments with which it goes on until it is aborted, or for very long: for `abort`. @defaultValue none */
  readonly long?: readonly JsonObject[] | undefined;
}

/** What a stage needs. */
export interface ToolStageOptions {
  readonly createTool: CreateTool;
  readonly inputs: ToolInputs;
  readonly secrets: readonly string[];
  readonly maxResultCharacters: number;
  readonly settleWithinMs: number;
}

/** How a call ended. */
export type CallEnd = { readonly kind: 'returned'; readonly value: unknown } | { readonly kind: 'threw'; readonly error: unknown };

/** Which part of the limit "at once" is. */
const AT_ONCE = 0.25;
/** How long to listen for what must not come. */
const QUIET_MS = 50;
const SETTLED_HOPS = 3;

/** One run of one case. */
export class ToolStage {
  readonly options: ToolStageOptions;
  readonly #made: ToolUnderTest[] = [];
  readonly #calls: ToolCall[] = [];

  constructor(options: ToolStageOptions) {
    this.options = options;
  }

  /** Makes a tool in a world of its own. */
  async make(): Promise<ToolSubject> {
    const made = await this.within(Promise.resolve(this.options.createTool()), 'createTool');
    this.#made.push(made);
    return new ToolSubject(this, made);
  }

  /** The arguments of a kind. @throws Error if the author gave none. */
  inputs<Kind extends keyof ToolInputs>(kind: Kind): NonNullable<ToolInputs[Kind]> {
    const given = this.options.inputs[kind];
    if (given === undefined || given.length === 0) fail(`this case needs arguments in \`inputs.${kind}\`: give some, or skip the case with a reason`);
    return given;
  }

  /** All arguments that the tool takes. */
  accepted(): readonly JsonObject[] {
    const { good, failing = [], long = [] } = this.options.inputs;
    return [...good, ...failing, ...long];
  }

  /** What must not be shown. @throws Error if the author named nothing. */
  secrets(): readonly string[] {
    const { secrets } = this.options;
    if (secrets.length === 0) fail('this case needs the texts in `secrets` that nobody may see: give some, or skip the case with a reason');
    return secrets;
  }

  /** Runs a tool that is new, and gives the call once it has ended. */
  async run(input: JsonValue): Promise<ToolCall> {
    const subject = await this.make();
    return subject.run(input);
  }

  /** Keeps account of a call. */
  add(call: ToolCall): ToolCall {
    this.#calls.push(call);
    return call;
  }

  /** Waits for a promise, but not for ever. @param what - What it is, for the message. */
  within<Value>(promise: Promise<Value>, what: string, isAtOnce: boolean = false): Promise<Value> {
    const limitMs = this.options.settleWithinMs * (isAtOnce ? AT_ONCE : 1);
    return new Promise((resolve, reject) => {
      const cancel = startLimit(limitMs, () => {
        reject(new Error(`${what} did not settle within ${limitMs} ms (${isAtOnce ? 'a quarter of ' : ''}the option \`settleWithinMs\`)`));
      });
      promise.then(resolve, reject).finally(cancel);
    });
  }

  /** Listens for what must not come. */
  quiet(): Promise<void> {
    return pause(QUIET_MS);
  }

  /** Lets go of everything. */
  async finish(): Promise<void> {
    for (const { controller } of this.#calls) controller.abort();
    // Whoever ignores an abort is found out by the cases about it.
    await this.within(Promise.all(this.#calls.map(({ ended }) => ended)), 'what still ran', true).catch(() => undefined);
    for (const { close } of this.#made) await this.within(Promise.resolve(close?.()), '`close`');
  }
}

/** A tool in a world of its own. */
export class ToolSubject {
  readonly tool: AnyTool;
  readonly #stage: ToolStage;
  readonly #made: ToolUnderTest;
  #callCount = 0;

  constructor(stage: ToolStage, made: ToolUnderTest) {
    this.#stage = stage;
    this.#made = made;
    this.tool = made.tool;
  }

  /** Reads arguments as the loop does: what `execute` takes, or what the model is told. */
  async read(input: JsonValue): Promise<{ readonly parsed: unknown } | { readonly refusal: string }> {
    const read = await this.#stage.within(Promise.resolve(checkToolInput(this.tool, input)), '`parseInput`');
    return read.ok ? { parsed: read.parsed } : { refusal: ownWords(read.message) };
  }

  /** Reads arguments that the tool has to take. */
  async parse(input: JsonValue): Promise<unknown> {
    const read = await this.read(input);
    if ('refusal' in read) fail(`the arguments ${shown(input)} were refused: ${read.refusal}`);
    return read.parsed;
  }

  /** Starts a call. @param key - Of a call before, to run that one again. */
  async start(input: JsonValue, controller: WatchedController = watchedController(), key?: string): Promise<ToolCall> {
    const parsed = await this.parse(input);
    const { host, llm } = this.#made;
    this.#callCount += 1;
    const toolCallId = key ?? `call_${this.#callCount}`;
    const call = new ToolCall(parsed, controller);
    const context = toolContext({
      ...{ toolCallId, host, inputText: JSON.stringify(input), signal: controller.signal, runtime: call.runtime },
      ...(llm !== undefined && { llm }),
    });
    call.begin(context, () => this.tool.execute(parsed, context));
    return this.#stage.add(call);
  }

  /** Runs a call to its end. */
  async run(input: JsonValue, key?: string): Promise<ToolCall> {
    const call = await this.start(input, undefined, key);
    await this.#stage.within(call.ended, `execute with ${shown(input)}`);
    return call;
  }

  /** Whether its author can tell what the tool may change. */
  get hasState(): boolean {
    return this.#made.state !== undefined;
  }

  /** What the tool may change, as it is now. */
  async state(): Promise<unknown> {
    const { state } = this.#made;
    if (state === undefined) fail('this case needs `state()` of what createTool gives: offer it, or skip the case with a reason');
    return state();
  }
}

/** One call of a tool. */
export class ToolCall {
  /** The arguments as `execute` was given them. */
  readonly parsed: unknown;
  /** Their image from before the call. */
  readonly parsedAtStart: unknown;
  readonly controller: WatchedController;
  readonly #pending = countingRuntime();
  #context: TestToolContext | undefined;
  #end: CallEnd | undefined;
  #heardAtEnd = 0;
  #ended: Promise<CallEnd> = Promise.reject(new Error('The call has not begun.'));

  constructor(parsed: unknown, controller: WatchedController) {
    this.parsed = parsed;
    this.parsedAtStart = imageOf(parsed);
    this.controller = controller;
    this.#ended.catch(() => undefined);
  }

  /** Its clock. */
  get runtime(): Runtime {
    return this.#pending.runtime;
  }

  /** Runs the tool. */
  begin(context: TestToolContext, execute: () => unknown): void {
    this.#context = context;
    this.#ended = (async (): Promise<CallEnd> => {
      try {
        return this.#endWith({ kind: 'returned', value: await execute() });
      } catch (error) {
        return this.#endWith({ kind: 'threw', error });
      }
    })();
  }

  /** Resolves with how it ended. */
  get ended(): Promise<CallEnd> {
    return this.#ended;
  }

  /** How it ended; undefined while it runs. */
  get end(): CallEnd | undefined {
    return this.#end;
  }

  /** What it told of its progress, in order. */
  get updates(): readonly unknown[] {
    return this.#context?.updates ?? [];
  }

  /** What it told after it had ended. */
  get toldLate(): number {
    return this.#heard - this.#heardAtEnd;
  }

  /** How many timers wait that it set. */
  get pendingTimers(): number {
    return this.#pending.pendingTimers();
  }

  /** Lets what it cleans up be cleaned up. */
  async settle(): Promise<void> {
    for (let hop = 0; hop < SETTLED_HOPS; hop += 1) await nextTask();
  }

  get #heard(): number {
    const { updates = [], forwarded = [] } = this.#context ?? {};
    return updates.length + forwarded.length;
  }

  #endWith(end: CallEnd): CallEnd {
    this.#heardAtEnd = this.#heard;
    this.#end = end;
    return end;
  }
}

/** What the tool says of wrong arguments, without what the loop puts around it: there each field is named. */
function ownWords(message: string): string {
  return /^Invalid arguments for ".*?": (.*)\. Nothing was run\. The form is /s.exec(message)?.[1] ?? message;
}
