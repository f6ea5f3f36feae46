/**
 * From the argument text of a model to what a tool takes, as a black box: nothing malformed is run, nothing is repaired or
 * coerced, and the model is told what was wrong and where.
 */
import { describe, expect, it } from 'vitest';
import { defineTool, type JsonSchema, type StandardResult, type StandardSchema } from 'turnloop';
import { cutStream, echoTool, failingTool, recordingTool, runScripted, type TestTool, toolCall } from 'turnloop/testing';
import { resultLines, resultTexts, watchRejections } from './support.ts';

/** Calls one tool once with an argument text: what it ran with, and what the model was told. */
async function callWith(inputText: string, tool: TestTool = recordingTool({ name: 'f' })) {
  const { recorded } = await runScripted({ replies: [toolCall('f', inputText), 'done'], tools: [tool] });
  return { inputs: tool.inputs, text: resultTexts(recorded)[0]!, outcome: resultLines(recorded)[0]![1] };
}

/** A tool of a schema. */
function typed(properties: JsonSchema, required: readonly string[] = []): TestTool {
  return recordingTool({ name: 'f', inputSchema: { type: 'object', properties, required } });
}

describe('argument text', () => {
  it.each(['', '  ', '\n'])('AP1 KS4 that is empty (%j) is an empty object', async (inputText) => {
    expect(await callWith(inputText)).toStrictEqual({ inputs: [{}], text: 'done', outcome: 'ok' });
  });

  it('AP2 that is JSON becomes its value', async () => {
    const { inputs } = await callWith(' {"a": [1, {"b": null}], "c": "\\u00e9"} ');

    expect(inputs).toStrictEqual([{ a: [1, { b: null }], c: 'é' }]);
  });

  it.each(['{"__proto__": {"admin": true}, "a": 1}', '{"\\u005f_proto__": {"admin": true}, "a": 1}'])(
    'AP2 loses its __proto__ keys: %s',
    async (inputText) => {
      const { inputs } = await callWith(inputText);

      expect(inputs).toStrictEqual([{ a: 1 }]);
      expect(Object.keys(inputs[0]!)).toStrictEqual(['a']);
      expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
    },
  );

  it.each([
    ['{"a": 1,, }', 'a property name in double quotes was expected at position 8'],
    ['{"{"tagIds":', '":" was expected at position 4'],
    ['{"a":1', '"," or "}" was expected at position 6 (the end of the text)'],
    ['{"a":', 'a value was expected at position 5 (the end of the text)'],
    ["{'a':1}", 'a property name in double quotes was expected at position 1'],
    ['{"a":"x', 'a string is not closed, or has an illegal character or escape at position 7'],
    ['[1,2', '"," or "]" was expected at position 4'],
    ['```json\n{}\n```', 'a value was expected at position 0'],
    ['{"a":undefined}', 'a value was expected at position 5'],
    ['{}{}', 'the text should end at position 2'],
    ['{"a":1 "b":2}', '"," or "}" was expected at position 7'],
    ['{"a":1,"b" 2}', '":" was expected at position 11'],
    ['{"a":[{},[],{"b":-1.5e3,c}]}', 'a property name in double quotes was expected at position 24'],
    ['{"a":[true,false,nul]}', 'a value was expected at position 20'],
    ['{"a":01}', '"," or "}" was expected at position 6'],
    ['{"a":"\\u12G4"}', 'a string is not closed, or has an illegal character or escape at position 10'],
  ])('AP3 that is malformed is a failure with its position, never a value: %s', async (inputText, place) => {
    const { inputs, text, outcome } = await callWith(inputText);

    expect([inputs, outcome]).toStrictEqual([[], 'error']);
    expect(text).toContain(`The arguments of "f" are not valid JSON: ${place}`);
    expect(text).toContain(`The arguments were: ${inputText}`);
  });

  it('A11 that is very long is quoted up to a length', async () => {
    const { text } = await callWith(`{"a":"${'x'.repeat(50_000)}`);

    expect(text.length).toBeLessThan(2000);
    expect(text).toContain('(50006 characters in all)');
  });

  it.each([
    ['null', 'they must be an object, not null'],
    ['[]', 'they must be an object, not array'],
    ['"hello"', 'they must be an object, not string'],
    ['7', 'they must be an object, not number'],
  ])('KS4 that is %s passes the parser and fails validation', async (inputText, problem) => {
    const { inputs, text } = await callWith(inputText);

    expect(inputs).toStrictEqual([]);
    expect(text).toBe(`Invalid arguments for "f": ${problem}. Nothing was run. The form is {}.`);
  });

  it('KS4 that is null reaches a validator that takes it', async () => {
    const tool = recordingTool({ name: 'f', parseInput: (input) => ({ got: input }) });

    expect((await callWith('null', tool)).inputs).toStrictEqual([{ got: null }]);
  });
});

describe('validation without a schema library', () => {
  it('A11 names each property that is missing or of a wrong type, and does not coerce', async () => {
    const tool = typed(
      { n: { type: 'integer' }, tags: { type: 'array' }, on: { type: 'boolean' }, o: { type: ['object', 'null'] } },
      ['n', 'gone'],
    );

    const { inputs, text } = await callWith('{"n":"5","tags":"[1]","on":"true","o":"{}"}', tool);

    expect(inputs).toStrictEqual([]);
    expect(text).toBe(
      'Invalid arguments for "f": "gone" is missing; "n" must be integer, not string; "tags" must be array, not string; ' +
        '"on" must be boolean, not string; "o" must be object or null, not string. Nothing was run. ' +
        'The form is { n: integer, tags?: array, on?: boolean, o?: object | null }.',
    );
  });

  it('passes what it does not check: nested types, other keywords, unknown keys', async () => {
    const tool = typed({ a: { type: 'object', properties: { b: { type: 'string' } } }, c: { enum: ['x'] }, d: true });

    expect((await callWith('{"a":{"b":1},"c":"y","d":2,"e":3}', tool)).inputs).toStrictEqual([{ a: { b: 1 }, c: 'y', d: 2, e: 3 }]);
  });

  it('does not take an inherited property for a required one', async () => {
    const { text } = await callWith('{}', typed({}, ['toString', 'constructor']));

    expect(text).toContain('"toString" is missing; "constructor" is missing');
  });
});

describe('validation by a Standard Schema', () => {
  function schemaTool(validate: (value: unknown) => StandardResult<{ path: string }> | Promise<StandardResult<{ path: string }>>) {
    const input: StandardSchema<{ path: string }> = {
      '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input: () => ({ type: 'object', properties: { path: { type: 'string' } } }) } },
    };
    const inputs: unknown[] = [];
    const tool = defineTool({ name: 'f', description: '', input, execute: (value) => (inputs.push(value), 'ok') });
    return { tool, inputs };
  }

  it('hands the output of the schema to the tool, and records the input', async () => {
    const { tool, inputs } = schemaTool(async () => ({ value: { path: '/abs/a.txt' } }));

    const { recording } = await runScripted({ replies: [toolCall('f', { path: 'a.txt' }), 'done'], tools: [tool] });

    expect(inputs).toStrictEqual([{ path: '/abs/a.txt' }]);
    expect(recording.of('tool.call')[0]).toMatchObject({ input: { path: 'a.txt' } });
  });

  it('names the path of each issue', async () => {
    const { tool } = schemaTool(() => ({
      issues: [{ message: 'expected string', path: ['files', { key: 0 }, 'path'] }, { message: 'too many' }],
    }));

    const { recorded } = await runScripted({ replies: [toolCall('f'), 'done'], tools: [tool] });

    expect(resultTexts(recorded)[0]).toContain('Invalid arguments for "f": files.0.path: expected string; too many.');
  });

  it('KS5 rejects unknown keys where the schema does, so that what runs matches what was exported', async () => {
    const { tool, inputs } = schemaTool((value) =>
      Object.keys(value as object).every((key) => key === 'path')
        ? { value: value as { path: string } }
        : { issues: [{ message: 'unrecognized key' }] },
    );

    const { recorded } = await runScripted({ replies: [[toolCall('f', { path: 'a' }), toolCall('f', { path: 'a', mode: 1 })], 'done'], tools: [tool] });

    expect(inputs).toStrictEqual([{ path: 'a' }]);
    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['ok', 'error']);
  });

  it('turns a validator that throws into an error result', async () => {
    const { tool, inputs } = schemaTool(() => {
      throw new Error('validator broke');
    });

    const { recorded } = await runScripted({ replies: [toolCall('f'), 'done'], tools: [tool] });

    expect(inputs).toStrictEqual([]);
    expect(resultTexts(recorded)[0]).toContain('Invalid arguments for "f": validator broke.');
  });
});

describe('handlers', () => {
  it('KS1 never start when the stream fails, even after a complete call', async () => {
    const rejections = watchRejections();
    const echo = echoTool();

    const { result, recorded, runtime } = await runScripted({
      replies: [cutStream([toolCall('echo', { text: 'a' }), 'and'], { deltaCount: 1 })],
      tools: [echo],
    });
    await runtime.flush();
    rejections.stop();

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'network' } });
    expect(recorded.map((event) => event.type)).not.toContain('tool.call');
    expect(rejections.reasons).toStrictEqual([]);
  });

  it('KS2 have their results in call order, their ends in completion order, and no effect on each other', async () => {
    const slow = recordingTool({
      name: 'slow',
      accesses: [],
      execute: (_input, { runtime }) => new Promise((resolve) => { runtime.setTimer(50, () => resolve('slow')); }),
    });

    const { recording } = await runScripted({
      replies: [[toolCall('slow'), toolCall('fail'), toolCall('echo', { text: 'fast' })], 'done'],
      tools: [slow, failingTool({ accesses: [], mode: 'throws' }), echoTool({ accesses: [] })],
    });

    expect(recording.of('tool.finished').map((event) => event.toolCallId)).toStrictEqual(['call_2', 'call_3', 'call_1']);
    expect(recording.of('tool.result').map(({ toolCallId, result }) => [toolCallId, result.isError ?? false])).toStrictEqual([
      ['call_1', false],
      ['call_2', true],
      ['call_3', false],
    ]);
  });

  it('KS3 are told apart by their failure: unknown, malformed, invalid, thrown', async () => {
    const strict = recordingTool({ name: 'strict', inputSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } });

    const { recorded } = await runScripted({
      replies: [[toolCall('nope'), toolCall('strict', '{'), toolCall('strict'), toolCall('fail')], 'done'],
      tools: [strict, failingTool()],
    });

    expect(resultTexts(recorded).map((text) => text.slice(0, 27))).toStrictEqual([
      'There is no tool named "nop',
      'The arguments of "strict" a',
      'Invalid arguments for "stri',
      'the tool failed',
    ]);
  });
});
