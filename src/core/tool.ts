/**
 * Tool: something the model may ask to run. Types, `defineTool` and `suspend`.
 *
 * Members are methods, so that a list can mix tools of different inputs. What becomes of a return value is
 * `tool-result.ts`'s business, what becomes of an argument text `tool-input.ts`'s.
 */
import type { JsonSchema, JsonValue } from './json.ts';
import { isRecord } from './json.ts';
import type { LLM, ToolDefinition } from './llm.ts';
import type { ToolResultPart } from './message.ts';
import type { Runtime } from './runtime.ts';
import type { ToolAccess } from './tool-access.ts';
import type { Usage } from './usage.ts';

/** What a tool hands back when text or parts alone are not enough. */
export interface ToolResult {
  /** What the model sees: text, or parts in reading order. */
  readonly content: string | readonly ToolResultPart[];
  /** True for a failure; the model is told. @defaultValue false */
  readonly isError?: boolean | undefined;
  /** For people only: anything a UI can show, such as the full text of a shortened output. Never sent to a model. */
  readonly display?: JsonValue | undefined;
  /** For the model only, put after the content. */
  readonly note?: string | undefined;
  /** Ends the turn after this step: later calls that have not started are skipped. Ignored on a failure. */
  readonly stopTurn?: boolean | undefined;
  /** Says that `content` was shortened. */
  readonly truncated?: boolean | undefined;
}

/** A call that waits for a decision, with what is needed to show it to a person. Plain JSON. */
export interface PendingCall {
  /** Id of the call. */
  readonly toolCallId: string;
  /** Name of the tool. */
  readonly name: string;
  /** The arguments it would run with. */
  readonly input: JsonValue;
  /** What it would do, in words, where the tool says. */
  readonly description?: string | undefined;
  /** Why it waits, in words, where the hook says. */
  readonly reason?: string | undefined;
  /** Step of the turn that made the call, 1-based. */
  readonly step: number;
  /** Ids of the calls that lead from the turn to the sub-agent that made it; empty for the turn's own calls. */
  readonly agentPath: readonly string[];
}

/** A decision about a pending call. */
export type ToolCallDecision =
  | {
      /** Id of the call. */
      readonly toolCallId: string;
      /** What is decided. */
      readonly action: 'allow';
    }
  | {
      /** Id of the call. */
      readonly toolCallId: string;
      /** What is decided. */
      readonly action: 'deny';
      /** Why, in words. */
      readonly reason?: string | undefined;
    }
  | {
      /** Id of the call. */
      readonly toolCallId: string;
      /** What is decided. */
      readonly action: 'edit';
      /** The new arguments; they are validated again. */
      readonly input: JsonValue;
    }
  | {
      /** Id of the call. */
      readonly toolCallId: string;
      /** What is decided. */
      readonly action: 'answer';
      /** The result. */
      readonly result: string | ToolResult;
    };

/** What {@link suspend} was given. */
export interface SuspendOptions {
  /** The calls that wait, of a sub-agent; empty if the call itself waits. */
  readonly pending?: readonly PendingCall[] | undefined;
  /** What the tool needs to go on; plain JSON, recorded. */
  readonly state: JsonValue;
}

/** Return value of a tool that cannot go on without a decision. Made by {@link suspend}. */
export interface Suspension extends SuspendOptions {
  /** Tells this shape from the others. */
  readonly kind: 'turnloop.suspend';
}

/**
 * Suspends the call: the turn ends `suspended`, and the tool runs again with `context.resumed` once it is resumed.
 *
 * @param options - What waits, and what the tool needs to go on.
 */
export function suspend(options: SuspendOptions): Suspension {
  return { kind: 'turnloop.suspend', ...options };
}

/** True for what {@link suspend} made. */
export function isSuspension(value: unknown): value is Suspension {
  return isRecord(value) && value['kind'] === 'turnloop.suspend';
}

/** How far a tool is; live only. */
export type ToolUpdate =
  | {
      /** Tells this shape from the others. */
      readonly kind: 'stdout';
      /** The text. */
      readonly text: string;
    }
  | {
      /** Tells this shape from the others. */
      readonly kind: 'stderr';
      /** The text. */
      readonly text: string;
    }
  | {
      /** Tells this shape from the others. */
      readonly kind: 'progress';
      /** How much is done, 0 to 100. */
      readonly percent: number;
      /** The text. */
      readonly text?: string | undefined;
    }
  | {
      /** Tells this shape from the others. */
      readonly kind: 'status';
      /** The text. */
      readonly text: string;
    }
  | {
      /** Tells this shape from the others. */
      readonly kind: 'custom';
      /** Plain JSON. */
      readonly data: JsonValue;
    };

/** What a suspended call is given when it runs again. */
export interface ResumedCall {
  /** What was handed to {@link suspend}. */
  readonly state: JsonValue;
  /** The decisions about what was pending; possibly not all. */
  readonly decisions: readonly ToolCallDecision[];
}

/** An event of a sub-agent, as far as a tool needs to know it: every event of a turn is one. */
export interface ChildEvent {
  /** Type of the event. */
  readonly type: string;
  /** The turn. */
  readonly turnId: string;
  /** When, in milliseconds since the epoch. */
  readonly at: number;
  /** Ids of the calls that lead to the sub-agent, outermost first. */
  readonly agentPath?: readonly string[] | undefined;
}

/** What a running call is given. */
export interface ToolContext {
  /** The turn. */
  readonly turnId: string;
  /** The step, 1-based. */
  readonly step: number;
  /** Id of the call. */
  readonly toolCallId: string;
  /** The same for every try of this call, also after a crash: hand it to services that take one. */
  readonly idempotencyKey: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** Aborts with the turn, with `control.cancelToolCall`, and when `timeoutMs` is over. */
  readonly signal: AbortSignal;
  /** Tells how far the call is. Does nothing once the call has ended. Never throws. */
  progress(update: ToolUpdate): void;
  /** The model of this step. */
  readonly llm: LLM;
  /** The host's own value, as given to the turn. */
  readonly host: unknown;
  /** Clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** Emits an event of a sub-agent live into this turn, with this call put in front of its `agentPath`. */
  forward(event: ChildEvent): void;
  /** Adds tokens that a sub-agent spent to the turn's usage. Resolves once it is recorded; never rejects. */
  recordUsage(usage: Usage, modelId: string): Promise<void>;
  /** Set when the call runs again after it suspended. */
  readonly resumed?: ResumedCall | undefined;
}

/** What `execute` may return. */
export type ToolReturn = string | readonly ToolResultPart[] | ToolResult | Suspension;

/**
 * What a resume may do with a call that had started and whose outcome nobody knows: `safe` changes nothing, so it runs
 * again; `idempotent` runs again with the same `idempotencyKey`; `never` is not run, and the model is told so.
 */
export type ToolReplay = 'safe' | 'idempotent' | 'never';

/** Something the model may ask to run. */
export interface Tool<Input = unknown> extends ToolDefinition {
  /**
   * Checks the arguments and turns them into what `execute` takes. Throws, or rejects, with a message for the model.
   * Without it the loop checks that the arguments are an object with the `required` properties, and the types of the
   * top-level properties.
   */
  parseInput?(input: unknown): Input | Promise<Input>;
  /** What the call touches. @defaultValue everything; for a `readOnly` tool a read of everything */
  accesses?(input: Input): readonly ToolAccess[];
  /** Whether the tool changes nothing; implies `replay: 'safe'`. @defaultValue false */
  readonly readOnly?: boolean | undefined;
  /** What a resume may do with a call of unknown outcome. @defaultValue `'never'`; `'safe'` for a `readOnly` tool */
  readonly replay?: ToolReplay | undefined;
  /** How long a call may take, in milliseconds; then it is aborted and the model is told. @defaultValue no limit */
  readonly timeoutMs?: number | undefined;
  /** What the call would do, in one line for people. */
  describe?(input: Input): string;
  /**
   * Runs the tool. A throw is an error result with its message. Called at most once per call, unless a resume finds that
   * it may be repeated.
   */
  execute(input: Input, context: ToolContext): ToolReturn | Promise<ToolReturn>;
}

/** A tool of any input, as lists hold it. */
// Members are methods, hence bivariant: a tool of a narrower input is assignable to this one.
export type AnyTool = Tool;

/** The replay rule that holds for a tool. */
export function replayOf(tool: AnyTool): ToolReplay {
  return tool.replay ?? (tool.readOnly === true ? 'safe' : 'never');
}

/** A validator of the Standard Schema specification, version 1. @see https://standardschema.dev */
export interface StandardSchema<Output = unknown> {
  /** The specification's entry. */
  readonly '~standard': {
    /** Version of the specification. */
    readonly version: 1;
    /** Name of the schema library. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Input and output type; never set, for inference only. */
    readonly types?: StandardTypes<Output> | undefined;
    /** Its JSON Schema, where the library gives one. */
    readonly jsonSchema?: StandardJsonSchema | undefined;
  };
}

/** Types of a Standard Schema; there are no such values. */
export interface StandardTypes<Output> {
  /** Of the value that goes in. */
  readonly input: unknown;
  /** Of the value that comes out. */
  readonly output: Output;
}

/** How a Standard Schema gives its JSON Schema, where it can. */
export interface StandardJsonSchema {
  /** JSON Schema of what goes in. */
  readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
}

/** What a Standard Schema's `validate` gives: a value, or issues. */
export type StandardResult<Output> =
  | {
      /** The value, as the schema gives it. */
      readonly value: Output;
      /** What is wrong. */
      readonly issues?: undefined;
    }
  | {
      /** What is wrong. */
      readonly issues: readonly StandardIssue[];
    };

/** One thing wrong with a value. */
export interface StandardIssue {
  /** What is wrong, in words. */
  readonly message: string;
  /** Where, from the outside in. */
  readonly path?: readonly (PropertyKey | StandardPathSegment)[] | undefined;
}

/** A step of a path, as some libraries write it. */
export interface StandardPathSegment {
  /** A property name or an index. */
  readonly key: PropertyKey;
}

/** What {@link defineTool} takes beside the members of a {@link Tool}. */
export interface ToolOptions<Input> extends Omit<Tool<Input>, 'inputSchema' | 'parseInput' | 'execute' | 'accesses' | 'describe'> {
  /** A Standard Schema (zod, valibot, arktype …), or a JSON Schema of the arguments. */
  readonly input: StandardSchema<Input> | JsonSchema;
  /** JSON Schema of the arguments, for a Standard Schema that cannot give its own, or to show the model another one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** What the call touches. */
  readonly accesses?: ((input: Input) => readonly ToolAccess[]) | undefined;
  /** What the call would do, in one line for people. */
  readonly describe?: ((input: Input) => string) | undefined;
  /** Runs the tool. */
  readonly execute: (input: Input, context: ToolContext) => ToolReturn | Promise<ToolReturn>;
}

/**
 * Defines a tool and infers its input type from the schema.
 *
 * With a Standard Schema the arguments are validated by it, and `execute` gets its output. With a JSON Schema the loop
 * checks required properties and top-level types only, and the input is a record of unknowns.
 *
 * @throws TypeError if the name, the schema or `execute` is missing, or a Standard Schema gives no JSON Schema and
 * `inputSchema` is missing.
 */
export function defineTool<Output>(options: ToolOptions<Output> & { readonly input: StandardSchema<Output> }): Tool<Output>;
export function defineTool(
  options: ToolOptions<Record<string, unknown>> & { readonly input: JsonSchema },
): Tool<Record<string, unknown>>;
export function defineTool<Input>(options: ToolOptions<Input>): Tool<Input> {
  assertToolOptions(options);
  const { input, inputSchema, ...members } = options;
  const rest = members as Omit<Tool<Input>, 'inputSchema'>;
  if (!isStandardSchema(input)) return { ...rest, inputSchema: inputSchema ?? input };
  return {
    ...rest,
    inputSchema: inputSchema ?? jsonSchemaOf(input, options.name),
    parseInput: (value) => validate(input, value),
  };
}

function assertToolOptions(options: unknown): void {
  const members: Record<string, unknown> = isRecord(options) ? options : {};
  const isSchema = (value: unknown): boolean => (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (typeof members['name'] === 'string' && isSchema(members['input']) && typeof members['execute'] === 'function') return;
  throw new TypeError(
    `defineTool${typeof members['name'] === 'string' ? ` for "${members['name']}"` : ''} needs a name, an input schema and execute: ` +
      "defineTool({ name: 'echo', description: 'Says it again.', input: schema, execute: ({ text }) => text }).",
  );
}

function isStandardSchema<Input>(schema: StandardSchema<Input> | JsonSchema): schema is StandardSchema<Input> {
  // arktype's schemas are functions.
  return (typeof schema === 'object' || typeof schema === 'function') && '~standard' in schema;
}

function jsonSchemaOf(schema: StandardSchema, name: string): JsonSchema {
  const own = schema['~standard'].jsonSchema;
  if (own === undefined) {
    throw new TypeError(
      `The schema of tool "${name}" (${schema['~standard'].vendor}) gives no JSON Schema. Pass it beside the schema: ` +
        `defineTool({ name: "${name}", input: schema, inputSchema: { type: 'object', properties: { … } }, … }).`,
    );
  }
  // The specification says that this is a JSON Schema; the loop checks it when a turn starts.
  return own.input({ target: 'draft-2020-12' }) as JsonSchema;
}

async function validate<Output>(schema: StandardSchema<Output>, value: unknown): Promise<Output> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  throw new Error(result.issues.map(issueText).join('; '));
}

function issueText(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}
