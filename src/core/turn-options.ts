/**
 * Turn options: what a turn is given and what it gives back. Misuse is refused here, before anything is recorded.
 */
import { assertOptions } from './assert.ts';
import type { TurnloopError } from './errors.ts';
import type { DispatchEvent } from './events.ts';
import type { Hook, Recovery, StepSettings, StopCondition } from './hooks.ts';
import { isRecord, toJson, type JsonObject } from './json.ts';
import type { LLM } from './llm.ts';
import { isUserMessage, userMessage, type AssistantMessage, type Message, type UserMessage } from './message.ts';
import type { Runtime } from './runtime.ts';
import type { TurnStopReason } from './stop-reason.ts';
import type { AnyTool, PendingCall, ToolCallDecision } from './tool.ts';
import { toolSet } from './tool-input.ts';
import type { ModelUsage, OpenTurn } from './transcript.ts';
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
  /**
   * What starts the turn; recorded after `turn.begin`. With `resume` only what the stopped turn had not yet recorded of it
   * counts, so that the same input may be passed again.
   *
   * @defaultValue none: the turn goes on from the history
   */
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
  /** The same by model, in order of first use. */
  readonly usageByModel: readonly ModelUsage[];
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

const OPTIONS: Readonly<Record<keyof RunTurnOptions, true>> = {
  llm: true,
  buildMessages: true,
  dispatchEvent: true,
  input: true,
  tools: true,
  hooks: true,
  stopWhen: true,
  recoveries: true,
  request: true,
  control: true,
  signal: true,
  deadlineMs: true,
  graceMs: true,
  maxParallelTools: true,
  runtime: true,
  resume: true,
  turnId: true,
  host: true,
  metadata: true,
};

/** Refuses misuse. @throws TypeError that names the option and shows a correct call. */
export function assertTurnOptions(options: RunTurnOptions): void {
  // Callers without types come here too.
  const given: Partial<Record<keyof RunTurnOptions, unknown>> | undefined = options;
  for (const name of ['llm', 'buildMessages', 'dispatchEvent'] as const) {
    if (given?.[name] === undefined) throw new TypeError(`runTurn needs "${name}". A call looks like ${CORRECT_CALL}.`);
  }
  assertOptions(options, OPTIONS, { taker: 'runTurn', example: CORRECT_CALL });
  const { llm, tools, graceMs, deadlineMs, maxParallelTools } = options;
  if (typeof llm !== 'function' && typeof readMember(llm, 'chat') !== 'function') {
    throw new TypeError('"llm" has no chat function. An LLM looks like { provider, modelId, systemPrompt, chat }.');
  }
  for (const name of ['buildMessages', 'dispatchEvent'] as const) {
    if (typeof given[name] !== 'function') throw new TypeError(`"${name}" is not a function. A call looks like ${CORRECT_CALL}.`);
  }
  if (tools !== undefined && typeof tools !== 'function') toolSet(tools);
  assertInput(given.input);
  assertHooks(given.hooks);
  assertList('recoveries', given.recoveries, {
    isValid: (one) => typeof readMember(one, 'apply') === 'function',
    kind: 'a recovery, which has a name, kinds and an apply function',
    example: 'recoveries: [strictHistory(), ...reduceMedia()]',
  });
  if (typeof given.stopWhen !== 'function') {
    assertList('stopWhen', given.stopWhen, {
      isValid: (one) => typeof one === 'function',
      kind: 'a stop condition, which is a function',
      example: 'stopWhen: maxSteps(25)',
    });
  }
  if (given.signal !== undefined && typeof readMember(given.signal, 'aborted') !== 'boolean') {
    throw new TypeError('"signal" is not an AbortSignal. Use signal: controller.signal.');
  }
  assertNumber('graceMs', graceMs, 0);
  assertNumber('deadlineMs', deadlineMs, 0);
  assertNumber('maxParallelTools', maxParallelTools, 1);
  if (maxParallelTools !== undefined && maxParallelTools % 1 !== 0 && maxParallelTools !== Infinity) {
    throw new TypeError(`"maxParallelTools" is ${maxParallelTools}; it must be a whole number, or Infinity.`);
  }
  assertMetadata(given.metadata);
  assertResume(given.resume);
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
  // Classes and class instances are records too.
  return isRecord(value) ? value[name] : undefined;
}

/** What a list takes. */
interface ListRule {
  readonly isValid: (one: unknown) => boolean;
  /** In words. */
  readonly kind: string;
  readonly example: string;
}

function assertList(name: string, list: unknown, { isValid, kind, example }: ListRule): void {
  if (list === undefined) return;
  if (!Array.isArray(list)) throw new TypeError(`"${name}" is no list, but ${shape(list)}. Use ${example}.`);
  const wrong = list.findIndex((one) => !isValid(one));
  if (wrong === -1) return;
  const one: unknown = list[wrong];
  const hint = Array.isArray(one) ? ' Lists are put in with "...".' : typeof one === 'function' ? ' Is it to be called?' : '';
  throw new TypeError(`${name}[${wrong}] is not ${kind}, but ${shape(one)}.${hint} Use ${example}.`);
}

function shape(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isRecord(value)) return `an object with ${Object.keys(value).slice(0, 8).join(', ') || 'no members'}`;
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}

const HOOK_POINTS = [
  'beforeStep',
  'prepareToolCall',
  'authorizeToolCall',
  'finalizeToolResult',
  'finalizeProgress',
  'afterStep',
  'shouldContinueAfterStop',
] as const satisfies readonly (keyof Hook)[];

/** A guard that is never asked, because its name is misspelt, is worse than none. */
function assertHooks(hooks: unknown): void {
  const isHook = (hook: unknown): boolean => {
    if (!isRecord(hook) || typeof hook['name'] !== 'string') return false;
    const hasPoint = HOOK_POINTS.some((point) => typeof hook[point] === 'function');
    return hasPoint || !Object.values(hook).some((member) => typeof member === 'function');
  };
  assertList('hooks', hooks, {
    isValid: isHook,
    kind: `a hook, which has a name and at least one of ${HOOK_POINTS.join(', ')}`,
    example: 'hooks: [loopGuard(), ...context.hooks]',
  });
}

function assertMetadata(metadata: unknown): void {
  if (metadata === undefined || (isRecord(metadata) && toJson(metadata) !== undefined)) return;
  throw new TypeError('"metadata" is not a JSON object: it is recorded with each turn. Use metadata: { userId: "u1" }.');
}

const ACTIONS: readonly ToolCallDecision['action'][] = ['allow', 'deny', 'edit', 'answer'];

function assertResume(resume: unknown): void {
  if (resume === undefined) return;
  if (!isRecord(readMember(resume, 'turn'))) {
    throw new TypeError('"resume" has no turn. Use resume: { turn: transcript.openTurn(), decisions: [] }.');
  }
  assertDecisions(readMember(resume, 'decisions') ?? [], 'resume.decisions');
}

/**
 * @param name - What they are called where they were given.
 * @throws TypeError for what is no list of decisions, and for two about one call.
 */
export function assertDecisions(decisions: unknown, name: string): asserts decisions is readonly ToolCallDecision[] {
  if (!Array.isArray(decisions)) throw new TypeError(`"${name}" is not a list.`);
  const decided = new Set<unknown>();
  for (const [index, decision] of decisions.entries()) {
    const toolCallId = readMember(decision, 'toolCallId');
    const action = readMember(decision, 'action');
    if (typeof toolCallId !== 'string' || !ACTIONS.some((known) => known === action)) {
      throw new TypeError(`${name}[${index}] is not { toolCallId, action } with an action of ${ACTIONS.join(', ')}.`);
    }
    const needed = action === 'edit' ? 'input' : action === 'answer' ? 'result' : undefined;
    if (needed !== undefined && readMember(decision, needed) === undefined) {
      throw new TypeError(`${name}[${index}] has no "${needed}": write { toolCallId, action: "${String(action)}", ${needed} }.`);
    }
    if (decided.has(toolCallId)) throw new TypeError(`${name} has two decisions about call "${toolCallId}".`);
    decided.add(toolCallId);
  }
}

function assertInput(input: unknown): void {
  if (input === undefined || typeof input === 'string') return;
  const messages: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (messages.every(isUserMessage)) return;
  throw new TypeError(
    '"input" is not a text, a user message or a list of them. Use input: "Hello" or input: [userMessage("Hello")]; a message has ' +
      'role "user" and a content list of text and media parts.',
  );
}

function assertNumber(name: string, value: unknown, least: number): void {
  if (value === undefined || (typeof value === 'number' && value >= least)) return;
  throw new TypeError(`"${name}" is ${typeof value === 'number' ? value : JSON.stringify(value)}; it must be a number of at least ${least}.`);
}

/** The input as messages. */
export function inputOf(input: RunTurnOptions['input']): readonly UserMessage[] {
  if (input === undefined) return [];
  if (typeof input === 'string') return [userMessage(input)];
  return 'role' in input ? [input] : input;
}

