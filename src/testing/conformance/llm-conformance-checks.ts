/**
 * Checks: what holds for every reply, fragment and error of an adapter, whatever the case is about. Each throws an
 * `Error` that says what was expected, what came, and why it matters.
 */
import { isLLMError, type LLMError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { LLMDelta, LLMResponse, ReplyPart } from '../../core/llm.ts';
import { isStepStopReason } from '../../core/stop-reason.ts';
import type { LLMScenePart } from './llm-conformance-scene.ts';

const SHOWN_LENGTH = 600;
/** A message that is longer shows where two values first differ, and not the whole of them. */
const LONG_MESSAGE = 300;
const COUNTERS = ['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'outputTokens', 'thinkingTokens'] as const;
const PART_TYPES: readonly unknown[] = ['text', 'thinking', 'media', 'provider', 'tool_call'];

/** Throws what a case found. */
export function fail(message: string): never {
  throw new Error(message);
}

/** A value for a message. */
export function shown(value: unknown): string {
  const json: string | undefined = value instanceof Error ? String(value) : JSON.stringify(value);
  const said = json ?? String(value);
  return said.length > SHOWN_LENGTH ? `${said.slice(0, SHOWN_LENGTH)}…` : said;
}

/** Compares as JSON. @param what - What is compared, for the message, which shows long values from where they first differ. */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  if (isEqual(actual, expected)) return;
  const whole = `${what}: expected ${shown(expected)}, got ${shown(actual)}`;
  if (whole.length <= LONG_MESSAGE) fail(whole);
  const first = firstDifference({ path: '', actual, expected });
  fail(`${what}${first.path === '' ? '' : `, first at ${first.path}`}: expected ${shown(first.expected)}, got ${shown(first.actual)}`);
}

function isEqual(actual: unknown, expected: unknown): boolean {
  return JSON.stringify(sorted(actual)) === JSON.stringify(sorted(expected));
}

interface Difference {
  /** Where it is, such as `[3].text`; empty for the whole. */
  readonly path: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/** The innermost place at which two values first differ. */
function firstDifference({ path, actual, expected }: Difference): Difference {
  if (Array.isArray(actual) && Array.isArray(expected)) {
    const index = Array.from({ length: Math.max(actual.length, expected.length) }).findIndex((_, at) => !isEqual(actual[at], expected[at]));
    return firstDifference({ path: `${path}[${index}]`, actual: actual[index], expected: expected[index] });
  }
  if (!isRecord(actual) || !isRecord(expected)) return { path, actual, expected };
  const key = Object.keys({ ...expected, ...actual }).find((name) => !isEqual(actual[name], expected[name]));
  return key === undefined ? { path, actual, expected } : firstDifference({ path: path === '' ? key : `${path}.${key}`, actual: actual[key], expected: expected[key] });
}

/** The order of an object's keys says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, child]) => [key, sorted(child)]));
}

/** Checks the shape of a reply, and that its fragments add up to it. */
export function checkReply(response: LLMResponse, deltas: readonly LLMDelta[]): void {
  // Adapters without types give anything.
  const given: unknown = response;
  if (!isRecord(given) || !Array.isArray(given['content'])) fail(`chat gave ${shown(given)}, which is no LLMResponse with a \`content\` list`);
  for (const [index, part] of given['content'].entries()) checkPart(part, `content[${index}]`);
  if (!isStepStopReason(given['stopReason'])) fail(`\`stopReason\` is ${shown(given['stopReason'])}, none of StepStopReason`);
  checkUsage(given['usage']);
  checkSums(response.content, deltas);
}

function checkPart(part: unknown, where: string): void {
  if (!isRecord(part) || !PART_TYPES.includes(part['type'])) fail(`${where} is ${shown(part)}, which is no ReplyPart`);
  const { type } = part;
  if ((type === 'text' || type === 'thinking') && typeof part['text'] !== 'string') fail(`${where} has no \`text\``);
  if (type !== 'tool_call') return;
  if (typeof part['name'] !== 'string' || part['name'] === '') fail(`${where} is a call without a \`name\``);
  if (typeof part['inputText'] !== 'string') {
    fail(`${where} has the \`inputText\` ${shown(part['inputText'])}: it is the argument text as it came`);
  }
  for (const key of ['id', 'input']) {
    if (part[key] === undefined) continue;
    fail(`${where} has \`${key}\`: the loop gives calls their id and parses their arguments; a provider's id is \`providerId\``);
  }
}

function checkUsage(usage: unknown): void {
  if (!isRecord(usage)) fail(`\`usage\` is ${shown(usage)}: use \`toUsage\``);
  for (const counter of COUNTERS) {
    const count = usage[counter];
    if (typeof count === 'number' && Number.isFinite(count) && count >= 0) continue;
    fail(`\`usage.${counter}\` is ${shown(count)}: counters are numbers of at least 0`);
  }
  const { outputTokens, thinkingTokens } = usage;
  if (Number(thinkingTokens) > Number(outputTokens)) fail('`usage.thinkingTokens` is more than `outputTokens`, of which it is a part');
}

/** Fragments are what came live of the reply. An adapter that does not stream has none. */
function checkSums(content: readonly ReplyPart[], deltas: readonly LLMDelta[]): void {
  if (deltas.length === 0) return;
  for (const type of ['text', 'thinking'] as const) {
    const told = join(deltas, type);
    const whole = join(content, type);
    if (told !== whole) fail(`the ${type} fragments add up to ${shown(told)}, and the content has ${shown(whole)}`);
  }
  const calls = content.flatMap((part) => (part.type === 'tool_call' ? [{ name: part.name, inputText: part.inputText }] : []));
  expectEqual(callsOf(deltas), calls, 'calls put together from the fragments by `callIndex`, the position among the calls');
}

function join(parts: readonly (ReplyPart | LLMDelta)[], type: 'text' | 'thinking'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

function callsOf(deltas: readonly LLMDelta[]): readonly unknown[] {
  const calls = new Map<number, { name: string; inputText: string }>();
  for (const delta of deltas) {
    if (delta.type !== 'tool_call') continue;
    const call = calls.get(delta.callIndex) ?? { name: delta.name ?? '', inputText: '' };
    call.inputText += delta.inputText;
    calls.set(delta.callIndex, call);
  }
  return [...calls].sort(([left], [right]) => left - right).map(([, call]) => call);
}

/** Checks the shape of a fragment. @param before - The fragments before it. */
export function checkDelta(delta: LLMDelta, before: readonly LLMDelta[]): void {
  const given: unknown = delta;
  if (!isRecord(given)) fail(`onDelta got ${shown(given)}`);
  const { type, text, callIndex, name, inputText, id } = given;
  if (type === 'text' || type === 'thinking') {
    if (typeof text !== 'string') fail(`a ${type} fragment has no \`text\`: ${shown(given)}`);
    return;
  }
  if (type !== 'tool_call' || typeof inputText !== 'string' || !Number.isInteger(callIndex)) {
    fail(`onDelta got ${shown(given)}: a call's fragment is { type: 'tool_call', callIndex, inputText, name? }`);
  }
  if (id !== undefined) fail('a call\'s fragment has `id`: a provider\'s id is `providerId`');
  const isFirst = !before.some((each) => each.type === 'tool_call' && each.callIndex === callIndex);
  if (isFirst && (typeof name !== 'string' || name === '')) {
    fail(`the first fragment of call ${String(callIndex)} has no \`name\`: ${shown(given)}`);
  }
}

/** Compares the content of a reply with the scene's, as far as both can say it: adjacent texts count as one. */
export function expectContent(content: readonly ReplyPart[], expected: readonly LLMScenePart[]): void {
  const [came, meant] = [content, expected].map((parts) => parts.flatMap(bare).reduce(merge, []));
  expectEqual(came, meant, 'the content of the reply, in the order in which it came');
}

type BarePart =
  | { readonly type: 'text' | 'thinking'; readonly text: string }
  | { readonly type: 'tool_call'; readonly name: string; readonly inputText: string };

function bare(part: ReplyPart | LLMScenePart): readonly BarePart[] {
  if (part.type === 'tool_call') return [{ type: part.type, name: part.name, inputText: part.inputText }];
  return part.type === 'text' || part.type === 'thinking' ? [{ type: part.type, text: part.text }] : [];
}

function merge(parts: readonly BarePart[], part: BarePart): BarePart[] {
  const last = parts.at(-1);
  if (last?.type !== 'text' || part.type !== 'text') return [...parts, part];
  return [...parts.slice(0, -1), { type: 'text', text: last.text + part.text }];
}

/** Checks what an adapter threw, where nothing was aborted. */
export function checkError(thrown: unknown): LLMError {
  if (!isLLMError(thrown)) fail(`chat threw ${shown(thrown)}, not an LLMError: policies and recoveries act on its \`kind\``);
  if (thrown.message === '') fail('the error has no message');
  if (thrown.partial?.some((part: { readonly type: string }) => part.type === 'tool_call') === true) {
    fail('`partial` of the error holds a call: one of a reply that was cut off must never run');
  }
  if (thrown.usage !== undefined) checkUsage(thrown.usage);
  return thrown;
}

/** Fails if a value shows a secret in any of the ways in which it may get into a log. */
export function expectNoSecret(value: unknown, secret: string, what: string): void {
  for (const [way, said] of waysToShow(value)) {
    if (said.includes(secret)) fail(`${what} shows the key in its ${way}: ${shown(said.replaceAll(secret, '<THE KEY>'))}`);
  }
}

function waysToShow(value: unknown): readonly (readonly [way: string, said: string])[] {
  const ways: (readonly [string, string])[] = [['text', String(value)]];
  if (value instanceof Error) ways.push(['stack', value.stack ?? '']);
  ways.push(['JSON', jsonOf(value)], ['inspection', inspected(value)]);
  if (isRecord(value)) {
    for (const [key, own] of Object.entries(value)) if (typeof own === 'string') ways.push([`\`${key}\``, own]);
  }
  return ways;
}

function jsonOf(value: unknown): string {
  try {
    const json: string | undefined = JSON.stringify(value);
    return json ?? '';
  } catch {
    return '';
  }
}

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** What a console shows: all that hangs off a value, hidden or not, unless the value has a word in it itself. */
function inspected(value: unknown, seen = new Set<unknown>()): string {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? value : '';
  if (seen.has(value)) return '';
  seen.add(value);
  const custom: unknown = Reflect.get(value, INSPECT);
  if (typeof custom === 'function') return String(Reflect.apply(custom, value, [0, {}]));
  const children: readonly unknown[] = value instanceof Map || value instanceof Set ? Array.from<unknown>(value) : [];
  const own = Reflect.ownKeys(value).map((key) => Reflect.getOwnPropertyDescriptor(value, key)?.value as unknown);
  return [...own, ...children].map((child) => inspected(child, seen)).join('\n');
}
