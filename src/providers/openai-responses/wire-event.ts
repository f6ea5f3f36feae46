/** Wire event: what an event of a stream may be about. Types only. */
import type { PartialCall } from './output-items.ts';

/** An event of a stream, or an item out of one. */
export type WireEvent = Readonly<Record<string, unknown>>;

/** Whether a fragment adds to what came, or is all of it; and whether it is a refusal. */
export interface TextKind {
  readonly isWhole: boolean;
  readonly isRefusal: boolean;
}

/** Whether a fragment adds to what came, or is all of it; and which of the two kinds of thinking it is. */
export interface ThinkingKind {
  readonly isWhole: boolean;
  readonly isRaw: boolean;
}

/** Whether a fragment adds to what came, or is all of it; and of which type its call is. */
export interface InputKind {
  readonly isWhole: boolean;
  readonly type: PartialCall['type'];
}
