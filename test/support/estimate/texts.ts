/**
 * Texts that the token estimator is measured on. None was used to fit it: the prose and the program of test/fixtures/texts,
 * source files of this repository, and JSON, logs, listings, traces and diffs made up here, seeded.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { seededRandom } from './seeded-random.ts';

/** Tests and bench run in the root of the repository; the bench from a file that lies elsewhere. */
const ROOT = process.cwd();

/** What a history is made of. */
export const KINDS = ['english', 'chinese', 'code', 'json', 'mixed'] as const;
export type Kind = (typeof KINDS)[number];

/** Makes the next text of a kind, of about this many characters. */
export type TextSource = (characters: number) => string;

/** A source of texts for each kind but `mixed`. */
export function textSources(seed: number): Readonly<Record<Exclude<Kind, 'mixed'>, TextSource>> {
  const random = seededRandom(seed);
  return {
    english: proseOf('english.txt', random, ' '),
    chinese: proseOf('chinese.txt', random, ''),
    code: codeSource(random),
    json: (characters) => jsonText(random, characters),
  };
}

function fixture(name: string): string {
  return readFileSync(`${ROOT}/test/fixtures/texts/${name}`, 'utf8');
}

/** Paragraphs in shuffled order, each begun at some sentence. */
function proseOf(name: string, random: () => number, space: string): TextSource {
  const paragraphs = fixture(name).split('\n').filter((line) => line !== '');
  return (characters) => {
    let text = '';
    while (text.length < characters) {
      const sentences = pick(paragraphs, random).split(/(?<=[.?!。？！])\s*/u);
      text += `${text === '' ? '' : '\n\n'}${sentences.slice(Math.floor(random() * sentences.length * 0.7)).join(space)}`;
    }
    return text.slice(0, characters);
  };
}

function codeSource(random: () => number): TextSource {
  const sources = ['src/core', 'src/policies', 'src/providers/anthropic', 'src/testing', 'scripts', 'test/policies'].flatMap((folder) =>
    readdirSync(`${ROOT}/${folder}`)
      .filter((name) => /\.[jt]s$/.test(name))
      .map((name) => readFileSync(`${ROOT}/${folder}/${name}`, 'utf8')),
  );
  const python = fixture('inventory.py.txt');
  return (characters) => {
    const kind = Math.floor(random() * 9);
    if (kind < 4) return excerpt(pick(sources, random), characters, random);
    if (kind < 6) return excerpt(python, characters, random);
    if (kind === 6) return lines(characters, () => logLine(random));
    if (kind === 7) return diffOf(excerpt(pick(sources, random), characters, random), random);
    return random() < 0.5 ? traceOf(random, characters) : numbered(excerpt(pick(sources, random), characters, random));
  };
}

/** Whole lines from somewhere in a text. */
function excerpt(text: string, characters: number, random: () => number): string {
  const start = text.indexOf('\n', Math.floor(random() * Math.max(0, text.length - characters))) + 1;
  return text.slice(start, start + characters);
}

function numbered(text: string): string {
  return text.split('\n').map((line, index) => `${String(index + 1).padStart(5)}\t${line}`).join('\n');
}

function diffOf(text: string, random: () => number): string {
  const changed = text.split('\n').map((line) => `${random() < 0.2 ? '-' : random() < 0.3 ? '+' : ' '}${line}`);
  return `diff --git a/lib/queue.ts b/lib/queue.ts\nindex 8c1f0aa..d04be71 100644\n--- a/lib/queue.ts\n+++ b/lib/queue.ts\n@@ -41,17 +41,22 @@ export class Queue {\n${changed.join('\n')}`;
}

const MODULES = ['billing', 'gateway', 'scheduler', 'auth.session', 'http.server', 'db.pool', 'mailer', 'search.index'];
const HAPPENINGS = ['connection reset by peer', 'request finished', 'retrying after backoff', 'cache miss for key', 'lock acquired', 'slow query detected', 'checkpoint written', 'user signed in'];
const FUNCTIONS = ['processTicksAndRejections', 'handleRequest', 'Queue.flush', 'async loadInvoice', 'Object.<anonymous>', 'parseHeaders', 'Session.refreshToken'];
const FOLDERS = ['src', 'lib', 'dist', 'node_modules', 'internal', 'handlers', 'invoices', 'queue', 'workers'];

function logLine(random: () => number): string {
  const at = new Date(1_770_000_000_000 + Math.floor(random() * 8e9)).toISOString();
  return `${at} ${pick(['INFO', 'WARN', 'ERROR', 'DEBUG'], random)} [${pick(MODULES, random)}] ${pick(HAPPENINGS, random)} id=${hex(random, 8)} took=${whole(random, 4_000)}ms`;
}

function traceOf(random: () => number, characters: number): string {
  return `TypeError: Cannot read properties of undefined (reading 'total')\n${lines(characters, () => `    at ${pick(FUNCTIONS, random)} (/srv/app/${path(random)}:${whole(random, 400)}:${whole(random, 80)})`)}`;
}

function path(random: () => number): string {
  return `${Array.from({ length: 1 + whole(random, 4) }, () => pick(FOLDERS, random)).join('/')}/${pick(['index', 'invoice-store', 'queueWorker', 'http_client', 'utils'], random)}.${pick(['ts', 'js', 'py'], random)}`;
}

function lines(characters: number, line: () => string): string {
  let text = '';
  while (text.length < characters) text += `${line()}\n`;
  return text;
}

const NAMES = ['Amelia Hart', 'Jonas Lindqvist', 'Priya Raman', 'Tomasz Nowak', 'Chloe Dubois', 'Kwame Mensah', 'Yuki Tanaka', 'Lucía Fernández'];
const STREETS = ['14 Harbour Lane', 'Calle Mayor 3', 'Rosenweg 77', '221 Quarry Road', '5 rue des Lilas'];
const NOTES = ['Leave the parcel with the neighbour.', 'Customer called twice about the delayed invoice.', 'Refund approved by finance', 'needs review', 'The second item arrived damaged; a replacement was shipped on Friday.'];

/** Records as an interface of some shop would return them, indented or not. */
function jsonText(random: () => number, characters: number): string {
  const isPretty = random() < 0.5;
  const shape = Math.floor(random() * 4);
  const records: unknown[] = [];
  const print = (): string => JSON.stringify({ ok: true, total: whole(random, 9_000), nextCursor: null, records }, null, isPretty ? 2 : 0);
  let text = '';
  while (text.length < characters) {
    records.push(recordOf(shape, random));
    text = print();
  }
  return text;
}

function recordOf(shape: number, random: () => number): unknown {
  switch (shape) {
    case 0:
      return { orderId: uuid(random), customer: { name: pick(NAMES, random), email: `user${whole(random, 999)}@mail.example.org`, address: pick(STREETS, random) }, items: Array.from({ length: 1 + whole(random, 2) }, () => ({ sku: `AB-${whole(random, 9_999)}`, qty: 1 + whole(random, 5), unitPrice: whole(random, 20_000) / 100 })), paid: random() < 0.7, placedAt: new Date(1_760_000_000_000 + Math.floor(random() * 9e9)).toISOString() };
    case 1:
      return { station: `ST${whole(random, 400)}`, latitude: Number((random() * 180 - 90).toFixed(6)), longitude: Number((random() * 360 - 180).toFixed(6)), readings: Array.from({ length: 6 }, () => Number((random() * 40).toFixed(2))), flags: [], battery_pct: whole(random, 100) };
    case 2:
      return { path: path(random), sha: hex(random, 40), size: whole(random, 90_000), type: pick(['blob', 'tree'], random), last_modified: '2026-04-17T08:21:55Z', html_url: `https://code.example.com/acme/shop/blob/main/${path(random)}` };
    default:
      return { id: whole(random, 1e6), level: pick(['info', 'warning', 'error'], random), message: pick(NOTES, random), assignee: random() < 0.3 ? null : pick(NAMES, random), labels: ['backend', pick(['bug', 'billing', 'shipping'], random)], meta: { retries: whole(random, 5), traceId: hex(random, 16), durationMs: whole(random, 10_000) / 10 } };
  }
}

function uuid(random: () => number): string {
  return [8, 4, 4, 4, 12].map((length) => hex(random, length)).join('-');
}

function hex(random: () => number, length: number): string {
  return Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('');
}

function whole(random: () => number, below: number): number {
  return Math.floor(random() * below);
}

function pick<Item>(items: readonly Item[], random: () => number): Item {
  return items[Math.floor(random() * items.length)]!;
}
