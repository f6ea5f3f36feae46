/** Shortening what a tool found for a model: the beginning and the end tell most. */

/** Longest result in characters, some 5,000 tokens: enough for most files, and a turn of many calls still fits. */
export const MAX_RESULT_LENGTH = 20_000;

/** Leaves out the middle of a long text, and says so. */
export function cutMiddle(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const head = text.slice(0, Math.ceil(maxLength * 0.75));
  const tail = text.slice(text.length - Math.floor(maxLength * 0.25));
  return `${head}\n[... ${text.length - head.length - tail.length} characters omitted ...]\n${tail}`;
}
