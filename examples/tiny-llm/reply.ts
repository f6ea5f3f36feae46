/**
 * The tokens of a reply as text and tool calls, piece by piece as they come.
 *
 * Owns the form of a reply: text, then any number of calls, each a mark, a line
 * `{"name": "NAME", "arguments": {…}}` and a mark. Whether the arguments are sound JSON
 * is not looked at here: the loop tells the model when they aren't.
 *
 * Invariants:
 * 1. The texts of one kind add up to the whole: none is repeated, taken back or split
 *    inside a character.
 * 2. Work for a token doesn't depend on how much came before it.
 */
import { createByteDecoder, isByte, MARKS } from './tokenizer.ts';

/** What a token adds to the reply. */
export type ReplyPiece =
  | { readonly type: 'text'; readonly text: string }
  /** A call begins; pieces of its input follow. */
  | { readonly type: 'call'; readonly name: string }
  /** More of the last call's arguments: JSON text as the model writes it. */
  | { readonly type: 'input'; readonly text: string }
  /** Something between the marks of a call that doesn't begin like one, up to where it ended. */
  | { readonly type: 'malformed'; readonly text: string };

/** Reads a reply token by token. */
export interface ReplyReader {
  /** The pieces that this token completes; mostly one, often none. */
  read(token: number): readonly ReplyPiece[];
  /** The pieces left when no more tokens come. A call without its end mark is ended here. */
  end(): readonly ReplyPiece[];
}

/** All of a call before its arguments. Names of tools hold no quotes. */
const CALL_HEAD = /^\s*\{"name": "([^"]*)", "arguments": /;

/** Longest head to wait for: names have at most 64 characters, and the rest has some 30. */
const MAX_CALL_HEAD = 200;

/** What may turn out to be the end of the call's own object rather than of its arguments. */
const CALL_TAIL = /\}?\s*$/;

/** A reader for one reply. */
export function createReplyReader(): ReplyReader {
  let section: Section = createTextSection();
  const change = (next: Section): readonly ReplyPiece[] => {
    const pieces = section.end();
    section = next;
    return pieces;
  };
  return {
    read(token) {
      if (token === MARKS.callStart.token) return change(createCallSection());
      if (token === MARKS.callEnd.token) return change(createTextSection());
      // The other marks never stand in a reply; a stray one is no text.
      return isByte(token) ? section.read(token) : [];
    },
    end: () => change(createTextSection()),
  };
}

/** A stretch of the reply between two marks. */
interface Section {
  read(byte: number): readonly ReplyPiece[];
  end(): readonly ReplyPiece[];
}

function createTextSection(): Section {
  const decoder = createByteDecoder();
  return {
    read: (byte) => pieceOf('text', decoder.decode(byte)),
    end: () => pieceOf('text', decoder.end()),
  };
}

function createCallSection(): Section {
  const decoder = createByteDecoder();
  let hasHead = false;
  /** Text that was read but can't be told apart yet: the head until it is whole, then what may be the tail. */
  let pending = '';

  const read = (text: string): readonly ReplyPiece[] => {
    pending += text;
    return hasHead ? takeInput() : takeHead();
  };
  const takeHead = (): readonly ReplyPiece[] => {
    const match = pending.length > MAX_CALL_HEAD ? null : CALL_HEAD.exec(pending);
    if (match === null) return [];
    hasHead = true;
    pending = pending.slice(match[0].length);
    return [{ type: 'call', name: match[1] ?? '' }, ...takeInput()];
  };
  const takeInput = (): readonly ReplyPiece[] => {
    const length = CALL_TAIL.exec(pending)?.index ?? pending.length;
    const input = pending.slice(0, length);
    pending = pending.slice(length);
    return pieceOf('input', input);
  };
  return {
    read: (byte) => read(decoder.decode(byte)),
    end() {
      const pieces = read(decoder.end());
      // What is left then is the tail: the end of the call's own object.
      return hasHead ? pieces : [{ type: 'malformed', text: pending }];
    },
  };
}

function pieceOf(type: 'text' | 'input', text: string): readonly ReplyPiece[] {
  return text === '' ? [] : [{ type, text }];
}
