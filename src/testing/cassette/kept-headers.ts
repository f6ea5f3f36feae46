/** Kept headers: those that say what a body is and what to do next. All others stay out of the file unless they are asked for. */
import type { HeaderValues } from './exchange.ts';

const KEPT: ReadonlySet<string> = new Set([
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'content-type',
  'openai-beta',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]);

/** Those that are always kept, and the named ones. @param names - In small letters. */
export function keepHeaders(headers: Headers, names: ReadonlySet<string>): HeaderValues {
  return Object.fromEntries([...headers].filter(([name]) => KEPT.has(name) || names.has(name)));
}
