/**
 * Truncate text: the first and the last characters of a long text, with a mark between that says how much is missing. All
 * that cuts texts does it here, so there is one form of mark.
 *
 * - The result is never longer than the budget, the mark included.
 * - It is cut at line ends where one is near, and never inside a surrogate pair.
 * - What was truncated is short enough to be left alone by the same budget.
 * - There is one mark at most. Nothing is taken over from a mark in the text, since a tool can write one as well: the new
 *   mark counts what this cut took, and says "at least" where there was a mark.
 * - A line at the end that says where the whole text is stays, if it fits. It is kept as it stands, and repeated nowhere.
 */
import { assertNumbers } from '../core/assert.ts';

/** How much of a text stays. */
export interface TextBudget {
  /** Texts up to this many characters (UTF-16 code units) are left alone. */
  readonly maxCharacters: number;
  /** Characters kept of the beginning. */
  readonly headCharacters: number;
  /** Characters kept of the end. */
  readonly tailCharacters: number;
}

/** What stands for a text in a budget that has no room for a mark. */
const NOTHING_KEPT = '[…]';

/** A path or an address; more would take the room of the text. */
const MAX_PLACE = 500;

/** A line end is looked for in this share of the head and of the tail. */
const LINE_SEARCH_SHARE = 0.2;

/** Share of the room that goes to the beginning where tokens are counted: what a text is about stands there. */
const HEAD_SHARE = 0.6;
/** Shrinking goes on until an estimate fits; each round at least by this. */
const ROUND = 0.95;

/** Text with something missing in its middle. */
interface Cut {
  /** Where the head ends. */
  readonly headEnd: number;
  /** Where the tail starts. */
  readonly tailStart: number;
  /** What stands between them. */
  readonly marker: string;
}

/**
 * A budget out of options. Head and tail that are not given shrink with `maxCharacters`.
 *
 * @throws TypeError for numbers that make no sense, or none together.
 */
export function toTextBudget(
  options: { readonly [Name in keyof TextBudget]?: TextBudget[Name] | undefined },
  defaults: TextBudget,
  argument: { readonly taker: string; readonly example: string; readonly least: number },
): TextBudget {
  assertNumbers(
    options,
    {
      maxCharacters: { least: argument.least, whole: true },
      headCharacters: { least: 0, whole: true },
      tailCharacters: { least: 0, whole: true },
    },
    argument,
  );
  const { maxCharacters = defaults.maxCharacters } = options;
  const share = Math.min(1, maxCharacters / defaults.maxCharacters);
  const {
    headCharacters = Math.floor(defaults.headCharacters * share),
    tailCharacters = Math.floor(defaults.tailCharacters * share),
  } = options;
  if (headCharacters + tailCharacters >= maxCharacters) {
    throw new TypeError(
      `${argument.taker}: \`headCharacters\` (${headCharacters}) and \`tailCharacters\` (${tailCharacters}) leave nothing out of ` +
        `a text of \`maxCharacters\` (${maxCharacters}): together they must be less. For example: ${argument.example}.`,
    );
  }
  return { maxCharacters, headCharacters, tailCharacters };
}

/** The text within the budget; itself if it is short enough. */
export function truncateText(text: string, budget: TextBudget): string {
  if (text.length <= budget.maxCharacters) return text;
  const { headEnd, tailStart, marker } = cut(text, budget);
  return text.slice(0, headEnd) + marker + text.slice(tailStart);
}

/**
 * A text cut down to a number of tokens; undefined if not even the mark and a few characters fit.
 *
 * @param estimate - Tokens of a text.
 */
export function truncateToTokens(text: string, tokens: number, estimate: (text: string) => number): string | undefined {
  let current = text;
  let length = text.length;
  for (let size = estimate(current); size > tokens; size = estimate(current)) {
    length = Math.floor(length * Math.min(ROUND, tokens / size));
    const headCharacters = Math.ceil(length * HEAD_SHARE);
    current = truncateText(text, { maxCharacters: length, headCharacters, tailCharacters: length - headCharacters });
    if (current === NOTHING_KEPT) return undefined;
  }
  return current;
}

/**
 * The texts of parts within one budget, as if they were one text; other parts stay. The same list if it is short enough.
 *
 * @param isFresh - Whether no cut of ours can be in it: then what looks like a mark is text like any other. @defaultValue false
 */
export function truncateParts<Part extends { readonly type: string }>(
  parts: readonly (Part | TextLike)[],
  budget: TextBudget,
  isFresh = false,
): readonly (Part | TextLike)[] {
  const text = parts.map((part) => (isText(part) ? part.text : '')).join('');
  if (text.length <= budget.maxCharacters) return parts;
  const { headEnd, tailStart, marker } = cut(text, budget, isFresh);
  let end = 0;
  return parts.flatMap((part): readonly (Part | TextLike)[] => {
    if (!isText(part)) return [part];
    const start = end;
    end += part.text.length;
    const head = part.text.slice(0, Math.max(0, headEnd - start));
    const tail = part.text.slice(Math.max(0, tailStart - start));
    const isCutHere = start <= headEnd && headEnd < end;
    const kept = head + (isCutHere ? marker : '') + (tailStart < end ? tail : '');
    return kept === '' ? [] : kept === part.text ? [part] : [{ ...part, text: kept }];
  });
}

/** What a place has to be, so that later cuts keep it. */
export const PLACE_RULE: string = `1 to ${MAX_PLACE} characters in one line, other than those of a mark`;

/** Any character that controls how text is shown. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Whether {@link PLACE_RULE} is kept. */
export function isPlace(value: unknown): value is string {
  if (typeof value !== 'string' || value.trim() === '' || value.length > MAX_PLACE) return false;
  return !CONTROL.test(value) && marksOf(value).length === 0;
}

/** The line that says where the whole text is. It comes last, so that a later cut can keep it without believing it. */
export function placeLine(place: string): string {
  return `[The whole text: ${place}]`;
}

/** What is known of a text part. */
interface TextLike {
  readonly type: 'text';
  readonly text: string;
}

function isText(part: { readonly type: string }): part is TextLike {
  return part.type === 'text';
}

function cut(text: string, { maxCharacters, headCharacters, tailCharacters }: TextBudget, isFresh = false): Cut {
  // None is longer than one that counts all of it.
  const markLength = markFor({ characters: text.length, lines: text.length, isLeast: true }).length + 1;
  if (markLength > maxCharacters) return { headEnd: 0, tailStart: text.length, marker: NOTHING_KEPT };
  const place = isFresh ? text.length : startOfPlace(text);
  const body = markLength + text.length - place > maxCharacters ? text : text.slice(0, place);
  const room = maxCharacters - markLength - (text.length - body.length);
  const share = Math.min(1, room / Math.max(1, headCharacters + tailCharacters));
  const marks = isFresh ? [] : marksOf(body);
  let headEnd = endOfHead(body, Math.floor(headCharacters * share));
  let tailStart = startOfTail(body, Math.floor(tailCharacters * share));
  for (const { start, end } of marks) {
    headEnd = start < headEnd ? start : headEnd;
    tailStart = end > tailStart ? end : tailStart;
  }
  const removed = body.slice(headEnd, tailStart);
  const characters = removed.length - marks.reduce((sum, { start, end }) => sum + end - start, 0);
  const before = headEnd === 0 || text[headEnd - 1] === '\n' ? '' : '\n';
  const marker = markFor({ characters, lines: removed.split('\n').length - 1 - marks.length, isLeast: marks.length > 0 });
  return { headEnd, tailStart, marker: before + marker };
}

interface Missing {
  readonly characters: number;
  readonly lines: number;
  /** Whether more may have been missing before. */
  readonly isLeast: boolean;
}

function markFor({ characters, lines, isLeast }: Missing): string {
  const inLines = lines <= 0 ? '' : ` (${lines} ${lines === 1 ? 'line' : 'lines'})`;
  return `[… ${isLeast ? 'at least ' : ''}${characters} characters${inLines} left out …]\n`;
}

/** Also the line end that belongs to it. */
const MARK = /\[… (?:at least )?\d{1,15} characters(?: \(\d{1,15} lines?\))? left out …\]\n?/g;

/** Where text of the form of a mark stands, in its order. */
function marksOf(text: string): readonly { readonly start: number; readonly end: number }[] {
  return Array.from(text.matchAll(MARK), ({ 0: whole, index }) => ({ start: index, end: index + whole.length }));
}

/** Notes that a hook put behind the line are kept with it up to this length. */
const MAX_BEHIND_PLACE = 500;
const PLACE = new RegExp(`\\[The whole text: [^\\n]{1,${MAX_PLACE}}\\](?=\\n|$)`, 'g');

/** Index of the line that says where the whole text is; the end of the text if there is none at its end. */
function startOfPlace(text: string): number {
  const from = Math.max(0, text.length - placeLine('').length - MAX_PLACE - MAX_BEHIND_PLACE);
  const last = Array.from(text.slice(from).matchAll(PLACE)).at(-1);
  if (last === undefined) return text.length;
  const start = from + last.index;
  const isLast = text.length - start - last[0].length <= MAX_BEHIND_PLACE && marksOf(text.slice(start)).length === 0;
  return isLast ? start : text.length;
}

function endOfHead(text: string, length: number): number {
  const from = length - Math.floor(length * LINE_SEARCH_SHARE);
  const lineEnd = text.slice(from, length).lastIndexOf('\n');
  if (lineEnd !== -1) return from + lineEnd + 1;
  return isInsidePair(text, length) ? length - 1 : length;
}

function startOfTail(text: string, length: number): number {
  const start = text.length - length;
  const lineEnd = text.slice(start, start + Math.floor(length * LINE_SEARCH_SHARE)).indexOf('\n');
  if (lineEnd !== -1) return start + lineEnd + 1;
  return isInsidePair(text, start) ? start + 1 : start;
}

/** Whether a cut at this index would part the two halves of a character. */
function isInsidePair(text: string, index: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, index - 1), index + 1));
}
