/**
 * Law 13, bad input gets a clear error: malformed arguments are answered with where the JSON broke, never run as `{}`; an
 * unknown tool is answered with the names that exist; a wrong schema is refused when the turn starts. Black box, but for
 * the position, which is also compared with a reference on the parser itself.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AnyTool, createTranscript, type LoopEvent, runTurn, textOf } from 'turnloop';
import { echoTool, recordingTool, runScripted, scriptedLLM, type TestTool, toolCall } from 'turnloop/testing';
import { parseJson } from '../../src/core/json.ts';
import { firstOffence } from './json-reference.ts';
import { law } from './law.ts';

const inputs = fc.object({ maxDepth: 2, maxKeys: 3, values: [fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null)] });
const spacing = fc.constantFrom(undefined, 1, '\t');

/** Argument texts that are nearly JSON: cut off, or with a character dropped, put in or changed. */
const nearlyJson: fc.Arbitrary<string> = fc
  .tuple(
    fc.tuple(inputs, spacing).map(([value, space]) => JSON.stringify(value, null, space)),
    fc.constantFrom('cut', 'drop', 'insert', 'change'),
    fc.nat(),
    fc.constantFrom('"', '{', '}', '[', ']', ',', ':', '\\', '0', '1', '-', '.', 'e', 't', "'", '\n', ' ', '\u0001', 'é', '/'),
  )
  .map(([text, act, place, letter]) => {
    const at = place % text.length;
    if (act === 'cut') return text.slice(0, at);
    return text.slice(0, at) + (act === 'drop' ? '' : letter) + text.slice(act === 'insert' ? at : at + 1);
  });

const malformed = nearlyJson.filter((text) => text.trim() !== '' && firstOffence(text) !== undefined);

/** Runs a turn whose first reply makes these calls; gives what each was answered. */
async function answersTo(calls: readonly ReturnType<typeof toolCall>[], tools: readonly AnyTool[]): Promise<readonly string[]> {
  const { transcript } = await runScripted({ replies: [calls, 'done'], tools });
  return transcript.events.flatMap((event) => (event.type === 'tool.result' ? [textOf(event.result.content)] : []));
}

function takingTool(): TestTool {
  return recordingTool({ name: 'take', inputSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: [] } });
}

describe('law-13 bad input', () => {
  law('law-13: the place where JSON broke is the first character that cannot stand there', malformed, (text) => {
    const parsed = parseJson(text);

    expect(parsed).toMatchObject({ ok: false, position: firstOffence(text) });
  });

  law('law-13: what the reference takes for JSON is parsed, as the platform parses it', nearlyJson, (text) => {
    const isJson = firstOffence(text) === undefined;

    expect(isJson).toBe(platformParses(text));
    if (!isJson) expect(parseJson(text).ok).toBe(false);
  });

  law('law-13: malformed arguments never run a tool, and the answer says where they broke', fc.array(malformed, { minLength: 1, maxLength: 3 }), async (texts) => {
    const tool = takingTool();
    const answers = await answersTo(texts.map((text) => toolCall('take', text)), [tool]);

    expect(tool.runCount).toBe(0);
    for (const [index, text] of texts.entries()) {
      expect(answers[index]).toContain(`position ${String(firstOffence(text))}`);
      expect(answers[index]).toContain(text.slice(0, 100));
    }
  });

  const wrong = fc.oneof(
    fc.constantFrom('null', '[]', '[{"count":1}]', '"text"', '7', 'true').map((text) => ({ text, says: 'must be an object' })),
    fc.constantFrom('"1"', 'null', '1.5', '[1]', '{}', 'true').map((value) => ({ text: `{"count":${value}}`, says: '"count" must be integer' })),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 70n }).map((value) => ({ text: `{"note":{"id":[1,${String(value)}]}}`, says: 'at position 17' })),
  );

  law('law-13: arguments of the wrong type, or too large to be exact, never run a tool, and the answer says what is wrong', wrong, async ({ text, says }) => {
    const tool = takingTool();
    const [answer] = await answersTo([toolCall('take', text)], [tool]);

    expect(tool.runCount).toBe(0);
    expect(answer).toContain(says);
  });

  const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 0, maxLength: 5 });

  law('law-13: a tool that does not exist is answered with the names of those that do', fc.tuple(names, fc.string()), async ([known, name]) => {
    fc.pre(!known.includes(name));
    const tools = known.map((one) => echoTool({ name: one }));
    const [answer] = await answersTo([toolCall(name)], tools);

    expect(answer).toContain(JSON.stringify(name));
    for (const one of known) expect(answer).toContain(one);
    expect(tools.map((tool) => tool.runCount)).toStrictEqual(known.map(() => 0));
  });

  const brokenSchemas: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
    undefined,
    null,
    'object',
    [],
    { type: 'string' },
    { type: ['object'] },
    {},
    { type: 'object', properties: [] },
    { type: 'object', properties: { a: 'string' } },
    { type: 'object', required: 'a' },
    { type: 'object', required: [1] },
    { type: 'object', properties: { a: { default: 1n } } },
  );

  law('law-13: a tool with a wrong schema is refused when the turn starts, by name, and nothing is recorded', fc.tuple(brokenSchemas, fc.nat(3)), async ([inputSchema, place]) => {
    const events: LoopEvent[] = [];
    const llm = scriptedLLM(['done']);
    const tools = ['a', 'b', 'c', 'd'].map((name) => echoTool({ name }));
    const broken = { ...echoTool({ name: 'broken' }), inputSchema } as unknown as AnyTool;

    const running = runTurn({
      llm,
      tools: tools.toSpliced(place, 1, broken as TestTool),
      input: 'Hi',
      buildMessages: createTranscript().buildMessages,
      dispatchEvent: (event: LoopEvent) => {
        events.push(event);
      },
    });

    await expect(running).rejects.toThrow(TypeError);
    await expect(running).rejects.toThrow('"broken"');
    expect([events, llm.callCount]).toStrictEqual([[], 0]);
  });

  it('law-13: two tools of one name, and a tool without a name, are refused when the turn starts', async () => {
    const start = (tools: readonly AnyTool[]): Promise<unknown> => runScripted({ replies: ['done'], tools });

    await expect(start([echoTool(), echoTool()])).rejects.toThrow(new TypeError('Two tools are named "echo". A model could not tell them apart: rename one.'));
    await expect(start([echoTool(), { ...echoTool(), name: '' }])).rejects.toThrow(/tools\[1\] has no name/);
  });
});

function platformParses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
