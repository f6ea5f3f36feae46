/**
 * Matchers for vitest: `expect.extend(matchers)` once, such as in a setup file, and assertions read as sentences about
 * turns. Needs `vitest` for its types only; Jest's `expect.extend` takes the same object.
 *
 * @module
 */
import type {} from 'vitest';
import type { TurnStopReason } from '../../core/stop-reason.ts';

export { type Matcher, type MatcherContext, type MatcherOutcome, type Matchers, matchers } from './matchers.ts';

/** What `expect(…)` has beside the runner's own once the matchers are in. */
export interface TurnMatchers {
  /**
   * The model called this tool, whatever came of it: a call that was denied counts. Takes what `finishTurn` or `runScripted`
   * gave, a transcript, or a list of events such as `await session.events()`.
   *
   * @param name - Name of the tool.
   * @param input - The arguments, compared deeply; asymmetric matchers such as `expect.objectContaining` may stand in them.
   * Left out, any will do.
   */
  toHaveCalledTool(name: string, input?: unknown): void;
  /** The turn, of several the last, ended for this reason. Takes a result too. */
  toEndWith(stopReason: TurnStopReason): void;
  /** What was recorded breaks none of the laws of the loop; with a result beside the events, both say the same. */
  toFollowLaws(): void;
}

declare module 'vitest' {
  // vitest's interface is to have these members, whatever `T` a value is of.
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars
  interface Matchers<T> extends TurnMatchers {}
}
