/**
 * Finish turn: drives a turn of an agent to its end, and gives how it ended together with its events, for tests that are
 * about an agent rather than the loop.
 */
import type { VirtualRuntime } from './virtual-runtime.ts';

/** A turn of an agent, as `agent.run`, `session.run` and `session.resume` give it. */
export interface RunningTurn<Event, Result> extends AsyncIterable<Event> {
  /** How it will end. */
  readonly result: Promise<Result>;
}

/** A turn that ended. Made by {@link finishTurn}. */
export interface FinishedTurn<Event, Result> {
  /** How it ended. */
  readonly result: Result;
  /** Its events, in order: recorded ones all, live ones from when `finishTurn` was called. */
  readonly events: readonly Event[];
}

/**
 * Drives the clock until the turn ends. Retries, deadlines and slow tools take no time.
 *
 * @param turn - The turn.
 * @param runtime - The clock that its agent was made with.
 * @throws Error if the turn cannot end, such as for a tool that hangs; TypeError for what the turn refuses as misuse.
 * @example
 * ```ts
 * const runtime = virtualRuntime();
 * const agent = createAgent({ llm: scriptedLLM([toolCall('weather', { city: 'Oslo' }), 'Rain.']), tools: [weather], runtime });
 * const { result, events } = await finishTurn(agent.run('Do I need an umbrella?'), runtime);
 * ```
 */
export async function finishTurn<Event, Result>(turn: RunningTurn<Event, Result>, runtime: VirtualRuntime): Promise<FinishedTurn<Event, Result>> {
  const events: Event[] = [];
  const reading = (async () => {
    for await (const event of turn) events.push(event);
  })();
  const [result] = await runtime.settle(Promise.all([turn.result, reading]));
  return { result, events };
}
