/**
 * Events: facts the loop announces. Types only.
 *
 * - Recorded events are awaited, durable, and the only source of truth: a transcript is a list of them.
 * - Live events are best effort: losing one changes nothing.
 * - All are plain JSON.
 */
import type { ErrorSummary } from './errors.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { LLMTiming } from './llm.ts';
import type { Message, MessageSource, ProviderPart, MediaPart, TextPart, ThinkingPart, ToolResultPart, UserMessage } from './message.ts';
import type { StepStopReason, TurnStopReason } from './stop-reason.ts';
import type { PendingCall, ToolCallDecision, ToolUpdate } from './tool.ts';
import type { Usage } from './usage.ts';

/** Version of the transcript format. A fold refuses a newer one. */
export const TRANSCRIPT_VERSION = 1;

/** What every event has. */
export interface TurnEvent {
  /** The turn it belongs to. */
  readonly turnId: string;
  /** When it happened, in milliseconds since the epoch, by the turn's runtime. */
  readonly at: number;
  /** The host's JSON about this turn, as given to it. */
  readonly metadata?: JsonObject | undefined;
}

/** What every event of a step has. */
export interface StepEvent extends TurnEvent {
  /** The step, 1-based. */
  readonly step: number;
  /** Unique id of the step; a step that is asked again after a crash gets another. */
  readonly stepId: string;
}

/** A tool result as recorded: whole, raw, without control fields. */
export interface RecordedToolResult {
  /** What the model is to see. Possibly empty: the line that says so is added when the history is built. */
  readonly content: readonly ToolResultPart[];
  /** True for a failure. */
  readonly isError?: boolean | undefined;
  /** For people only. */
  readonly display?: JsonValue | undefined;
  /** For the model only, put after the content. */
  readonly note?: string | undefined;
  /** Says that `content` was shortened. */
  readonly truncated?: boolean | undefined;
}

/** The turn has begun. First event of a turn. */
export interface TurnBeginEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'turn.begin';
  /** Version of the transcript format, {@link TRANSCRIPT_VERSION}. */
  readonly version: number;
  /** How many `message` events of the input follow before the first step. */
  readonly inputCount: number;
}

/** A user message entered the conversation: the turn's input, steering, or a hook's. */
export interface MessageEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'message';
  /** The message. */
  readonly message: UserMessage;
  /** Set if a hook grants one last step with it, after a limit was reached. */
  readonly afterLimit?: AfterLimit | undefined;
}

/** A step has begun; written before the model is asked. */
export interface StepBeginEvent extends StepEvent {
  /** Tells this shape from the others. */
  readonly type: 'step.begin';
  /** Set on the one step without tools that was granted after a limit had been reached: the turn ends with it. */
  readonly afterLimit?: AfterLimit | undefined;
}

/** The limit that had been reached when a last step was granted. */
export interface AfterLimit {
  /** Why it ended. */
  readonly stopReason: TurnStopReason;
  /** The condition. */
  readonly stoppedBy: string;
  /** Its reason, in words. */
  readonly stopMessage?: string | undefined;
}

/** What tokens were spent on: `attempt` is a request that failed. */
export type UsagePurpose = 'step' | 'attempt' | 'compaction' | 'child' | 'other';

/** Tokens were spent. The sum of these events is the turn's usage. */
export interface UsageEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'usage';
  /** The step, 1-based, where they belong to one. */
  readonly step?: number | undefined;
  /** Id of that step. */
  readonly stepId?: string | undefined;
  /** The model that they were spent on. */
  readonly modelId: string;
  /** What they were spent on. */
  readonly purpose: UsagePurpose;
  /** Tokens spent. */
  readonly usage: Usage;
}

/** What a reply's first recorded part says about the whole of it, so that a resume knows it too. */
export interface ReplyInfo {
  /** Which model wrote it. */
  readonly source: MessageSource;
  /** Why it ended; absent for the kept part of one that was cut off. */
  readonly stopReason?: StepStopReason | undefined;
  /** The provider's own word for it. */
  readonly rawStopReason?: string | undefined;
  /** Set on the kept part of a reply that was cut off: why the turn ended there. */
  readonly interrupted?: TurnStopReason | undefined;
  /** The stop condition that the reply met: its calls are closed as not executed. */
  readonly limit?: ReachedLimit | undefined;
}

/** A limit that a reply met. */
export interface ReachedLimit {
  /** Why the turn ends. */
  readonly stopReason: TurnStopReason;
  /** Names the condition. */
  readonly name: string;
  /** Why, in words. */
  readonly reason?: string | undefined;
}

/** Position of a part in its reply. A reply with fewer recorded parts than `count` is void. */
export interface ReplyPosition {
  /** 0-based. */
  readonly index: number;
  /** Parts of the whole reply, calls included. */
  readonly count: number;
  /** On the part of index 0: what holds for the whole reply. */
  readonly reply?: ReplyInfo | undefined;
}

/** A part of the reply that is not a call. */
export interface ContentPartEvent extends StepEvent, ReplyPosition {
  /** Tells this shape from the others. */
  readonly type: 'content.part';
  /** The part, as it came. */
  readonly part: TextPart | ThinkingPart | MediaPart | ProviderPart;
}

/** A tool call of the reply; written before any call of the step is authorised. */
export interface ToolCallEvent extends StepEvent, ReplyPosition {
  /** Tells this shape from the others. */
  readonly type: 'tool.call';
  /** Our id, unique in the transcript. */
  readonly toolCallId: string;
  /** The tool's name as the model wrote it. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** The arguments it would run with, after rewriting; absent where the text was not an object. */
  readonly input?: JsonValue | undefined;
  /** What the provider called it. */
  readonly providerId?: string | undefined;
  /** What the provider attached to it. */
  readonly providerData?: JsonValue | undefined;
  /** What it would do, in words, where the tool says. */
  readonly description?: string | undefined;
  /** The earlier call of this step whose result it shares. */
  readonly sameAs?: string | undefined;
  /** Set if a hook blocked or answered it before it could run: a resume asks that hook again. */
  readonly held?: boolean | undefined;
}

/** A call starts; awaited just before `execute`. Left out for an unedited call of a `safe` tool. */
export interface ToolStartEvent extends StepEvent {
  /** Tells this shape from the others. */
  readonly type: 'tool.start';
  /** Id of the call. */
  readonly toolCallId: string;
  /** The arguments it runs with, if a decision edited them. */
  readonly input?: JsonValue | undefined;
}

/** A call has its final result. In order of completion. */
export interface ToolFinishedEvent extends StepEvent {
  /** Tells this shape from the others. */
  readonly type: 'tool.finished';
  /** Id of the call. */
  readonly toolCallId: string;
  /** The result. */
  readonly result: RecordedToolResult;
  /** Set if the result ends the turn after this step. */
  readonly stopTurn?: boolean | undefined;
}

/** The terminal record of a call, in provider order. A store may leave the body to `tool.finished`. */
export interface ToolResultEvent extends StepEvent {
  /** Tells this shape from the others. */
  readonly type: 'tool.result';
  /** The call it answers. */
  readonly toolCallId: string;
  /** Name of the tool. */
  readonly name: string;
  /** The result. */
  readonly result: RecordedToolResult;
}

/** The step is done. */
export interface StepEndEvent extends StepEvent {
  /** Tells this shape from the others. */
  readonly type: 'step.end';
  /** Why it ended. */
  readonly stopReason: StepStopReason;
  /** The provider's own word for it. */
  readonly rawStopReason?: string | undefined;
  /** The provider's id of the response. */
  readonly responseId?: string | undefined;
  /** The model that answered. */
  readonly modelId: string;
  /** Tokens of the reply. */
  readonly usage: Usage;
  /** Where the time of the request went. */
  readonly timing?: LLMTiming | undefined;
}

/** One change a compaction makes to the history: the messages from `from` to `to` become `messages`. */
export interface CompactionEdit {
  /** Id of the first message replaced. */
  readonly from: string;
  /** Id of the last message replaced; `from` again for a single one. */
  readonly to: string;
  /** What stands there instead; possibly nothing. Each needs an id. */
  readonly messages: readonly Message[];
}

/** The history was shortened. The events it came from stay. */
export interface CompactionEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'compaction';
  /** Which layer did it. */
  readonly layer: string;
  /** In the order of the history, not overlapping. */
  readonly edits: readonly CompactionEdit[];
  /** Estimated tokens of the history before. */
  readonly tokensBefore: number;
  /** Estimated tokens of the history after. */
  readonly tokensAfter: number;
}

/** A suspended call: what waits, and what its tool needs to go on. */
export interface SuspendedCall {
  /** The call of this turn that holds the place. */
  readonly toolCallId: string;
  /** What waits for a decision: the call itself, or calls of a sub-agent below it. */
  readonly pending: readonly PendingCall[];
  /** What the tool handed to `suspend`; absent if a hook suspended the call before it ran. */
  readonly state?: JsonValue | undefined;
  /** The hook that suspended it: those behind it have not been asked. */
  readonly hook?: string | undefined;
  /** The arguments it would run with, if a decision edited them. */
  readonly input?: JsonValue | undefined;
}

/** The turn waits for decisions. Last event until it is resumed. */
export interface TurnSuspendEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'turn.suspend';
  /** What waits, in provider order. */
  readonly calls: readonly SuspendedCall[];
}

/** The turn goes on. */
export interface TurnResumeEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'turn.resume';
  /** Decisions about what was pending; empty after a crash. */
  readonly decisions: readonly ToolCallDecision[];
  /** Which resume of the turn this is, 1-based: two from one state cannot both be recorded. */
  readonly ordinal?: number | undefined;
}

/** The turn is over. Last event of a turn. */
export interface TurnEndEvent extends TurnEvent {
  /** Tells this shape from the others. */
  readonly type: 'turn.end';
  /** Why it ended. */
  readonly stopReason: TurnStopReason;
  /** The hook, tool or condition that ended it. */
  readonly stoppedBy?: string | undefined;
  /** Its reason, in words. */
  readonly stopMessage?: string | undefined;
  /** What failed. */
  readonly error?: ErrorSummary | undefined;
  /** Steps begun. */
  readonly steps: number;
}

/** Events that are awaited and make up the transcript. */
export type RecordedEvent =
  | TurnBeginEvent
  | MessageEvent
  | StepBeginEvent
  | UsageEvent
  | ContentPartEvent
  | ToolCallEvent
  | ToolStartEvent
  | ToolFinishedEvent
  | ToolResultEvent
  | StepEndEvent
  | CompactionEvent
  | TurnSuspendEvent
  | TurnResumeEvent
  | TurnEndEvent;

/** What live events of a sub-agent carry. */
export interface AgentEvent {
  /** Ids of the calls that lead to the sub-agent, outermost first; absent for the turn itself. */
  readonly agentPath?: readonly string[] | undefined;
}

/** A fragment of text. */
export interface TextDeltaEvent extends StepEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'text.delta';
  /** Try of this step's request, 1-based. */
  readonly attempt: number;
  /** The text. */
  readonly text: string;
}

/** A fragment of thinking. */
export interface ThinkingDeltaEvent extends StepEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'thinking.delta';
  /** Try of this step's request, 1-based. */
  readonly attempt: number;
  /** The text. */
  readonly text: string;
}

/** A fragment of a tool call. */
export interface ToolCallDeltaEvent extends StepEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'tool.call.delta';
  /** Try of this step's request, 1-based. */
  readonly attempt: number;
  /** Id of the call. */
  readonly toolCallId: string;
  /** The tool's name; on the first fragment of the call. */
  readonly name?: string | undefined;
  /** A piece of the argument text; may be empty. */
  readonly inputText: string;
}

/** A running call tells how far it is. */
export interface ToolProgressEvent extends StepEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'tool.progress';
  /** Id of the call. */
  readonly toolCallId: string;
  /** How far it is. */
  readonly update: ToolUpdate;
}

/** The request failed and is made again: discard what this step streamed so far. */
export interface StepRetryingEvent extends StepEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'step.retrying';
  /** The attempt that failed, 1-based. */
  readonly attempt: number;
  /** How many attempts there may be of the policy that makes the next one, where that is fixed: `attempt` counts those of all. */
  readonly maxAttempts?: number | undefined;
  /** The model asked. */
  readonly modelId: string;
  /** The model that is asked next, where that is another. */
  readonly nextModelId?: string | undefined;
  /** What failed. */
  readonly error: ErrorSummary;
  /** How long until the next attempt, in milliseconds. */
  readonly delayMs?: number | undefined;
  /** The recovery that changed the request, if one did. */
  readonly recovery?: string | undefined;
}

/** The turn ends before the model was done: a limit, an abort or a failure. Comes before `turn.end`. */
export interface TurnInterruptedEvent extends TurnEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'turn.interrupted';
  /** Why it ended. */
  readonly stopReason: TurnStopReason;
  /** The step that was open, 1-based; absent if none was. */
  readonly activeStep?: number | undefined;
  /** What failed. */
  readonly error?: ErrorSummary | undefined;
}

/** A policy, hook or decorator speaks. */
export interface NoticeEvent extends TurnEvent, AgentEvent {
  /** Tells this shape from the others. */
  readonly type: 'notice';
  /** Who speaks and what happened, such as `hook.failed`. */
  readonly name: string;
  /** Plain JSON. */
  readonly data: JsonValue;
}

/** Events that are best effort. */
export type LiveEvent =
  | TextDeltaEvent
  | ThinkingDeltaEvent
  | ToolCallDeltaEvent
  | ToolProgressEvent
  | StepRetryingEvent
  | TurnInterruptedEvent
  | NoticeEvent;

/** A recorded event of a sub-agent: live only in the parent, and carries the way to it. */
export type ForwardedEvent = RecordedEvent & BelowAgent;

/** The way to a sub-agent, where there surely is one. */
export interface BelowAgent {
  /** Ids of the calls that lead to the sub-agent, outermost first. */
  readonly agentPath: readonly string[];
}

/** What a listener sees: every event, and those of sub-agents with their `agentPath`. */
export type LoopEvent = RecordedEvent | LiveEvent | ForwardedEvent;

/**
 * Takes the loop's events. A recorded event is awaited: a rejection ends the turn. A live event is not: whatever the
 * call does or returns changes nothing.
 */
export interface DispatchEvent {
  (event: RecordedEvent): Promise<void> | void;
  (event: LiveEvent | ForwardedEvent): void;
  (event: LoopEvent): Promise<void> | void;
}
