/** Structured answers in full turns: by the provider's format or by a closing tool, mended or given up, over suspensions and crashes. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AnyTool, type Hook, type JsonSchema, type RecordedEvent, type StandardSchema, type StopCondition, userMessage } from 'turnloop';
import { structuredOutput, type StructuredOutput, type StructuredOutputOptions } from 'turnloop/agent';
import { approval, finalAnswer, maxSteps, planFirst } from 'turnloop/policies';
import { echoTool, runScripted, type RunScriptedOptions, scriptedLLM, type ScriptedOutcome, startScripted, thinking, toolCall } from 'turnloop/testing';
import { conversation, crash, outline, resultTexts, resumeFrom, secondProcess } from '../core/support.ts';

const weather = z.object({ city: z.string(), degrees: z.number() });
type Weather = z.infer<typeof weather>;

const GOOD = '{"city":"Rome","degrees":31}';
const BAD = '{"city":"Rome","degrees":"hot"}';
const answer = (input: string): ReturnType<typeof toolCall> => toolCall('give_answer', input);

interface Kind {
  /** How the model answers. */
  readonly reply: (input: string) => string | ReturnType<typeof toolCall>;
  readonly structuredOutput: boolean;
}
const NATIVE: Kind = { reply: (input) => input, structuredOutput: true };
const CLOSING: Kind = { reply: answer, structuredOutput: false };
const KINDS = [
  ['in the format of the provider', NATIVE],
  ['by the closing tool', CLOSING],
] as const;

/** What a turn with a structured answer is run with. */
function optionsFor<Output>(structured: StructuredOutput<Output>, { structuredOutput: native }: Kind, options: RunScriptedOptions = {}): RunScriptedOptions {
  const capabilities = { structuredOutput: native };
  const closing = structured.toolsFor(scriptedLLM([], { capabilities }));
  const tools: readonly AnyTool[] = [...(typeof options.tools === 'object' ? options.tools : []), ...closing];
  return { ...options, tools, llmOptions: { ...options.llmOptions, capabilities }, hooks: [...(options.hooks ?? []), ...structured.hooks] };
}

async function ask(kind: Kind, options: RunScriptedOptions, output?: StructuredOutputOptions): Promise<ScriptedOutcome & { readonly output: Weather | undefined }> {
  const structured = structuredOutput(weather, output);
  const outcome = await runScripted(optionsFor(structured, kind, options));
  return { ...outcome, output: await structured.parse(outcome.result) };
}

describe('a structured answer', () => {
  it('E15 is asked for in the format of a provider that has one, in every step, without a tool', async () => {
    const { llm, output, result } = await ask(NATIVE, { replies: [toolCall('echo', { text: 'a' }), GOOD], tools: [echoTool()] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(result.stopReason).toBe('end_turn');
    expect(llm.requests.map(({ tools }) => tools.map(({ name }) => name))).toStrictEqual([['echo'], ['echo']]);
    expect(llm.requests[0]!.responseSchema).toMatchObject({ type: 'object', required: ['city', 'degrees'], properties: { degrees: { type: 'number' } } });
    expect(llm.requests[1]!.responseSchema).toBe(llm.requests[0]!.responseSchema);
  });

  it('E15 is given by a tool that ends the turn, where the provider has no format', async () => {
    const { llm, output, result } = await ask(CLOSING, { replies: [toolCall('echo', { text: 'a' }), ['Here: ', answer(GOOD)]], tools: [echoTool()] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'give_answer' });
    expect(llm.requests.map(({ responseSchema }) => responseSchema)).toStrictEqual([undefined, undefined]);
    expect(llm.requests[0]!.tools).toMatchObject([{ name: 'echo' }, { name: 'give_answer', inputSchema: { type: 'object', required: ['city', 'degrees'] } }]);
  });

  it.each(KINDS)('E15 is what the schema makes of it, %s', async (_how, kind) => {
    const structured = structuredOutput(z.object({ at: z.string().transform((text) => text.length), by: z.string().default('me') }));
    const { result } = await runScripted(optionsFor(structured, kind, { replies: [kind.reply('{"at":"here"}')] }));

    expect(await structured.parse(result)).toStrictEqual({ at: 4, by: 'me' });
  });

  it.each(KINDS)('E15 need not be an object, %s', async (_how, kind) => {
    const tree: JsonSchema = { type: 'array', items: { $ref: '#/$defs/leaf' }, $defs: { leaf: { type: 'integer' } }, $schema: 'https://json-schema.org/draft/2020-12/schema' };
    const structured = structuredOutput(z.array(z.number()), { jsonSchema: tree });
    const { result, llm } = await runScripted(optionsFor(structured, kind, { replies: [kind.reply('[1]'), kind.reply('{"answer":[1,2]}')] }));

    expect(await structured.parse(result)).toStrictEqual([1, 2]);
    const [request] = llm.requests;
    expect(request!.responseSchema ?? request!.tools[0]!.inputSchema).toStrictEqual({
      type: 'object',
      properties: { answer: { type: 'array', items: { $ref: '#/$defs/leaf' } } },
      required: ['answer'],
      additionalProperties: false,
      $defs: { leaf: { type: 'integer' } },
    });
  });

  it('E15 may be one of several forms', async () => {
    const structured = structuredOutput(z.discriminatedUnion('kind', [z.object({ kind: z.literal('yes') }), z.object({ kind: z.literal('no'), why: z.string() })]));
    const { result } = await runScripted(optionsFor(structured, CLOSING, { replies: [answer('{"answer":{"kind":"no","why":"so"}}')] }));

    expect(await structured.parse(result)).toStrictEqual({ kind: 'no', why: 'so' });
  });

  it('E15 works with a schema that validates in its own time, of any library', async () => {
    const schema: StandardSchema<{ n: number }> = {
      '~standard': {
        version: 1,
        vendor: 'mine',
        validate: async (value) => {
          const { n } = Object(value) as { n?: unknown };
          return typeof n === 'number' ? { value: { n } } : { issues: [{ message: 'no number', path: ['n'] }] };
        },
      },
    };
    const structured = structuredOutput(schema, { jsonSchema: { type: 'object', properties: { n: { type: 'number' } } } });
    const { result, llm } = await runScripted(optionsFor(structured, NATIVE, { replies: ['{}', '{"n":1}'] }));

    expect(await structured.parse(result)).toStrictEqual({ n: 1 });
    expect(conversation(llm.requests[1]!.messages).at(-1)).toContain('n: no number');
  });

  it('E15 changes nothing: nobody need allow it, and no plan be confirmed', async () => {
    const { output } = await ask(CLOSING, { replies: [answer(GOOD)], hooks: [planFirst({ isConfirmed: () => false }), approval()] });

    expect(output).toBeDefined();
  });

  it('E15 is the first that will do, of several in one reply', async () => {
    const { output, recorded } = await ask(CLOSING, { replies: [[answer(BAD), answer(GOOD), answer('{"city":"Oslo","degrees":1}')]] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(resultTexts(recorded)).toStrictEqual([expect.stringContaining('degrees'), 'The answer was taken.', expect.any(String)]);
  });
});

describe('an answer that does not fit', () => {
  it('E15 goes back with what is wrong, as a message', async () => {
    const { llm, output, result } = await ask(NATIVE, { replies: ['Rome is hot.', BAD, GOOD] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3 });
    expect(conversation(llm.requests[2]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: Rome is hot.',
      expect.stringMatching(/^user: Your answer is not of the form that was asked for: it is not JSON: .* near "Rome is hot.".*Answer again, with nothing but JSON of that form.$/),
      `assistant: ${BAD}`,
      expect.stringMatching(/^user: Your answer .*: degrees: .*number/),
    ]);
    expect(llm.requests[2]!.messages.at(-1)).toMatchObject({ origin: 'reminder' });
  });

  it('E15 goes back with what is wrong, as a result', async () => {
    const { output, recorded, result } = await ask(CLOSING, { replies: [answer('{"city":'), answer(BAD), answer(GOOD)] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(result.steps).toBe(3);
    expect(resultTexts(recorded)).toStrictEqual([
      expect.stringContaining('not valid JSON'),
      expect.stringMatching(/Invalid arguments for "give_answer": degrees: .*\. Nothing was run\. The form is \{ city: string, degrees: number \}\./),
      'The answer was taken.',
    ]);
  });

  it('E15 in plain text is sent back, if there is a tool for it', async () => {
    const { llm, output } = await ask(CLOSING, { replies: ['It is 31 degrees in Rome.', answer(GOOD)] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(conversation(llm.requests[1]!.messages).at(-1)).toBe('user: Your answer was not taken: text is not what was asked for. Give it by calling give_answer.');
  });

  it('E15 in plain text is taken, if it is what was asked for', async () => {
    const { output, result } = await ask(CLOSING, { replies: [` ${GOOD}\n`] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(result.stopReason).toBe('end_turn');
  });

  it.each([
    ['texts', NATIVE, [BAD, BAD, BAD]],
    ['calls', CLOSING, [answer(BAD), answer(BAD), answer(BAD)]],
    ['texts where there is a tool', CLOSING, ['a', 'b', 'c']],
    ['calls and texts', CLOSING, [answer(BAD), 'b', answer('{')]],
    ['texts and calls', CLOSING, ['a', answer(BAD), 'c']],
    ['several calls in one reply', CLOSING, [[answer(BAD), answer(BAD)], [answer(BAD), answer('{')], answer(BAD)]],
    ['calls with other work between', CLOSING, [answer(BAD), toolCall('echo', { text: 'a' }), answer(BAD), toolCall('echo', { text: 'a' }), [answer(BAD), toolCall('echo', { text: 'a' })]]],
  ] as const)('E15 goes back twice and no more: then the turn ends, named, with what is wrong (%s)', async (_what, kind, replies) => {
    const { output, result, llm } = await ask(kind, { replies: [...replies], tools: [echoTool()] });

    expect(output).toBeUndefined();
    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'structuredOutput' });
    expect(result.stopMessage).toMatch(/^The model gave an answer that is not of the form asked for, 3 times. The last time: (degrees: |it is not JSON: )/);
    llm.assertDone();
  });

  it.each([0, 1, 3])('E15 goes back as often as you say (%i)', async (maxRetries) => {
    for (const [, kind] of KINDS) {
      const { result, llm } = await ask(kind, { replies: Array.from({ length: maxRetries + 1 }, () => kind.reply(BAD)) }, { maxRetries });
      expect(result).toMatchObject({ stoppedBy: 'structuredOutput', steps: maxRetries + 1 });
      llm.assertDone();
    }
  });

  it.each(KINDS)('E15 is counted anew in each turn, %s', async (_how, kind) => {
    const first = await ask(kind, { replies: [kind.reply(BAD), kind.reply(BAD), kind.reply(BAD)] });
    const second = await ask(kind, { transcript: first.transcript, input: 'again', replies: [kind.reply(BAD), kind.reply(BAD), kind.reply(GOOD)] });

    expect(second.output).toStrictEqual({ city: 'Rome', degrees: 31 });
  });

  it('E15 A8 is not what the turn ends with while somebody has something to say', async () => {
    const structured = structuredOutput(weather);
    const turn = startScripted(optionsFor(structured, NATIVE, { replies: [{ content: BAD, delayMs: 10 }, GOOD] }));
    await turn.runtime.flush();
    void turn.control.steer(userMessage('in Celsius'));
    const { result, llm } = await turn.finish();

    expect(await structured.parse(result)).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(conversation(llm.requests[1]!.messages).at(-1)).toBe('user: in Celsius');
  });

  it.each(KINDS)('E15 is asked for again when it was cut off at the output limit, %s', async (_how, kind) => {
    const { output, result } = await ask(kind, { replies: [{ content: '{"city":"Ro', stopReason: 'max_tokens' }, kind.reply(GOOD)] });

    expect(output).toBeDefined();
    expect(result.steps).toBe(2);
  });

  it('E15 is no answer of a turn that a filter, a person or a limit ended', async () => {
    const filtered = await ask(NATIVE, { replies: [{ content: 'No.', stopReason: 'filtered' }] });
    const stopWhen: StopCondition = maxSteps(1);
    const limited = await ask(CLOSING, { replies: [toolCall('echo', { text: 'a' })], tools: [echoTool()], stopWhen });
    const closed = await ask(CLOSING, { replies: [{ content: [answer(GOOD)], stopReason: 'filtered' }] });

    expect([filtered, limited, closed].map(({ result, output }) => [result.stopReason, output])).toStrictEqual([
      ['filtered', undefined],
      ['max_steps', undefined],
      ['filtered', undefined],
    ]);
  });

  it('E15 C9 may be given in the one step that a limit grants', async () => {
    const options = { tools: [echoTool()], stopWhen: maxSteps(1), hooks: [finalAnswer()] };
    const { output, result } = await ask(NATIVE, { replies: [toolCall('echo', { text: 'a' }), GOOD], ...options });
    const bad = await ask(NATIVE, { replies: [toolCall('echo', { text: 'a' }), BAD], ...options });

    expect(result.stopReason).toBe('max_steps');
    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
    expect(bad).toMatchObject({ result: { stopReason: 'max_steps' }, output: undefined });
  });

  it('E15 is not the fault of a model whose call somebody refused', async () => {
    const deny: Hook = { name: 'deny', authorizeToolCall: (_context, { name }) => (name === 'give_answer' ? { action: 'deny', reason: 'Not yet.' } : undefined) };
    const { result } = await ask(CLOSING, { replies: [answer(GOOD), answer(GOOD), answer(GOOD), answer(GOOD)], hooks: [deny], stopWhen: maxSteps(4) });

    expect(result.stopReason).toBe('max_steps');
  });

  it('E15 keeps nothing of an answer that an abort cut off', async () => {
    const structured = structuredOutput(weather);
    const turn = startScripted(optionsFor(structured, NATIVE, { replies: [{ content: GOOD, hangs: true }] }));
    await turn.runtime.flush();
    turn.control.abort();
    const { result } = await turn.finish();

    expect(result.message?.status).toBe('interrupted');
    expect(await structured.parse(result)).toBeUndefined();
  });
});

describe('a structured answer over suspensions and crashes', () => {
  /** Every event after which a process may die, with the events up to it. */
  const prefixes = (events: readonly RecordedEvent[]): readonly (readonly RecordedEvent[])[] => events.slice(1, -1).map((_event, index) => events.slice(0, index + 2));

  it.each([
    ['texts', NATIVE],
    ['calls', CLOSING],
  ] as const)('E15 law-9 a turn that gives up gives up as it would have, wherever the process dies (%s)', async (_what, kind) => {
    const script = [toolCall('echo', { text: 'a' }), kind.reply(BAD), kind.reply(BAD), kind.reply(BAD)];
    const whole = await ask(kind, { replies: script, tools: [echoTool()] });
    for (const events of prefixes(whole.recorded)) {
      const structured = structuredOutput(weather);
      const done = events.filter(({ type }) => type === 'tool.call' || type === 'content.part').length;
      const { result } = await resumeFrom(events, optionsFor(structured, kind, { replies: [...script.slice(done)], tools: [echoTool()], input: 'hi' }));

      expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'structuredOutput', stopMessage: whole.result.stopMessage, steps: 4 });
    }
  });

  it.each(KINDS)('E15 law-9 an answer is the same, wherever the process dies, %s', async (_how, kind) => {
    const script = [kind.reply(BAD), kind.reply(GOOD)];
    const whole = await ask(kind, { replies: script });
    for (const events of prefixes(whole.recorded)) {
      const structured = structuredOutput(weather);
      const done = events.filter(({ type }) => type === 'tool.call' || type === 'content.part').length;
      const { result } = await resumeFrom(events, optionsFor(structured, kind, { replies: [...script.slice(done)], input: 'hi' }));

      expect(await structured.parse(result)).toStrictEqual({ city: 'Rome', degrees: 31 });
    }
  });

  it('E15 A20 waits with the turn, and is there when it has gone on', async () => {
    const structured = structuredOutput(weather);
    const options = optionsFor(structured, CLOSING, { tools: [echoTool()], hooks: [approval({ rules: [{ decision: 'ask' }] })] });
    const first = await runScripted({ ...options, replies: [answer(BAD), answer(GOOD)] });
    expect(first.result.stopReason).toBe('suspended');
    expect(await structured.parse(first.result)).toBeUndefined();

    const [{ toolCallId } = { toolCallId: '' }] = first.result.pending!;
    const second = await runScripted({ ...options, ...secondProcess(first.recorded), resume: { decisions: [{ toolCallId, action: 'allow' }] }, replies: [] });
    expect(second.result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'give_answer' });
    expect(await structured.parse(second.result)).toStrictEqual({ city: 'Rome', degrees: 31 });
  });

  it('E15 a reminder is recorded once, under an id of its own', async () => {
    const events = await crash((event) => event.type === 'message' && event.message.origin === 'reminder', optionsFor(structuredOutput(weather), NATIVE, { replies: [BAD] }));
    const { recorded, transcript } = await resumeFrom(events, optionsFor(structuredOutput(weather), NATIVE, { replies: [BAD, GOOD] }));

    expect(outline(recorded).filter((line) => line === 'message')).toHaveLength(1);
    const ids = transcript.buildMessages().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('structuredOutput', () => {
  it('law-13 refuses what will not do, in clear words', () => {
    const without: StandardSchema = { '~standard': { version: 1, vendor: 'mine', validate: (value) => ({ value }) } };
    const tree: JsonSchema = { anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#' } }] };

    expect(() => structuredOutput({ type: 'object' } as never)).toThrow(/structuredOutput needs a Standard Schema, such as one of zod/);
    expect(() => structuredOutput(without)).toThrow(/gives no JSON Schema. Pass it beside the schema: structuredOutput\(schema, \{ jsonSchema/);
    expect(() => structuredOutput(without, { jsonSchema: tree })).toThrow(/none of an object and refers to itself/);
    expect(() => structuredOutput(weather, { retries: 2 } as never)).toThrow(/no option `retries`; it takes jsonSchema, maxRetries/);
    expect(() => structuredOutput(weather, { maxRetries: -1 })).toThrow(/`maxRetries` must be a whole number of at least 0, not -1/);
    expect(() => structuredOutput(weather, { toolName: '' })).toThrow(/`toolName` must be a text/);
  });

  it('E15 gives the same list of tools each time, and takes a name for its tool', () => {
    const structured = structuredOutput(weather, { toolName: 'report', description: 'Reports.' });
    const plain = scriptedLLM([]);

    expect(structured.toolsFor(plain)).toMatchObject([{ name: 'report', description: 'Reports.' }]);
    expect(structured.toolsFor(plain)).toBe(structured.toolsFor(scriptedLLM([])));
    expect(structured.toolsFor(scriptedLLM([], { capabilities: { structuredOutput: true } }))).toStrictEqual([]);
  });

  it('E15 takes no thinking for an answer', async () => {
    const { output } = await ask(NATIVE, { replies: [[thinking('{"city":', { signature: 's' }), GOOD]] });

    expect(output).toStrictEqual({ city: 'Rome', degrees: 31 });
  });
});
