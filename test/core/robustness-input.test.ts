/**
 * Input that is out of the ordinary: arguments of megabytes or thousands of levels, numbers beyond all bounds, and options
 * that are not what they should be.
 */
import { describe, expect, it } from 'vitest';
import { runTurn, type RunTurnOptions } from 'turnloop';
import { echoTool, runScripted, scriptedLLM, toolCall } from 'turnloop/testing';
import { resultLines } from './support.ts';

const MEGABYTE = 1_000_000;

/** Runs one call with this argument text. */
async function callWith(inputText: string) {
  const echo = echoTool();
  const { recorded, result } = await runScripted({ replies: [toolCall('echo', inputText), 'done'], tools: [echo] });
  const [line] = resultLines(recorded);
  return { echo, recorded, stopReason: result.stopReason, outcome: line?.[1], text: line?.[2] ?? '' };
}

describe('arguments of 10 MB', () => {
  it('are run with where they are JSON', async () => {
    const text = 'x'.repeat(10 * MEGABYTE);

    const { echo, outcome } = await callWith(JSON.stringify({ text, digits: 1234567890123456 }));

    expect(outcome).toBe('ok');
    expect(echo.inputs[0]?.['text']).toHaveLength(10 * MEGABYTE);
  });

  it.each<[string, string]>([
    ['are not closed', `{"text":"${'x'.repeat(10 * MEGABYTE)}"`],
    ['are full of escapes and not closed', `{"text":"${'\\n\\u00e9'.repeat(MEGABYTE)}"`],
  ])('are refused in few words where they %s', async (_what, inputText) => {
    const { echo, outcome, text, stopReason } = await callWith(inputText);

    expect([outcome, stopReason, echo.runCount]).toStrictEqual(['error', 'end_turn', 0]);
    expect(text).toContain(`at position ${inputText.length} (the end of the text)`);
    expect(text.length).toBeLessThan(3000);
  });
});

describe('arguments nested 10,000 deep', () => {
  it.each<[string, string, string]>([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('of %s are refused before anything has to walk them', async (_what, open, close) => {
    const inner = open === '[' ? '' : '1';

    const { echo, outcome, text, recorded } = await callWith(`{"a":${open.repeat(10_000)}${inner}${close.repeat(10_000)}}`);

    expect([outcome, echo.runCount]).toStrictEqual(['error', 0]);
    expect(text).toContain('nested more than 500 deep');
    expect(() => JSON.stringify(recorded)).not.toThrow();
  });

  it('inside a text are a text', async () => {
    const { echo, outcome } = await callWith(JSON.stringify({ text: '['.repeat(10_000) }));

    expect([outcome, echo.runCount]).toStrictEqual(['ok', 1]);
  });
});

describe('a number', () => {
  it.each(['1e999', '-1e999', '[1e400]', '12345678901234567890'])('such as %s is refused rather than rounded', async (number) => {
    const { echo, outcome, text } = await callWith(`{"n": ${number}}`);

    expect([outcome, echo.runCount]).toStrictEqual(['error', 0]);
    expect(text).toContain('too large to be exact');
  });

  it.each(['1e-999', '1E5', '9007199254740991', '"1e999"'])('such as %s is run with', async (number) => {
    const { outcome, recorded } = await callWith(`{"n": ${number}}`);

    expect(outcome).toBe('ok');
    expect(recorded.find((event) => event.type === 'tool.call')).toHaveProperty('input.n', JSON.parse(number));
  });
});

describe('an option', () => {
  const options = (wrong: object): RunTurnOptions => {
    const whole = { llm: scriptedLLM(['a']), buildMessages: () => [], dispatchEvent: () => undefined };
    return { ...whole, ...wrong };
  };

  it.each<[string, unknown]>([
    ['llm', null],
    ['llm', {}],
    ['buildMessages', null],
    ['dispatchEvent', 5],
    ['tools', null],
    ['tools', 'echo'],
    ['input', null],
    ['input', [null]],
    ['input', { role: 'user', content: 'hi' }],
    ['hooks', {}],
    ['hooks', [{ beforeStep: () => undefined }]],
    ['stopWhen', null],
    ['stopWhen', [5]],
    ['recoveries', null],
    ['recoveries', [{}]],
    ['signal', null],
    ['deadlineMs', '5'],
    ['graceMs', -1],
    ['graceMs', NaN],
    ['maxParallelTools', 0],
    ['maxParallelTools', 1.5],
    ['resume', {}],
    ['resume', null],
  ])('"%s" that is %j is refused by its name', async (name, value) => {
    const refused = runTurn(options({ [name]: value }));

    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(new RegExp(`^"?${name}`));
  });

  it.each([
    ['hooks', [{ name: 'idle', beforeStep: () => undefined }, [{ name: 'nested', beforeStep: () => undefined }]], 'hooks[1] is not a hook', 'a list. Lists are put in with "..."'],
    ['hooks', [() => undefined], 'hooks[0] is not a hook', 'a function. Is it to be called?'],
    ['recoveries', [{ hooks: [], recoveries: [] }], 'recoveries[0] is not a recovery', 'an object with hooks, recoveries'],
    ['stopWhen', 25, '"stopWhen" is no list, but a number', 'Use stopWhen: maxSteps(25)'],
  ])('"%s" is refused with the place in the list and what stands there', async (name, value, place, found) => {
    const refused = runTurn(options({ [name]: value }));

    await expect(refused).rejects.toThrow(place);
    await expect(refused).rejects.toThrow(found);
  });

  it('that does not exist is refused, with those that do', async () => {
    const refused = runTurn(options({ stopwhen: () => undefined }));

    await expect(refused).rejects.toThrow('runTurn has no option `stopwhen`; it takes llm, buildMessages, dispatchEvent');
  });

  it.each([NaN, -1, '50', null])('of a tool, a timeoutMs of %j, is refused by the name of the tool', async (timeoutMs) => {
    const refused = runTurn(options({ tools: [{ ...echoTool(), timeoutMs }] }));

    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow('Tool "echo" has a timeoutMs of');
  });
});
