/**
 * Reply view: what a step sees of its reply while it arrives. Gives calls their ids, passes fragments on, keeps the text
 * for an abort.
 *
 * - A call's id is fixed at its first fragment, and is the recorded one.
 * - A failed attempt leaves no trace but its usage: `step.retrying` takes back what it streamed.
 * - Nothing grows with the length of the reply but the text itself.
 */
import { summarizeError, toLLMError, type LLMError, type PartialReplyPart } from './errors.ts';
import type { FailedAttempt, LLM, LLMDelta, LLMTiming } from './llm.ts';
import type { TurnScope } from './turn-scope.ts';

/** The step whose reply it is. */
export interface ViewedStep {
  /** 1-based. */
  readonly step: number;
  readonly stepId: string;
  readonly llm: LLM;
}

/** What a step sees of its reply, attempt by attempt. */
export class ReplyView {
  readonly #scope: TurnScope;
  readonly #about: ViewedStep;
  #attempt = 1;
  #callIds: string[] = [];
  /** Texts of the attempt, each in the pieces it came in. */
  #texts: string[][] = [];
  /** Fragments that follow each other join; anything in between starts a new part. */
  #lastWasText = false;
  #startedAt: number;
  #firstAt: number | undefined;

  constructor(scope: TurnScope, about: ViewedStep) {
    this.#scope = scope;
    this.#about = about;
    this.#startedAt = scope.runtime.now();
  }

  /** Takes a fragment of the attempt that is under way. */
  readonly onDelta = (delta: LLMDelta): void => {
    const scope = this.#scope;
    const { turnId } = scope;
    const { step, stepId } = this.#about;
    const at = scope.runtime.now();
    const attempt = this.#attempt;
    assertDelta(delta);
    this.#firstAt ??= at;
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
    const isFirst = this.#callIds[delta.callIndex] === undefined;
    const toolCallId = this.callId(delta.callIndex);
    const { name, inputText } = delta;
    // Two shapes written out: a spread costs more than all else that is done with a fragment.
    scope.emitDelta(
      isFirst && name !== undefined
        ? { type: 'tool.call.delta', turnId, at, step, stepId, attempt, toolCallId, name, inputText }
        : { type: 'tool.call.delta', turnId, at, step, stepId, attempt, toolCallId, inputText },
    );
  };

  #keep(text: string): void {
    const last = this.#texts.at(-1);
    if (this.#lastWasText && last !== undefined) last.push(text);
    else this.#texts.push([text]);
    this.#lastWasText = true;
  }

  /** Our id of a call of this attempt, fixed when it is first asked for. */
  callId(callIndex: number): string {
    return (this.#callIds[callIndex] ??= this.#scope.runtime.createId('call'));
  }

  /** The text so far, in parts. */
  get text(): readonly PartialReplyPart[] {
    return this.#texts.map((pieces) => ({ type: 'text', text: pieces.join('') }));
  }

  /** Time of the attempt that is under way. */
  timing(): LLMTiming {
    const totalMs = this.#scope.runtime.now() - this.#startedAt;
    return this.#firstAt === undefined ? { totalMs } : { firstDeltaMs: this.#firstAt - this.#startedAt, totalMs };
  }

  /** An attempt failed and another follows: says so, and starts anew. */
  async retry(failed: FailedAttempt, recovery?: string): Promise<void> {
    const { delayMs, maxAttempts, nextModelId } = failed;
    const error = toLLMError(failed.error);
    const { step, stepId, llm } = this.#about;
    await this.recordFailedUsage(error);
    this.#scope.emit({
      type: 'step.retrying',
      step,
      stepId,
      attempt: this.#attempt,
      modelId: error.modelId ?? llm.modelId,
      ...(nextModelId !== undefined && { nextModelId }),
      error: summarizeError(error),
      ...(maxAttempts !== undefined && { maxAttempts }),
      ...(delayMs !== undefined && { delayMs }),
      ...(recovery !== undefined && { recovery }),
    });
    this.#attempt += 1;
    this.#callIds = [];
    this.#texts = [];
    this.#lastWasText = false;
    this.#startedAt = this.#scope.runtime.now();
    this.#firstAt = undefined;
  }

  /** Records what a failed attempt cost, where the provider told. */
  async recordFailedUsage(error: LLMError): Promise<void> {
    if (error.usage === undefined) return;
    const { step, stepId, llm } = this.#about;
    await this.#scope.recordUsage(error.usage, { modelId: error.modelId ?? llm.modelId, purpose: 'attempt', step, stepId });
  }
}

/** The types promise it; an adapter without types is told what it got wrong. */
function assertDelta(delta: LLMDelta): void {
  const { type, text, inputText }: { type?: unknown; text?: unknown; inputText?: unknown } = Object(delta) as object;
  if (type === 'tool_call' ? typeof inputText === 'string' : typeof text === 'string') return;
  throw new TypeError(
    'onDelta takes { type: "text", text }, { type: "thinking", text } or { type: "tool_call", callIndex, name, inputText }.',
  );
}
