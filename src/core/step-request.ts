/**
 * Step request: one request to the model, and after a failure for good what the recoveries make of it.
 *
 * - Recoveries are a list, tried in order, each at most once a step, forward only.
 * - One that worked changes every later request of the turn before it is sent.
 * - What comes back is checked: an adapter may be anybody's.
 */
import { LLMError, summarizeError, toLLMError } from './errors.ts';
import type { HookContext, Recovery, RecoveryContext } from './hooks.ts';
import { isRecord, toJson } from './json.ts';
import { attemptChat, type LLM, type LLMRequest, type LLMResponse, type ReplyPart } from './llm.ts';
import { isTextOrMedia } from './message.ts';
import type { ReplyView } from './reply-view.ts';
import { isStepStopReason, STEP_STOP_REASONS } from './stop-reason.ts';
import type { TurnScope } from './turn-scope.ts';
import { toUsage } from './usage.ts';

/** The recoveries of a turn, and how far it has come with them. Made by {@link createRecoveryState}. */
export interface RecoveryState {
  /** In the order in which they are tried. */
  readonly list: readonly Recovery[];
  /** Those that worked: they change every later request of the turn before it is sent. */
  readonly active: Set<Recovery>;
  /** Each one's own notes. */
  readonly notes: Map<Recovery, Map<string, unknown>>;
}

/** Makes the state of a turn's recoveries. */
export function createRecoveryState(recoveries: readonly Recovery[] = []): RecoveryState {
  const notes = new Map<Recovery, Map<string, unknown>>();
  for (const recovery of recoveries) notes.set(recovery, new Map());
  return { list: recoveries, active: new Set(), notes };
}

/** What a request needs beside its text. */
export interface RequestContext {
  readonly scope: TurnScope;
  readonly view: ReplyView;
  readonly hooks: HookContext;
  readonly recoveries: RecoveryState;
}

/** Sends a request. @throws the {@link index.LLMError | LLMError} that nothing helped against. */
export async function sendRequest(context: RequestContext, request: LLMRequest): Promise<LLMResponse> {
  const { scope, view, hooks, recoveries } = context;
  const tried: Recovery[] = [];
  let position = 0;
  let current = request;
  const applied = new Set<Recovery>();
  for (const recovery of recoveries.active) {
    const changed = await applyRecovery(context, recovery, { request: current, error: undefined });
    if (changed === undefined) continue;
    applied.add(recovery);
    current = changed;
  }
  for (;;) {
    // A recovery may take its time: what was aborted meanwhile is not sent, least of all without the change.
    if (scope.isAborted) throw new LLMError({ kind: 'aborted', message: 'The turn was aborted before the request was sent.' });
    try {
      const response = checkResponse(await scope.bound(sendOnce(hooks.llm, current)));
      for (const recovery of tried) recoveries.active.add(recovery);
      return response;
    } catch (thrown) {
      const error = toLLMError(thrown);
      if (scope.isAborted) throw error;
      const recovered = await recover(context, { from: position, applied }, { request: current, error });
      if (recovered === undefined || scope.isAborted) throw error;
      await view.retry({ error }, recovered.recovery.name);
      tried.push(recovered.recovery);
      position = recovered.next;
      current = recovered.request;
    }
  }
}

interface Failure {
  readonly request: LLMRequest;
  /** Absent when a recovery that worked is applied to a later request. */
  readonly error: LLMError | undefined;
}

/** One request to the model, with callbacks that go dead when it settles. */
async function sendOnce(llm: LLM, request: LLMRequest): Promise<LLMResponse> {
  const { onAttemptFailed } = request;
  let isOpen = true;
  try {
    return await attemptChat(llm, {
      ...request,
      onAttemptFailed: (attempt) => (isOpen ? onAttemptFailed?.(attempt) : undefined),
    });
  } finally {
    isOpen = false;
  }
}

/** How far a step has come with the recoveries. */
interface RecoveryProgress {
  /** Those before this position in the list were tried. */
  readonly from: number;
  /** Those that changed the request before it was sent: they have had their try. */
  readonly applied: ReadonlySet<Recovery>;
}

/** The first recovery that was not tried, knows the failure and has something to change. */
async function recover(
  context: RequestContext,
  { from, applied }: RecoveryProgress,
  failure: Failure & { readonly error: LLMError },
): Promise<{ readonly recovery: Recovery; readonly next: number; readonly request: LLMRequest } | undefined> {
  const { recoveries } = context;
  for (const [index, recovery] of recoveries.list.entries()) {
    if (index < from || !recovery.kinds.includes(failure.error.kind) || isPassed(recoveries.list.slice(index), recovery, applied)) continue;
    const request = await applyRecovery(context, recovery, failure);
    if (request !== undefined) return { recovery, next: index + 1, request };
  }
  return undefined;
}

/** True if a recovery, or one behind it against the same kind of failure, has changed this request already. */
function isPassed(fromIt: readonly Recovery[], recovery: Recovery, applied: ReadonlySet<Recovery>): boolean {
  return fromIt.some((later) => applied.has(later) && later.kinds.some((kind) => recovery.kinds.includes(kind)));
}

async function applyRecovery(
  { scope, hooks, recoveries }: RequestContext,
  recovery: Recovery,
  { request, error }: Failure,
): Promise<LLMRequest | undefined> {
  const context: RecoveryContext = {
    turnId: hooks.turnId,
    step: hooks.step,
    error,
    llm: hooks.llm,
    signal: hooks.signal,
    runtime: hooks.runtime,
    state: recoveries.notes.get(recovery) ?? new Map<string, unknown>(),
    record: (event) => hooks.record(event),
    messages: () => hooks.messages(),
    notify: (notice) => {
      hooks.notify(notice);
    },
  };
  try {
    const changed: unknown = await scope.settle(recovery.apply(request, context));
    if (changed === undefined || changed === null) return undefined;
    if (!isRequest(changed)) throw new TypeError('it returned something that is no request');
    return changed;
  } catch (failure) {
    if (scope.isAborted) return undefined;
    scope.notify({ name: 'recovery.failed', data: { recovery: recovery.name, error: { ...summarizeError(failure) } } });
    return undefined;
  }
}

function isRequest(value: unknown): value is LLMRequest {
  return isRecord(value) && Array.isArray(value['messages']) && Array.isArray(value['tools']) && isRecord(value['signal']);
}

/** Checks what a model handed back. @throws {@link index.LLMError | LLMError} `malformed_response` naming what is wrong */
function checkResponse(response: LLMResponse): LLMResponse {
  const problem = responseProblem(response);
  if (problem !== undefined) throw malformed(problem, response);
  const mayBeEmpty = response.stopReason === 'filtered' || response.stopReason === 'max_tokens';
  if (mayBeEmpty || response.content.some(isSubstance)) return response;
  throw new LLMError({
    kind: 'malformed_response',
    code: 'empty',
    message: `The model's reply is empty: no text, no call, no media (it ended with ${response.rawStopReason ?? response.stopReason}).`,
    usage: response.usage,
  });
}

/** What is wrong with a reply. The types promise that nothing is; an adapter without types may not keep it. */
function responseProblem(response: unknown): string | undefined {
  if (!isRecord(response) || !Array.isArray(response['content'])) return 'it has no "content" list';
  const { stopReason } = response;
  if (!isStepStopReason(stopReason)) return `its "stopReason" is ${shown(stopReason)}; it is one of ${STEP_STOP_REASONS.join(', ')}`;
  for (const [index, part] of response['content'].entries()) {
    const problem = partProblem(part);
    if (problem !== undefined) return `content[${index}] ${problem}`;
  }
  return undefined;
}

function partProblem(part: unknown): string | undefined {
  if (!isRecord(part)) return 'is not a part such as { type: "text", text }';
  if (part['providerData'] !== undefined && toJson(part['providerData']) === undefined) return 'has providerData that is not JSON';
  switch (part['type']) {
    case 'text':
    case 'thinking':
      return typeof part['text'] === 'string' ? undefined : 'has no text';
    case 'tool_call':
      if (typeof part['name'] !== 'string') return 'is a tool call without a name';
      if (part['providerId'] !== undefined && typeof part['providerId'] !== 'string') return 'is a tool call whose providerId is not a string';
      return typeof part['inputText'] === 'string' ? undefined : 'is a tool call whose inputText is not a string';
    case 'media':
      return isTextOrMedia(part) ? undefined : 'is media without mediaType, or without data or url';
    case 'provider':
      if (typeof part['provider'] !== 'string') return 'is a provider part without "provider"';
      return toJson(part['data']) === undefined ? 'is a provider part whose data is not JSON' : undefined;
    default:
      return `has the unknown type ${shown(part['type'])}`;
  }
}

function isSubstance(part: ReplyPart): boolean {
  return part.type === 'text' ? part.text.trim() !== '' : part.type !== 'thinking';
}

function malformed(what: string, response: unknown): LLMError {
  const usage = isRecord(response) && isRecord(response['usage']) ? toUsage(response['usage']) : undefined;
  return new LLMError({
    kind: 'malformed_response',
    message: `What LLM.chat returned is not a reply: ${what}. It began: ${shown(response).slice(0, 200)}`,
    ...(usage !== undefined && { usage }),
  });
}

function shown(value: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    return text ?? String(value);
  } catch {
    return String(value);
  }
}
