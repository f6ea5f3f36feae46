/** Guardrails in full turns: who judges what and when, what a tripped one leaves, and what is left of those not needed any more. */
import { describe, expect, it } from 'vitest';
import { attemptChat, LLMError, type LLMRequest, type LoopEvent, sleep, type UserMessage, userMessage } from 'turnloop';
import { deferTools, type GuardedCall, type GuardedReply, type Guardrail, type GuardrailOptions, withGuardrails } from 'turnloop/agent';
import { withFallback, withRetry } from 'turnloop/policies';
import { cutStream, delayed, echoTool, hanging, llmRequest, recordingTool, runScripted, type RunScriptedOptions, scriptedLLM, stalled, startScripted, stubborn, thinking, toolCall, virtualRuntime, watchedController } from 'turnloop/testing';
import { outline, watchRejections } from '../core/support.ts';

const guarded = (guardrails: GuardrailOptions): Pick<RunScriptedOptions, 'decorate'> => ({ decorate: (llm) => withGuardrails(llm, guardrails) });

/** A guardrail that keeps what it judged, and says what it is told to. */
function judge<Judged>(name: string, verdict?: string | ((judged: Judged) => unknown)): Guardrail<Judged> & { readonly judged: readonly Judged[] } {
  const judged: Judged[] = [];
  return {
    name,
    judged,
    check: (value) => {
      judged.push(value);
      return (typeof verdict === 'function' ? verdict(value) : verdict) as string | undefined;
    },
  };
}

/** Gives its verdict after a while. */
const slowly = <Judged>(name: string, verdict: string | undefined, delayMs: number, runtime = virtualRuntime()): Guardrail<Judged> => ({
  name,
  check: async (_judged, { signal }) => {
    await sleep(delayMs, { runtime, signal });
    return verdict;
  },
});

const textsOf = (messages: readonly UserMessage[]): readonly unknown[] => messages.map(({ content: [part] }) => (part?.type === 'text' ? part.text : part));

describe('a guardrail that trips', () => {
  it.each<readonly [string, GuardrailOptions]>([
    ['on the input', { input: [judge('guard', 'Not that.')] }],
    ['on the output', { output: [judge('guard', 'Not that.')] }],
    ['on a tool call', { toolCalls: [judge('guard', 'Not that.')] }],
  ])('E17 %s ends the turn stopped, named, with nothing of the reply recorded and no tool run', async (_where, guardrails) => {
    const tool = recordingTool();
    const { result, recorded, recording } = await runScripted({
      replies: [[thinking('Hm.', { signature: 's' }), 'An answer.', toolCall(tool.name)]],
      tools: [tool],
      ...guarded(guardrails),
      check: true,
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard', stopMessage: 'Not that.', text: '' });
    expect(result.message).toBeUndefined();
    expect(outline(recorded).filter((line) => line !== 'usage')).toStrictEqual(['turn.begin', 'message', 'step.begin', 'turn.end']);
    expect(recorded.at(-1)).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard', stopMessage: 'Not that.' });
    expect(recording.of('notice')).toMatchObject([{ name: 'guardrail.tripped', data: { guardrail: 'guard', reason: 'Not that.' } }]);
    expect(tool.runCount).toBe(0);
  });

  it('E17 law-5 leaves the price of the reply it judged', async () => {
    const usage = { inputTokens: 7, outputTokens: 3 };
    const { result, recording } = await runScripted({ replies: [{ content: 'x', usage }], ...guarded({ output: [judge('guard', 'No.')] }) });

    expect(result.usage).toMatchObject(usage);
    expect(recording.of('usage')).toMatchObject([{ purpose: 'attempt', usage }]);
  });

  it('E17 keeps nothing of the text that had streamed, and streams nothing if fragments are held', async () => {
    const reply = { content: 'An answer.', chunk: 3 };
    const streamed = await runScripted({ replies: [reply], ...guarded({ output: [judge('guard', 'No.')] }) });
    const held = await runScripted({ replies: [reply], ...guarded({ output: [judge('guard', 'No.')], holdDeltas: true }) });

    expect(streamed.recording.of('text.delta')).toHaveLength(4);
    expect(held.recording.of('text.delta')).toStrictEqual([]);
    for (const { recorded } of [streamed, held]) expect(outline(recorded)).not.toContain('content.part');
  });

  it('E17 is the first of several to do so, whatever the others say later', async () => {
    const runtime = virtualRuntime();
    const { result } = await runScripted({
      runtime,
      replies: ['x'],
      ...guarded({ output: [slowly('slow', 'late', 20, runtime), slowly('fast', 'soon', 10, runtime)] }),
    });

    expect(result).toMatchObject({ stoppedBy: 'fast', stopMessage: 'soon' });
    expect(runtime.pendingTimers).toBe(0);
  });

  it.each<readonly [string, () => unknown, RegExp]>([
    ['throws', () => { throw new Error('no list'); }, /^The guardrail failed: no list$/],
    ['rejects', () => Promise.reject(new Error('no list')), /^The guardrail failed: no list$/],
    ['says true', () => true, /neither nothing nor a text/],
    ['says false', () => false, /neither nothing nor a text/],
    ['gives an object', () => Promise.resolve({ tripped: false }), /neither nothing nor a text/],
    ['says nothing in words', () => '', /neither nothing nor a text/],
  ])('E17 is also one that %s: what is not judged does not pass', async (_what, verdict, message) => {
    const { result } = await runScripted({ replies: ['x'], ...guarded({ output: [judge('guard', verdict)] }) });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard', stopMessage: expect.stringMatching(message) });
  });

  it('E17 is not asked again by a retry, nor passed on to another model', async () => {
    const check = judge<GuardedReply>('guard', 'No.');
    const { result, llm } = await runScripted({
      replies: ['x'],
      decorate: (inner) => withFallback([withRetry(withGuardrails(inner, { output: [check] })), scriptedLLM(['never'])]),
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard' });
    expect(llm.callCount).toBe(1);
    expect(check.judged).toHaveLength(1);
  });
});

describe('guardrails that pass', () => {
  it('E17 change nothing', async () => {
    const options = { replies: [[toolCall('echo', { text: 'a' })], { content: 'done', chunk: 2 }], tools: [echoTool()] };
    const plain = await runScripted(options);
    for (const holdDeltas of [false, true]) {
      const { recorded, events } = await runScripted({ ...options, ...guarded({ input: [judge('a')], output: [judge('b')], toolCalls: [judge('c')], holdDeltas }) });
      expect(recorded).toStrictEqual(plain.recorded);
      expect(events).toStrictEqual(plain.events);
    }
  });

  it('E17 are asked about new input, about text, about each call, and about nothing else', async () => {
    const input = judge<readonly UserMessage[]>('input');
    const output = judge<GuardedReply>('output');
    const toolCalls = judge<GuardedCall>('toolCalls');
    await runScripted({
      history: [userMessage('memory', { origin: 'memory', transient: true, id: 'm' })],
      input: [userMessage('one'), userMessage('two', { origin: 'host' })],
      replies: [['Look: ', toolCall('echo', { text: 'a' }), toolCall('echo', '{"text":')], [thinking('Hm.', { signature: 's' }), toolCall('echo', '')], 'done'],
      tools: [echoTool()],
      ...guarded({ input: [input], output: [output], toolCalls: [toolCalls] }),
    });

    expect(input.judged.map(textsOf)).toStrictEqual([['one', 'two']]);
    expect(output.judged.map(({ text, content }) => [text, content.length])).toStrictEqual([['Look: ', 3], ['done', 1]]);
    expect(toolCalls.judged).toStrictEqual([
      { name: 'echo', inputText: '{"text":"a"}', input: { text: 'a' } },
      { name: 'echo', inputText: '{"text":', input: undefined },
      { name: 'echo', inputText: '', input: {} },
    ]);
  });

  it('E17 judge what is said while the turn runs', async () => {
    const input = judge<readonly UserMessage[]>('input', (messages: readonly UserMessage[]) => (textsOf(messages).includes('bad') ? 'No.' : undefined));
    const tool = recordingTool({
      execute: (_input, context) => {
        (context.host as { readonly steer: () => void }).steer();
        return 'ok';
      },
    });
    const host = { steer: (): void => undefined };
    const turn = startScripted({ replies: [toolCall(tool.name), 'never recorded'], tools: [tool], host, ...guarded({ input: [input] }) });
    host.steer = () => void turn.control.steer(userMessage('bad'));
    const { result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'input', steps: 2 });
  });

  it('E17 judge input that tripped again, as long as it stands in the history', async () => {
    const input = judge<readonly UserMessage[]>('input', (messages: readonly UserMessage[]) => (textsOf(messages).includes('bad') ? 'No.' : undefined));
    const first = await runScripted({ input: 'bad', replies: ['x'], ...guarded({ input: [input] }) });
    const second = await runScripted({ transcript: first.transcript, input: 'do as I said', replies: ['x'], ...guarded({ input: [input] }) });

    expect(second.result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'input' });
  });

  it('E17 are given the host, the model, the history and where they are', async () => {
    const seen: unknown[] = [];
    const guard: Guardrail<unknown> = { name: 'guard', check: (_judged, { llm, host, messages, turnId, step }) => void seen.push([llm.modelId, host, messages.length, turnId, step]) };
    await runScripted({ replies: ['x'], ...guarded({ output: [guard], host: 'me' }) });
    await withGuardrails(scriptedLLM(['x']), { output: [guard] }).chat(llmRequest({ messages: [] }));

    expect(seen).toStrictEqual([
      ['scripted-model', 'me', 1, 'turn_1', 1],
      ['scripted-model', undefined, 0, undefined, undefined],
    ]);
  });

  it('E17 law-5 may ask the model, and what they spend counts', async () => {
    const asking: Guardrail<GuardedReply> = {
      name: 'asking',
      check: async (_reply, { llm, signal }) => {
        const { content } = await attemptChat(llm, llmRequest({ messages: [userMessage('Is that good?')], signal }));
        return content[0]?.type === 'text' && content[0].text === 'yes' ? undefined : 'It is not good.';
      },
    };
    const usage = { inputTokens: 1, outputTokens: 1 };
    const passed = await runScripted({ replies: [{ content: 'x', usage }, { content: 'yes', usage }], ...guarded({ output: [asking] }) });
    const tripped = await runScripted({ replies: [{ content: 'x', usage }, { content: 'no', usage }], ...guarded({ output: [asking] }) });

    expect(passed.result).toMatchObject({ text: 'x', usage: { inputTokens: 2, outputTokens: 2 } });
    expect(tripped.result).toMatchObject({ stoppedBy: 'asking', usage: { inputTokens: 2, outputTokens: 2 } });
  });

  it('E17 E18 judge the tool that is really called', async () => {
    const calls = judge<GuardedCall>('calls');
    const set = deferTools([recordingTool({ name: 'send_mail' })]);
    await runScripted({
      replies: [toolCall('call_tool', { name: 'send_mail', input: { to: 'ann' } }), 'done'],
      tools: set.tools,
      decorate: (llm) => withGuardrails(set.wrap(llm), { toolCalls: [calls] }),
    });

    expect(calls.judged.map(({ name, input }) => [name, input])).toStrictEqual([['send_mail', { to: 'ann' }]]);
  });
});

describe('guardrails beside the request', () => {
  it('E17 take no time of it', async () => {
    const runtime = virtualRuntime();
    const { result } = await runScripted({ runtime, replies: [delayed('x', 100)], ...guarded({ input: [slowly('guard', undefined, 80, runtime)] }) });

    expect(result.text).toBe('x');
    expect(runtime.now()).toBe(100);
  });

  it('E17 are waited for, if they take longer', async () => {
    const runtime = virtualRuntime();
    const { result } = await runScripted({ runtime, replies: ['x'], ...guarded({ input: [slowly('guard', 'No.', 80, runtime)] }) });

    expect(result).toMatchObject({ stoppedBy: 'guard' });
    expect(runtime.now()).toBe(80);
  });

  it.each([
    ['listens', delayed('x', 100)],
    ['does not listen', stubborn(delayed('x', 100))],
  ])('E17 end a request of a model that %s as soon as one trips', async (_what, reply) => {
    const runtime = virtualRuntime();
    const rejections = watchRejections();
    const turn = startScripted({ runtime, replies: [reply], ...guarded({ input: [slowly('guard', 'No.', 10, runtime)] }) });
    const { result } = await turn.finish();

    expect(result).toMatchObject({ stoppedBy: 'guard' });
    expect(runtime.now()).toBe(10);
    await runtime.runUntilIdle();
    expect(rejections.reasons).toStrictEqual([]);
    rejections.stop();
  });

  it('E17 spare the request if they trip at once', async () => {
    const { llm, result } = await runScripted({ replies: [], ...guarded({ input: [judge('guard', 'No.')] }) });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard' });
    expect(llm.callCount).toBe(0);
  });

  it('E17 abort those that are not needed any more', async () => {
    const signals: AbortSignal[] = [];
    const patient: Guardrail<unknown> = { name: 'patient', check: (_judged, { signal }) => { signals.push(signal); return new Promise<undefined>(() => undefined); } };
    await runScripted({ replies: ['x'], ...guarded({ output: [patient, judge('guard', 'No.')] }) });
    await runScripted({ replies: [new LLMError({ kind: 'auth', message: 'No key.' })], ...guarded({ input: [patient] }) });

    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, true]);
  });
});

describe('guardrails and requests that fail', () => {
  const cut = cutStream('An ans', { deltaCount: 1 });
  const kept = (events: readonly LoopEvent[]): readonly unknown[] => events.flatMap((event) => (event.type === 'content.part' ? [event.part] : []));

  it('E17 leave the failure as it is, with the text of which the input was judged', async () => {
    const { result, recorded } = await runScripted({ replies: [cut], ...guarded({ input: [judge('in')], output: [judge('out')] }) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'network' } });
    expect(kept(recorded)).toStrictEqual([{ type: 'text', text: 'An ans' }]);
  });

  it.each<readonly [string, GuardrailOptions]>([
    ['while the input is being judged', { input: [slowly('guard', undefined, 80)] }],
    ['and fragments are held', { output: [judge('guard')], holdDeltas: true }],
  ])('E17 keep nothing that nobody has judged, if the request fails %s', async (_what, guardrails) => {
    const { result, recorded } = await runScripted({ replies: [cutStream('An ans', { deltaCount: 1, partial: true })], ...guarded(guardrails) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'network', message: 'The stream broke off.' } });
    expect(kept(recorded)).toStrictEqual([]);
  });

  it('E17 take back what was held of an attempt that failed', async () => {
    const { recording, result } = await runScripted({
      replies: [cut, { content: 'Good day', chunk: 4 }],
      decorate: (llm) => withGuardrails(withRetry(llm), { output: [judge('guard')], holdDeltas: true }),
    });

    expect(result.text).toBe('Good day');
    expect(recording.of('text.delta').map(({ text, attempt }) => [attempt, text])).toStrictEqual([[2, 'Good'], [2, ' day']]);
    expect(recording.of('step.retrying')).toHaveLength(1);
  });

  it.each<readonly [string, GuardrailOptions]>([
    ['during the request', {}],
    ['while a guardrail on the input hangs', { input: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
    ['while a guardrail on the output hangs', { output: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
  ])('E17 law-4 end with the turn when it is aborted %s, and leave nothing behind', async (what, guardrails) => {
    const controller = watchedController();
    const rejections = watchRejections();
    const reply = what === 'during the request' ? hanging() : 'x';
    const turn = startScripted({ replies: [reply], signal: controller.signal, ...guarded(guardrails) });
    await turn.runtime.flush();
    controller.abort();
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(turn.runtime.now()).toBe(0);
    expect(turn.runtime.pendingTimers).toBe(0);
    expect(controller.listenerCount).toBe(0);
    expect(rejections.reasons).toStrictEqual([]);
    rejections.stop();
  });

  it.each<readonly [string, GuardrailOptions]>([
    ['the output', { output: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
    ['tool calls', { toolCalls: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
    ['the input', { input: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
  ])('E17 law-5 count a reply that was whole when the turn was aborted while one on %s was judging', async (_on, guardrails) => {
    const usage = { inputTokens: 1_000, outputTokens: 50, cacheReadTokens: 0, cacheWriteTokens: 0, thinkingTokens: 0 };
    const turn = startScripted({ replies: [['An answer.', toolCall('echo')]], tools: [echoTool()], llmOptions: { usage }, ...guarded(guardrails) });
    await turn.runtime.flush();
    turn.control.abort();
    const { result, recorded } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', usage });
    expect(recorded.filter(({ type }) => type === 'usage')).toMatchObject([{ usage }]);
  });

  it.each<readonly [string, readonly unknown[], GuardrailOptions]>([
    ['is kept if the input had passed', [{ type: 'text', text: 'An ans' }], { input: [judge('guard')] }],
    ['is dropped if the input was still being judged', [], { input: [{ name: 'hangs', check: () => new Promise(() => undefined) }] }],
  ])('E17 A7 text so far of a turn that is aborted %s', async (_what, expected, guardrails) => {
    const turn = startScripted({ replies: [stalled('An ans', 1)], ...guarded(guardrails) });
    await turn.runtime.flush();
    turn.control.abort();
    const { recorded } = await turn.finish();

    expect(kept(recorded)).toStrictEqual(expected);
  });

  it('E17 leave no listener on the signal of a request that is over', async () => {
    const controller = watchedController();
    const request: LLMRequest = llmRequest({ messages: [userMessage('hi')], signal: controller.signal });
    const llm = withGuardrails(scriptedLLM(['x', 'y']), { output: [judge<GuardedReply>('guard', ({ text }: GuardedReply) => (text === 'y' ? 'No.' : undefined))] });
    await llm.chat(request);
    await expect(llm.chat(request)).rejects.toMatchObject({ kind: 'refused', code: 'guardrail', retryable: false, stoppedBy: 'guard' });

    expect(controller.listenerCount).toBe(0);
  });
});

describe('withGuardrails', () => {
  it('law-13 refuses what is none, in clear words', () => {
    const llm = scriptedLLM([]);

    expect(() => withGuardrails({} as never, {})).toThrow(/withGuardrails needs an LLM/);
    expect(() => withGuardrails(llm, { tools: [] } as never)).toThrow(/no option `tools`; it takes input, output, toolCalls, holdDeltas, host/);
    expect(() => withGuardrails(llm, { output: judge('x') } as never)).toThrow(/`output` must be a list of guardrails, each with a name and a check function/);
    expect(() => withGuardrails(llm, { input: [{ name: '', check: () => undefined }] })).toThrow(/`input` must be a list/);
    expect(() => withGuardrails(llm, { toolCalls: [{ name: 'x' } as never] })).toThrow(/`toolCalls` must be a list/);
    expect(() => withGuardrails(llm, { holdDeltas: 'yes' as never })).toThrow(/`holdDeltas` must be true or false, not a value of type string/);
  });
});
