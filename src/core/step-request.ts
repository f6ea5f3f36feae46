/**
 * Step request: one request to the model, and after a failure for good what the recoveries make of it.
 *
 * - Recoveries are a list, tried in order, each at most once a step, forward only.
 * - One that worked changes every later request of the turn before it is sent.
 */
import { attemptChat } from './attempt-chat.ts';
import { LLMError, summarizeError, toLLMError } from './errors.ts';
import type { HookContext, Recovery, RecoveryContext } from './hooks.ts';
import { isRecord } from './json.ts';
import type { LLM, LLMRequest, LLMResponse } from './llm.ts';
import type { ReplyView } from './reply-view.ts';
import type { TurnScope } from './turn-scope.ts';

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
      const response = await scope.bound(sendOnce(hooks.llm, current));
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
