/**
 * The law of a budget, in any world of steps, retries, fallbacks, summaries, sub-agents, aborts and several turns at once:
 * it is exceeded by the output of one request at most, and by what the prompts of the requests under way at the end were
 * under-estimated by. Models count prompts by a rule of their own, up to a tenth off what the estimator says at first.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  defineTool,
  type LLM,
  LLMError,
  type LLMRequest,
  type LLMResponse,
  runTurn,
  sleep,
  type ToolContext,
  toUsage,
  totalTokens,
  type TurnResult,
  type Usage,
  userMessage,
} from 'turnloop';
import { createTokenEstimator } from 'turnloop/context';
import { type Budget, type BudgetEstimator, createBudget, createPrices, maxBudget, maxSteps, withBudget, withFallback, withRetry } from 'turnloop/policies';
import { seededRandom, toolCall, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';

const RUNS = Number(process.env['FC_RUNS'] ?? 200);

interface World {
  readonly seed: number;
  readonly maxTokens: number;
  /** Whether the budget is one of money. Each token then costs 1. */
  readonly money: boolean;
  readonly cap: number;
  readonly turns: number;
  readonly order: keyof typeof ORDERS;
  readonly stops: boolean;
  readonly faults: boolean;
  readonly aborts: boolean;
}

const ORDERS = {
  'retry(budget)': (a, _b, pay) => withRetry(pay(a)),
  'budget(retry)': (a, _b, pay) => pay(withRetry(a)),
  'fallback(retry(budget))': (a, b, pay) => withFallback([withRetry(pay(a), { maxAttempts: 2 }), withRetry(pay(b), { maxAttempts: 2 })]),
  'budget(fallback(retry))': (a, b, pay) => pay(withFallback([withRetry(a, { maxAttempts: 2 }), b])),
  'budget(retry(budget))': (a, _b, pay) => pay(withRetry(pay(a))),
} satisfies Record<string, (a: LLM, b: LLM, pay: (llm: LLM) => LLM) => LLM>;

const worlds: fc.Arbitrary<World> = fc.record({
  seed: fc.integer(),
  maxTokens: fc.integer({ min: 0, max: 6000 }),
  money: fc.boolean(),
  cap: fc.integer({ min: 60, max: 600 }),
  turns: fc.integer({ min: 1, max: 4 }),
  order: fc.constantFrom(...(Object.keys(ORDERS) as (keyof typeof ORDERS)[])),
  stops: fc.boolean(),
  faults: fc.boolean(),
  aborts: fc.boolean(),
});

/** One request that a model got, as its provider sees it. */
interface Sent {
  /** The prompt, by the estimate that the budget went by. */
  readonly estimate: number;
  readonly spentBefore: number;
  readonly underWay: readonly Sent[];
  /** What it really cost. */
  input: number;
  output: number;
  /** What of it anybody told. */
  told: Usage | undefined;
  /** By how much an estimate of its output may be off. */
  outputOff: number;
  isOver: boolean;
}

interface Stage {
  readonly world: World;
  readonly random: () => number;
  readonly runtime: VirtualRuntime;
  readonly budget: Budget;
  readonly sent: Sent[];
  /** What the budget's estimator said last of a request, by its history. */
  readonly estimates: WeakMap<object, number>;
}

const price = { input: 1e6, output: 1e6 };
const prices = createPrices({ a: price, b: price });
const plain = createTokenEstimator();

function createModel({ world, random, runtime, budget, sent, estimates }: Stage, modelId: string): LLM {
  const llm: LLM = { provider: 'fake', modelId, systemPrompt: 'You are a model that counts.', capabilities: { maxOutputTokens: world.cap }, chat };

  async function chat(request: LLMRequest): Promise<LLMResponse> {
    const base = plain.estimateRequest(request, llm);
    const now: Sent = {
      estimate: estimates.get(request.messages) ?? NaN,
      spentBefore: budget.spent.tokens,
      underWay: sent.filter(({ isOver }) => !isOver),
      input: Math.round(base * (0.9 + 0.2 * random())),
      output: 0,
      told: undefined,
      outputOff: 0,
      isOver: false,
    };
    sent.push(now);
    try {
      return await answer(request, now);
    } finally {
      now.isOver = true;
    }
  }

  async function answer({ signal, onDelta, tools }: LLMRequest, now: Sent): Promise<LLMResponse> {
    const wait = (ms: number): Promise<void> => sleep(Math.floor(ms * random()), { runtime, signal });
    const fault = world.faults ? random() : 1;
    await wait(2000);
    if (fault < 0.1) {
      now.input = 0;
      throw new LLMError({ kind: 'overloaded', message: 'Overloaded.' });
    }
    // With its call, and by any estimate, below the most that a reply may have.
    const text = 'word '.repeat(Math.floor(random() * world.cap * 0.6));
    const length = text.length / 5;
    const told = (): Usage => {
      now.told = toUsage({ inputTokens: Math.floor(now.input / 2), cacheReadTokens: Math.ceil(now.input / 2), outputTokens: now.output });
      return now.told;
    };
    const ends = fault < 0.4 ? Math.floor(length * random()) : length;
    let streamed = '';
    // In four pieces, and cut off where it fails.
    for (const until of [0.25, 0.5, 0.75, 1].map((share) => Math.floor(share * ends))) {
      const piece = text.slice(streamed.length, until * 5);
      if (piece !== '') onDelta?.({ type: 'text', text: piece });
      streamed += piece;
      now.output = until;
      now.outputOff = Math.abs(until - plain.estimateText(streamed));
      await wait(1000);
    }
    if (fault < 0.2) throw new LLMError({ kind: 'server', message: 'Told.', usage: told() });
    if (fault < 0.3) throw new LLMError({ kind: 'timeout', message: 'Timed out.' });
    // With nothing streamed nobody can know that the prompt was read.
    if (fault < 0.4 && streamed === '') now.input = 0;
    if (fault < 0.4) throw new LLMError({ kind: 'network', message: 'Cut.' });
    const usage = fault < 0.5 ? toUsage({}) : told();
    const call = toolCall(random() < 0.2 ? 'dispatch' : 'look', { at: Math.floor(random() * 1e6) });
    const goesOn = tools.length > 0 && random() < 0.8;
    if (fault < 0.5) now.outputOff += plain.estimateText(call.inputText);
    return { content: [{ type: 'text', text: `${text}.` }, ...(goesOn ? [call] : [])], stopReason: goesOn ? 'tool_use' : 'end_turn', usage };
  }

  return llm;
}

async function play(world: World) {
  const runtime = virtualRuntime();
  const random = seededRandom(world.seed);
  const learning = createTokenEstimator();
  const estimates = new WeakMap<object, number>();
  const estimator: BudgetEstimator = {
    ...learning,
    estimateRequest: (request, model) => {
      const tokens = learning.estimateRequest(request, model);
      estimates.set(request.messages, Math.ceil(tokens));
      return tokens;
    },
  };
  const budget = createBudget({ estimator, ...(world.money ? { maxCost: world.maxTokens, prices } : { maxTokens: world.maxTokens }) });
  const stage: Stage = { world, random, runtime, budget, sent: [], estimates };
  const pay = (llm: LLM): LLM => withBudget(llm, budget);
  const llm = ORDERS[world.order](createModel(stage, 'a'), createModel(stage, 'b'), pay);

  const turn = (depth: number, signal?: AbortSignal): Promise<TurnResult> => {
    const transcript = createTranscript();
    const control = createTurnControl();
    if (world.aborts && random() < 0.5) runtime.setTimer(Math.floor(random() * 20_000), () => control.abort(new Error('Enough.')));
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input: { type: 'object' },
      readOnly: true,
      execute: () => 'seen '.repeat(Math.floor(random() * 200)),
    });
    const dispatch = defineTool({
      name: 'dispatch',
      description: 'Asks another agent.',
      input: { type: 'object' },
      readOnly: true,
      execute: async (_input: unknown, context: ToolContext) => {
        const result = await turn(depth + 1, context.signal);
        await context.recordUsage(result.usage, llm.modelId);
        return result.text;
      },
    });
    return runTurn({
      llm,
      input: [userMessage('Find it.')],
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({ record: transcript.record, emit: () => undefined }),
      tools: depth === 0 ? [look, dispatch] : [look],
      stopWhen: [maxSteps(depth === 0 ? 8 : 3), ...(world.stops ? [maxBudget(budget)] : [])],
      hooks: [
        {
          name: 'summary',
          beforeStep: async (context) => {
            if (random() < 0.8) return;
            const { llm: model, step, turnId, notify } = context;
            const record = async (usage: Usage | undefined): Promise<void> => {
              if (usage !== undefined) await context.record({ type: 'usage', purpose: 'compaction', modelId: model.modelId, usage });
            };
            const reply = await model
              .chat({
                systemPrompt: 'Sum up.',
                messages: await context.messages(),
                tools: [],
                signal: context.signal,
                onAttemptFailed: ({ error }) => record(error.usage),
                scope: { turnId, step, stepId: 'summary', runtime, notify },
              })
              .catch((error: unknown) => error as LLMError);
            await record(reply.usage);
          },
        },
      ],
      runtime,
      control,
      signal,
    });
  };

  const results = await runtime.settle(Promise.all(Array.from({ length: world.turns }, () => turn(0))));
  await runtime.runUntilIdle();
  return { ...stage, results };
}

const sum = (amounts: readonly number[]): number => amounts.reduce((total, amount) => total + amount, 0);

it('C4 law: a budget is exceeded by one output at most, through steps, retries, fallbacks, summaries, sub-agents, aborts and turns at once', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      const { budget, sent, results, runtime } = await play(world);
      const counted = budget.spent.tokens;
      const off = (one: Sent): number => Math.max(0, one.input - one.estimate) + (one.told === undefined ? one.outputOff : 0) + 1;

      // Refused before, not after: whoever was sent had room for its prompt.
      for (const one of sent) expect(one.spentBefore + one.estimate).toBeLessThanOrEqual(world.maxTokens);

      const last = sent.at(-1);
      if (last !== undefined) {
        const unsure = sum([...last.underWay, last].map(off));
        expect(counted).toBeLessThanOrEqual(world.maxTokens + last.output + unsure);
      }

      // What the providers will bill is what was counted, but for estimates where they told nothing.
      const untold = sent.filter(({ told, input, output }) => told === undefined && input + output > 0);
      expect(sum(sent.map(({ input, output }) => input + output))).toBeLessThanOrEqual(counted + sum(untold.map(off)));
      // All that was told is in the books.
      expect(counted - budget.spent.estimatedTokens).toBe(sum(sent.map(({ told }) => (told === undefined ? 0 : totalTokens(told)))));
      if (!world.aborts) {
        expect(sum(results.map(({ usage }) => totalTokens(usage)))).toBe(counted - budget.spent.estimatedTokens);
      }

      for (const { stopReason, error } of results) {
        expect(['end_turn', 'max_steps', 'max_budget', 'aborted', 'fatal_error']).toContain(stopReason);
        if (stopReason === 'fatal_error') expect(error).toMatchObject({ retryable: true });
      }
      expect(runtime.pendingTimers).toBe(0);
    }),
    { numRuns: RUNS },
  );
});
