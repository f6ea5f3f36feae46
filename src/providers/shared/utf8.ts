/** UTF-8: bytes of an answer to text, and pieces of bytes to one. */
import { LLMError } from '../../core/errors.ts';

// A BOM inside a body is data; the reader of the body takes one off its start.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes whole UTF-8 text.
 *
 * @throws {@link index.LLMError | LLMError} of kind `malformed_response` with code `invalid_utf8`.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  return decode(bytes, decoder, false);
}

/**
 * Decodes the last of an UTF-8 text that may have been cut: the beginning of a character at its end is left out.
 *
 * @throws {@link index.LLMError | LLMError} as {@link decodeUtf8} does.
 */
export function decodeCutUtf8(bytes: Uint8Array): string {
  // A decoder of its own: what is left out stays in it.
  return decode(bytes, new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }), true);
}

function decode(bytes: Uint8Array, by: TextDecoder, stream: boolean): string {
  try {
    return by.decode(bytes, { stream });
  } catch {
    throw new LLMError({
      kind: 'malformed_response',
      code: 'invalid_utf8',
      message: 'The answer is not UTF-8 text; is there a proxy that changes it?',
    });
  }
}

/** Decodes text for a message to people: what is not UTF-8 becomes U+FFFD. */
export function decodeLoosely(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** One array of several. */
export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
