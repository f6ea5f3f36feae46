/**
 * Truncate text: the first and the last characters of a long text, with a marker between that says how much is missing.
 *
 * - The result is never longer than the budget, the marker included.
 * - It is cut at line ends where one is near, and never inside a surrogate pair.
 * - What was truncated is short enough to be left alone by the same budget.
 * - A marker of an earlier cut that a cut meets goes into the new one: what it counted, and where it said the text is.
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

/** The most characters of a marker, line ends around it included, without what it says of a store. */
const MARKER_CHARACTERS = 100;

/** A line end is looked for in this share of the head and of the tail. */
const LINE_SEARCH_SHARE = 0.2;

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
  const { headEnd, tailStart, marker } = cut(text, budget, '');
  return text.slice(0, headEnd) + marker + text.slice(tailStart);
}

/**
 * The texts of parts within one budget, as if they were one text; other parts stay. The same list if it is short enough.
 *
 * @param where - What the marker says of where the whole text is; empty for nothing.
 */
export function truncateParts<Part extends { readonly type: string }>(
  parts: readonly (Part | TextLike)[],
  budget: TextBudget,
  where = '',
): readonly (Part | TextLike)[] {
  const text = parts.map((part) => (isText(part) ? part.text : '')).join('');
  if (text.length <= budget.maxCharacters) return parts;
  const { headEnd, tailStart, marker } = cut(text, budget, where);
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

/** What is known of a text part. */
interface TextLike {
  readonly type: 'text';
  readonly text: string;
}

function isText(part: { readonly type: string }): part is TextLike {
  return part.type === 'text';
}

function cut(text: string, budget: TextBudget, where: string): Cut {
  const first = cutAround(text, budget, { where, known: undefined });
  const known = markersOf(text).find(({ start, end }) => end > first.headEnd && start < first.tailStart);
  return known === undefined ? first : cutAround(text, budget, { where: where === '' ? known.where : where, known });
}

interface Around {
  /** What the marker says of where the whole text is. */
  readonly where: string;
  /** An earlier marker, which the cut takes up. */
  readonly known: KnownMarker | undefined;
}

function cutAround(text: string, { maxCharacters, headCharacters, tailCharacters }: TextBudget, { where: place, known }: Around): Cut {
  const where = MARKER_CHARACTERS + place.length > maxCharacters ? '' : place;
  const room = Math.max(0, maxCharacters - MARKER_CHARACTERS - where.length);
  const share = Math.min(1, room / Math.max(1, headCharacters + tailCharacters));
  const headEnd = Math.min(known?.start ?? Infinity, endOfHead(text, Math.floor(headCharacters * share)));
  const tailStart = Math.max(known?.end ?? 0, startOfTail(text, Math.floor(tailCharacters * share)));
  const removed = known === undefined ? text.slice(headEnd, tailStart) : text.slice(headEnd, known.start) + text.slice(known.end, tailStart);
  const lines = removed.split('\n').length - 1 + (known?.lines ?? 0);
  const inLines = lines === 0 ? '' : ` (${lines} ${lines === 1 ? 'line' : 'lines'})`;
  const before = headEnd === 0 || text[headEnd - 1] === '\n' ? '' : '\n';
  const characters = removed.length + (known?.characters ?? 0);
  return { headEnd, tailStart, marker: `${before}[… ${characters} characters${inLines} left out${where} …]\n` };
}

/** A marker in a text that was cut before. */
interface KnownMarker {
  readonly start: number;
  /** Behind the line end that belongs to it. */
  readonly end: number;
  readonly characters: number;
  readonly lines: number;
  readonly where: string;
}

const MARKER = /\[… (\d{1,15}) characters(?: \((\d{1,15}) lines?\))? left out(; [^\]]{1,500})? …\]\n?/g;

function markersOf(text: string): readonly KnownMarker[] {
  return Array.from(text.matchAll(MARKER), ({ 0: whole, 1: characters, 2: lines = '0', 3: where = '', index }) => ({
    start: index,
    end: index + whole.length,
    characters: Number(characters),
    lines: Number(lines),
    where,
  }));
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
