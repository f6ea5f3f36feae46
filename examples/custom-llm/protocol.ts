/**
 * The Quill protocol, which exists in this folder only: one POST with JSON, answered by one JSON object a line.
 *
 * Yours has other names for the same things. Whatever it is, its types are a good beginning.
 */

/** A request. What changes from request to request stands behind `talk`. */
export interface QuillRequest {
  readonly model: string;
  readonly brief: string;
  readonly tools: readonly { readonly tool: string; readonly about: string; readonly takes: object }[];
  readonly talk: readonly QuillTurn[];
  /** `nothing`, `something`, or the tool that has to be called. */
  readonly must?: string | undefined;
  readonly form?: object | undefined;
  readonly limit?: number | undefined;
}

/** A turn of the talk, never empty. A `tool` turn has the `ref` of its ask, and follows the turn that asked. */
export interface QuillTurn {
  readonly who: 'person' | 'quill' | 'tool';
  readonly parts: readonly QuillPart[];
  readonly ref?: string | undefined;
  readonly failed?: boolean | undefined;
}

/** A piece of a turn. */
export type QuillPart =
  /** Text, never blank. */
  | { readonly say: string }
  /** Base64, of type `image/png` or `image/jpeg`. */
  | { readonly picture: string; readonly type: string }
  /** Thinking, which the server takes back with its seal only. */
  | { readonly muse: string; readonly seal: string }
  /**
   * A tool call. `ref` is of letters, digits, `_` and `-`, at most 24, and not used twice; `with` is the JSON of an
   * object. `mark` is the server's own note, and has to come back with the ask.
   */
  | { readonly ask: string; readonly ref: string; readonly with: string; readonly mark?: string | undefined };

/** A line of an answer. `bye` is the last; an answer without it broke off. */
export type QuillEvent =
  | { readonly event: 'hello'; readonly answer: string; readonly model: string }
  | { readonly event: 'say' | 'muse' | 'seal'; readonly text: string }
  /** An ask begins; its arguments follow, those of several asks in any order. */
  | { readonly event: 'ask'; readonly slot: number; readonly ref: string; readonly tool: string; readonly mark?: string | undefined }
  | { readonly event: 'with'; readonly slot: number; readonly text: string }
  | { readonly event: 'trouble'; readonly trouble: QuillTrouble }
  | { readonly event: 'bye'; readonly why: string; readonly cost: QuillCost };

/** A failure: the body of an answer whose status is no success, or a line of one whose is. `wait` is in seconds. */
export interface QuillTrouble {
  readonly word: string;
  readonly text: string;
  readonly wait?: number | undefined;
}

/** Tokens. `read` includes what the cache `recalled` and `stored`, `written` what was `mused`. */
export interface QuillCost {
  readonly read: number;
  readonly recalled: number;
  readonly stored: number;
  readonly written: number;
  readonly mused: number;
}
