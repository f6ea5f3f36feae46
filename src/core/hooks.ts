/**
 * Hooks, stop conditions and recoveries: where policies plug in. Types only.
 *
 * Hooks are awaited, run in list order and may change what happens next; listeners only observe. A hook that fails is
 * never silent: it is reported as a `notice` named `hook.failed`, and what else follows is said at each hook.
 */
import type { LLMError, LLMErrorKind } from './errors.ts';
import type { CompactionEvent, RecordedToolResult, UsageEvent } from './events.ts';
import type { JsonSchema, JsonValue } from './json.ts';
import type { LLM, LLMRequest, Notice, ToolChoice } from './llm.ts';
import type { AssistantMessage, Message, UserMessage } from './message.ts';
import type { Runtime } from './runtime.ts';
import type { StepStopReason, TurnStopReason } from './stop-reason.ts';
import type { AnyTool, ToolResult, ToolUpdate } from './tool.ts';
import type { ToolAccess } from './tool-access.ts';
import type { Usage } from './usage.ts';

/** What may be left out of an event that a hook records: the loop fills it in. */
export type HookRecord =
  | Omit<CompactionEvent, 'turnId' | 'at' | 'metadata'>
  | Pick<UsageEvent, 'type' | 'modelId' | 'purpose' | 'usage'>;

/** What every hook is given. */
export interface HookContext {
  /** The turn. */
  readonly turnId: string;
  /** The step, 1-based: the one that runs, or for `beforeStep` the one about to begin. */
  readonly step: number;
  /** Aborts with the turn. */
  readonly signal: AbortSignal;
  /** The model of this step. */
  readonly llm: LLM;
  /** Clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** The host's own value, as given to the turn. */
  readonly host: unknown;
  /** Tokens the turn has spent so far. */
  readonly usage: Usage;
  /** The messages that the turn was given, as they are recorded; empty in a turn that is gone on with. */
  readonly input: readonly UserMessage[];
  /** Tools of this step; for `beforeStep` those of the step before, or in the first step those that it will have. */
  readonly tools: readonly AnyTool[];
  /** The history as the next request would have it. */
  messages(): Promise<readonly Message[]>;
  /** Records a compaction or tokens spent. Resolves once it is durable. */
  record(event: HookRecord): Promise<void>;
  /** Emits a live `notice` event. */
  notify(notice: Notice): void;
}

/** How a hook or condition ends the turn. */
export interface StopRequest {
  /** @defaultValue `'stopped'` */
  readonly stopReason?: Exclude<TurnStopReason, 'suspended'> | undefined;
  /** Why, in words; becomes `TurnResult.stopMessage`. */
  readonly reason: string;
}

/** What `beforeStep` may ask for. Of several hooks the later wins, setting by setting. */
export interface StepSettings {
  /** Which tools this step's reply may call. */
  readonly toolChoice?: ToolChoice | undefined;
  /** Asks for JSON of this schema. */
  readonly responseSchema?: JsonSchema | undefined;
  /** Most tokens of this step's reply. */
  readonly maxOutputTokens?: number | undefined;
}

/** What `beforeStep` may return. */
export type BeforeStepResult = StepSettings & {
  /** Ends the turn before this step begins. */
  readonly block?: StopRequest | undefined;
};

/** A call as hooks see it. */
export interface HookCall {
  /** Our id. */
  readonly toolCallId: string;
  /** Name of the tool. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** The arguments as they stand now: parsed, and rewritten by the hooks before. */
  readonly input: JsonValue | undefined;
  /** The tool; absent for an unknown one. */
  readonly tool: AnyTool | undefined;
  /** What it would do, in words, where the tool says; from `authorizeToolCall` on. */
  readonly description?: string | undefined;
  /** What it touches; from `authorizeToolCall` on. */
  readonly accesses?: readonly ToolAccess[] | undefined;
  /** All calls of the reply, this one included, in provider order. */
  readonly siblings: readonly HookSibling[];
}

/** Another call of the same reply. */
export interface HookSibling {
  /** Id of the call. */
  readonly toolCallId: string;
  /** Name of the tool, as the call had it. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
}

/** What `prepareToolCall` may do with a call. */
export type PrepareDecision =
  /** Run it with these arguments; they are validated again. */
  | {
      /** What is decided. */
      readonly action: 'rewrite';
      /** The new arguments; they are validated again. */
      readonly input: JsonValue;
    }
  /** Do not run it; the model gets the reason as an error. */
  | {
      /** What is decided. */
      readonly action: 'block';
      /** Why, in words. */
      readonly reason: string;
    }
  /** Do not run it; this is its result. */
  | {
      /** What is decided. */
      readonly action: 'answer';
      /** The result. */
      readonly result: string | ToolResult;
    }
  /** Do not run it; it gets the finalised result of this earlier call of the step. */
  | {
      /** What is decided. */
      readonly action: 'same_as';
      /** Id of the call. */
      readonly toolCallId: string;
    };

/** What `authorizeToolCall` may decide. */
export type AuthorizeDecision =
  | {
      /** What is decided. */
      readonly action: 'allow';
    }
  /** The model gets the reason as an error. */
  | {
      /** What is decided. */
      readonly action: 'deny';
      /** Why, in words. */
      readonly reason?: string | undefined;
    }
  /** Run it with these arguments; they are validated again. */
  | {
      /** What is decided. */
      readonly action: 'edit';
      /** The new arguments; they are validated again. */
      readonly input: JsonValue;
    }
  /** Do not run it; this is its result. */
  | {
      /** What is decided. */
      readonly action: 'answer';
      /** The result. */
      readonly result: string | ToolResult;
    }
  /** Ask a person: the turn ends `suspended` once everything that does not depend on this call is done. */
  | {
      /** What is decided. */
      readonly action: 'suspend';
      /** Why, in words. */
      readonly reason?: string | undefined;
    };

/** What `afterStep` is told. */
export interface FinishedStep {
  /** Why the reply ended. */
  readonly stopReason: StepStopReason;
  /** Tokens of the reply. */
  readonly usage: Usage;
  /** The reply. */
  readonly message: AssistantMessage;
  /** Calls with their results, in provider order. */
  readonly results: readonly FinishedCall[];
}

/** A call and what came of it. */
export interface FinishedCall {
  /** Id of the call. */
  readonly toolCallId: string;
  /** Name of the tool, as the call had it. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** The arguments it ran with, or would have. */
  readonly input: JsonValue | undefined;
  /** The result. */
  readonly result: RecordedToolResult;
}

/** What `shouldContinueAfterStop` is told. */
export interface StoppedTurn {
  /** Why the turn would end. */
  readonly stopReason: TurnStopReason;
  /** True if a stop condition ended it: going on then means one more step, without tools. */
  readonly limit: boolean;
  /** How often the turn has gone on already. */
  readonly continuations: number;
}

/** A policy's seat in the loop. Every member is optional but the name. */
export interface Hook {
  /** Names it in `stoppedBy` and in notices. */
  readonly name: string;
  /**
   * Before a step begins: the safe point. Compaction runs here; may block the step or set things for it. A failure ends
   * the turn `fatal_error`.
   */
  beforeStep?(context: HookContext): Promise<BeforeStepResult | undefined | void> | BeforeStepResult | undefined | void;
  /**
   * One call after the other, in provider order, before anything of the reply is recorded. A failure is an error result.
   */
  prepareToolCall?(
    context: HookContext,
    call: HookCall,
  ): Promise<PrepareDecision | undefined | void> | PrepareDecision | undefined | void;
  /**
   * All calls of a step at once, without waiting for each other. Of several hooks the first that does not allow decides;
   * after an edit the later ones see the edited arguments. A failure is a denial.
   */
  authorizeToolCall?(
    context: HookContext,
    call: HookCall,
  ): Promise<AuthorizeDecision | undefined | void> | AuthorizeDecision | undefined | void;
  /**
   * Last look at every result as it finishes, also at rejections and failures: what it returns is recorded instead.
   * A failure replaces the result by an error: the raw output is never recorded then.
   */
  finalizeToolResult?(
    context: HookContext,
    call: HookCall,
    result: RecordedToolResult,
  ): Promise<ToolResult | string | undefined | void> | ToolResult | string | undefined | void;
  /** May rewrite a progress update, or drop it with `null`. Synchronous. A failure drops it. */
  finalizeProgress?(call: HookCall, update: ToolUpdate): ToolUpdate | null | undefined | void;
  /**
   * After a step was recorded; may end the turn. A failure is a notice and nothing else. A resume asks again if the
   * process stopped behind the step's end.
   */
  afterStep?(
    context: HookContext,
    step: FinishedStep,
  ): Promise<StopRequest | undefined | void> | StopRequest | undefined | void;
  /**
   * When the turn would end by the model's or a limit's doing: a message to go on with, `true` for a fixed reminder.
   * After `paused` the reply goes back as it is, without a message. Not asked between tool steps. A failure is a notice.
   */
  shouldContinueAfterStop?(
    context: HookContext,
    stop: StoppedTurn,
  ): Promise<UserMessage | boolean | undefined | void> | UserMessage | boolean | undefined | void;
}

/** What a stop condition looks at. */
export interface StopState {
  /** The turn. */
  readonly turnId: string;
  /** Steps begun so far. */
  readonly steps: number;
  /** Tokens the turn has spent so far, over steps, attempts and sub-agents. */
  readonly usage: Usage;
  /** Tokens by model, in order of first use. */
  readonly usageByModel: ReadonlyMap<string, Usage>;
  /** The model of the last step; absent before the first. */
  readonly modelId: string | undefined;
  /** True if a reply has just come in, and its calls have not run; false before a step begins. */
  readonly afterReply: boolean;
}

/** A stop condition's verdict. */
export interface StopDecision {
  /** Why it ended. */
  readonly stopReason: Exclude<TurnStopReason, 'suspended'>;
  /** Names the condition in `stoppedBy`. */
  readonly name: string;
  /** Why, in words. */
  readonly reason?: string | undefined;
}

/** Ends a turn before money is spent on a step. Asked before each step; synchronous and pure. */
export interface StopCondition {
  (state: StopState): StopDecision | undefined;
  /**
   * Also ask as soon as a reply's tokens are known: a hit then closes the reply's calls as not executed.
   * @defaultValue false
   */
  readonly afterReply?: boolean | undefined;
}

/** What a recovery is told. */
export interface RecoveryContext {
  /** The turn. */
  readonly turnId: string;
  /** The step, 1-based. */
  readonly step: number;
  /** The failure to recover from; absent when a recovery that worked is applied to a later request. */
  readonly error: LLMError | undefined;
  /** The model. */
  readonly llm: LLM;
  /** Aborts with the turn. */
  readonly signal: AbortSignal;
  /** Clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** The recovery's own notes of this turn; empty at first. */
  readonly state: Map<string, unknown>;
  /** Records a compaction or tokens spent. */
  record(event: HookRecord): Promise<void>;
  /** The history anew, after a compaction was recorded. */
  messages(): Promise<readonly Message[]>;
  /** Emits a live `notice` event. */
  notify(notice: Notice): void;
}

/** Turns a request that failed for good into one that may work. */
export interface Recovery {
  /** Names it in `step.retrying`. */
  readonly name: string;
  /** The failures it knows something against. */
  readonly kinds: readonly LLMErrorKind[];
  /**
   * The changed request, or undefined if there is nothing to change. Tried once per step; if the request then works, it
   * is applied to every later request of the turn, and must turn an equal prefix of messages into an equal prefix.
   * A failure ends the turn with the original error.
   */
  apply(request: LLMRequest, context: RecoveryContext): Promise<LLMRequest | undefined> | LLMRequest | undefined;
}

