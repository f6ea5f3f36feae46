/** Scenario: what model and tool of a measured turn say, the same for the library and for what it is held against. */

/** Shape of a measured turn. */
export interface TurnShape {
  /** Model requests; all but the last ask for the tool. */
  readonly steps: number;
  /** Calls in each of them. */
  readonly calls: number;
  /** Awaited by the model before it answers step `step`, 0-based. @defaultValue it answers at once */
  readonly gate?: (step: number) => Promise<void>;
}

/** What a turn has done, for its check. */
export interface TurnCounts {
  readonly text: string;
  readonly calls: number;
}

export const PROMPT = 'Count.';
export const TOOL_NAME = 'count';
export const TOOL_OUTPUT = 'ok';
export const FINAL_TEXT = 'Done.';

/** What the provider calls a call. */
export function providerIdOf(step: number, index: number): string {
  return `call_${step}_${index}`;
}

/** The arguments of a call, as the model writes them. */
export function argumentsOf(step: number): string {
  return `{"n":${step}}`;
}

/** The text of a delta: of the length of a token, and not always the same string. */
export function tokenOf(index: number): string {
  return ` t${index % 1000}`;
}

/** The length of the first `count` tokens together. */
export function tokensLength(count: number): number {
  let length = 0;
  for (let index = 0; index < count; index += 1) length += tokenOf(index).length;
  return length;
}
