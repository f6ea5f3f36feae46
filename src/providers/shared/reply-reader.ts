/** Reply reader: what every protocol's reader of replies is to those that bring it the bytes. Types only. */
import type { LLMError } from '../../core/errors.ts';
import type { LLMDelta, LLMResponse } from '../../core/llm.ts';
import type { PartialReply } from './partial-reply.ts';

/** Where a reader's findings go. */
export interface ReplyOutlet {
  /** Gets the fragments. */
  readonly onDelta: ((delta: LLMDelta) => void) | undefined;
  /** Makes the error of an error object. */
  readonly toError: (body: unknown) => LLMError;
}

/**
 * Reads one reply. Nothing here waits, and work per event does not grow with the reply.
 */
export interface ReplyReader extends PartialReply {
  /**
   * Reads the parsed data of one event of a stream.
   *
   * @param name - The event's name; empty for none.
   * @throws {@link index.LLMError | LLMError} for an error that the server reports in it.
   */
  readEvent(value: unknown, name: string): void;
  /** Reads a body that was not streamed. @returns Whether it is this protocol's. */
  readBody(body: unknown): boolean;
  /** True once the model said that its reply is over: what is missing then is no part of the reply. */
  readonly isFinished: boolean;
  /** True once the protocol's own end mark came: nothing that follows counts. */
  readonly isEnded: boolean;
  /** Grows with whatever the model said, and once with its reason for ending; not with empty events or usage. */
  readonly progress: number;
  /** True while the model thinks and its server shows nothing of it, for minutes if need be. @defaultValue false */
  readonly isSilent?: boolean;
  /** The whole reply. @param sawEnd - Whether an end mark came. @throws {@link index.LLMError | LLMError} if it is no whole reply. */
  finish(sawEnd: boolean): LLMResponse;
}
