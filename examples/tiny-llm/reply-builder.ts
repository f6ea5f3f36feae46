/**
 * A reply in turnloop's terms: deltas while it comes, its parts at the end.
 *
 * Owns the way from the pieces of `reply.ts` to the shapes of the contract.
 */
import type { LLMDelta, ReplyPart, TextPart } from 'turnloop';
import { createReplyReader, type ReplyPiece } from './reply.ts';

/** Puts a reply together from its tokens. */
export interface ReplyBuilder {
  /** Takes a token, and passes on what it completes. */
  read(token: number): void;
  /** Passes on what is left when no more tokens come. */
  end(): void;
  /** The parts of the reply so far, in order. */
  readonly content: readonly ReplyPart[];
  /** What stood between the marks of a call and was none, if there was such a thing. */
  readonly malformed: string | undefined;
}

/** @param onDelta - Called for each fragment as it comes; the fragments add up to the parts. */
export function createReplyBuilder(onDelta: (delta: LLMDelta) => void): ReplyBuilder {
  const reader = createReplyReader();
  const content: ReplyPart[] = [];
  let callIndex = -1;
  let malformed: string | undefined;

  const take = (piece: ReplyPiece): void => {
    const last = content.at(-1);
    switch (piece.type) {
      case 'text':
        if (last?.type === 'text') content.splice(-1, 1, { ...last, text: last.text + piece.text });
        else content.push(piece);
        onDelta(piece);
        break;
      case 'call':
        callIndex += 1;
        content.push({ type: 'tool_call', name: piece.name, inputText: '' });
        onDelta({ type: 'tool_call', callIndex, name: piece.name, inputText: '' });
        break;
      case 'input':
        if (last?.type === 'tool_call') content.splice(-1, 1, { ...last, inputText: last.inputText + piece.text });
        onDelta({ type: 'tool_call', callIndex, inputText: piece.text });
        break;
      case 'malformed':
        malformed ??= piece.text;
        break;
    }
  };
  return {
    read: (token) => reader.read(token).forEach(take),
    end: () => reader.end().forEach(take),
    content,
    get malformed() {
      return malformed;
    },
  };
}

/** The parts that may be kept of a reply that was cut off: its text. */
export function textsOf(content: readonly ReplyPart[]): readonly TextPart[] {
  return content.filter((part) => part.type === 'text');
}
