/**
 * Option checks: what the value of an option may be.
 *
 * Each adapter lists one check for each of its options. Values stay out of what is said: they may be secrets.
 */
import { isRecord } from '../../core/json.ts';
import type { LLMCapabilities } from '../../core/llm.ts';
import type { RequestTimeouts } from './http.ts';

/** Looks at the value of an option that is given. @returns What is wrong with it; undefined for nothing. */
export type OptionCheck = (value: unknown, name: string) => string | undefined;

/** A check for each name. */
export type OptionChecks = Readonly<Record<string, OptionCheck>>;

function must(be: string, isRight: (value: unknown) => boolean): OptionCheck {
  return (value, name) => (isRight(value) ? undefined : `\`${name}\` must be ${be}`);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && !(Symbol.iterator in value);
}

function isListOf(value: unknown, isRight: (each: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isRight);
}

/** Any text. */
export const TEXT: OptionCheck = must('a text', (value) => typeof value === 'string');
/** A text that says something. */
export const WORD: OptionCheck = must('a text that is not empty', (value) => typeof value === 'string' && value !== '');
/** A list of texts. */
export const TEXTS: OptionCheck = must('a list of texts', (value) => isListOf(value, (each) => typeof each === 'string'));
/** Yes or no. */
export const FLAG: OptionCheck = must('true or false', (value) => typeof value === 'boolean');
/** How random, and the like. */
export const AMOUNT: OptionCheck = must('a number from 0', (value) => isNumber(value) && value >= 0 && value < Infinity);
/** How many tokens. */
export const TOKENS: OptionCheck = must('a number of tokens, such as 8192', (value) => Number.isSafeInteger(value) && Number(value) >= 1);
/** How many tokens, if any. */
export const TOKENS_OR_LESS: OptionCheck = must('a number of tokens, 0 or -1', (value) => Number.isSafeInteger(value) && Number(value) >= -1);
/** Something to call. */
export const FUNCTION: OptionCheck = must('a function', (value) => typeof value === 'function');
/** A key, or what gives one. */
export const KEY: OptionCheck = must('a text or a function that gives one', (value) => typeof value === 'string' || typeof value === 'function');
/** Fields by their names. */
export const FIELDS: OptionCheck = must('a plain object', isPlain);
/** Tools of a server, and the like. */
export const OBJECTS: OptionCheck = must('a list of plain objects', (value) => isListOf(value, isPlain));
/** `errorPatterns`. */
export const PATTERNS: OptionCheck = must("a list such as [{ pattern: /my words/i, kind: 'overloaded' }]", (value) =>
  isListOf(value, (each) => isRecord(each) && each['pattern'] instanceof RegExp && typeof each['kind'] === 'string'),
);

const LIMIT = must('a number above 0', (value) => isNumber(value) && value > 0);
const LIMIT_MS = must('a number of milliseconds above 0, or Infinity', (value) => isNumber(value) && value > 0);
const MEDIA_TYPES = must("a list of MIME types such as 'image/png', or beginnings of them such as 'image/'", (value) =>
  isListOf(value, (each) => typeof each === 'string' && !each.includes('*')),
);

/** What `timeouts` takes. */
export const TIMEOUTS: Readonly<Record<keyof RequestTimeouts, OptionCheck>> = { connectMs: LIMIT_MS, firstTokenMs: LIMIT_MS, betweenTokensMs: LIMIT_MS };
/** What `capabilities` takes. */
export const CAPABILITIES: Readonly<Record<keyof LLMCapabilities, OptionCheck>> = {
  contextWindow: LIMIT,
  maxInputTokens: LIMIT,
  maxOutputTokens: LIMIT,
  mediaTypes: MEDIA_TYPES,
  structuredOutput: FLAG,
};

/** For what is checked where it is known what it means. */
export const CHECKED_LATER: OptionCheck = () => undefined;

/** One of a few words. */
export function oneOf(...words: readonly string[]): OptionCheck {
  return must(`one of ${words.map((each) => `'${each}'`).join(', ')}`, (value) => words.some((each) => each === value));
}

/** A plain object of texts. */
export const HEADERS: OptionCheck = (value, name) => {
  if (!isPlain(value)) return `\`${name}\` must be a plain object of texts`;
  const wrong = Object.entries(value).find(([, text]) => typeof text !== 'string');
  return wrong === undefined ? undefined : `header \`${wrong[0]}\` must be a text`;
};
