/** Misuse of the library, as a black box: a TypeError that names the thing and shows the way out, with nothing recorded. */
import { describe, expect, it } from 'vitest';
import {
  type AnyTool,
  createTranscript,
  createTurnControl,
  defineTool,
  type OpenTurn,
  type RecordedEvent,
  runTurn,
  type RunTurnOptions,
  type StandardSchema,
} from 'turnloop';
import { echoTool, recordEvents, runScripted, scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { throughJson } from './support.ts';

/** Runs a turn that is misused: the error's message, once it is sure that nothing was recorded. */
async function misuse(change: Partial<Record<keyof RunTurnOptions, unknown>>): Promise<string> {
  const recording = recordEvents();
  const options = {
    llm: scriptedLLM(['ok']),
    buildMessages: () => [],
    dispatchEvent: recording.dispatchEvent,
    runtime: virtualRuntime(),
    ...change,
  };

  const thrown: unknown = await runTurn(options as RunTurnOptions).then(
    () => 'nothing was thrown',
    (error: unknown) => error,
  );

  expect(thrown).toBeInstanceOf(TypeError);
  expect(recording.events).toStrictEqual([]);
  return (thrown as TypeError).message;
}

/** A tool with some members changed, wrong ones too. */
function tool(change: object): AnyTool {
  return { name: 'list_files', description: '', inputSchema: { type: 'object' }, execute: () => 'ok', ...change };
}

describe('a missing option', () => {
  it.each(['llm', 'buildMessages', 'dispatchEvent'] as const)('%s is named, with a correct call', async (name) => {
    expect(await misuse({ [name]: undefined })).toBe(
      `runTurn needs "${name}". A call looks like ` +
        'runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: "Hello" }).',
    );
  });

  it('is named when there are no options at all', async () => {
    await expect(runTurn(undefined as unknown as RunTurnOptions)).rejects.toThrow('runTurn needs "llm"');
  });
});

describe('a wrong option', () => {
  it('llm without chat shows what an LLM looks like', async () => {
    expect(await misuse({ llm: { provider: 'x' } })).toBe(
      '"llm" has no chat function. An LLM looks like { provider, modelId, systemPrompt, chat }.',
    );
  });

  it.each(['llm', 'buildMessages', 'dispatchEvent'] as const)('%s of null, or of a string, is named', async (name) => {
    expect(await misuse({ [name]: null })).toContain(`"${name}"`);
    expect(await misuse({ [name]: 'nonsense' })).toContain(`"${name}"`);
  });

  it.each([[['Hello']], [42], [[{ text: 'Hello' }]]])('input of %j is named, since it is no message', async (input) => {
    expect(await misuse({ input })).toContain('"input"');
  });

  it.each([
    ['graceMs', -1],
    ['graceMs', NaN],
    ['deadlineMs', -5],
    ['maxParallelTools', 0],
    ['maxParallelTools', NaN],
  ])('%s of %d is named with its least value', async (name, value) => {
    expect(await misuse({ [name]: value })).toMatch(new RegExp(`^"${name}" is ${value}; it must be a number of at least [01]\\.$`));
  });

  it('control that createTurnControl did not make is refused', async () => {
    expect(await misuse({ control: { abort: () => undefined } })).toBe('`control` must come from createTurnControl().');
  });

  it('control of an earlier turn is refused, with how to make one', async () => {
    const control = createTurnControl();
    await runScripted({ replies: ['ok'], control });

    expect(await misuse({ control })).toBe(
      'This turn control was given to a turn before. Make one for each: control: createTurnControl().',
    );
  });

  it('resume of a turn without its lost input is refused, with both ways out', async () => {
    const begin: RecordedEvent = { type: 'turn.begin', version: 1, inputCount: 1, turnId: 't', at: 0 };
    const turn: OpenTurn = createTranscript([begin]).openTurn()!;

    expect(await misuse({ resume: { turn: throughJson(turn) } })).toBe(
      'The turn to resume stopped before its input was recorded. Pass the same "input" again, or give the turn up with ' +
        'closeOpenTurn(transcript).',
    );
  });
});

describe('a wrong tool', () => {
  it.each<[string, unknown, string]>([
    ['no name', tool({ name: '' }), 'tools[0] has no name. A tool looks like { name, description, inputSchema, execute }.'],
    ['nothing at all', undefined, 'tools[0] has no name. A tool looks like { name, description, inputSchema, execute }.'],
    ['no execute', tool({ execute: undefined }), 'Tool "list_files" has no execute function.'],
    ['no description', tool({ description: undefined }), 'Tool "list_files" has no description: the model needs one, if only "".'],
  ])('with %s is refused when the turn starts', async (_what, broken, message) => {
    expect(await misuse({ tools: [broken] })).toBe(message);
  });

  it.each<[unknown, string]>([
    [undefined, 'it is not an object'],
    ['string', 'it is not an object'],
    [[], 'it is not an object'],
    [{ type: 'string' }, 'its type is "string", not "object"'],
    [{}, 'it does not describe an object: its type is missing'],
    [{ type: 'object', properties: [] }, '"properties" is not an object'],
    [{ type: 'object', properties: { path: 'string' } }, 'property "path" is not a schema'],
    [{ type: 'object', required: 'path' }, '"required" is not a list of names'],
    [{ type: 'object', required: [1] }, '"required" is not a list of names'],
    [{ type: 'object', default: 1n }, 'it is not plain JSON'],
  ])('with the schema %o is refused, naming the tool and the fault', async (inputSchema, problem) => {
    const message = await misuse({ tools: [tool({ inputSchema })] });

    expect(message).toContain(`Tool "list_files" has a broken inputSchema: ${problem}`);
    expect(message).toContain("Use e.g. { type: 'object', properties: {} }.");
  });

  it.each([{ properties: {} }, { anyOf: [{ type: 'object' }] }, { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } }])(
    'is not one whose schema describes an object without saying its type: %j',
    async (inputSchema) => {
      const { result } = await runScripted({ replies: ['ok'], tools: [tool({ inputSchema })] });

      expect(result.stopReason).toBe('end_turn');
    },
  );

  it('of the same name as another is refused, naming it', async () => {
    expect(await misuse({ tools: [echoTool(), echoTool()] })).toBe(
      'Two tools are named "echo". A model could not tell them apart: rename one.',
    );
  });

  it('of a Standard Schema without a JSON Schema is refused when it is defined, with the way out', () => {
    const input: StandardSchema = { '~standard': { version: 1, vendor: 'valibot', validate: (value) => ({ value }) } };

    expect(() => defineTool({ name: 'weather', description: '', input, execute: () => 'ok' })).toThrow(
      new TypeError(
        'The schema of tool "weather" (valibot) gives no JSON Schema. Pass it beside the schema: ' +
          'defineTool({ name: "weather", input: schema, inputSchema: { type: \'object\', properties: { … } }, … }).',
      ),
    );
  });

  it('of a Standard Schema that is given a JSON Schema beside it is fine', () => {
    const input: StandardSchema = { '~standard': { version: 1, vendor: 'valibot', validate: (value) => ({ value }) } };
    const inputSchema = { type: 'object', properties: {} };

    expect(defineTool({ name: 'weather', description: '', input, inputSchema, execute: () => 'ok' }).inputSchema).toBe(inputSchema);
  });
});
