/**
 * Decorators of a model alone, and each pair of them in both orders, the same one twice included: what comes of a request
 * is what comes of the bare model, and nothing stays behind.
 */
import { describe, expect, it } from 'vitest';
import { attemptChat, decorateLLM, isLLMError, type LLM, type LLMDelta, type LLMResponse, NO_USAGE } from 'turnloop';
import {
  createBudget,
  createCircuitBreaker,
  createRateLimit,
  withBudget,
  withCircuitBreaker,
  withFallback,
  withRateLimit,
  withRetry,
  withThinkTags,
  withTimeouts,
} from 'turnloop/policies';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import { cutStream, delayed, hanging, repeat, type Script, scriptedLLM, stubborn, thinking, toolCall, virtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';

type Decorate = (llm: LLM) => LLM;

const ATTEMPTS = 2;
const CAPABILITIES = { contextWindow: 200_000, maxOutputTokens: 8_192, mediaTypes: ['image/'] };

/** Makes each decorator, with what it shares (a limit, a budget, a breaker) the same each time it is used. */
const DECORATORS: readonly (readonly [name: string, create: () => Decorate])[] = [
  ['withRetry', () => (llm) => withRetry(llm, { maxAttempts: ATTEMPTS })],
  ['withThinkTags', () => (llm) => withThinkTags(llm)],
  ['withTimeouts', () => (llm) => withTimeouts(llm)],
  ['withFallback', () => (llm) => withFallback([llm])],
  [
    'withCircuitBreaker',
    () => {
      const breaker = createCircuitBreaker();
      return (llm) => withCircuitBreaker(llm, breaker);
    },
  ],
  [
    'withRateLimit',
    () => {
      const limit = createRateLimit({ requestsPerMinute: 60, tokensPerMinute: 1_000_000 });
      return (llm) => withRateLimit(llm, limit);
    },
  ],
  [
    'withBudget',
    () => {
      const budget = createBudget({ maxTokens: 1_000_000 });
      return (llm) => withBudget(llm, budget);
    },
  ],
  ['limit.llm', () => createConcurrencyLimit(1).llm],
];

interface Stack {
  readonly name: string;
  readonly build: () => Decorate;
  /** Attempts that a failing model is asked for. */
  readonly attempts: number;
}

function stackOf(names: readonly string[]): Stack {
  return {
    name: names.join(' around '),
    build: () => {
      const made = new Map(DECORATORS.filter(([name]) => names.includes(name)).map(([name, create]) => [name, create()]));
      return (llm) => names.reduceRight((inner, name) => made.get(name)?.(inner) ?? inner, llm);
    },
    attempts: ATTEMPTS ** names.filter((name) => name === 'withRetry').length,
  };
}

const NAMES = DECORATORS.map(([name]) => name);
const STACKS: readonly Stack[] = [...NAMES.map((name) => stackOf([name])), ...NAMES.flatMap((outer) => NAMES.map((inner) => stackOf([outer, inner])))];

interface Model {
  readonly name: string;
  create(): LLM;
  readonly abortAtMs?: number;
  /** Whether it is asked again by a retry. */
  readonly fails: boolean;
}

function scripted(replies: Script): LLM {
  const options = { provider: 'acme', modelId: 'acme-1', systemPrompt: 'Be kind.', capabilities: CAPABILITIES, chunk: 4 };
  return scriptedLLM(replies, { ...options, usage: { ...NO_USAGE, inputTokens: 10, outputTokens: 5 } });
}

const MODELS: readonly Model[] = [
  {
    name: 'answers',
    fails: false,
    create: () => scripted([[thinking('Hm.', { signature: 's' }), 'Hello world', toolCall('echo', { text: 'hi' })]]),
  },
  { name: 'answers slowly, without streaming', fails: false, create: () => scripted([delayed({ content: 'Hello world', deltaCount: 0 }, 30_000)]) },
  { name: 'streams, then fails', fails: true, create: () => scripted([repeat(cutStream('Hello world', { deltaCount: 2, partial: true }))]) },
  {
    name: 'streams, then fails for good, and tells what it cost',
    fails: false,
    create: () => scripted([cutStream('Hello world', { deltaCount: 2, error: failure('quota', { usage: { ...NO_USAGE, inputTokens: 10 } }) })]),
  },
  { name: 'answers nothing', fails: true, create: () => scripted([repeat({ content: [] })]) },
  {
    name: 'throws synchronously',
    fails: true,
    create: () =>
      throwing(() => {
        throw failure('server', { status: 503 });
      }),
  },
  {
    name: 'throws what is no error of a model',
    fails: false,
    create: () =>
      throwing(() => {
        throw new TypeError('A bug.');
      }),
  },
  { name: 'answers late, heedless of the abort', fails: false, abortAtMs: 10, create: () => scripted([stubborn(delayed('Hello world', 1_000))]) },
  { name: 'never settles, heedless of the abort', fails: false, abortAtMs: 10, create: () => scripted([stubborn(hanging())]) },
  { name: 'ends when it is aborted', fails: false, abortAtMs: 10, create: () => scripted([hanging()]) },
  { name: 'is not asked, being aborted before', fails: false, abortAtMs: 0, create: () => scripted([]) },
];

/** A model that throws before there is a promise. */
function throwing(chat: () => never): LLM {
  return { provider: 'acme', modelId: 'acme-1', systemPrompt: 'Be kind.', capabilities: CAPABILITIES, chat };
}

interface Came {
  readonly outcome: unknown;
  /** What is shown to somebody who takes back what failed attempts streamed. */
  readonly view: readonly LLMDelta[];
  /** What failed attempts told of. */
  readonly failures: readonly string[];
  readonly asked: number;
  readonly leftBehind: { readonly timers: number; readonly listeners: number };
}

/** Asks a model as the loop does. */
async function ask(model: Model, decorate: Decorate = (llm) => llm): Promise<Came> {
  const runtime = virtualRuntime();
  let asked = 0;
  const bare = model.create();
  const counted = decorateLLM(bare, (request) => {
    asked += 1;
    return bare.chat(request);
  });
  const llm = decorate(counted);
  const view: LLMDelta[] = [];
  const failures: string[] = [];
  const came: { outcome: unknown } = { outcome: 'nothing yet' };
  const loop = decorateLLM(llm, (request) => attemptChat(llm, request));
  const controller = new AbortController();
  if (model.abortAtMs === 0) controller.abort(new Error('Enough.'));
  const asking = startRequest(loop, runtime, {
    ...(model.abortAtMs === 0 && { signal: controller.signal }),
    onDelta: (delta) => view.push(delta),
    onAttemptFailed: ({ error }) => {
      view.length = 0;
      failures.push(`${error.kind} ${error.code}`);
    },
  });
  asking.response.then(
    ({ content, stopReason, usage }: LLMResponse) => {
      came.outcome = { content, stopReason, usage };
    },
    (thrown: unknown) => {
      came.outcome = isLLMError(thrown) ? pick(thrown) : thrown;
    },
  );
  if (model.abortAtMs !== undefined) {
    await runtime.advance(model.abortAtMs);
    asking.controller.abort(new Error('Enough.'));
  }
  await runtime.runUntilIdle();
  return { outcome: came.outcome, view, failures, asked, leftBehind: { timers: runtime.pendingTimers, listeners: asking.controller.listenerCount } };
}

function pick({ kind, code, message, status, retryable, usage, partial }: ReturnType<typeof failure>): object {
  return { kind, code, message, status, retryable, usage, partial };
}

describe.each(MODELS)('a model that $name', (model) => {
  it.each(STACKS)('C1 C2 C3 does the same in $name', async ({ build, attempts }) => {
    const bare = await ask(model);

    const { outcome, view, failures, asked, leftBehind } = await ask(model, build());

    expect(outcome).toStrictEqual(bare.outcome);
    expect(view).toStrictEqual(bare.view);
    // What is aborted before it is sent need not be.
    expect(model.abortAtMs === 0 ? bare.asked : asked).toBe(model.fails ? attempts : bare.asked);
    expect(failures).toHaveLength(model.fails ? attempts - 1 : 0);
    expect(leftBehind).toStrictEqual({ timers: 0, listeners: 0 });
  });
});

describe.each(STACKS)('$name', ({ build }) => {
  it('C1 C2 C3 says of the model what the model says of itself, each time it is asked', () => {
    const model = { provider: 'acme', modelId: 'acme-1', systemPrompt: 'Be kind.', capabilities: CAPABILITIES, chat: scripted([]).chat };
    const decorated = build()(model);
    const told = (): object => {
      const { provider, modelId, systemPrompt, capabilities } = decorated;
      return { provider, modelId, systemPrompt, capabilities };
    };
    const { chat: _chat, ...own } = model;
    expect(told()).toStrictEqual(own);

    model.modelId = 'acme-2';
    model.systemPrompt = 'Be brief.';
    model.capabilities = { ...CAPABILITIES, contextWindow: 1_000 };

    expect(told()).toStrictEqual({ ...own, modelId: 'acme-2', systemPrompt: 'Be brief.', capabilities: { ...CAPABILITIES, contextWindow: 1_000 } });
  });

  it('C1 C2 C3 serves two requests one after the other, and two at once', async () => {
    const runtime = virtualRuntime();
    const llm = build()(scripted([repeat('Hello')]));

    const one = startRequest(llm, runtime);
    await runtime.runUntilIdle();
    const more = [startRequest(llm, runtime), startRequest(llm, runtime)];
    await runtime.runUntilIdle();

    expect([one, ...more].map(({ outcome }) => outcome)).toStrictEqual(['Hello', 'Hello', 'Hello']);
    expect(runtime.pendingTimers).toBe(0);
  });
});
