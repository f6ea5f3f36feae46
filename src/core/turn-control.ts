/**
 * Turn control: the handle of a running turn, held by whoever started it.
 *
 * - The first abort wins, whether it comes from here or from a signal.
 * - Every steered message ends as delivered or undelivered, exactly once.
 */
import { isUserMessage, userMessage, type UserMessage } from './message.ts';

/** What became of a steered message. */
export type SteerOutcome = 'delivered' | 'undelivered';

/** Options of {@link TurnControl.steer}. */
export interface SteerOptions {
  /** Closes the calls of the running step that have not started as skipped. @defaultValue false: the batch ends first */
  readonly skipPendingCalls?: boolean | undefined;
}

/** The handle of one turn: give it to `runTurn` as `control`. May be used before the turn starts. */
export interface TurnControl {
  /** Aborts the turn. @param reason - `userCancel()` for a person's cancel */
  abort(reason?: unknown): void;
  /** Finishes the running step, then ends the turn `stopped`. Queued steering comes back undelivered. */
  stop(): void;
  /**
   * Puts a message before the model's next request. One that waits when the model is done opens another step.
   *
   * @returns Whether the turn delivered it; `undelivered` ones are also in `TurnResult.undelivered`.
   */
  steer(message: UserMessage | string, options?: SteerOptions): Promise<SteerOutcome>;
  /**
   * Cancels one call; the others and the turn go on. One that the model is still writing does not start.
   *
   * @returns False if it is over, or no step is running.
   */
  cancelToolCall(toolCallId: string): boolean;
}

/** A steered message on its way. */
export interface SteeredMessage {
  readonly message: UserMessage;
  /** Says what became of it. */
  settle(outcome: SteerOutcome): void;
}

/** What a running turn does on behalf of its control. */
export interface TurnControlTarget {
  abort(reason: unknown): void;
  skipPendingCalls(): void;
  cancelToolCall(toolCallId: string): boolean;
}

/** The loop's side of a {@link TurnControl}. */
export class TurnControlState {
  stopRequested = false;
  #queue: SteeredMessage[] = [];
  #target: TurnControlTarget | undefined;
  #abort: { readonly reason: unknown } | undefined;
  #used = false;

  /** Connects the control to its turn. @throws TypeError if it served a turn before. */
  attach(target: TurnControlTarget): void {
    if (this.#used) {
      throw new TypeError('This turn control was given to a turn before. Make one for each: control: createTurnControl().');
    }
    this.#used = true;
    this.#target = target;
    if (this.#abort !== undefined) target.abort(this.#abort.reason);
  }

  /** The turn is over: everything queued is undelivered, and later steering too. */
  detach(): readonly UserMessage[] {
    this.#target = undefined;
    const left = this.#queue;
    this.#queue = [];
    for (const steered of left) steered.settle('undelivered');
    return left.map((steered) => steered.message);
  }

  get hasSteering(): boolean {
    return this.#queue.length > 0;
  }

  /** Takes the oldest steered message. The loop settles it once it is recorded. */
  nextSteering(): SteeredMessage | undefined {
    return this.#queue.shift();
  }

  /** Puts a message back that could not be recorded. */
  returnSteering(steered: SteeredMessage): void {
    this.#queue.unshift(steered);
  }

  abort(reason: unknown): void {
    this.#abort ??= { reason };
    this.#target?.abort(reason);
  }

  steer(message: UserMessage, options: SteerOptions): Promise<SteerOutcome> {
    if (this.#used && this.#target === undefined) return Promise.resolve('undelivered');
    return new Promise((settle) => {
      this.#queue.push({ message, settle });
      if (options.skipPendingCalls === true) this.#target?.skipPendingCalls();
    });
  }

  cancelToolCall(toolCallId: string): boolean {
    return this.#target?.cancelToolCall(toolCallId) ?? false;
  }
}

const states = new WeakMap<TurnControl, TurnControlState>();

/** Makes the handle of one turn. */
export function createTurnControl(): TurnControl {
  const state = new TurnControlState();
  const control: TurnControl = {
    abort: (reason) => {
      state.abort(reason);
    },
    stop: () => {
      state.stopRequested = true;
    },
    steer: (message, options = {}) => {
      const steered = typeof message === 'string' ? userMessage(message) : message;
      if (!isUserMessage(steered)) throw new TypeError('steer takes a text or a user message: control.steer("Use tabs.").');
      return state.steer(steered, options);
    },
    cancelToolCall: (toolCallId) => state.cancelToolCall(toolCallId),
  };
  states.set(control, state);
  return control;
}

/** The loop's side of a control. @throws TypeError for one that {@link createTurnControl} did not make. */
export function stateOf(control: TurnControl): TurnControlState {
  const state = states.get(control);
  if (state === undefined) throw new TypeError('`control` must come from createTurnControl().');
  return state;
}
