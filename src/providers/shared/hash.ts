/** Hash: short, stable names for texts that cannot be sent as they are. Not for security. */

/** A number of 52 bits that depends on every character: the same text gives the same number, everywhere and always. */
function hashText(text: string): number {
  // Two FNV-1a runs from different starts; 32 bits alone would make collisions likely at tens of thousands of names.
  let low = 0x811c9dc5;
  let high = 0x9747b28c;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit ^ (low >>> 15), 0x01000193);
  }
  high ^= high >>> 13;
  return (high >>> 12) * 0x1_0000_0000 + (low >>> 0);
}

/**
 * A name for a text.
 *
 * @param length - How many characters it has: lower-case letters and digits; 10 hold the whole hash.
 */
export function shortHash(text: string, length: number): string {
  return hashText(text).toString(36).padStart(length, '0').slice(-length);
}
