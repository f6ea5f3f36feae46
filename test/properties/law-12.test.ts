/**
 * Law 12, untrusted input: names, ids and text from a model or a provider are data: never a file name, a key of a plain
 * object, or a log format. No error, event, snapshot or inspection shows an API key; a `TurnResult.error` serialises to
 * name, kind and message. Black box.
 */
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Hook, type JsonValue, LLMError, textOf } from 'turnloop';
import { echoTool, recordingTool, runScripted, toolCall } from 'turnloop/testing';
import { law } from './law.ts';
import { play } from './play.ts';
import { isRecord } from './plain.ts';
import { type AttemptSpec, type PartSpec, type Scenario, scenarios } from './scenario.ts';

const hostile: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    '__defineGetter__',
    'hasOwnProperty',
    'then',
    'toJSON',
    '../../etc/passwd',
    'C:\\con',
    '%s%n%d',
    '${process.env}',
    '\u0000\u001b[2J\u202e',
    '\ud800',
    'x'.repeat(20_000),
  ),
  fc.string({ unit: 'binary', maxLength: 12 }),
);

/** A scenario in which everything a model may choose freely is chosen by an enemy. */
const attacked: fc.Arbitrary<Scenario> = fc
  .tuple(scenarios({ maxSteps: 3, maxCalls: 4 }), fc.infiniteStream(hostile), fc.array(hostile, { minLength: 1, maxLength: 3 }))
  .map(([scenario, strings, names]) => {
    const next = (): string => strings.next().value as string;
    const tools = scenario.tools.map((tool, index) => ({ ...tool, name: index < names.length ? `${names[index]!}${index}` : tool.name }));
    const attack = (part: PartSpec): PartSpec =>
      part.kind === 'call'
        ? { ...part, tool: part.tool === 'run' ? next() : (tools[part.tool.length % tools.length]?.name ?? next()), providerId: next() }
        : 'text' in part
          ? { ...part, text: next() }
          : part;
    const change = (attempt: AttemptSpec): AttemptSpec =>
      attempt.end.kind === 'reply' ? { ...attempt, end: { ...attempt.end, parts: attempt.end.parts.map(attack) } } : attempt;
    return { ...scenario, tools, steps: scenario.steps.map((attempts) => attempts.map(change)) };
  });

/** Keys below which anybody's JSON stands. */
const FREE_FORM = new Set(['input', 'display', 'data', 'state', 'metadata', 'providerData']);

describe('law-12 untrusted input', () => {
  law('law-12: names, ids and text of a model never become keys, and never touch a prototype', attacked, async (scenario) => {
    const before = prototypes();
    const { transcript, dispatched, result } = await play(scenario);

    expect(prototypes()).toStrictEqual(before);
    const keys = new Set<string>();
    for (const value of [dispatched, transcript.buildMessages(), transcript.findings(), transcript.openTurn(), { ...result, error: undefined }]) {
      collectKeys(value, keys);
    }
    expect([...keys].filter((key) => !/^[a-z][A-Za-z]+$/.test(key) || key in Object.prototype)).toStrictEqual([]);
  });

  law('law-12: every id is the runtime’s, whatever the provider called it', attacked, async (scenario) => {
    const { dispatched } = await play(scenario);

    for (const { event } of dispatched) {
      for (const [key, value] of Object.entries(event)) {
        if (key === 'toolCallId' || key === 'stepId' || key === 'turnId') expect(value).toMatch(/^(call|step|turn|child)(_\d+)?$/);
      }
    }
  });

  const poison = fc.constantFrom(
    '{"__proto__":{"polluted":true},"text":"a"}',
    '{"text":"a","constructor":{"prototype":{"polluted":true}}}',
    '{"text":"a","deep":[{"__proto__":{"polluted":true}}]}',
    '{"\\u005f_proto__":{"polluted":true},"text":"a"}',
  );

  const ways = fc.constantFrom('model', 'rewrite', 'edit');

  law('law-12: arguments that name a prototype reach the tool without it, whoever wrote them', fc.tuple(poison, ways), async ([inputText, way]) => {
    const tool = recordingTool({ name: 'take' });
    const input = (): JsonValue => JSON.parse(inputText) as JsonValue;
    const hooks: Record<typeof way, Hook> = {
      model: { name: 'none' },
      rewrite: { name: 'rewrite', prepareToolCall: () => ({ action: 'rewrite', input: input() }) },
      edit: { name: 'edit', authorizeToolCall: () => ({ action: 'edit', input: input() }) },
    };
    const { recorded } = await runScripted({ replies: [[toolCall('take', way === 'model' ? inputText : '{}')], 'done'], tools: [tool], hooks: [hooks[way]] });

    const seen = tool.inputs[0] as Record<string, unknown>;
    expect(seen['text']).toBe('a');
    expect(Object.getPrototypeOf(seen)).toBe(Object.prototype);
    expect('polluted' in seen).toBe(false);
    expect('polluted' in {}).toBe(false);
    expect(hasOwnProto(seen)).toBe(false);
    for (const event of recorded) if (event.type === 'tool.call' || event.type === 'tool.start') expect(hasOwnProto(event.input)).toBe(false);
  });

  law('law-12: what is said about a hostile name is short, and holds no control characters', hostile, async (name) => {
    const { transcript } = await runScripted({ replies: [[toolCall(name, '{"broken')], 'done'], tools: [echoTool()] });

    const answer = transcript.events.flatMap((event) => (event.type === 'tool.result' ? [textOf(event.result.content)] : [])).join();
    expect(answer.length).toBeLessThan(2000);
    if (name !== 'echo') expect(/[\u0000-\u0009\u000b-\u001f]/.test(answer)).toBe(false);
  });

  const SECRET = 'sk-live-0123456789';
  const failures = fc.constantFrom<() => unknown>(
    () => new LLMError({ kind: 'auth', message: 'The key was refused.', cause: withSecret(new Error('401'), SECRET) }),
    () => withSecret(new Error('401'), SECRET),
    () => withSecret(new TypeError('fetch failed', { cause: withSecret(new Error('401'), SECRET) }), SECRET),
    () => ({ message: 'failed', headers: { authorization: `Bearer ${SECRET}` } }),
  );
  const places = fc.constantFrom('model', 'hook', 'recorder', 'tool', 'buildMessages');

  law('law-12: an error serialises to name, kind and message, and no event or result shows what hangs off it', fc.tuple(failures, places), async ([failure, place]) => {
    const outcome = await failAt(place, failure);

    const { error } = outcome.result;
    if (error !== undefined) expect(Object.keys(JSON.parse(JSON.stringify(error)) as object).sort()).toStrictEqual(['kind', 'message', 'name']);
    for (const event of outcome.recorded) if (event.type === 'turn.end' && event.error !== undefined) expect(Object.keys(event.error).sort()).toStrictEqual(['kind', 'message', 'name']);
    expect(JSON.stringify([outcome.result, outcome.events, outcome.transcript.buildMessages()])).not.toContain(SECRET);
    expect(inspect([outcome.events, outcome.transcript.buildMessages()], { depth: 20 })).not.toContain(SECRET);
  });

  it('law-12: inspecting a result does not show what hangs off its error', async () => {
    const { result } = await failAt('model', () => withSecret(new Error('401'), SECRET));

    expect(inspect(result, { depth: 20 })).not.toContain(SECRET);
  });
});

function failAt(place: string, failure: () => unknown): ReturnType<typeof runScripted> {
  const fail = (): never => {
    throw failure();
  };
  return runScripted({
    check: false,
    replies: place === 'model' ? [() => fail()] : [[toolCall('take')], 'done'],
    tools: [recordingTool({ name: 'take', execute: place === 'tool' ? fail : () => 'done' })],
    hooks: place === 'hook' ? [{ name: 'broken', beforeStep: fail, afterStep: fail }] : [],
    ...(place === 'recorder' && { record: (event) => (event.type === 'step.begin' ? fail() : undefined) }),
    ...(place === 'buildMessages' && { buildMessages: fail }),
  });
}

/** An error as HTTP clients make them: the request, headers and all, hangs off it. */
function withSecret(error: Error, secret: string): Error {
  return Object.assign(error, { headers: { authorization: `Bearer ${secret}` }, config: { apiKey: secret } });
}

/** Own keys of what all objects inherit from. */
function prototypes(): readonly (readonly PropertyKey[])[] {
  return [Object, Array, Function, String, Map, Promise, Error].map((one) => Reflect.ownKeys(one.prototype as object));
}

function collectKeys(value: unknown, keys: Set<string>): void {
  if (Array.isArray(value)) {
    for (const one of value) collectKeys(one, keys);
    return;
  }
  if (!isRecord(value)) return;
  for (const key of Object.keys(value)) {
    keys.add(key);
    if (!FREE_FORM.has(key)) collectKeys(value[key], keys);
  }
}

function hasOwnProto(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasOwnProto);
}
