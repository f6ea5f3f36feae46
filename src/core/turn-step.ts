/**
 * Turn step: one model request and the tool calls it asked for.
 *
 * - U1 What a reply cost is recorded before anything else is done with it, whatever comes later.
 * - U2 All parts of a reply are recorded, in the model's order, before any call is authorised.
 * - U3 Tools run only if the reply was whole; the presence of calls, not the provider's word, decides that they do.
 * - U4 A failed attempt leaves no trace but its usage: what it streamed is taken back by `step.retrying`.
 * - U5 Recoveries are a list, tried in order, each at most once a step, forward only.
 */
import { LLMError, partialReply, summarizeError, toLLMError, type PartialReplyPart } from './errors.ts';
import type { AfterLimit, RecordedEvent, ReplyInfo, StepEndEvent, SuspendedCall } from './events.ts';
import type { FinishedStep, HookContext, Recovery, RecoveryContext, StepSettings, StopDecision } from './hooks.ts';
import {
  attemptChat,
  type FailedAttempt,
  type LLM,
  type LLMDelta,
  type LLMRequest,
  type LLMResponse,
  type LLMTiming,
  type ReplyPart,
  type ReplyToolCall,
} from './llm.ts';
import type { AssistantMessage, AssistantPart, Message, ToolCallPart } from './message.ts';
import { isCompleteReply, type StepStopReason, type TurnStopReason } from './stop-reason.ts';
import type { AnyTool } from './tool.ts';
import { toolTable } from './tool-input.ts';
import {
  createToolBatch,
  notExecuted,
  planToolCalls,
  replanToolCalls,
  type PlannedCall,
  type ToolBatch,
  type ToolStep,
} from './tool-call.ts';
import type { OpenStep } from './transcript.ts';
import type { TurnScope, Unstamped } from './turn-scope.ts';
import { toUsage } from './usage.ts';

/** The recoveries of a turn, and how far it has come with them. Made by {@link createRecoveryState}. */
export interface RecoveryState {
  readonly list: readonly Recovery[];
  /** Those that worked: they change every later request of the turn before it is sent. */
  readonly active: Set<Recovery>;
  /** Each one's own notes. */
  readonly notes: Map<Recovery, Map<string, unknown>>;
}

/** Makes the state of a turn's recoveries. */
export function createRecoveryState(recoveries: readonly Recovery[] = []): RecoveryState {
  return { list: recoveries, active: new Set(), notes: new Map(recoveries.map((recovery) => [recovery, new Map()])) };
}

/** What a step needs beside the scope. */
export interface StepOptions {
  /** 1-based. */
  readonly step: number;
  readonly llm: LLM;
  readonly tools: readonly AnyTool[];
  /** The history, oldest first. */
  readonly messages: readonly Message[];
  /** Tool choice, response schema and output limit of this step. */
  readonly settings?: StepSettings | undefined;
  /** @defaultValue none */
  readonly recoveries?: RecoveryState | undefined;
  /** Set on a last step granted after a limit. */
  readonly afterLimit?: AfterLimit | undefined;
  /** Asked as soon as the reply's tokens are known: a decision closes its calls as not executed. */
  readonly checkReply?: ((modelId: string) => StopDecision | undefined) | undefined;
  /** Given the batch of calls while it runs, and undefined after. */
  readonly onBatch?: ((batch: ToolBatch | undefined) => void) | undefined;
}

/** What came of a step. */
export type StepOutcome =
  /** It is recorded to its end. */
  | {
      readonly kind: 'done';
      readonly finished: FinishedStep;
      /** The tool that ended the turn. */
      readonly stoppedBy: string | undefined;
      /** The stop condition that the reply met. */
      readonly limit: StopDecision | undefined;
    }
  /** Calls wait for decisions. */
  | { readonly kind: 'suspended'; readonly message: AssistantMessage; readonly suspended: readonly SuspendedCall[] }
  /** The request failed for good, or was aborted; what was kept of the reply is the message. */
  | { readonly kind: 'failed'; readonly error: LLMError; readonly message: AssistantMessage | undefined }
  | { readonly kind: 'aborted'; readonly message: AssistantMessage | undefined };

/** Runs one step. Rejects if the recorder fails or the turn's grace is over. */
export async function runStep(scope: TurnScope, options: StepOptions): Promise<StepOutcome> {
  const { step, llm, afterLimit } = options;
  const stepId = scope.runtime.createId('step');
  await scope.record({ type: 'step.begin', step, stepId, ...(afterLimit !== undefined && { afterLimit }) });
  if (scope.isAborted) return { kind: 'aborted', message: undefined };

  const context = scope.hookContext(step, llm);
  const view = new ReplyView(scope, llm, step, stepId);
  let response: LLMResponse;
  try {
    response = await request(scope, options, view, context);
  } catch (error) {
    return giveUp(scope, view, llm, toLLMError(error));
  }

  const modelId = response.modelId ?? llm.modelId;
  await scope.recordUsage(response.usage, { modelId, purpose: 'step', step, stepId });
  const limit = options.checkReply?.(modelId);
  const reply = normalizeReply(response, llm, view);
  const toolStep: ToolStep = { step, stepId, llm, tools: toolTable(options.tools), context };
  const planned = await plan(scope, toolStep, reply, limit);
  await recordReply(scope, toolStep, reply, planned);
  return finish(scope, toolStep, reply, planned, { limit, onBatch: options.onBatch });
}

/** Finishes a step whose reply is recorded whole, after a suspension or a crash. */
export async function resumeStep(scope: TurnScope, open: OpenStep, options: StepOptions): Promise<StepOutcome> {
  const { llm } = options;
  const { step, stepId, reply: info } = open;
  const toolStep: ToolStep = { step, stepId, llm, tools: toolTable(options.tools), context: scope.hookContext(step, llm) };
  const modelId = info?.source.modelId ?? llm.modelId;
  const stopReason = info?.stopReason ?? 'unknown';
  const message = options.messages.find((one) => one.id === stepId);
  const reply: Reply = {
    parts: message?.role === 'assistant' ? message.content : [],
    stopReason,
    rawStopReason: info?.rawStopReason,
    responseId: info?.source.responseId,
    provider: info?.source.provider ?? llm.provider,
    modelId,
    usage: open.usage,
    timing: undefined,
    calls: open.calls.map(({ toolCallId: id, name, inputText }) => ({ type: 'tool_call', id, name, inputText })),
  };
  // The limit that the reply met is met again, unless calls were let through before it was.
  const untouched = open.calls.every((call) => call.started === undefined && call.result === undefined);
  const limit = untouched ? options.checkReply?.(modelId) : undefined;
  const why = refusal(stopReason, limit);
  const planned = why === undefined ? await replanToolCalls(scope, toolStep, open.calls) : closed(reply, why, open.calls);
  return finish(scope, toolStep, reply, planned, { limit, onBatch: options.onBatch });
}

/** A reply with our ids on its calls. */
interface Reply {
  readonly parts: readonly AssistantPart[];
  readonly calls: readonly ToolCallPart[];
  readonly stopReason: StepStopReason;
  readonly rawStopReason: string | undefined;
  readonly responseId: string | undefined;
  readonly provider: string;
  readonly modelId: string;
  readonly usage: StepEndEvent['usage'];
  readonly timing: LLMTiming | undefined;
}

/** What a step has seen of its reply: gives calls their ids, passes fragments on, keeps text for an abort. */
class ReplyView {
  attempt = 1;
  readonly #scope: TurnScope;
  readonly #llm: LLM;
  readonly #step: number;
  readonly #stepId: string;
  #callIds: string[] = [];
  #text: { readonly type: 'text'; text: string }[] = [];
  /** Fragments that follow each other join; anything else starts a new part. */
  #lastWasText = false;
  #startedAt: number;
  #firstAt: number | undefined;

  constructor(scope: TurnScope, llm: LLM, step: number, stepId: string) {
    this.#scope = scope;
    this.#llm = llm;
    this.#step = step;
    this.#stepId = stepId;
    this.#startedAt = scope.runtime.now();
  }

  get stepId(): string {
    return this.#stepId;
  }

  get step(): number {
    return this.#step;
  }

  readonly onDelta = (delta: LLMDelta): void => {
    const scope = this.#scope;
    const at = scope.runtime.now();
    this.#firstAt ??= at;
    const turnId = scope.turnId;
    const step = this.#step;
    const stepId = this.#stepId;
    const attempt = this.attempt;
    if (delta.type === 'text') {
      this.#keep(delta.text);
      scope.emitDelta({ type: 'text.delta', turnId, at, step, stepId, attempt, text: delta.text });
      return;
    }
    this.#lastWasText = false;
    if (delta.type === 'thinking') {
      scope.emitDelta({ type: 'thinking.delta', turnId, at, step, stepId, attempt, text: delta.text });
      return;
    }
    const known = this.#callIds[delta.callIndex] !== undefined;
    const toolCallId = this.callId(delta.callIndex);
    const name = known || delta.name === undefined ? {} : { name: delta.name };
    scope.emitDelta({ type: 'tool.call.delta', turnId, at, step, stepId, attempt, toolCallId, ...name, inputText: delta.inputText });
  };

  #keep(text: string): void {
    const last = this.#text.at(-1);
    if (this.#lastWasText && last !== undefined) last.text += text;
    else this.#text.push({ type: 'text', text });
    this.#lastWasText = true;
  }

  /** Our id of a call of this attempt, fixed when it is first asked for. */
  callId(callIndex: number): string {
    return (this.#callIds[callIndex] ??= this.#scope.runtime.createId('call'));
  }

  /** The text so far, in parts. */
  get text(): readonly PartialReplyPart[] {
    return this.#text;
  }

  /** Time of the request that is under way. */
  timing(): LLMTiming {
    const totalMs = this.#scope.runtime.now() - this.#startedAt;
    return this.#firstAt === undefined ? { totalMs } : { firstDeltaMs: this.#firstAt - this.#startedAt, totalMs };
  }

  /** An attempt failed and another follows: announces that what it streamed is void, and starts anew. */
  async retry(failed: FailedAttempt, recovery?: string): Promise<void> {
    const { error, delayMs, maxAttempts } = failed;
    await this.recordFailedUsage(error);
    this.#scope.emit({
      type: 'step.retrying',
      step: this.#step,
      stepId: this.#stepId,
      attempt: this.attempt,
      modelId: this.#llm.modelId,
      error: summarizeError(error),
      ...(maxAttempts !== undefined && { maxAttempts }),
      ...(delayMs !== undefined && { delayMs }),
      ...(recovery !== undefined && { recovery }),
    });
    this.attempt += 1;
    this.#callIds = [];
    this.#text = [];
    this.#lastWasText = false;
    this.#startedAt = this.#scope.runtime.now();
    this.#firstAt = undefined;
  }

  async recordFailedUsage(error: LLMError): Promise<void> {
    if (error.usage === undefined) return;
    const { modelId } = this.#llm;
    await this.#scope.recordUsage(error.usage, { modelId, purpose: 'attempt', step: this.#step, stepId: this.#stepId });
  }
}

/** Sends the request, and after a failure what the recoveries make of it. */
async function request(
  scope: TurnScope,
  options: StepOptions,
  view: ReplyView,
  context: HookContext,
): Promise<LLMResponse> {
  const recoveries = options.recoveries ?? createRecoveryState();
  let current = buildRequest(scope, options, view);
  for (const recovery of recoveries.active) {
    current = (await applyRecovery(scope, recoveries, recovery, current, context, undefined)) ?? current;
  }
  const tried: Recovery[] = [];
  let position = 0;
  for (;;) {
    try {
      const response = checkResponse(await scope.bound(attemptChat(options.llm, current)));
      for (const recovery of tried) recoveries.active.add(recovery);
      return response;
    } catch (thrown) {
      const error = toLLMError(thrown);
      if (scope.isAborted) throw error;
      const found = await recover(scope, recoveries, position, current, context, error);
      if (found === undefined || scope.isAborted) throw error;
      await view.retry({ error }, found.recovery.name);
      tried.push(found.recovery);
      position = found.position + 1;
      current = found.request;
    }
  }
}

function buildRequest(scope: TurnScope, options: StepOptions, view: ReplyView): LLMRequest {
  const { llm, messages, tools, settings = {} } = options;
  return {
    systemPrompt: llm.systemPrompt,
    messages,
    tools,
    signal: scope.signal,
    ...(settings.toolChoice !== undefined && { toolChoice: settings.toolChoice }),
    ...(settings.responseSchema !== undefined && { responseSchema: settings.responseSchema }),
    ...(settings.maxOutputTokens !== undefined && { maxOutputTokens: settings.maxOutputTokens }),
    onDelta: view.onDelta,
    onAttemptFailed: (attempt) => view.retry(attempt),
    scope: scope.llmScope(view.step, view.stepId),
  };
}

/** The first recovery, from a position on, that knows the failure and has something to change. */
async function recover(
  scope: TurnScope,
  recoveries: RecoveryState,
  from: number,
  current: LLMRequest,
  context: HookContext,
  error: LLMError,
): Promise<{ readonly recovery: Recovery; readonly position: number; readonly request: LLMRequest } | undefined> {
  for (const [position, recovery] of recoveries.list.entries()) {
    if (position < from || !recovery.kinds.includes(error.kind) || isPassed(recoveries, position)) continue;
    const request = await applyRecovery(scope, recoveries, recovery, current, context, error);
    if (request !== undefined) return { recovery, position, request };
  }
  return undefined;
}

/** True if a recovery works for this turn already, or a later one against the same kind of failure does. */
function isPassed(recoveries: RecoveryState, position: number): boolean {
  const kinds = new Set(recoveries.list[position]?.kinds);
  return recoveries.list
    .slice(position)
    .some((later) => recoveries.active.has(later) && later.kinds.some((kind) => kinds.has(kind)));
}

async function applyRecovery(
  scope: TurnScope,
  recoveries: RecoveryState,
  recovery: Recovery,
  current: LLMRequest,
  hooks: HookContext,
  error: LLMError | undefined,
): Promise<LLMRequest | undefined> {
  const context: RecoveryContext = {
    turnId: scope.turnId,
    step: hooks.step,
    error,
    llm: hooks.llm,
    signal: scope.signal,
    runtime: scope.runtime,
    state: recoveries.notes.get(recovery) ?? new Map<string, unknown>(),
    record: (event) => hooks.record(event),
    messages: () => hooks.messages(),
    notify: (notice) => {
      hooks.notify(notice);
    },
  };
  try {
    return await scope.settle(recovery.apply(current, context));
  } catch (failure) {
    scope.notify({ name: 'recovery.failed', data: { recovery: recovery.name, error: { ...summarizeError(failure) } } });
    return undefined;
  }
}

/** Checks what a model handed back: an adapter may be anybody's. */
function checkResponse(response: LLMResponse): LLMResponse {
  const content: unknown = (response as Partial<LLMResponse> | undefined)?.content;
  if (!Array.isArray(content)) throw malformed('it has no content list', response);
  for (const part of response.content) {
    const isCall = part.type === 'tool_call';
    if (isCall && !(typeof part.name === 'string' && typeof part.inputText === 'string')) {
      throw malformed('a tool call has no name or its inputText is not a string', response);
    }
  }
  const isEmpty = !response.content.some(isSubstance);
  if (isEmpty && response.stopReason !== 'filtered' && response.stopReason !== 'max_tokens') {
    throw new LLMError({
      kind: 'malformed_response',
      code: 'empty',
      message: `The model's reply is empty: no text, no call, no media (it ended with ${response.rawStopReason ?? response.stopReason}).`,
      usage: response.usage,
    });
  }
  return response;
}

function isSubstance(part: ReplyPart): boolean {
  if (part.type === 'text') return part.text.trim() !== '';
  return part.type !== 'thinking';
}

function malformed(what: string, response: unknown): LLMError {
  let shown: string;
  try {
    shown = JSON.stringify(response) ?? String(response);
  } catch {
    shown = String(response);
  }
  return new LLMError({
    kind: 'malformed_response',
    message: `What LLM.chat returned is not a reply: ${what}. It began: ${shown.slice(0, 200)}`,
  });
}

/** Keeps what may be kept of a reply that was cut off. */
async function giveUp(scope: TurnScope, view: ReplyView, llm: LLM, error: LLMError): Promise<StepOutcome> {
  const { step, stepId } = view;
  await view.recordFailedUsage(error);
  const content = partialReply(error.partial ?? view.text);
  const interrupted: TurnStopReason = scope.isAborted
    ? scope.abortCause === 'deadline' ? 'deadline' : 'aborted'
    : stopReasonOf(error);
  const source = { provider: llm.provider, modelId: llm.modelId };
  for (const [index, part] of content.entries()) {
    const reply = index === 0 ? { reply: { source, interrupted } } : {};
    await scope.record({ type: 'content.part', step, stepId, index, count: content.length, ...reply, part });
  }
  const message: AssistantMessage | undefined =
    content.length === 0 ? undefined : { role: 'assistant', id: stepId, content, source, status: 'interrupted' };
  return scope.isAborted ? { kind: 'aborted', message } : { kind: 'failed', error, message };
}

/** The turn's stop reason after a request failed for good. */
export function stopReasonOf(error: LLMError): TurnStopReason {
  if (error.stopReason !== undefined) return error.stopReason;
  return error.kind === 'context_overflow' ? 'context_overflow' : 'fatal_error';
}

function normalizeReply(response: LLMResponse, llm: LLM, view: ReplyView): Reply {
  const calls: ToolCallPart[] = [];
  const parts = response.content.map((part): AssistantPart => {
    if (part.type !== 'tool_call') return part;
    const call = withId(part, view.callId(calls.length));
    calls.push(call);
    return call;
  });
  const hasCalls = calls.length > 0;
  const { stopReason } = response;
  return {
    parts,
    calls,
    // The presence of calls decides: a word that says otherwise is a provider's slip.
    stopReason: hasCalls && isCompleteReply(stopReason) ? 'tool_use' : !hasCalls && stopReason === 'tool_use' ? 'unknown' : stopReason,
    rawStopReason: response.rawStopReason,
    responseId: response.responseId,
    provider: response.provider ?? llm.provider,
    modelId: response.modelId ?? llm.modelId,
    usage: toUsage(response.usage),
    timing: response.timing ?? view.timing(),
  };
}

function withId(call: ReplyToolCall, id: string): ToolCallPart {
  const { name, inputText, providerId, providerData } = call;
  return {
    type: 'tool_call',
    id,
    name,
    inputText,
    ...(providerId !== undefined && providerId !== '' && { providerId }),
    ...(providerData !== undefined && { providerData }),
  };
}

/** Why the calls of a reply are not to run; undefined if they are. */
function refusal(stopReason: StepStopReason, limit: StopDecision | undefined): string | undefined {
  if (limit !== undefined) return `the turn's limit "${limit.name}" was reached by the reply that made it`;
  switch (stopReason) {
    case 'end_turn':
    case 'tool_use':
    case 'stop_sequence':
      return undefined;
    case 'max_tokens':
      return 'the reply was cut off at the output limit, so the call may be incomplete. Make it again, in smaller pieces';
    case 'filtered':
      return 'the reply was stopped by a content filter';
    case 'paused':
      return 'the reply was paused before it was complete';
    case 'unknown':
      return 'the reply ended for an unknown reason and may be incomplete';
    default:
      stopReason satisfies never;
      return 'the reply ended for a reason that does not exist';
  }
}

async function plan(
  scope: TurnScope,
  step: ToolStep,
  reply: Reply,
  limit: StopDecision | undefined,
): Promise<readonly PlannedCall[]> {
  const why = reply.calls.length === 0 ? undefined : refusal(reply.stopReason, limit);
  return why === undefined ? planToolCalls(scope, step, reply.calls) : closed(reply, why);
}

/** Plans that close calls without having read their arguments. */
function closed(reply: Reply, why: string, prior: OpenStep['calls'] = []): readonly PlannedCall[] {
  return reply.calls.map((call, index) => ({
    call,
    tool: undefined,
    input: undefined,
    description: undefined,
    plan: notExecuted(why),
    held: false,
    prior: prior[index],
  }));
}

/** Records all parts of a reply, calls included, in the model's order. */
async function recordReply(
  scope: TurnScope,
  { step, stepId }: ToolStep,
  reply: Reply,
  planned: readonly PlannedCall[],
): Promise<void> {
  const { provider, modelId, responseId, stopReason, rawStopReason } = reply;
  const info: ReplyInfo = {
    source: { provider, modelId, ...(responseId !== undefined && { responseId }) },
    stopReason,
    ...(rawStopReason !== undefined && { rawStopReason }),
  };
  const count = reply.parts.length;
  let calls = 0;
  for (const [index, part] of reply.parts.entries()) {
    const position = { step, stepId, index, count, ...(index === 0 && { reply: info }) };
    let event: Unstamped<RecordedEvent>;
    if (part.type === 'tool_call') {
      event = { type: 'tool.call', ...position, ...callFields(part, planned[calls]) };
      calls += 1;
    } else {
      event = { type: 'content.part', ...position, part };
    }
    await scope.record(event);
  }
}

function callFields(
  call: ToolCallPart,
  planned: PlannedCall | undefined,
): Omit<Extract<Unstamped<RecordedEvent>, { type: 'tool.call' }>, 'type' | 'step' | 'stepId' | 'index' | 'count' | 'reply'> {
  const { id: toolCallId, name, inputText, providerId, providerData } = call;
  return {
    toolCallId,
    name,
    inputText,
    ...(planned?.input !== undefined && { input: planned.input }),
    ...(providerId !== undefined && { providerId }),
    ...(providerData !== undefined && { providerData }),
    ...(planned?.description !== undefined && { description: planned.description }),
    ...(planned?.plan.kind === 'share' && { sameAs: planned.plan.toolCallId }),
    ...(planned?.held === true && { held: true }),
  };
}

/** Runs the calls and records the step's end. */
async function finish(
  scope: TurnScope,
  toolStep: ToolStep,
  reply: Reply,
  planned: readonly PlannedCall[],
  about: { readonly limit: StopDecision | undefined; readonly onBatch: StepOptions['onBatch'] },
): Promise<StepOutcome> {
  const { step, stepId } = toolStep;
  const { provider, modelId, responseId, stopReason, rawStopReason, usage, timing } = reply;
  const source = { provider, modelId, ...(responseId !== undefined && { responseId }) };
  const message: AssistantMessage = { role: 'assistant', id: stepId, content: reply.parts, source };
  let results: FinishedStep['results'] = [];
  let stoppedBy: string | undefined;
  if (planned.length > 0) {
    const batch = createToolBatch(scope, toolStep, planned);
    about.onBatch?.(batch);
    try {
      const outcome = await batch.run();
      if (outcome.suspended.length > 0) return { kind: 'suspended', message, suspended: outcome.suspended };
      ({ results, stoppedBy } = outcome);
    } finally {
      about.onBatch?.(undefined);
    }
  }
  await scope.record({
    type: 'step.end',
    step,
    stepId,
    stopReason,
    ...(rawStopReason !== undefined && { rawStopReason }),
    ...(responseId !== undefined && { responseId }),
    modelId,
    usage,
    ...(timing !== undefined && { timing }),
  });
  return { kind: 'done', finished: { stopReason, usage, message, results }, stoppedBy, limit: about.limit };
}
