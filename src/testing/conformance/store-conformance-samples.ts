/** Samples: events, snapshots and ids for the cases of session stores. */
import type { JsonObject } from '../../core/json.ts';
import { NO_USAGE } from '../../core/usage.ts';
import type { SessionEvent, SessionSnapshot } from '../../sessions/session-store.ts';

/** When every session of the cases is made. */
export const CREATED_AT = 1_700_000_000_000;

const MEGABYTE = 1_000_000;

/** An event that is like no other. */
export function event(number: number): SessionEvent {
  // Clocks go back: the order is that of the log, and not that of times.
  return { type: 'input.removed', at: CREATED_AT + ((number * 7) % 5), messageId: `message_${number}` };
}

/** Several of them. */
export function events(from: number, count: number): readonly SessionEvent[] {
  return Array.from({ length: count }, (_, index) => event(from + index));
}

/** A queued input with that text. */
export function textEvent(text: string): SessionEvent {
  return { type: 'input.queued', at: CREATED_AT, message: { role: 'user', id: 'message_1', content: [{ type: 'text', text }], origin: 'user' } };
}

/** A handful of texts that databases, files and line protocols get wrong. */
export const AWKWARD_TEXTS: readonly string[] = [
  '',
  'a\u0000b\u0001\u001b[31m\u007f',
  'half \ud83d a \udf0d character',
  'line\nline\r\nline\u2028line\u2029line\u0085end',
  '世界 🌍 é e\u0301 \u202eabc\u202c \ufeff',
  '"quoted" \\ \\u0041 \'; DROP TABLE events; -- %s ${x} {"type":"turn.end"}',
];

/** A text of a megabyte. */
export function largeText(): string {
  return '0123456789 "世界"\n'.repeat(MEGABYTE / 16);
}

/** JSON whose keys have to stay keys. Written as text, since in code the first would set the prototype. */
export function awkwardKeys(): JsonObject {
  // What JSON.parse gives is JSON.
  return JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":"x","":0,"a.b":{"a b":[]},"ké\\u0000y":{}}') as JsonObject;
}

/** Values that a way through text or numbers of another kind would change. */
export const AWKWARD_VALUES: JsonObject = {
  numbers: [0, -1, 0.1, 1e21, 1.7976931348623157e308, 5e-324, 9007199254740991, -9007199254740991, 1700000000000.5],
  words: [true, false, null, 'true', 'null', '1', '1e3', '0x10', '2024-01-01T00:00:00.000Z'],
  empty: [{}, [], [[]], [null]],
  deep: Array.from({ length: 100 }).reduce<JsonObject>((inner) => ({ inner: [inner] }), {}),
};

/** An event of a type that no release has yet, with members of its own. */
export function unknownEvent(data: JsonObject): SessionEvent {
  const made: unknown = { type: 'later.release', at: CREATED_AT, data };
  // That this is none of the types there are is what it is for.
  return made as SessionEvent;
}

/** A call that ran: the same body comes twice. */
export function toolRun(toolCallId: string, body: string): readonly SessionEvent[] {
  const step = { turnId: 'turn_1', at: CREATED_AT, step: 1, stepId: 'step_1', toolCallId };
  const result = { content: [{ type: 'text', text: body }], display: { lines: [body.length] } } as const;
  return [
    { ...step, type: 'tool.call', name: 'read', inputText: '{}', input: {}, index: 0, count: 1 },
    { ...step, type: 'tool.start' },
    { ...step, type: 'tool.finished', result },
    { ...step, type: 'tool.result', name: 'read', result },
  ];
}

/** A snapshot. @param parts - What is to differ from an empty one. */
export function snapshot(sessionId: string, parts: Partial<SessionSnapshot>): SessionSnapshot {
  const empty = { turns: 0, steps: 0, usage: NO_USAGE, queue: [], state: {} };
  return { version: 1, sessionId, at: CREATED_AT, events: 0, transcript: { version: 1, messages: [] }, ...empty, ...parts };
}

/** Texts that are good ids, whatever a store makes of them. */
export const GOOD_IDS: readonly string[] = ['session_1', 'chat-42', 'user@example.com', 'Zoë 世界 🌍', '0', 'null', 'a:b', 'x'.repeat(200)];

/** Ids that paths, file systems, addresses and SQL take for something else, and pairs of which some take for one. */
export const AWKWARD_IDS: readonly string[] = [
  ...['../../etc/x', '..\\..\\x', '/abs', 'C:\\x', 'a/b', 'a_b', 'a\\b', 'a b', 'a%2Fb', '.', '..', '...', '%2e%2e%2f', '~', '-rf', '*', '?'],
  ...['a\u0000b', 'a\u0000', 'a', 'A', 'a.', 'a ', ' a', 'a\n', 'a\t', 'CON', 'con', 'NUL.txt', 'lock', 'index', 'a.jsonl', 'a.lock', 'a.json'],
  ...['\u00e9', 'e\u0301', '\u200b', '\ufeff', '\ufffd', "'; DROP TABLE sessions; --", '%', '_', '${a}', '[object Object]', 'undefined'],
  // Of the longest that may be, and the same but for its end.
  ...['y'.repeat(1_000), `${'y'.repeat(999)}z`, '世'.repeat(333), `${'世'.repeat(332)}界`],
];

/** What is no id. */
export const NO_IDS: readonly string[] = ['', 'x'.repeat(1_001), 'x'.repeat(5_000), '世'.repeat(334), 'a\ud800', '\udc00b', '\ud800\ud800'];

/** Names that every object has. */
export const PROTOTYPE_IDS: readonly string[] = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', 'valueOf'];
