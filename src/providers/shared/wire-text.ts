/** Wire text: text as a server can take it. */

// With the `u` flag \p{Cs} matches lone halves of surrogate pairs only.
const UNSAFE = /[\p{Cs}\p{Noncharacter_Code_Point}\u0000-\u0008\u000b\u000c\u000e-\u001f]/u;
const LONE_OR_NONCHARACTER = /[\p{Cs}\p{Noncharacter_Code_Point}]/gu;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;

/**
 * Cleans a text for a request: lone surrogates and non-characters become U+FFFD, control characters other than tab,
 * line feed and carriage return go. Servers refuse these, or cut the text there, in every later request of the
 * conversation. Any other text comes back as it is.
 */
export function cleanText(text: string): string {
  return UNSAFE.test(text) ? text.replace(LONE_OR_NONCHARACTER, '\ufffd').replace(CONTROL, '') : text;
}

/** True for text that says nothing: empty, or white space alone. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/**
 * Joins what stands in a JSON list, each with a comma between if there is something on both sides.
 *
 * Never looks into the texts: one that was joined is put together only when it is sent.
 */
export function joinJson(left: string, right: string): string {
  return left === '' || right === '' ? left + right : `${left},${right}`;
}
