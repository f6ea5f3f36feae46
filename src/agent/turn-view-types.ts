/**
 * Turn view: its types. What a person is shown of a session, turn by turn.
 *
 * - Plain JSON. What is not yet known is left out, never set to undefined.
 * - What only those know who watched stands under `live`, and nowhere else: a view of the record alone has the rest.
 * - Lists that are over stand apart from what still changes (`ended` and `open`, `steps` and `step`), so that an event
 *   copies neither the turns nor the steps before it.
 */
import type { ErrorSummary } from '../core/errors.ts';
import type { RecordedToolResult, StepRetryingEvent } from '../core/events.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { LLMTiming } from '../core/llm.ts';
import type { MediaPart, MessageSource, ProviderPart, UserMessage } from '../core/message.ts';
import type { StepStopReason, TurnStopReason } from '../core/stop-reason.ts';
import type { PendingCall, ToolUpdate } from '../core/tool.ts';
import type { Usage } from '../core/usage.ts';

/** All turns of a session. */
export interface TurnsView {
  /** Turns that are over, oldest first. */
  readonly ended: readonly TurnView[];
  /** Turns that have begun and not ended: at most one, and of sub-agents as many as run. */
  readonly open: readonly TurnView[];
  /** Times at which the history was shortened between turns. */
  readonly compactions: readonly CompactionView[];
}

/** One turn. */
export interface TurnView {
  /** The turn. */
  readonly turnId: string;
  /** Whether it runs, waits for decisions, or is over; `abandoned` if another turn began before its end was recorded. */
  readonly state: 'running' | 'suspended' | 'ended' | 'abandoned';
  /** The host's JSON about it. */
  readonly metadata?: JsonObject | undefined;
  /** When it began, in milliseconds since the epoch; absent if nobody saw it begin. */
  readonly startedAt?: number | undefined;
  /** When it ended. */
  readonly endedAt?: number | undefined;
  /** What it was given, and what else was said before its first step. */
  readonly input: readonly UserMessage[];
  /** Its steps, oldest first; while it is open, those before `step`. */
  readonly steps: readonly StepView[];
  /** The newest step of a turn that is open. */
  readonly step?: StepView | undefined;
  /** Tokens spent so far, sub-agents and failed attempts included. */
  readonly usage: Usage;
  /** Times at which the history was shortened. */
  readonly compactions: readonly CompactionView[];
  /** What waits for a decision, in provider order; empty unless the turn is suspended. */
  readonly pending: readonly PendingCall[];
  /** Why it ended. */
  readonly stopReason?: TurnStopReason | undefined;
  /** The hook, tool or condition that ended it. */
  readonly stoppedBy?: string | undefined;
  /** Its reason, in words. */
  readonly stopMessage?: string | undefined;
  /** What failed. */
  readonly error?: ErrorSummary | undefined;
  /** What only who watched knows. */
  readonly live?: TurnLiveView | undefined;
}

/** What of a turn is known while it is watched only. */
export interface TurnLiveView {
  /** The turn was cut short; gone once its end is recorded, which says the same. */
  readonly interrupted?: {
    /** Why it ended. */
    readonly stopReason: TurnStopReason;
    /** What failed. */
    readonly error?: ErrorSummary | undefined;
  } | undefined;
}

/** One step: a request to the model, and the calls it asked for. */
export interface StepView {
  /** 1-based. */
  readonly step: number;
  /** Id of the step. */
  readonly stepId: string;
  /** `asking` until the reply is whole, `working` until its calls are done; `interrupted` if its turn ended before it did. */
  readonly state: 'asking' | 'working' | 'ended' | 'interrupted';
  /** When it began; absent if nobody saw it begin. */
  readonly startedAt?: number | undefined;
  /** When it ended. */
  readonly endedAt?: number | undefined;
  /** The reply, in the model's order. */
  readonly items: readonly StepItem[];
  /** What is known of the reply as a whole, from its first recorded part on. */
  readonly reply?: ReplySummary | undefined;
  /** Tokens spent on the step, sub-agents and failed attempts included. */
  readonly usage: Usage;
  /** What was said behind this step and before the next. */
  readonly messagesAfter: readonly UserMessage[];
  /** The model that answered. */
  readonly modelId?: string | undefined;
  /** Why the reply ended. */
  readonly stopReason?: StepStopReason | undefined;
  /** Where the time of the request went. */
  readonly timing?: LLMTiming | undefined;
  /** What only who watched knows. */
  readonly live?: StepLiveView | undefined;
}

/** What of a step is known while it is watched only. */
export interface StepLiveView {
  /** Attempts that failed and were followed by another, oldest first, each with its error. */
  readonly retries: readonly StepRetryingEvent[];
}

/** What holds for a whole reply. */
export interface ReplySummary {
  /** Parts recorded so far. */
  readonly received: number;
  /** Parts of the whole reply. */
  readonly count: number;
  /** Which model wrote it. */
  readonly source?: MessageSource | undefined;
  /** Set on the kept part of a reply that was cut off: why the turn ended there. */
  readonly interrupted?: TurnStopReason | undefined;
}

/** A piece of a reply. */
export type StepItem = TextItem | ThinkingItem | PartItem | ToolCallItem;

/** Text, as far as it has come. */
export interface TextItem {
  /** Tells this shape from the others. */
  readonly type: 'text';
  /** The text. */
  readonly text: string;
  /** Set while it arrives: it may still be taken back. */
  readonly streaming?: true | undefined;
}

/** Thinking, as far as it has come. */
export interface ThinkingItem {
  /** Tells this shape from the others. */
  readonly type: 'thinking';
  /** The thinking; empty where the provider keeps it to itself. */
  readonly text: string;
  /** Set while it arrives: it may still be taken back. */
  readonly streaming?: true | undefined;
}

/** A part that comes in one piece. */
export interface PartItem {
  /** Tells this shape from the others. */
  readonly type: 'part';
  /** The part. */
  readonly part: MediaPart | ProviderPart;
  /** Never set: such parts are not streamed. */
  readonly streaming?: undefined;
}

/** A tool call, from its first fragment to its result. */
export interface ToolCallItem {
  /** Tells this shape from the others. */
  readonly type: 'tool_call';
  /** Id of the call. */
  readonly toolCallId: string;
  /** The tool's name as the model wrote it; empty until it is known. */
  readonly name: string;
  /** The arguments as the model wrote them, as far as they have come. */
  readonly inputText: string;
  /** The arguments it runs with; absent where the text was no object. */
  readonly input?: JsonValue | undefined;
  /** What it would do, in words, where the tool says. */
  readonly description?: string | undefined;
  /** The earlier call of the step whose result it shares. */
  readonly sameAs?: string | undefined;
  /**
   * `streaming` until it is recorded, then `waiting` for its turn. A call of a tool that changes nothing is seen to run
   * only when it tells how far it is.
   */
  readonly state: 'streaming' | 'waiting' | 'pending-approval' | 'running' | 'finished' | 'failed';
  /** When it started to run; absent for tools that change nothing. */
  readonly startedAt?: number | undefined;
  /** When it finished. */
  readonly finishedAt?: number | undefined;
  /** What waits for a decision: the call itself, or calls of a sub-agent below it. */
  readonly pending?: readonly PendingCall[] | undefined;
  /** Its result: `content` for the model, `display` for people. */
  readonly result?: RecordedToolResult | undefined;
  /** Set while it arrives: it may still be taken back. */
  readonly streaming?: true | undefined;
  /** What only who watched knows. */
  readonly live?: ToolCallLiveView | undefined;
}

/** What of a call is known while it is watched only. */
export interface ToolCallLiveView {
  /** How far it is; gone once it has finished. */
  readonly progress?: ProgressView | undefined;
  /** What its sub-agents do. */
  readonly agents?: TurnsView | undefined;
}

/** How far a running call is. */
export interface ProgressView {
  /** What it wrote so far, `stdout` and `stderr` in the order in which they came. */
  readonly output: string;
  /** Its last update that was no output. */
  readonly update?: ToolUpdate | undefined;
}

/** The history was shortened. What is shown of the turns stays. */
export interface CompactionView {
  /** Which layer did it. */
  readonly layer: string;
  /** When. */
  readonly at: number;
  /** Behind which step of the turn, 0 for none; absent between turns. */
  readonly afterStep?: number | undefined;
  /** Estimated tokens of the history before. */
  readonly tokensBefore: number;
  /** Estimated tokens of the history after. */
  readonly tokensAfter: number;
}
