/**
 * createConcurrencyLimit as a black box: how many run at once, in which order, and what an abort leaves behind.
 */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { decorateLLM, defineTool, type LLM, type LLMRequest, type LLMResponse, NO_USAGE, type Tool, type ToolContext } from 'turnloop';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import { recordingTool, scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';
import { runScripted } from './run-scripted.ts';

const { flush } = virtualRuntime();

interface Gate {
  readonly name: string;
  open(): void;
  fail(error: Error): void;
}

/** A model whose requests answer when their gate is opened. The system prompt names the request. */
function gatedLLM() {
  const started: Gate[] = [];
  const llm: LLM = {
    ...scriptedLLM([]),
    provider: 'gated',
    modelId: 'gated-model',
    systemPrompt: '',
    chat: ({ systemPrompt: name }) =>
      new Promise<LLMResponse>((resolve, reject) => {
        started.push({
          name,
          open: () => resolve({ content: [{ type: 'text', text: name }], stopReason: 'end_turn', usage: NO_USAGE }),
          fail: reject,
        });
      }),
  };
  return { llm, started, names: () => started.map(({ name }) => name) };
}

function request(name: string, signal = new AbortController().signal): LLMRequest {
  return { systemPrompt: name, messages: [], tools: [], signal };
}

describe('createConcurrencyLimit', () => {
  it('C10 runs at most as many requests as it has places, in the order in which they came', async () => {
    const { llm, started, names } = gatedLLM();
    const limit = createConcurrencyLimit(2);
    const limited = limit.llm(llm);

    const responses = ['a', 'b', 'c', 'd'].map((name) => limited.chat(request(name)));
    await flush();
    expect(names()).toStrictEqual(['a', 'b']);
    expect({ active: limit.active, waiting: limit.waiting }).toStrictEqual({ active: 2, waiting: 2 });
    started[1]?.open();
    await flush();
    expect(names()).toStrictEqual(['a', 'b', 'c']);
    started[0]?.open();
    await flush();
    started[2]?.open();
    started[3]?.open();

    const texts = (await Promise.all(responses)).map(({ content }) => content);
    expect(texts).toStrictEqual(['a', 'b', 'c', 'd'].map((text) => [{ type: 'text', text }]));
    await flush();
    expect({ active: limit.active, waiting: limit.waiting }).toStrictEqual({ active: 0, waiting: 0 });
  });

  it('C10 shares its places among models and tools of any number of agents', async () => {
    const { llm, started, names } = gatedLLM();
    const limit = createConcurrencyLimit(1);
    const ran: string[] = [];
    const tool = limit.tool(namingTool(ran));

    const first = limit.llm(llm).chat(request('a'));
    const call = tool.execute({ name: 'tool' }, contextWith(new AbortController().signal));
    const second = limit.llm(llm).chat(request('b'));
    await flush();
    expect({ requests: names(), ran }).toStrictEqual({ requests: ['a'], ran: [] });
    started[0]?.open();
    await flush();
    expect({ requests: names(), ran }).toStrictEqual({ requests: ['a', 'b'], ran: ['tool'] });
    started[1]?.open();

    await Promise.all([first, call, second]);
  });

  it('frees the place of a request that fails, and passes the failure on', async () => {
    const { llm, started, names } = gatedLLM();
    const limited = createConcurrencyLimit(1).llm(llm);
    const error = new Error('Broken.');

    const first = limited.chat(request('a'));
    const second = limited.chat(request('b'));
    await flush();
    started[0]?.fail(error);

    await expect(first).rejects.toBe(error);
    await flush();
    expect(names()).toStrictEqual(['a', 'b']);
    started[1]?.open();
    await second;
  });

  it('frees the place of a call that throws at once', async () => {
    const limit = createConcurrencyLimit(1);
    const tool = limit.tool(
      defineTool({
        name: 'broken',
        description: 'Throws.',
        input: { type: 'object' },
        execute: () => {
          throw new Error('Broken.');
        },
      }),
    );

    await expect(tool.execute({}, contextWith(new AbortController().signal))).rejects.toThrow('Broken.');
    await flush();

    expect(limit.active).toBe(0);
  });

  it('C10 takes whoever is aborted while waiting out at once, and never runs it', async () => {
    const { llm, started, names } = gatedLLM();
    const limit = createConcurrencyLimit(1);
    const limited = limit.llm(llm);
    const controller = new AbortController();
    const first = limited.chat(request('a'));
    const aborted = limited.chat(request('b', controller.signal));
    const last = limited.chat(request('c'));

    await flush();
    const reason = new Error('Enough.');
    controller.abort(reason);

    await expect(aborted).rejects.toBe(reason);
    expect({ active: limit.active, waiting: limit.waiting }).toStrictEqual({ active: 1, waiting: 1 });
    expect(getEventListeners(controller.signal, 'abort')).toStrictEqual([]);
    started[0]?.open();
    await flush();
    expect(names()).toStrictEqual(['a', 'c']);
    started[1]?.open();
    await Promise.all([first, last]);
  });

  it('refuses a request that was aborted before, without taking a place', async () => {
    const { llm, names } = gatedLLM();
    const limit = createConcurrencyLimit(1);
    const signal = AbortSignal.abort(new Error('Enough.'));

    await expect(limit.llm(llm).chat(request('a', signal))).rejects.toThrow('Enough.');

    await flush();
    expect(names()).toStrictEqual([]);
    expect({ active: limit.active, waiting: limit.waiting }).toStrictEqual({ active: 0, waiting: 0 });
  });

  it('keeps the place of a running request until it settles, also when it is aborted', async () => {
    const { llm, started } = gatedLLM();
    const limit = createConcurrencyLimit(1);
    const controller = new AbortController();
    const running = limit.llm(llm).chat(request('a', controller.signal));
    await flush();

    controller.abort();
    await flush();
    expect(limit.active).toBe(1);
    started[0]?.open();
    await running;
    await flush();

    expect(limit.active).toBe(0);
    expect(getEventListeners(controller.signal, 'abort')).toStrictEqual([]);
  });

  it('keeps the members of a tool, and calls them on the tool itself', async () => {
    class Counter implements Tool<{ readonly by: number }> {
      readonly name = 'count';
      readonly description = 'Counts.';
      readonly inputSchema = { type: 'object' };
      readonly readOnly = true;
      readonly timeoutMs = 1000;
      #count = 0;
      parseInput(input: unknown): { readonly by: number } {
        return { by: this.#count + Number(input) };
      }
      accesses(): readonly [] {
        return [];
      }
      describe({ by }: { readonly by: number }): string {
        return `count from ${this.#count} by ${by}`;
      }
      execute({ by }: { readonly by: number }): string {
        this.#count += by;
        return String(this.#count);
      }
    }

    const tool = createConcurrencyLimit(1).tool(new Counter());

    expect(await tool.execute({ by: 2 }, contextWith(new AbortController().signal))).toBe('2');
    expect(tool.describe?.({ by: 3 })).toBe('count from 2 by 3');
    expect(tool.parseInput?.(1)).toStrictEqual({ by: 3 });
    expect(tool.accesses?.({ by: 1 })).toStrictEqual([]);
    expect(tool).toMatchObject({ name: 'count', description: 'Counts.', inputSchema: { type: 'object' }, readOnly: true, timeoutMs: 1000 });
  });

  it('leaves out what a tool does not have', () => {
    const tool = createConcurrencyLimit(1).tool(namingTool([]));

    expect('parseInput' in tool || 'accesses' in tool || 'describe' in tool).toBe(false);
  });

  it.each([0, -1, 1.5, NaN, Infinity])('refuses a limit of %s and shows a correct call', (max) => {
    const make = (): unknown => createConcurrencyLimit(max);

    expect(make).toThrow(TypeError);
    expect(make).toThrow('createConcurrencyLimit(4)');
  });

  it('refuses what is not a model or a tool and shows a correct call', () => {
    const limit = createConcurrencyLimit(1);

    expect(() => void Reflect.apply(limit.llm, limit, [])).toThrow(/limit\.llm needs an LLM.*not undefined\..*limit\.llm\(openAIChat/);
    expect(() => void Reflect.apply(limit.tool, limit, [[]])).toThrow(/limit\.tool needs a tool.*not a list\..*limit\.tool\(search\)/);
  });

  it('C10 limits the requests of several turns together', async () => {
    const limit = createConcurrencyLimit(2);
    let running = 0;
    let peak = 0;
    const runs = Array.from({ length: 5 }, () =>
      runScripted({
        replies: [toolCall('look'), 'ok'],
        tools: [recordingTool({ name: 'look' })],
        decorate: (llm) =>
          limit.llm(
            decorateLLM(llm, async (asked) => {
              running += 1;
              peak = Math.max(peak, running);
              await flush();
              running -= 1;
              return llm.chat(asked);
            }),
          ),
      }),
    );

    const results = (await Promise.all(runs)).map(({ result }) => result.text);

    expect(results).toStrictEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    expect(peak).toBe(2);
  });

  it('C10 never runs more than its places, starts in order, and settles all, whatever finishes, fails or is aborted when', async () => {
    const entry = fc.record({ fails: fc.boolean(), abortAt: fc.option(fc.nat(10), { nil: undefined }) });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 4 }), fc.array(entry, { maxLength: 12 }), async (scheduler, max, entries) => {
        const limit = createConcurrencyLimit(max);
        const startedOrder: number[] = [];
        let running = 0;
        let peak = 0;
        const finish = scheduler.scheduleFunction(async (index: number) => index);
        const llm = limit.llm({
          ...scriptedLLM([]),
          chat: async ({ systemPrompt }) => {
            const index = Number(systemPrompt);
            startedOrder.push(index);
            running += 1;
            peak = Math.max(peak, running);
            await finish(index);
            running -= 1;
            if (entries[index]?.fails === true) throw new Error('Broken.');
            return { content: [], stopReason: 'end_turn', usage: NO_USAGE };
          },
        });
        const controllers = entries.map(() => new AbortController());
        entries.forEach(({ abortAt }, index) => {
          if (abortAt !== undefined) void scheduler.schedule(Promise.resolve(), `abort ${index}`).then(() => controllers[index]?.abort());
        });

        const settled = await scheduler.waitFor(
          Promise.allSettled(entries.map((_, index) => llm.chat(request(String(index), controllers[index]?.signal)))),
        );
        await flush();

        expect(settled).toHaveLength(entries.length);
        expect(peak).toBeLessThanOrEqual(max);
        expect(startedOrder).toStrictEqual([...startedOrder].sort((left, right) => left - right));
        expect({ active: limit.active, waiting: limit.waiting }).toStrictEqual({ active: 0, waiting: 0 });
        entries.forEach(({ abortAt }, index) => {
          if (abortAt === undefined) expect(startedOrder).toContain(index);
        });
      }),
    );
  });
});

function namingTool(ran: string[]): Tool<{ readonly name: string }> {
  return {
    name: 'record',
    description: 'Records its name.',
    inputSchema: { type: 'object' },
    execute: ({ name }) => {
      ran.push(name);
      return name;
    },
  };
}

/** A context of which only the signal matters. */
function contextWith(signal: AbortSignal): ToolContext {
  return {
    turnId: 'turn_1',
    step: 1,
    toolCallId: 'call_1',
    idempotencyKey: 'call_1',
    inputText: '{}',
    signal,
    progress: () => undefined,
    llm: scriptedLLM([]),
    host: undefined,
    runtime: virtualRuntime(),
    forward: () => undefined,
    recordUsage: async () => undefined,
  };
}
