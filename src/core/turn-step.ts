/**
 * Turn step: one model request and the tool calls it asked for.
 *
 * - U1 What a reply cost is recorded before anything else is done with it, whatever comes later.
 * - U2 All parts of a reply are recorded, in the model's order, before any call is authorised.
 * - U3 Tools run only if the reply was whole; the presence of calls, not the provider's word, decides that they do.
 */
import { partialReply, toLLMError, type LLMError } from './errors.ts';
import type { AfterLimit, ReachedLimit, RecordedEvent, ReplyInfo, SuspendedCall } from './events.ts';
import type { FinishedStep, StepSettings, StopDecision } from './hooks.ts';
import type { LLM, LLMRequest, LLMResponse, LLMTiming, ReplyToolCall } from './llm.ts';
import type { AssistantMessage, AssistantPart, Message, MessageSource, ToolCallPart } from './message.ts';
import { cleanAssistant } from './projection.ts';
import { ReplyView } from './reply-view.ts';
import { createRecoveryState, sendRequest, type RecoveryState } from './step-request.ts';
import { isCompleteReply, type StepStopReason, type TurnStopReason } from './stop-reason.ts';
import type { AnyTool } from './tool.ts';
import { createToolBatch, type ToolBatch } from './tool-call.ts';
import { toolSet, unreadInput } from './tool-input.ts';
import { notExecuted, planToolCalls, replanToolCalls, type PlannedCall, type ToolStep } from './tool-plan.ts';
import type { OpenCall, OpenStep } from './transcript.ts';
import type { TurnScope, Unstamped } from './turn-scope.ts';
import { toUsage, type Usage } from './usage.ts';

/** What a step needs beside the scope. */
export interface StepOptions {
  /** 1-based. */
  readonly step: number;
  /** The model. */
  readonly llm: LLM;
  /** Tools of the step. */
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
      /** Tells this shape from the others. */
      readonly kind: 'done';
      /** The step as hooks see it. */
      readonly finished: FinishedStep;
      /** The tool that ended the turn. */
      readonly stoppedBy: string | undefined;
      /** The stop condition that the reply met. */
      readonly limit: ReachedLimit | undefined;
    }
  /** Calls wait for decisions. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'suspended';
      /** The message. */
      readonly message: AssistantMessage;
      /** What waits, in provider order. */
      readonly suspended: readonly SuspendedCall[];
    }
  /** The request failed for good; what was kept of the reply is the message. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'failed';
      /** What failed. */
      readonly error: LLMError;
      /** The message. */
      readonly message: AssistantMessage | undefined;
    }
  /** The turn was aborted during the request. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'aborted';
      /** The message. */
      readonly message: AssistantMessage | undefined;
    };

/** Runs one step. Rejects if the recorder fails or the turn's grace is over. */
export async function runStep(scope: TurnScope, options: StepOptions): Promise<StepOutcome> {
  const { step, llm, afterLimit, recoveries = createRecoveryState() } = options;
  const stepId = scope.runtime.createId('step');
  await scope.record({ type: 'step.begin', step, stepId, ...(afterLimit !== undefined && { afterLimit }) });
  if (scope.isAborted) return { kind: 'aborted', message: undefined };

  const toolStep = toolStepOf(scope, stepId, options);
  const view = new ReplyView(scope, { step, stepId, llm });
  let response: LLMResponse;
  try {
    const request = buildRequest(scope, view, { stepId, ...options });
    response = await sendRequest({ scope, view, hooks: toolStep.context, recoveries }, request);
  } catch (error) {
    return giveUp(scope, toolStep, { view, error: toLLMError(error) });
  }

  const reply = toReply(response, llm, view);
  await scope.recordUsage(reply.usage, { modelId: reply.modelId, purpose: 'step', step, stepId });
  const limit = options.checkReply?.(reply.modelId);
  const why = reply.calls.length === 0 ? undefined : refusal(reply.stopReason, limit, afterLimit);
  const planned = why === undefined ? await planToolCalls(scope, toolStep, reply.calls) : closedPlans(reply.calls, why);
  for (const event of replyEvents(toolStep, { ...reply, limit }, planned)) await scope.record(event);
  return runCalls({ scope, toolStep, reply, planned, limit, onBatch: options.onBatch });
}

/** Finishes a step whose reply is recorded whole, after a suspension or a crash. */
export async function resumeStep(scope: TurnScope, open: OpenStep, options: StepOptions): Promise<StepOutcome> {
  const toolStep = toolStepOf(scope, open.stepId, options);
  const reply = recordedReply(open, options);
  const limit = open.reply?.limit;
  const why = refusal(reply.stopReason, limit, options.afterLimit);
  const planned =
    why === undefined ? await replanToolCalls(scope, toolStep, open.calls) : closedPlans(reply.calls, why, open.calls);
  return runCalls({ scope, toolStep, reply, planned, limit, onBatch: options.onBatch });
}

function toolStepOf(scope: TurnScope, stepId: string, { step, llm, tools }: StepOptions): ToolStep {
  return { step, stepId, llm, tools: toolSet(tools).table, context: scope.hookContext(step, { llm, tools: toolSet(tools).list }) };
}

function buildRequest(scope: TurnScope, view: ReplyView, options: StepOptions & { readonly stepId: string }): LLMRequest {
  const { llm, messages, tools, settings = {}, step, stepId } = options;
  const { toolChoice, responseSchema, maxOutputTokens } = settings;
  return {
    systemPrompt: llm.systemPrompt,
    messages,
    tools: toolSet(tools).offered,
    signal: scope.signal,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseSchema !== undefined && { responseSchema }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    onDelta: view.onDelta,
    onAttemptFailed: (attempt) => {
      const retried = view.retry(attempt);
      // Whoever does not wait for it leaves no unhandled rejection: a dead recorder ends the turn by itself.
      retried.catch(() => undefined);
      return retried;
    },
    scope: scope.llmScope(step, stepId),
  };
}

/** Keeps what may be kept of a reply that was cut off. */
async function giveUp(
  scope: TurnScope,
  { step, stepId, llm }: ToolStep,
  { view, error }: { readonly view: ReplyView; readonly error: LLMError },
): Promise<StepOutcome> {
  await view.recordFailedUsage(error);
  const content = partialReply(error.partial ?? view.text);
  // Whose signatures they are: a decorator may have chosen among several models.
  const source = { provider: error.provider ?? llm.provider, modelId: error.modelId ?? llm.modelId };
  const interrupted = scope.isAborted ? scope.abortStopReason : stopReasonOf(error);
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
  return error.stopReason ?? (error.kind === 'context_overflow' ? 'context_overflow' : 'fatal_error');
}

/** A reply with our ids on its calls. */
interface Reply {
  readonly parts: readonly AssistantPart[];
  /** What waits, in provider order. */
  readonly calls: readonly ToolCallPart[];
  /** Why it ended. */
  readonly stopReason: StepStopReason;
  readonly rawStopReason: string | undefined;
  readonly responseId: string | undefined;
  readonly provider: string;
  /** The model. */
  readonly modelId: string;
  /** Tokens spent. */
  readonly usage: Usage;
  readonly timing: LLMTiming | undefined;
}

function toReply(response: LLMResponse, llm: LLM, view: ReplyView): Reply {
  const calls: ToolCallPart[] = [];
  const parts = response.content.map((part): AssistantPart => {
    if (part.type !== 'tool_call') return part;
    const call = withId(part, view.callId(calls.length));
    calls.push(call);
    return call;
  });
  return {
    parts,
    calls,
    stopReason: normalize(response.stopReason, calls.length > 0),
    rawStopReason: response.rawStopReason,
    responseId: response.responseId,
    provider: response.provider ?? llm.provider,
    modelId: response.modelId ?? llm.modelId,
    usage: toUsage(response.usage),
    timing: response.timing ?? view.timing(),
  };
}

/** The presence of calls decides: a word that says otherwise is a provider's slip. */
function normalize(stopReason: StepStopReason, hasCalls: boolean): StepStopReason {
  if (hasCalls) return isCompleteReply(stopReason) ? 'tool_use' : stopReason;
  return stopReason === 'tool_use' ? 'unknown' : stopReason;
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

/** A reply as the record has it. */
function recordedReply(open: OpenStep, { llm, messages }: StepOptions): Reply {
  const message = messages.findLast((one) => one.id === open.stepId);
  const { source, stopReason = 'unknown', rawStopReason } = open.reply ?? {};
  return {
    parts: message?.role === 'assistant' ? message.content : [],
    calls: open.calls.map(({ toolCallId: id, name, inputText }) => ({ type: 'tool_call', id, name, inputText })),
    stopReason,
    rawStopReason,
    responseId: source?.responseId,
    provider: source?.provider ?? llm.provider,
    modelId: source?.modelId ?? llm.modelId,
    usage: open.usage,
    timing: undefined,
  };
}

/** Why the calls of a reply are not to run; undefined if they are. */
function refusal(
  stopReason: StepStopReason,
  limit: ReachedLimit | undefined,
  afterLimit: AfterLimit | undefined,
): string | undefined {
  if (afterLimit !== undefined) return `the turn's limit "${afterLimit.stoppedBy}" was reached, and its last step has no tools`;
  if (limit !== undefined) return `the turn's limit "${limit.name}" was reached by the reply that made it`;
  switch (stopReason) {
    case 'end_turn':
    case 'tool_use':
    case 'stop_sequence':
      return undefined;
    case 'max_tokens':
      return 'the reply was cut off at the output limit (truncated), so the call may be incomplete. Make it again, in smaller pieces';
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

/** Plans that close calls without a tool having read their arguments. */
function closedPlans(calls: readonly ToolCallPart[], why: string, prior: readonly OpenCall[] = []): readonly PlannedCall[] {
  return calls.map((call, index) => ({
    call,
    tool: undefined,
    input: unreadInput(call.inputText),
    description: undefined,
    plan: notExecuted(why),
    held: false,
    prior: prior[index],
  }));
}

function sourceOf({ provider, modelId, responseId }: Pick<Reply, 'provider' | 'modelId' | 'responseId'>): MessageSource {
  return { provider, modelId, ...(responseId !== undefined && { responseId }) };
}

/** A reply, and the limit it met. */
interface MeasuredReply extends Reply {
  readonly limit: ReachedLimit | undefined;
}

type ReplyEvent = Extract<Unstamped<RecordedEvent>, { type: 'content.part' | 'tool.call' }>;

/** The events of all parts of a reply, calls included, in the model's order. */
function replyEvents({ step, stepId }: ToolStep, reply: MeasuredReply, planned: readonly PlannedCall[]): readonly ReplyEvent[] {
  const count = reply.parts.length;
  let calls = 0;
  return reply.parts.map((part, index): ReplyEvent => {
    const position = { step, stepId, index, count, ...(index === 0 && { reply: replyInfo(reply) }) };
    if (part.type !== 'tool_call') return { type: 'content.part', ...position, part };
    calls += 1;
    return { type: 'tool.call', ...position, ...callFields(part, planned[calls - 1]) };
  });
}

function replyInfo({ provider, modelId, responseId, stopReason, rawStopReason, limit }: MeasuredReply): ReplyInfo {
  return {
    source: sourceOf({ provider, modelId, responseId }),
    stopReason,
    ...(rawStopReason !== undefined && { rawStopReason }),
    ...(limit !== undefined && { limit }),
  };
}

function callFields(
  { id: toolCallId, name, inputText, providerId, providerData }: ToolCallPart,
  planned: PlannedCall | undefined,
): Omit<Extract<ReplyEvent, { type: 'tool.call' }>, 'type' | 'step' | 'stepId' | 'index' | 'count' | 'reply'> {
  const input = planned?.input;
  return {
    toolCallId,
    name,
    inputText,
    ...(input !== undefined && { input }),
    ...(providerId !== undefined && { providerId }),
    ...(providerData !== undefined && { providerData }),
    ...(planned?.description !== undefined && { description: planned.description }),
    ...(planned?.plan.kind === 'share' && { sameAs: planned.plan.toolCallId }),
    ...(planned?.held === true && { held: true }),
  };
}

/** The parts, with the input of each call as it is recorded. */
function withInputs(parts: readonly AssistantPart[], planned: readonly PlannedCall[]): readonly AssistantPart[] {
  let calls = 0;
  return parts.map((part) => {
    if (part.type !== 'tool_call') return part;
    const input = planned[calls]?.input;
    calls += 1;
    return input === undefined ? part : { ...part, input };
  });
}

interface RecordedStep {
  readonly scope: TurnScope;
  readonly toolStep: ToolStep;
  readonly reply: Reply;
  readonly planned: readonly PlannedCall[];
  readonly limit: ReachedLimit | undefined;
  readonly onBatch: StepOptions['onBatch'];
}

/** Runs the calls of a recorded reply, then records the step's end. */
async function runCalls({ scope, toolStep, reply, planned, limit, onBatch }: RecordedStep): Promise<StepOutcome> {
  const { step, stepId } = toolStep;
  const { modelId, responseId, stopReason, rawStopReason, usage, timing } = reply;
  const raw: AssistantMessage = { role: 'assistant', id: stepId, content: withInputs(reply.parts, planned), source: sourceOf(reply) };
  // The same reply as in the history; one that is left out there, since nothing is in it, is empty here.
  const message = cleanAssistant(raw, () => undefined) ?? { ...raw, content: [] };
  let results: FinishedStep['results'] = [];
  let stoppedBy: string | undefined;
  if (planned.length > 0) {
    const batch = createToolBatch(scope, toolStep, planned);
    onBatch?.(batch);
    try {
      const outcome = await batch.run();
      if (outcome.suspended.length > 0) return { kind: 'suspended', message, suspended: outcome.suspended };
      ({ results, stoppedBy } = outcome);
    } finally {
      onBatch?.(undefined);
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
  return { kind: 'done', finished: { stopReason, usage, message, results }, stoppedBy, limit };
}
