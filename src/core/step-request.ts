/**
 * Step request: one request to the model, and after a failure for good what the recoveries make of it.
 *
 * - Recoveries are a list, tried in order, each at most once a step, forward only.
 * - One that worked changes every later request of the turn before it is sent.
 * - What comes back is checked: an adapter may be anybody's.
 */
import { LLMError, summarizeError, toLLMError } from './errors.ts';
import type { HookContext, Recovery, RecoveryContext } from './hooks.ts';
import { attemptChat, type LLMRequest, type LLMResponse, type ReplyPart } from './llm.ts';
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
  let current = request;
  for (const recovery of recoveries.active) {
    current = (await applyRecovery(context, recovery, { request: current, error: undefined })) ?? current;
  }
  for (;;) {
    try {
      const response = checkResponse(await scope.bound(attemptChat(hooks.llm, current)));
      for (const recovery of tried) recoveries.active.add(recovery);
      return response;
    } catch (thrown) {
      const error = toLLMError(thrown);
      if (scope.isAborted) throw error;
      const recovered = await recover(context, tried.at(-1), { request: current, error });
      if (recovered === undefined || scope.isAborted) throw error;
      await view.retry({ error }, recovered.recovery.name);
      tried.push(recovered.recovery);
      current = recovered.request;
    }
  }
}

interface Failure {
  readonly request: LLMRequest;
  /** Absent when a recovery that worked is applied to a later request. */
  readonly error: LLMError | undefined;
}

/** The first recovery behind the last one tried that knows the failure and has something to change. */
async function recover(
  context: RequestContext,
  last: Recovery | undefined,
  failure: Failure & { readonly error: LLMError },
): Promise<{ readonly recovery: Recovery; readonly request: LLMRequest } | undefined> {
  const { recoveries } = context;
  const from = last === undefined ? 0 : recoveries.list.indexOf(last) + 1;
  for (const recovery of recoveries.list.slice(from)) {
    if (!recovery.kinds.includes(failure.error.kind) || isPassed(recoveries, recovery)) continue;
    const request = await applyRecovery(context, recovery, failure);
    if (request !== undefined) return { recovery, request };
  }
  return undefined;
}

/** True if a recovery works for this turn already, or a later one against the same kind of failure does. */
function isPassed(recoveries: RecoveryState, recovery: Recovery): boolean {
  return recoveries.list
    .slice(recoveries.list.indexOf(recovery))
    .some((later) => recoveries.active.has(later) && later.kinds.some((kind) => recovery.kinds.includes(kind)));
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
    return await scope.settle(recovery.apply(request, context));
  } catch (failure) {
    scope.notify({ name: 'recovery.failed', data: { recovery: recovery.name, error: { ...summarizeError(failure) } } });
    return undefined;
  }
}

/** Checks what a model handed back. @throws {@link index.LLMError | LLMError} `malformed_response` */
function checkResponse(response: LLMResponse): LLMResponse {
  const content: unknown = (response as Partial<LLMResponse> | undefined)?.content;
  if (!Array.isArray(content)) throw malformed('it has no content list', response);
  for (const part of response.content) {
    // The types promise strings; an adapter without types may not.
    const { type, name, inputText }: { type: unknown; name?: unknown; inputText?: unknown } = part;
    if (type === 'tool_call' && (typeof name !== 'string' || typeof inputText !== 'string')) {
      throw malformed('a tool call has no name or its inputText is not a string', response);
    }
  }
  const mayBeEmpty = response.stopReason === 'filtered' || response.stopReason === 'max_tokens';
  if (mayBeEmpty || response.content.some(isSubstance)) return response;
  throw new LLMError({
    kind: 'malformed_response',
    code: 'empty',
    message: `The model's reply is empty: no text, no call, no media (it ended with ${response.rawStopReason ?? response.stopReason}).`,
    usage: response.usage,
  });
}

function isSubstance(part: ReplyPart): boolean {
  return part.type === 'text' ? part.text.trim() !== '' : part.type !== 'thinking';
}

function malformed(what: string, response: unknown): LLMError {
  return new LLMError({
    kind: 'malformed_response',
    message: `What LLM.chat returned is not a reply: ${what}. It began: ${shown(response).slice(0, 200)}`,
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
