/** Asks a decorated model without a turn, on virtual time: what it says, tells, streams and leaves behind. */
import type { FailedAttempt, LLM, LLMDelta, LLMError, LLMErrorKind, LLMErrorOptions, LLMRequest, LLMResponse, Notice } from 'turnloop';
import { LLMError as ModelError, userMessage } from 'turnloop';
import { type VirtualRuntime, watchedController, type WatchedController } from 'turnloop/testing';

/** A request under way. */
export interface Asking {
  readonly response: Promise<LLMResponse>;
  /** The text of the reply, or what was thrown; undefined as long as neither is there. */
  readonly outcome: unknown;
  readonly controller: WatchedController;
  readonly failed: readonly FailedAttempt[];
  readonly deltas: readonly LLMDelta[];
  readonly notices: readonly Notice[];
}

/** A failure of a provider. */
export function failure(kind: LLMErrorKind, options: Partial<LLMErrorOptions> = {}): LLMError {
  return new ModelError({ kind, message: `${kind}.`, ...options });
}

/** Sends a request. */
export function startRequest(llm: LLM, runtime: VirtualRuntime, parts: Partial<LLMRequest> = {}): Asking {
  const controller = watchedController();
  const failed: FailedAttempt[] = [];
  const deltas: LLMDelta[] = [];
  const notices: Notice[] = [];
  const progress: { outcome: unknown } = { outcome: undefined };
  const response = llm.chat({
    systemPrompt: llm.systemPrompt,
    messages: [userMessage('Hello')],
    tools: [],
    signal: controller.signal,
    onDelta: (delta) => deltas.push(delta),
    onAttemptFailed: (attempt) => {
      failed.push(attempt);
    },
    scope: { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime, notify: (notice) => notices.push(notice) },
    ...parts,
  });
  response.then(
    ({ content }) => {
      progress.outcome = content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('');
    },
    (thrown: unknown) => {
      progress.outcome = thrown;
    },
  );
  return {
    response,
    get outcome() {
      return progress.outcome;
    },
    controller,
    failed,
    deltas,
    notices,
  };
}
