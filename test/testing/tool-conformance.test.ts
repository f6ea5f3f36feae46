/**
 * The conformance kit of tools: a good tool passes each case, each fault is found by the cases that are about it, and each
 * case finds some fault.
 */
import { describe, expect, it } from 'vitest';
import { defineTool, suspend, type ToolAccess } from 'turnloop';
import { llmRequest, recordingTool, scriptedLLM } from 'turnloop/testing';
import { type CreateTool, toolConformance, type ToolConformanceCase, type ToolConformanceCaseId, type ToolConformanceOptions, type ToolUnderTest } from 'turnloop/testing/conformance';
import { toolFaults } from './tool-conformance-faults.ts';
import { NOTE_OPTIONS, notes } from './tool-conformance-good.ts';

const good = notes();

function find(id: ToolConformanceCaseId, createTool: CreateTool, options: Partial<ToolConformanceOptions> = {}): ToolConformanceCase {
  return toolConformance(createTool, { ...NOTE_OPTIONS, ...options }).find((each) => each.id === id)!;
}

/** What a case says that fails; undefined for one that passes. */
async function failureOf({ run }: ToolConformanceCase): Promise<string | undefined> {
  return run().then(
    () => undefined,
    (failure: unknown) => String(failure),
  );
}

/** What all cases say that fail. */
async function failuresOf(createTool: CreateTool, options: ToolConformanceOptions): Promise<readonly string[]> {
  const failures = await Promise.all(toolConformance(createTool, options).map(failureOf));
  return failures.filter((failure) => failure !== undefined);
}

describe.concurrent('a good tool', () => {
  for (const { name, run } of toolConformance(good, NOTE_OPTIONS)) it(name, run);
});

describe.concurrent('F6: a tool is found out that', () => {
  const faults = Object.entries(toolFaults);

  it.each(faults)('%s', async (_name, { caughtBy, saying, make }) => {
    const found = await Promise.all(caughtBy.map(async (id) => [id, await failureOf(find(id, make, { settleWithinMs: 300 }))] as const));

    expect(found.filter(([, failure]) => failure === undefined)).toStrictEqual([]);
    expect(found[0]![1]).toMatch(saying);
  });

  it('does anything wrong that a case is about', () => {
    const found = new Set(faults.flatMap(([, { caughtBy }]) => caughtBy));

    expect(toolConformance(good, NOTE_OPTIONS).flatMap(({ id }) => (found.has(id) ? [] : [id]))).toStrictEqual([]);
  });
});

describe('a tool is free to', () => {
  const skip = { failure: 'it cannot', abort: 'it computes at once', secrets: 'it has none', 'input.bad': 'anything goes', 'replay.safe': 'it has no world' };

  it('be the plainest there is', async () => {
    const plain = defineTool({ name: 'upper', description: 'Shouts.', input: { type: 'object', properties: { text: { type: 'string' } } }, execute: ({ text }) => String(text).toUpperCase() });

    expect(await failuresOf(() => ({ tool: plain }), { inputs: { good: [{ text: 'a' }] }, skip })).toStrictEqual([]);
  });

  it.each<readonly [string, readonly ToolAccess[] | undefined]>([
    ['whether they exclude each other', [{ mode: 'write', place: ['count'], below: false }]],
    ['or say nothing of that', undefined],
  ])('give its calls running numbers, %s', async (_what, accesses) => {
    const counting: CreateTool = () => {
      let calls = 0;
      return { tool: recordingTool({ ...(accesses && { accesses }), execute: () => `call ${(calls += 1)}` }) };
    };

    expect(await failuresOf(counting, { inputs: { good: [{}] }, skip })).toStrictEqual([]);
  });

  it('give something else each time', async () => {
    let calls = 0;

    expect(await failuresOf(() => ({ tool: recordingTool({ execute: () => `call ${(calls += 1)}` }) }), { inputs: { good: [{}] }, skip })).toStrictEqual([]);
  });

  it('suspend, answer with media, and ask the host and the model', async () => {
    const llm = scriptedLLM(() => 'nine');
    const asking = recordingTool({
      execute: async ({ what }, { llm: model, host, signal }) => {
        if (what === 'media') return [{ type: 'media', mediaType: 'image/png', data: 'AAAA' }];
        if (what === 'wait') return suspend({ state: { asked: true } });
        const { content } = await model.chat(llmRequest({ signal }));
        return `${String(host)} says ${content.length} parts`;
      },
    });
    const options = { inputs: { good: [{ what: 'media' }, { what: 'wait' }, { what: 'model' }] }, skip };

    expect(await failuresOf(() => ({ tool: asking, llm, host: 'Ada' }), options)).toStrictEqual([]);
    expect(asking.runs.some(({ context }) => context.host === 'Ada')).toBe(true);
  });
});

describe('the list of cases', () => {
  it('has each id once, names that start with it, and the group that the id begins with', () => {
    const cases = toolConformance(good, NOTE_OPTIONS);

    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
    expect(cases.filter(({ id, group, name }) => !name.startsWith(`${id}: `) || !id.startsWith(`${group}.`))).toStrictEqual([]);
    expect(cases.filter(({ skipped }) => skipped !== undefined)).toStrictEqual([]);
  });

  it('keeps what is skipped, by id or by group, and says why', async () => {
    const never: CreateTool = () => {
      throw new Error('asked for a tool');
    };
    const cases = toolConformance(never, { ...NOTE_OPTIONS, skip: { replay: 'no world', 'describe.line': 'poems' } });
    const skipped = cases.filter((each) => each.skipped !== undefined);

    expect(skipped.map(({ id }) => id)).toStrictEqual(['describe.line', 'replay.safe', 'replay.idempotent']);
    expect(skipped[0]!.name).toMatch(/^describe\.line: .* \(skipped: poems\)$/);
    expect(await Promise.all(skipped.map(failureOf))).toStrictEqual([undefined, undefined, undefined]);
  });

  it.each<[unknown, unknown, RegExp]>([
    [undefined, NOTE_OPTIONS, /takes a function that makes a tool.*toolConformance\(\(\) =>/],
    [good, undefined, /toolConformance\(\(\) =>/],
    [good, { inputs: undefined }, /`inputs`.*toolConformance\(\(\) =>/],
    [good, { inputs: { good: [] } }, /`inputs\.good` is a list of arguments that the tool takes, objects, at least one: toolConformance\(/],
    [good, { inputs: { good: [5] } }, /`inputs\.good` is a list/],
    [good, { inputs: { good: [{}], failing: ['x'] } }, /`inputs\.failing` is a list/],
    [good, { ...NOTE_OPTIONS, secrets: 'x' }, /`secrets` is a list of texts/],
    [good, { ...NOTE_OPTIONS, secrets: [''] }, /`secrets` is a list of texts, none of them empty/],
    [good, { inputs: { good: [{}], slow: [{}] } }, /slow.*good, bad, failing, long/],
    [good, { ...NOTE_OPTIONS, skip: { 'abort.erly': 'a slip' } }, /no case or group `abort\.erly` to skip\. It has .*abort\.early/],
    [good, { ...NOTE_OPTIONS, skip: { constructor: 'a slip' } }, /no case or group `constructor`/],
    [good, { ...NOTE_OPTIONS, skip: { abort: '' } }, /no reason for `abort`.*skip: \{/],
    [good, { ...NOTE_OPTIONS, settleWithinMs: 0 }, /`settleWithinMs` is 0/],
    [good, { ...NOTE_OPTIONS, maxResultCharacters: Number.NaN }, /`maxResultCharacters` is NaN/],
    [good, { ...NOTE_OPTIONS, maxResultChars: 1 }, /maxResultChars/],
  ])('refuses %j with %j', (createTool, options, message) => {
    expect(() => toolConformance(createTool as CreateTool, options as ToolConformanceOptions)).toThrow(TypeError);
    expect(() => toolConformance(createTool as CreateTool, options as ToolConformanceOptions)).toThrow(message);
  });
});

describe('a case', () => {
  const plain: CreateTool = () => ({ tool: recordingTool({ replay: 'safe' }) });
  const only: ToolConformanceOptions = { inputs: { good: [{}] } };

  it.each<[ToolConformanceCaseId, RegExp]>([
    ['input.bad', /needs arguments in `inputs\.bad`: give some, or skip the case with a reason/],
    ['failure.message', /needs arguments in `inputs\.failing`/],
    ['abort.before', /needs arguments in `inputs\.long`/],
    ['abort.early', /needs arguments in `inputs\.long`/],
    ['abort.running', /needs arguments in `inputs\.long`/],
    ['abort.left', /needs arguments in `inputs\.long`/],
    ['abort.others', /needs arguments in `inputs\.long`/],
    ['replay.safe', /needs `state\(\)` of what createTool gives: offer it, or skip the case with a reason/],
    ['secrets.results', /needs the texts in `secrets` that nobody may see/],
    ['secrets.failures', /needs arguments in `inputs\.failing`/],
  ])('%s does not pass unlooked at', async (id, message) => {
    expect(await failureOf(find(id, plain, { ...only, inputs: { good: [{}], bad: undefined, failing: undefined, long: undefined }, secrets: [] }))).toMatch(message);
  });

  it.each<ToolConformanceCaseId>(['abort.running', 'abort.left', 'abort.others'])('%s does not pass with a call that ends by itself', async (id) => {
    expect(await failureOf(find(id, plain, { inputs: { good: [{}], long: [{}] } }))).toMatch(/had ended|ended another/);
  });

  it('closes what it made, whether it passes or fails, and aborts what still runs', async () => {
    let [open, running] = [0, 0];
    const counted = (): ToolUnderTest => {
      open += 1;
      const made = notes(({ execute }) => ({
        execute: async (input, context) => {
          running += 1;
          return Promise.resolve(execute(input, context)).finally(() => (running -= 1));
        },
      }));
      return { ...made(), close: () => void (open -= 1) };
    };

    expect(await failureOf(find('abort.others', counted))).toBeUndefined();
    expect([open, running]).toStrictEqual([0, 0]);
    expect(await failureOf(find('result.content', () => ({ ...counted(), tool: recordingTool({ execute: () => 1 as never }) })))).toMatch(/it gave 1/);
    expect([open, running]).toStrictEqual([0, 0]);
  });

  it.each<[string, CreateTool, RegExp]>([
    ['createTool throws', () => Promise.reject(new Error('no folder')), /no folder/],
    ['createTool hangs', () => new Promise(() => {}), /createTool did not settle within 100 ms/],
    ['execute hangs', notes(() => ({ execute: () => new Promise(() => {}) })), /execute with \{"title":"groceries"\} did not settle within 100 ms/],
    ['parseInput hangs', notes(() => ({ parseInput: () => new Promise(() => {}) })), /`parseInput` did not settle/],
    ['close throws', () => ({ ...good(), close: () => Promise.reject(new Error('still open')) }), /still open/],
    ['close hangs', () => ({ ...good(), close: () => new Promise<void>(() => {}) }), /`close` did not settle/],
  ])('says so when %s', async (_what, createTool, message) => {
    expect(await failureOf(find('result.content', createTool, { settleWithinMs: 100 }))).toMatch(message);
  });
});
