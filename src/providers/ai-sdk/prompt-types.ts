/** Prompt types: messages and their parts as the AI SDK's models take them, loosely: each version has fields of its own. */

/** A piece of a message. */
export interface PromptPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message. */
export interface PromptMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** A text for `system`, else parts. */
  readonly content: string | readonly PromptPart[];
}

/** What becomes of a message of a history. */
export type WrittenMessage =
  | { readonly message: PromptMessage }
  /** A tool's result, and what of it has to come from a user. */
  | { readonly result: PromptPart; readonly media: readonly PromptPart[] };
