/**
 * Turn options: what a turn is given and what it gives back. Misuse is refused here, before anything is recorded.
 */
import type { TurnloopError } from './errors.ts';
import type { DispatchEvent } from './events.ts';
import type { Hook, Recovery, StepSettings, StopCondition } from './hooks.ts';
import { isRecord, type JsonObject } from './json.ts';
import type { LLM } from './llm.ts';
import { userMessage, type AssistantMessage, type Message, type UserMessage } from './message.ts';
import type { Runtime } from './runtime.ts';
import type { TurnStopReason } from './stop-reason.ts';
import type { AnyTool, PendingCall, ToolCallDecision } from './tool.ts';
import { toolTable } from './tool-input.ts';
import type { OpenTurn } from './transcript.ts';
import type { TurnControl } from './turn-control.ts';
import type { Usage } from './usage.ts';

/** A turn to go on with. */
export interface ResumeOptions {
  /** The open turn, as `transcript.openTurn()` gives it. */
  readonly turn: OpenTurn;
  /** Decisions about what is pending; a call without one stays pending. @defaultValue none */
  readonly decisions?: readonly ToolCallDecision[] | undefined;
}

/** What a function that gives a step its model or tools is told. */
export interface StepInfo {
  /** The turn. */
  readonly turnId: string;
  /** The step about to begin, 1-based. */
  readonly step: number;
  /** Tokens spent so far. */
  readonly usage: Usage;
}

/** Options of {@link index.runTurn | runTurn}. */
export interface RunTurnOptions {
  /** The model; a function is asked anew before each step. */
  readonly llm: LLM | ((info: StepInfo) => LLM | Promise<LLM>);
  /** Gives the history for the next request, oldest first, such as `transcript.buildMessages`. Asked before each step. */
  readonly buildMessages: () => readonly Message[] | Promise<readonly Message[]>;
  /** Takes every event: `createEventDispatcher({ record, emit })`, or any function. Awaited for recorded events. */
  readonly dispatchEvent: DispatchEvent;
  /** What starts the turn; recorded after `turn.begin`. @defaultValue none: the turn goes on from the history */
  readonly input?: string | UserMessage | readonly UserMessage[] | undefined;
  /** Tools; a function is asked anew before each step. @defaultValue none */
  readonly tools?: readonly AnyTool[] | ((info: StepInfo) => readonly AnyTool[] | Promise<readonly AnyTool[]>) | undefined;
  /** Policies, in order. @defaultValue none */
  readonly hooks?: readonly Hook[] | undefined;
  /** Stop conditions; the first that hits ends the turn. @defaultValue none: the turn has no limit of its own */
  readonly stopWhen?: StopCondition | readonly StopCondition[] | undefined;
  /** What to try when a request fails for good, in order. @defaultValue none */
  readonly recoveries?: readonly Recovery[] | undefined;
  /** Settings of every request, unless a hook sets others for a step. */
  readonly request?: StepSettings | undefined;
  /** Handle of this turn. @defaultValue none */
  readonly control?: TurnControl | undefined;
  /** Aborts the turn. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts the turn after so many milliseconds; restarts with a resume. @defaultValue none */
  readonly deadlineMs?: number | undefined;
  /** How long an aborted turn may take to settle, in milliseconds. @defaultValue 2000 */
  readonly graceMs?: number | undefined;
  /** Most tool calls at once. @defaultValue 8 */
  readonly maxParallelTools?: number | undefined;
  /** Clock, timers, ids and randomness. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** Goes on with an open turn instead of starting one. */
  readonly resume?: ResumeOptions | undefined;
  /** Id of the turn. @defaultValue one from the runtime */
  readonly turnId?: string | undefined;
  /** Any value, handed to tools and hooks untouched; never recorded. */
  readonly host?: unknown;
  /** JSON put on every event of the turn. */
  readonly metadata?: JsonObject | undefined;
}

/** How a turn ended. */
export interface TurnResult {
  /** The turn. */
  readonly turnId: string;
  /** Why it ended. */
  readonly stopReason: TurnStopReason;
  /** Steps begun. */
  readonly steps: number;
  /** Tokens spent: the sum of the turn's `usage` events. */
  readonly usage: Usage;
  /** The last reply; absent if there was none. */
  readonly message?: AssistantMessage | undefined;
  /** Text of the last reply; empty if it had none. */
  readonly text: string;
  /** What failed, for `fatal_error` and other ends by a failure. Serialises to name, kind and message. */
  readonly error?: TurnloopError | undefined;
  /** The hook, tool or condition that ended the turn; `control` for `control.stop()`. */
  readonly stoppedBy?: string | undefined;
  /** Its reason, in words. */
  readonly stopMessage?: string | undefined;
  /** Calls that wait for a decision, for `suspended`. */
  readonly pending?: readonly PendingCall[] | undefined;
  /** Steered messages that no request saw. */
  readonly undelivered?: readonly UserMessage[] | undefined;
}

/** Refuses misuse. @throws TypeError that names the option and shows a correct call. */
export function assertOptions(options: RunTurnOptions): void {
  // Callers without types come here too.
  const given: Partial<Record<keyof RunTurnOptions, unknown>> | undefined = options;
  for (const name of ['llm', 'buildMessages', 'dispatchEvent'] as const) {
    if (given?.[name] === undefined) throw new TypeError(`runTurn needs "${name}". A call looks like ${CORRECT_CALL}.`);
  }
  const { llm, tools, graceMs, deadlineMs, maxParallelTools } = options;
  if (typeof llm !== 'function' && typeof readMember(llm, 'chat') !== 'function') {
    throw new TypeError('"llm" has no chat function. An LLM looks like { provider, modelId, systemPrompt, chat }.');
  }
  for (const name of ['buildMessages', 'dispatchEvent'] as const) {
    if (typeof given[name] !== 'function') throw new TypeError(`"${name}" is not a function. A call looks like ${CORRECT_CALL}.`);
  }
  if (tools !== undefined && typeof tools !== 'function') toolTable(tools);
  assertInput(given.input);
  assertNumber('graceMs', graceMs, 0);
  assertNumber('deadlineMs', deadlineMs, 0);
  assertNumber('maxParallelTools', maxParallelTools, 1);
  const missing = options.resume?.turn.missingInput ?? 0;
  if (missing > 0 && inputOf(options.input).length < missing) {
    throw new TypeError(
      'The turn to resume stopped before its input was recorded. Pass the same "input" again, or give the turn up with ' +
        'closeOpenTurn(transcript).',
    );
  }
}

const CORRECT_CALL = 'runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: "Hello" })';

function readMember(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

function assertInput(input: unknown): void {
  if (input === undefined || typeof input === 'string') return;
  const messages: readonly unknown[] = Array.isArray(input) ? input : [input];
  const isValid = messages.every((message) => readMember(message, 'role') === 'user' && Array.isArray(readMember(message, 'content')));
  if (!isValid) throw new TypeError('"input" is not a text, a user message or a list of them. Use input: "Hello" or [userMessage("Hello")].');
}

function assertNumber(name: string, value: number | undefined, least: number): void {
  if (value === undefined || value >= least) return;
  throw new TypeError(`"${name}" is ${value}; it must be a number of at least ${least}.`);
}

/** The input as messages. */
export function inputOf(input: RunTurnOptions['input']): readonly UserMessage[] {
  if (input === undefined) return [];
  if (typeof input === 'string') return [userMessage(input)];
  return 'role' in input ? [input] : input;
}

