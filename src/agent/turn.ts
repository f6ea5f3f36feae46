/**
 * Turn: a running turn in the hands of whoever started it. Its events, its result, and its control.
 *
 * - It runs whether or not somebody iterates; leaving the loop early does not end it.
 * - `result` is how it ended, never an exception; only misuse rejects it, and the iteration with it.
 */
import type { LoopEvent } from '../core/events.ts';
import type { TurnControl } from '../core/turn-control.ts';
import type { TurnResult } from '../core/turn-options.ts';
import type { HandoffEvent } from '../sessions/session-store.ts';

/** An event of a turn of an agent. */
export type AgentTurnEvent = LoopEvent | HandoffEvent;

/** How a turn of an agent ended. */
export interface AgentTurnResult<Output = unknown> extends TurnResult {
  /** Name of the agent that had the conversation at its end. */
  readonly agent: string;
  /** The answer by the agent's `output` schema; absent without one, or if the turn did not come to it. */
  readonly output?: Output | undefined;
}

/** A running turn. Made by `session.run` and `session.resume`. */
export interface Turn<Output = unknown> extends TurnControl, AsyncIterable<AgentTurnEvent> {
  /** The turn. */
  readonly turnId: string;
  /** The session it belongs to. */
  readonly sessionId: string;
  /**
   * How it ended. Every expected end is a result; it rejects with a `TypeError` for misuse, such as two tools of one name.
   */
  readonly result: Promise<AgentTurnResult<Output>>;
  /**
   * Its events as they come: recorded ones all, from the first, whenever the iteration begins; live ones from then on.
   * Iterating takes nothing from others who do, and leaving the loop leaves the turn running.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<AgentTurnEvent>;
}
