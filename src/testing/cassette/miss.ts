/**
 * Miss: tells a developer that a request was not recorded, which recording comes nearest, what differs, and what to do.
 *
 * The whole is at most 1,000 bytes long: adapters cut off longer messages.
 */
import type { Difference } from './match.ts';

const MAX_BYTES = 1000;
const MAX_VALUE = 60;
/** So much of a text is shown before the place where it differs. */
const LEAD = 20;

/** What a miss is told with. */
export interface Miss {
  /** Path of the file. */
  readonly path: string;
  /** Method and address. */
  readonly request: string;
  /** Which request of this run it is, 1-based. */
  readonly number: number;
  /** The recording that differs least, if there is any. */
  readonly nearest?:
    | {
        /** Its place in the file, 1-based. */
        readonly number: number;
        /** Whether it was replayed already. */
        readonly isUsed: boolean;
        readonly differences: readonly Difference[];
      }
    | undefined;
}

/** The message of a miss. */
export function missMessage({ path, request, number, nearest }: Miss): string {
  const head = `Request ${number}, ${shorten(request, 120)}, is not in the cassette ${shorten(path, 120)}.`;
  const anew = "Is the change meant? Then record anew: delete the file, or run once with `mode: 'record'`.";
  if (nearest === undefined) return `${head} No request is recorded there. ${anew}`;
  if (nearest.differences.length === 0) {
    return `${head} It equals recorded request ${nearest.number}, but that was replayed already: each is replayed once. ${anew}`;
  }
  const used = nearest.isUsed ? ' (replayed already)' : '';
  const begin = `${head} The nearest is recorded request ${nearest.number}${used}. What differs:`;
  const end = `${anew} If it is a value that changes with every run, such as a date, name its path in \`ignore\`.`;
  return [begin, ...differenceLines(nearest.differences, MAX_BYTES - Buffer.byteLength(begin + end) - 2), end].join('\n');
}

/** As many as fit, one at least, and how many more there are. */
function differenceLines(differences: readonly Difference[], budget: number): readonly string[] {
  const lines: string[] = [];
  let left = budget - Buffer.byteLength(moreLine(differences.length)) - 1;
  for (const difference of differences) {
    const line = `  ${differenceText(difference)}`;
    left -= Buffer.byteLength(line) + 1;
    if (left < 0 && lines.length > 0) break;
    lines.push(line);
  }
  return lines.length === differences.length ? lines : [...lines, moreLine(differences.length - lines.length)];
}

function moreLine(count: number): string {
  return `  … and ${count} more`;
}

/** `messages[0].content: recorded "…", got "…"` */
function differenceText({ path, recorded, got }: Difference): string {
  const place = shorten(path, 100);
  if (typeof recorded !== 'string' || typeof got !== 'string') return `${place}: recorded ${valueText(recorded)}, got ${valueText(got)}`;
  let same = 0;
  while (same < recorded.length && recorded[same] === got[same]) same += 1;
  return `${place}: recorded ${excerpt(recorded, same)}, got ${excerpt(got, same)}`;
}

/** A text around the place where it begins to differ. */
function excerpt(text: string, at: number): string {
  if (text.length <= MAX_VALUE) return JSON.stringify(text);
  const start = at <= MAX_VALUE - LEAD ? 0 : at - LEAD;
  const end = start + MAX_VALUE;
  return `${start === 0 ? '' : '…'}${JSON.stringify(text.slice(start, end))}${end < text.length ? '…' : ''}`;
}

function valueText(value: unknown): string {
  return value === undefined ? 'nothing' : shorten(JSON.stringify(value), MAX_VALUE);
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(-most / 2)}`;
}
