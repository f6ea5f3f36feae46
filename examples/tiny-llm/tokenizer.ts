/**
 * Text to tokens and back. A token is a byte of UTF-8, or one of five marks.
 *
 * Owns the token ids. Where the marks go in a prompt is decided in `chat-template.ts`.
 */

/** The tokens that are not bytes, with the text that stands for them in a rendered prompt. */
export const MARKS = {
  messageStart: { token: 258, text: '<|im_start|>' },
  messageEnd: { token: 259, text: '<|im_end|>' },
  callStart: { token: 260, text: '<tool_call>' },
  callEnd: { token: 261, text: '</tool_call>' },
  result: { token: 262, text: '<|result|>' },
} as const;

const tokenOfMark: ReadonlyMap<string, number> = new Map(Object.values(MARKS).map(({ token, text }) => [text, token]));

/** Matches the text of any mark; as a group, so that `split` keeps the marks. */
const ANY_MARK = /(<\|im_start\|>|<\|im_end\|>|<tool_call>|<\/tool_call>|<\|result\|>)/;

/**
 * The tokens of a rendered prompt: marks by their ids, all else byte by byte.
 *
 * No token is put before the first one: the model was trained without.
 */
export function encodePrompt(prompt: string): readonly number[] {
  const encoder = new TextEncoder();
  return prompt.split(ANY_MARK).flatMap((piece) => {
    const token = tokenOfMark.get(piece);
    return token === undefined ? Array.from(encoder.encode(piece)) : [token];
  });
}

/**
 * Breaks up what would be read as a mark, so that a file's content can't end its own message.
 *
 * A space after the `<` is enough. Nothing else is changed.
 */
export function withoutMarks(text: string): string {
  return text.split(ANY_MARK).map((piece) => (tokenOfMark.has(piece) ? `< ${piece.slice(1)}` : piece)).join('');
}

/** Turns bytes into text as they come. */
export interface ByteDecoder {
  /** The characters that this byte completes: none, or one, or more when bytes before it turn out not to be UTF-8. */
  decode(byte: number): string;
  /** What is left at the end: a replacement character if the last character is incomplete. */
  end(): string;
}

/** A decoder for one stretch of text; bytes that aren't UTF-8 come out as U+FFFD. */
export function createByteDecoder(): ByteDecoder {
  // A byte order mark is text like any other here: deltas have to add up to what was said.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return {
    decode: (byte) => decoder.decode(Uint8Array.of(byte), { stream: true }),
    end: () => decoder.decode(),
  };
}

/** Whether a token is a byte of text. */
export function isByte(token: number): boolean {
  return token < 256;
}
