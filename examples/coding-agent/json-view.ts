/** JSON view: one event per line, for programs. */
import type { SessionListener } from 'turnloop/agent';

/** Characters that JSON leaves as they are, and that readers of lines or terminals don't. */
const AWKWARD = /[\u007f-\u009f\u2028\u2029]/g;

export function createJsonView(write: (text: string) => void): SessionListener {
  return (event) => {
    write(`${JSON.stringify(event).replace(AWKWARD, toEscape)}\n`);
  };
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
