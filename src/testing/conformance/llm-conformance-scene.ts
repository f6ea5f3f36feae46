/**
 * Scene: what a fake server is to do, told without any protocol. Types for authors of adapters, and the builders that
 * the cases are written with.
 *
 * - An answer is a list of steps, played in order. It begins with `start` or with what happens instead of an answer
 *   (`refuse`, `cut`, `stall`), and ends with `finish` or with what happens instead of an end.
 * - Every step of a part holds the whole part, so that a step can be written to the wire without looking ahead.
 */
import type { LLM } from '../../core/llm.ts';
import type { LLMErrorKind } from '../../core/errors.ts';
import type { StepStopReason } from '../../core/stop-reason.ts';
import type { Usage } from '../../core/usage.ts';

/** Text of a scene's reply. */
export interface LLMSceneText {
  /** Tells this shape from the others. */
  readonly type: 'text';
  /** Position in the reply, 0-based. */
  readonly index: number;
  /** The whole text. */
  readonly text: string;
}

/** Thinking of a scene's reply. */
export interface LLMSceneThinking {
  /** Tells this shape from the others. */
  readonly type: 'thinking';
  /** Position in the reply, 0-based. */
  readonly index: number;
  /** The whole text. */
  readonly text: string;
  /** What signs it, where the scene is about that. */
  readonly signature?: string | undefined;
}

/** A tool call of a scene's reply. */
export interface LLMSceneCall {
  /** Tells this shape from the others. */
  readonly type: 'tool_call';
  /** Position in the reply, 0-based. */
  readonly index: number;
  /** Position among the calls of the reply, 0-based. */
  readonly callIndex: number;
  /** Name of the tool. */
  readonly name: string;
  /** The id that the server gives the call. A server whose ids look otherwise gives another, not used twice. */
  readonly providerId: string;
  /** The whole argument text: not always JSON, and empty for none. */
  readonly inputText: string;
}

/** A part of a scene's reply. */
export type LLMScenePart = LLMSceneText | LLMSceneThinking | LLMSceneCall;

/** A failure that the server reports. */
export interface LLMSceneFailure {
  /** What it is, in our word. The fake server says it in its own: a status, a code, a sentence. */
  readonly kind: LLMErrorKind;
  /** What the server says for people, perhaps among other words of its own. To be kept as it is: it may quote the key. */
  readonly message: string;
  /** How long the server asks to wait, in milliseconds; whole seconds. Where it is absent the server does not say. */
  readonly retryAfterMs?: number | undefined;
}

/** The answer begins: status, headers, and what a protocol sends before any content. */
export interface LLMSceneStart {
  /** Tells this shape from the others. */
  readonly type: 'start';
}

/** A part of the reply begins or ends. Parts may overlap: calls whose fragments alternate. */
export interface LLMSceneEdge {
  /** Tells this shape from the others. */
  readonly type: 'part.begin' | 'part.end';
  /** The whole part. */
  readonly part: LLMScenePart;
}

/** A fragment of a part's text, thinking or arguments. A part without text has none. */
export interface LLMSceneFragment {
  /** Tells this shape from the others. */
  readonly type: 'part.delta';
  /** The whole part. */
  readonly part: LLMScenePart;
  /** The fragment; never empty. */
  readonly text: string;
}

/** The reply is over: the server says why and what it cost, as its protocol does, and ends the answer properly. */
export interface LLMSceneFinish {
  /** Tells this shape from the others. */
  readonly type: 'finish';
  /** Why the reply ended. */
  readonly stopReason: StepStopReason;
  /** What it cost, in our disjoint counters: a server that counts otherwise adds them up in its way. */
  readonly usage: Usage;
}

/** The server reports a failure instead of an answer: with a status that is no success, and nothing after. */
export interface LLMSceneRefuse {
  /** Tells this shape from the others. */
  readonly type: 'refuse';
  /** What the server reports. */
  readonly failure: LLMSceneFailure;
}

/** The server reports a failure in the midst of its answer. How the answer ends then is the next step. */
export interface LLMSceneFail {
  /** Tells this shape from the others. */
  readonly type: 'fail';
  /** What the server reports. */
  readonly failure: LLMSceneFailure;
}

/**
 * The answer ends without an end, or does not: `cut` the connection breaks; `close` the answer ends in good order, as
 * behind a proxy that gave up; `stall` nothing more comes, and the connection stays open.
 */
export interface LLMSceneStop {
  /** Tells this shape from the others. */
  readonly type: 'cut' | 'close' | 'stall';
}

/** The server waits before it goes on. What came before has to be on its way by then. */
export interface LLMSceneWait {
  /** Tells this shape from the others. */
  readonly type: 'wait';
  /** To be called when the server gets here, and awaited. Never rejects. */
  readonly until: () => Promise<void>;
}

/** One thing that the server does. */
export type LLMSceneStep =
  | LLMSceneStart
  | LLMSceneEdge
  | LLMSceneFragment
  | LLMSceneFinish
  | LLMSceneRefuse
  | LLMSceneFail
  | LLMSceneStop
  | LLMSceneWait;

/** What a fake server is to do in one case. */
export interface LLMScene {
  /** Id of the case. */
  readonly id: string;
  /** The key to give the adapter: no error may show it. */
  readonly apiKey: string;
  /** The n-th request gets the n-th answer. A request beyond them is a fault: refuse it. */
  readonly answers: readonly (readonly LLMSceneStep[])[];
  /** How many bytes go over the wire at a time, across characters and lines. @defaultValue as the server likes */
  readonly chunkBytes?: number | undefined;
}

/** A tool call as the server finds it in a request's history. */
export interface LLMSentCall {
  /** The id that the request gives it; where a protocol has none, what pairs a result with it. */
  readonly id: string;
  /** Name of the tool. */
  readonly name: string;
  /** The arguments, byte for byte; for a protocol that sends them as a value, the value's JSON. */
  readonly inputText: string;
}

/** A tool result as the server finds it in a request's history. */
export interface LLMSentResult {
  /** The id of the call that it answers. */
  readonly id: string;
  /** Its text. */
  readonly text: string;
}

/** What a fake server says of a reply besides its content, in its own words. What its protocol does not have is left out. */
export interface LLMSceneReplied {
  /** The reply's id. */
  readonly responseId?: string | undefined;
  /** The model that answers, by its full name. */
  readonly modelId?: string | undefined;
  /** Why the reply ended. */
  readonly rawStopReason?: string | undefined;
}

/** A request as the fake server got it. */
export interface LLMSceneRequest {
  /** The body, as text. */
  readonly body: string;
  /** The calls of its history, in order. Needed by the cases that say so. */
  readonly calls?: readonly LLMSentCall[] | undefined;
  /** The results of its history, in order. Needed by the cases that say so. */
  readonly results?: readonly LLMSentResult[] | undefined;
  /** What the server said of its reply to this request. Needed by the cases that say so. */
  readonly replied?: LLMSceneReplied | undefined;
  /** Resolves when the client lets go of the connection before the answer is complete. Needed by the cases that say so. */
  readonly letGo?: Promise<unknown> | undefined;
}

/** An adapter on a fake server. */
export interface LLMUnderTest {
  /** The adapter. */
  readonly llm: LLM;
  /** What the server was sent so far, oldest first. Needed by the cases that say so. */
  requests?(): readonly LLMSceneRequest[];
  /**
   * A body without its marks for a prompt cache, for protocols that have such: they move with the newest message, and
   * count for nothing in what is cached.
   *
   * @defaultValue the body as it is
   */
  withoutCacheMarks?(body: string): string;
  /** Ends the server. Called once, whatever happened. */
  close?(): Promise<void> | void;
}

/** The signature of signed thinking. */
export const SIGNATURE = 'c2lnbmVkLWJ5LXRoZS1zZXJ2ZXI=';

/** A part with the fragments that it comes in. */
export interface PlannedPart {
  readonly part: LLMScenePart;
  readonly pieces: readonly string[];
}

/** Makes a part, given its position and that of the next call. */
export type PartPlan = (index: number, callIndex: number) => PlannedPart;

/** Text that comes in these fragments. */
export function text(...pieces: readonly string[]): PartPlan {
  return (index) => ({ part: { type: 'text', index, text: pieces.join('') }, pieces });
}

/** Thinking that comes in these fragments. */
export function thought(pieces: readonly string[], signature?: string): PartPlan {
  return (index) => ({
    part: { type: 'thinking', index, text: pieces.join(''), ...(signature !== undefined && { signature }) },
    pieces,
  });
}

/** A call whose arguments come in these fragments. */
export function call(name: string, pieces: readonly string[], providerId?: string): PartPlan {
  return (index, callIndex) => ({
    part: { type: 'tool_call', index, callIndex, name, providerId: providerId ?? `CALL0000${callIndex + 1}`, inputText: pieces.join('') },
    pieces,
  });
}

/** Gives parts their positions. */
function layOut(plans: readonly PartPlan[]): readonly PlannedPart[] {
  let callIndex = 0;
  return plans.map((plan, index) => {
    const planned = plan(index, callIndex);
    if (planned.part.type === 'tool_call') callIndex += 1;
    return planned;
  });
}

/** The steps of parts, one part after the other. */
export function stepsOf(...plans: readonly PartPlan[]): readonly LLMSceneStep[] {
  return layOut(plans).flatMap(({ part, pieces }): LLMSceneStep[] => [
    { type: 'part.begin', part },
    ...pieces.map((piece): LLMSceneStep => ({ type: 'part.delta', part, text: piece })),
    { type: 'part.end', part },
  ]);
}

/** The steps of parts whose fragments alternate: the first of each, then the second of each. */
export function alternatingSteps(...plans: readonly PartPlan[]): readonly LLMSceneStep[] {
  const planned = layOut(plans);
  const rounds = Math.max(...planned.map(({ pieces }) => pieces.length));
  const steps: LLMSceneStep[] = planned.map(({ part }) => ({ type: 'part.begin', part }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { part, pieces } of planned) {
      const piece = pieces[round];
      if (piece !== undefined) steps.push({ type: 'part.delta', part, text: piece });
    }
  }
  return [...steps, ...planned.map(({ part }): LLMSceneStep => ({ type: 'part.end', part }))];
}

/** Steps without their last `part.end`: the part is still coming. */
export function openEnded(steps: readonly LLMSceneStep[]): readonly LLMSceneStep[] {
  return steps.at(-1)?.type === 'part.end' ? steps.slice(0, -1) : steps;
}

/** What most replies cost. */
export const SCENE_USAGE: Usage = { inputTokens: 11, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 7, thinkingTokens: 0 };

/** The begin of an answer. */
export const START: LLMSceneStart = { type: 'start' };

/** The end of an answer. */
export function finish(stopReason: StepStopReason = 'end_turn', usage: Usage = SCENE_USAGE): LLMSceneFinish {
  return { type: 'finish', stopReason, usage };
}

/** A whole answer. @param steps - What comes between its begin and its end. */
export function answer(steps: readonly LLMSceneStep[], end: LLMSceneFinish = finish()): readonly LLMSceneStep[] {
  return [START, ...steps, end];
}

/** The parts that a list of steps begins, in order. */
export function partsOfSteps(steps: readonly LLMSceneStep[]): readonly LLMScenePart[] {
  return steps.flatMap((step) => (step.type === 'part.begin' ? [step.part] : []));
}

/** An answer that is a failure. */
export function refusal(kind: LLMErrorKind, message: string, more: Partial<LLMSceneFailure> = {}): readonly LLMSceneStep[] {
  return [{ type: 'refuse', failure: { kind, message, ...more } }];
}
