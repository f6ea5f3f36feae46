/** withFallback as a black box: which failures move a request on, what each model is asked, and whose reply and tokens are whose. */
import { describe, expect, it, vi } from 'vitest';
import type { LLMError} from 'turnloop';
import { type LLM, type LLMErrorKind, type LLMErrorOptions, NO_USAGE, type Usage } from 'turnloop';
import { createBudget, createCircuitBreaker, type FallbackOptions, withBudget, withCircuitBreaker, withFallback, withRetry, withThinkTags, withTimeouts } from 'turnloop/policies';
import { cutStream, hanging, repeat, type Script, scriptedLLM, type ScriptedLLMOptions, thinking, toolCall, echoTool, virtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';
import { runScripted } from './run-scripted.ts';

const USAGE: Usage = { ...NO_USAGE, inputTokens: 12, outputTokens: 3 };

function first(replies: Script, options: ScriptedLLMOptions = {}) {
  return scriptedLLM(replies, { provider: 'acme', modelId: 'acme-1', ...options });
}

function second(replies: Script, options: ScriptedLLMOptions = {}) {
  return scriptedLLM(replies, { provider: 'bolt', modelId: 'bolt-1', ...options });
}

/** Asks the models once. */
async function ask(llms: readonly LLM[], options?: FallbackOptions, parts?: Parameters<typeof startRequest>[2]) {
  const runtime = virtualRuntime();
  const asking = startRequest(withFallback(llms, options), runtime, parts);
  await runtime.settle(asking.response).catch(() => undefined);
  return asking;
}

describe('withFallback', () => {
  it('C3 asks the first, and nobody else as long as it answers', async () => {
    const [one, two] = [first(['Hello']), second([])];

    const { outcome, response, failed, notices } = await ask([one, two]);

    expect(outcome).toBe('Hello');
    expect(await response).toMatchObject({ provider: 'acme', modelId: 'acme-1' });
    expect([failed, notices, two.callCount]).toStrictEqual([[], [], 0]);
  });

  it('C3 asks the next after a failure that it tells of, and names who answered', async () => {
    const [one, two] = [first([failure('overloaded')]), second(['Hello'])];

    const { outcome, response, failed, notices } = await ask([one, two]);

    expect(outcome).toBe('Hello');
    expect(await response).toMatchObject({ provider: 'bolt', modelId: 'bolt-1' });
    expect(failed).toMatchObject([{ error: { kind: 'overloaded', modelId: 'acme-1' } }]);
    expect(failed[0]?.delayMs).toBe(undefined);
    expect(notices).toStrictEqual([
      {
        name: 'fallback.moved',
        data: { from: { provider: 'acme', modelId: 'acme-1' }, to: { provider: 'bolt', modelId: 'bolt-1' }, kind: 'overloaded' },
      },
    ]);
  });

  it('C3 begins with the first again at the next request', async () => {
    const [one, two] = [first([failure('server'), 'first']), second(['second'])];
    const llm = withFallback([one, two]);
    const runtime = virtualRuntime();

    const askings = [startRequest(llm, runtime)];
    await runtime.flush();
    askings.push(startRequest(llm, runtime));
    await runtime.flush();

    expect(askings.map(({ outcome }) => outcome)).toStrictEqual(['second', 'first']);
  });

  it('C3 throws what the last one threw, under its own name, and tells of it to nobody', async () => {
    const [one, two, three] = [first([failure('overloaded')]), second([failure('server')]), second([failure('network')], { modelId: 'bolt-2' })];

    const { outcome, failed } = await ask([one, two, three]);

    expect(outcome).toMatchObject({ kind: 'network', modelId: 'bolt-2' });
    expect(failed.map(({ error }) => [error.kind, error.modelId])).toStrictEqual([
      ['overloaded', 'acme-1'],
      ['server', 'bolt-1'],
    ]);
  });

  it.each<LLMErrorKind>(['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response'])(
    'C3 moves on from a failure of kind %s',
    async (kind) => {
      const { outcome } = await ask([first([failure(kind)]), second(['ok'])]);

      expect(outcome).toBe('ok');
    },
  );

  it.each<LLMErrorKind>([
    'auth',
    'permission',
    'not_found',
    'quota',
    'invalid_request',
    'invalid_history',
    'context_overflow',
    'request_too_large',
    'media_rejected',
    'content_filter',
    'refused',
    'aborted',
    'unknown',
  ])('C3 stays with a failure of kind %s', async (kind) => {
    const two = second([]);

    const { outcome, failed } = await ask([first([failure(kind)]), two]);

    expect(outcome).toMatchObject({ kind });
    expect([failed, two.callCount]).toStrictEqual([[], 0]);
  });

  it('C2 C3 moves on from a circuit breaker that is open, at once', async () => {
    const breaker = createCircuitBreaker({ failures: 1, mode: 'fail' });
    const one = first([failure('server')]);
    const llms = [withCircuitBreaker(one, breaker), second(['ok', 'ok'])];

    await ask(llms);
    const { outcome, failed } = await ask(llms);

    expect(outcome).toBe('ok');
    expect(failed).toMatchObject([{ error: { code: 'circuit_open', modelId: 'acme-1' } }]);
    expect(one.callCount).toBe(1);
  });

  it.each<[string, Partial<LLMErrorOptions>]>([
    ['a budget', { stopReason: 'max_budget' }],
    ['any other decorator', {}],
  ])('C3 does not move on from a refusal by %s', async (_whose, options) => {
    const two = second([]);

    const { outcome } = await ask([first([failure('refused', options)]), two]);

    expect(outcome).toMatchObject({ kind: 'refused' });
    expect(two.callCount).toBe(0);
  });

  it.each<[string, LLMError, unknown]>([
    ['a kind it is told', failure('quota'), 'ok'],
    ['no other', failure('server'), expect.objectContaining({ kind: 'server' })],
    ['what a breaker refuses', failure('refused', { stopReason: 'circuit_breaker' }), 'ok'],
    ['what a breaker ends', failure('server', { stopReason: 'circuit_breaker' }), 'ok'],
  ])('C3 moves on with a list of kinds from %s', async (_what, error, expected) => {
    const { outcome } = await ask([first([error]), second(['ok'])], { on: ['quota'] });

    expect(outcome).toStrictEqual(expected);
  });

  it('C3 asks a function, for which undefined is the default', async () => {
    const on = vi.fn(({ kind }: LLMError) => (kind === 'quota' ? true : kind === 'server' ? false : undefined));

    const outcomes = [failure('quota'), failure('server'), failure('network'), failure('auth')].map(async (error) => {
      const { outcome } = await ask([first([error]), second(['ok'])], { on });
      return outcome;
    });

    expect(await Promise.all(outcomes)).toMatchObject(['ok', { kind: 'server' }, 'ok', { kind: 'auth' }]);
    expect(on.mock.calls.map(([{ modelId }]) => modelId)).toStrictEqual(Array(4).fill('acme-1'));
  });

  it('C3 ends with what such a function throws, and with what the failed model cost and left', async () => {
    const error = new Error('I do not know.');
    const partial = [{ type: 'text', text: 'Hi' } as const];

    const { outcome } = await ask([first([failure('server', { usage: USAGE, partial })]), second([])], {
      on: () => {
        throw error;
      },
    });

    expect(outcome).toMatchObject({ kind: 'unknown', message: 'I do not know.', cause: error, usage: USAGE, partial, modelId: 'acme-1' });
  });

  it('C3 keeps the kind of an error of a model that such a function throws', async () => {
    const { outcome } = await ask([first([failure('server', { usage: USAGE })]), second([])], {
      on: () => {
        throw failure('quota', { usage: NO_USAGE });
      },
    });

    expect(outcome).toMatchObject({ kind: 'quota', usage: NO_USAGE });
  });

  it.each<[string, () => unknown]>([
    ['a promise: it has to answer at once', () => Promise.resolve(false)],
    ['a promise: it has to answer at once', () => Promise.reject(new Error('Nobody may see me.'))],
    ['null', () => null],
    ['a value of type string', () => 'no'],
    ['a value of type number', () => 0],
  ])('C3 ends with a TypeError when such a function returns %s', async (what, on) => {
    const two = second([]);
    const options: object = { on };

    const { outcome, failed } = await ask([first([failure('server', { usage: USAGE })]), two], options);

    expect(outcome).toMatchObject({ kind: 'unknown', usage: USAGE, modelId: 'acme-1', cause: expect.any(TypeError) });
    expect(outcome).toMatchObject({
      message: `withFallback: \`on\` must return true, false or undefined, and returned ${what}. For example: withFallback(llms, { on: (error) => (error.kind === 'quota' ? true : undefined) }).`,
    });
    expect([failed, two.callCount]).toStrictEqual([[], 0]);
  });

  it('C3 throws what is no error of a model as it is', async () => {
    const error = new Error('A bug.');

    expect((await ask([first([error]), second([])])).outcome).toBe(error);
  });

  it('C3 moves on from such a throw too where it is told to, and says whose it was', async () => {
    const { outcome, failed } = await ask([first([new Error('A bug.')]), second(['ok'])], { on: ['unknown'] });

    expect(outcome).toBe('ok');
    expect(failed).toMatchObject([{ error: { kind: 'unknown', modelId: 'acme-1', message: 'A bug.' } }]);
  });

  it('C3 gives retries of each model its own name', async () => {
    const retried = withRetry(second([failure('server', { usage: USAGE }), 'ok']));

    const { failed } = await ask([withRetry(first([repeat(failure('overloaded'), 2)]), { maxAttempts: 2 }), retried]);

    expect(failed.map(({ error, delayMs }) => [error.kind, error.modelId, delayMs !== undefined])).toStrictEqual([
      ['overloaded', 'acme-1', true],
      ['overloaded', 'acme-1', false],
      ['server', 'bolt-1', true],
    ]);
    expect(failed[2]?.error.usage).toStrictEqual(USAGE);
  });

  it('C3 keeps the names that a fallback inside gave', async () => {
    const inner = withFallback([second([failure('server')]), second(['ok'], { provider: 'core', modelId: 'core-1' })]);

    const { response, failed } = await ask([first([failure('server')]), inner]);

    expect(await response).toMatchObject({ provider: 'core', modelId: 'core-1' });
    expect(failed.map(({ error }) => error.modelId)).toStrictEqual(['acme-1', 'bolt-1']);
  });

  it('C3 waits until the failure is told, and fails with what telling it fails with', async () => {
    const error = new Error('The record could not be written.');
    const two = second([]);

    const { outcome } = await ask([first([failure('server')]), two], {}, { onAttemptFailed: () => Promise.reject(error) });

    expect([outcome, two.callCount]).toStrictEqual([error, 0]);
  });

  it('C3 C2 waits for a circuit breaker outside that opens before the next model is asked', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    const [one, two] = [first([failure('server')]), second(['ok'])];
    let tell = (): void => undefined;
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const asking = startRequest(withCircuitBreaker(withFallback([one, two]), breaker), runtime, { onAttemptFailed: () => told });
    await runtime.flush();
    const opener = startRequest(withCircuitBreaker(first([failure('server')]), breaker), runtime);
    await runtime.flush();
    opener.controller.abort();

    tell();
    await runtime.advance(59_999);
    expect([breaker.state, two.callCount]).toStrictEqual(['open', 0]);
    await runtime.advance(1);

    expect([asking.outcome, breaker.state]).toStrictEqual(['ok', 'closed']);
  });
});

describe('withFallback, aborted', () => {
  it('C3 RT3 asks nobody else after an abort, whatever the failure', async () => {
    const runtime = virtualRuntime();
    const two = second([]);
    const asking = startRequest(withFallback([first([hanging()]), two]), runtime);
    await runtime.flush();

    asking.controller.abort();
    await runtime.flush();

    expect(asking.outcome).toMatchObject({ name: 'AbortError' });
    expect([two.callCount, asking.failed]).toStrictEqual([0, []]);
    expect(asking.controller.listenerCount).toBe(0);
  });

  it.each(['told', 'noticed'])('C3 RT3 asks nobody else when it is aborted while the move is %s', async (when) => {
    const controller = new AbortController();
    const runtime = virtualRuntime();
    const two = second([]);
    const abort = (): void => {
      controller.abort(new Error('Enough.'));
    };

    const notify = vi.fn(() => {
      if (when === 'noticed') abort();
    });
    const onAttemptFailed = (): void => {
      if (when === 'told') abort();
    };
    const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime, notify };

    const { outcome } = await ask([first([failure('server')]), two], {}, { signal: controller.signal, scope, onAttemptFailed });

    expect(notify).toHaveBeenCalledTimes(when === 'noticed' ? 1 : 0);
    expect([outcome, two.callCount]).toStrictEqual([controller.signal.reason, 0]);
  });
});

describe('withFallback, a reply that broke off', () => {
  it('BR-010 C3 shows the text of the model that answered only, under its name', async () => {
    const { result, listener, transcript } = await runScripted({
      replies: [cutStream({ content: 'Hello world', chunk: 7 }, { deltaCount: 1 })],
      decorate: (llm) => withFallback([llm, second([{ content: 'Good day', chunk: 5 }])]),
    });

    expect(result.text).toBe('Good day');
    expect(listener.of('text.delta').map(({ attempt, text }) => [attempt, text])).toStrictEqual([
      [1, 'Hello w'],
      [2, 'Good '],
      [2, 'day'],
    ]);
    expect(listener.of('step.retrying')).toMatchObject([{ attempt: 1, modelId: 'scripted-model', nextModelId: 'bolt-1' }]);
    expect(transcript.buildMessages().at(-1)).toMatchObject({ source: { provider: 'bolt', modelId: 'bolt-1' } });
  });

  it('C3 stays with it in mode beforeFirstDelta, but moves on if nothing had come', async () => {
    const options: FallbackOptions = { mode: 'beforeFirstDelta' };

    const begun = await ask([first([cutStream('Hello', { deltaCount: 1 })]), second([])], options);
    const silent = await ask([first([failure('network')]), second(['ok'])], options);

    expect(begun.outcome).toMatchObject({ kind: 'network', modelId: 'acme-1' });
    expect(silent.outcome).toBe('ok');
  });

  it('C3 passes no late fragment of the model that failed on', async () => {
    let late = (): void => undefined;
    const one: LLM = {
      provider: 'acme',
      modelId: 'acme-1',
      systemPrompt: '',
      chat: async ({ onDelta }) => {
        late = () => onDelta?.({ type: 'text', text: 'late' });
        throw failure('network');
      },
    };
    const two = second([
      () => {
        late();
        return 'ok';
      },
    ]);

    const { deltas } = await ask([one, two]);

    expect(deltas).toStrictEqual([{ type: 'text', text: 'ok' }]);
  });

  it('C3 keeps all that another model had finished, signatures included, under its own name', async () => {
    const partial = [
      { type: 'thinking', text: 'Hm.', signature: 'bolt-signature' },
      { type: 'provider', provider: 'bolt', data: {} },
      { type: 'text', text: 'Hel' },
    ] as const;
    const source = { provider: 'bolt', modelId: 'bolt-1' };

    const { result, transcript, listener } = await runScripted({
      replies: [failure('server')],
      decorate: (llm) => withFallback([llm, second([failure('network', { partial })])]),
    });

    expect(result).toMatchObject({ error: source, message: { source } });
    expect(transcript.buildMessages().at(-1)).toMatchObject({ status: 'interrupted', source, content: partial });
    expect(listener.of('content.part')[0]?.reply).toMatchObject({ source, interrupted: 'fatal_error' });
  });

  it.each<[string, (llm: LLM) => LLM]>([
    ['a retry', (llm) => withRetry(llm, { maxAttempts: 1 })],
    ['a circuit breaker', (llm) => withCircuitBreaker(llm, createCircuitBreaker({ failures: 1, mode: 'fail' }))],
    ['think tags', (llm) => withThinkTags(llm)],
    ['timeouts', (llm) => withTimeouts(llm)],
    ['a fallback', (llm) => withFallback([llm])],
  ])('C3 names the model that failed also through %s', async (_what, around) => {
    const partial = [{ type: 'text', text: '<think>Hm.</think>Hel' } as const];
    const runtime = virtualRuntime();
    const llm = around(withFallback([first([failure('server')]), second([failure('network', { partial })])]));

    const asking = startRequest(llm, runtime);
    await runtime.settle(asking.response).catch(() => undefined);

    expect(asking.outcome).toMatchObject({ provider: 'bolt', modelId: 'bolt-1' });
  });

  it('C3 names it also when it was out of time, with what it had finished', async () => {
    const partial = [{ type: 'thinking', text: 'Hm.', signature: 'bolt-signature' }] as const;
    const runtime = virtualRuntime();
    const two: LLM = {
      provider: 'bolt',
      modelId: 'bolt-1',
      systemPrompt: '',
      chat: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(failure('aborted', { partial }));
          });
        }),
    };

    const asking = startRequest(withTimeouts(withFallback([first([failure('server')]), two])), runtime);
    await runtime.settle(asking.response).catch(() => undefined);

    expect(asking.outcome).toMatchObject({ kind: 'timeout', provider: 'bolt', modelId: 'bolt-1', partial });
  });
});

describe('withFallback in a turn', () => {
  it('C3 records the tokens of each attempt under the model that spent them', async () => {
    const spent = (inputTokens: number): Usage => ({ ...NO_USAGE, inputTokens });
    const two = second([failure('server', { usage: spent(2) }), { content: [toolCall('echo', { text: 'hi' })], usage: spent(3) }]);
    const { result, listener } = await runScripted({
      replies: [failure('server', { usage: spent(1) }), { content: 'done', usage: spent(4) }],
      decorate: (llm) => withFallback([llm, withRetry(two)]),
      tools: [echoTool()],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, usage: { inputTokens: 10 } });
    expect(listener.of('usage').map(({ modelId, purpose, usage }) => [modelId, purpose, usage.inputTokens])).toStrictEqual([
      ['scripted-model', 'attempt', 1],
      ['bolt-1', 'attempt', 2],
      ['bolt-1', 'step', 3],
      ['scripted-model', 'step', 4],
    ]);
  });

  it('C3 names the model whose tokens a budget around it tells of when it refuses the next one', async () => {
    const runtime = virtualRuntime();
    const usage: Usage = { ...NO_USAGE, inputTokens: 900 };
    const inner = withFallback([first([failure('server')]), second([failure('server', { usage })]), second([])]);
    const asking = startRequest(withBudget(inner, createBudget({ maxTokens: 901 })), runtime);

    await runtime.settle(asking.response).catch(() => undefined);

    expect(asking.outcome).toMatchObject({ code: 'max_budget', usage, provider: 'bolt', modelId: 'bolt-1' });
  });

  it('C3 records what a reply of nothing but thinking cost under the model that gave it', async () => {
    const { result, listener } = await runScripted({
      replies: [failure('server')],
      decorate: (llm) => withThinkTags(withFallback([llm, second([{ content: '<think>Hm.</think>', usage: USAGE }])])),
    });

    expect(result.error).toMatchObject({ kind: 'malformed_response', provider: 'bolt', modelId: 'bolt-1' });
    expect(listener.of('usage').map(({ modelId, usage }) => [modelId, usage])).toStrictEqual([['bolt-1', USAGE]]);
  });

  it('C3 records what a last failure cost under the model that failed', async () => {
    const { listener } = await runScripted({
      replies: [failure('server')],
      decorate: (llm) => withFallback([llm, second([failure('server', { usage: USAGE })])]),
    });

    expect(listener.of('usage').map(({ modelId, usage }) => [modelId, usage])).toStrictEqual([['bolt-1', USAGE]]);
  });

  it('C3 sends each model\'s reply back under its own source, so that signatures go to whom they belong', async () => {
    const two = second([[thinking('Hm.', { signature: 'bolt-signature' }), toolCall('echo', { text: 'hi' })]]);
    const { llm } = await runScripted({
      replies: [failure('server'), 'done'],
      decorate: (inner) => withFallback([inner, two]),
      tools: [echoTool()],
    });

    expect(llm.requests[1]?.messages.find(({ role }) => role === 'assistant')).toMatchObject({ source: { provider: 'bolt', modelId: 'bolt-1' } });
  });
});

describe('withFallback, metadata', () => {
  it('C3 has the first model\'s names and system prompt', () => {
    const { provider, modelId, systemPrompt } = withFallback([first([], { systemPrompt: 'Be kind.' }), second([])]);

    expect([provider, modelId, systemPrompt]).toStrictEqual(['acme', 'acme-1', 'Be kind.']);
  });

  it('C3 has the smallest known window and limits of all, and the media types of the first', () => {
    const { capabilities } = withFallback([
      first([], { capabilities: { contextWindow: 200_000, mediaTypes: ['image/'] } }),
      second([], { capabilities: { contextWindow: 128_000, maxInputTokens: 100_000, mediaTypes: [] } }),
      second([], { capabilities: { maxOutputTokens: 8_192, contextWindow: 400_000 } }),
      second([]),
    ]);

    expect(capabilities).toStrictEqual({ contextWindow: 128_000, maxInputTokens: 100_000, maxOutputTokens: 8_192, mediaTypes: ['image/'] });
  });

  it('C3 has no capabilities where none are known', () => {
    expect(withFallback([first([]), second([])]).capabilities).toBe(undefined);
  });

  it.each([
    ['its own', 'first', 'second', 'first', 'second'],
    ['the request\'s, having none of its own', 'first', '', 'first', 'first'],
    ['the request\'s, which is not the first model\'s', 'first', 'second', 'special', 'special'],
  ])('C3 sends the next model %s', async (_which, ofFirst, ofSecond, systemPrompt, sent) => {
    const two = second(['ok'], { systemPrompt: ofSecond });

    await ask([first([failure('server')], { systemPrompt: ofFirst }), two], {}, { systemPrompt });

    expect(two.requests[0]?.systemPrompt).toBe(sent);
  });

  it('C3 does not make models stream for which nobody listens', async () => {
    const two = second(['ok']);

    await ask([first([failure('server')]), two], {}, { onDelta: undefined });

    expect(two.requests[0]?.onDelta).toBe(undefined);
  });
});

describe('withFallback, misused', () => {
  it.each<[string, unknown]>([
    ['withFallback needs a list of models', []],
    ['withFallback needs a list of models', scriptedLLM([])],
    ['withFallback needs an LLM', [scriptedLLM([]), 'gpt-5']],
    ['withFallback needs a list of models', [undefined]],
  ])('C3 refuses models with "%s" and a correct example', (message, llms) => {
    expect(() => withFallback(llms as LLM[])).toThrow(TypeError);
    expect(() => withFallback(llms as LLM[])).toThrow(message);
    expect(() => withFallback(llms as LLM[])).toThrow('For example: withFallback([');
  });

  it.each<[string, object]>([
    ['withFallback: `on` must be a list of kinds', { on: 'server' }],
    ['withFallback: `on` has "serve", which is no kind of error', { on: ['serve'] }],
    ['withFallback: `on` has a value of type number', { on: [429] }],
    ["`mode` must be 'always' or 'beforeFirstDelta'", { mode: 'never' }],
    ['withFallback has no option `kinds`', { kinds: [] }],
  ])('C3 refuses options with "%s" and a correct example', (message, options) => {
    expect(() => withFallback([scriptedLLM([])], options)).toThrow(TypeError);
    expect(() => withFallback([scriptedLLM([])], options)).toThrow(message);
    expect(() => withFallback([scriptedLLM([])], options)).toThrow('For example: withFallback(');
  });
});
