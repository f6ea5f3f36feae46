// A scripted model plays its replies in order, keeps the contract of `LLM`, remembers what it was asked, and is loud
// about a reply or a request too many.
import { isLLMError, LLMError, NO_USAGE, toolMessage, userMessage, type LLMDelta, type LLMRequest } from 'turnloop';
import {
  cutStream,
  delayed,
  hanging,
  llmRequest,
  repeat,
  scriptedLLM,
  stalled,
  stubborn,
  thinking,
  toolCall,
  virtualRuntime,
  watchedController,
  type Reply,
  type ScriptedLLMOptions,
} from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

/** The fragments of a reply, and what became of it. */
async function stream(reply: Reply, parts: Partial<LLMRequest> = {}, chunk: number | readonly number[] = Infinity) {
  const deltas: LLMDelta[] = [];
  const chat = scriptedLLM([reply], { chunk }).chat(llmRequest({ onDelta: (delta) => void deltas.push(delta), ...parts }));
  return { deltas, outcome: await chat.catch((error: unknown) => error) };
}

describe('replies', () => {
  it('answers each request with the next reply', async () => {
    const llm = scriptedLLM([toolCall('echo', { text: 'hi' }), 'done'], { usage: {} });

    const first = await llm.chat(llmRequest());
    const second = await llm.chat(llmRequest());

    expect(first).toStrictEqual({
      content: [{ type: 'tool_call', name: 'echo', inputText: '{"text":"hi"}' }],
      stopReason: 'tool_use',
      usage: NO_USAGE,
    });
    expect(second).toStrictEqual({ content: [{ type: 'text', text: 'done' }], stopReason: 'end_turn', usage: NO_USAGE });
  });

  it('takes several parts, thinking and malformed arguments', async () => {
    const { outcome } = await stream([thinking('hm', { signature: 's' }), 'so', toolCall('a', '{"x":', { providerId: 'p' })]);

    expect(outcome).toMatchObject({
      content: [
        { type: 'thinking', text: 'hm', signature: 's' },
        { type: 'text', text: 'so' },
        { type: 'tool_call', name: 'a', inputText: '{"x":', providerId: 'p' },
      ],
    });
  });

  it('takes a whole reply object', async () => {
    const { outcome } = await stream({
      content: 'cut',
      stopReason: 'max_tokens',
      rawStopReason: 'length',
      usage: { outputTokens: 3 },
      responseId: 'r1',
      modelId: 'm2',
      provider: 'p2',
      timing: { totalMs: 5 },
    });

    expect(outcome).toStrictEqual({
      content: [{ type: 'text', text: 'cut' }],
      stopReason: 'max_tokens',
      rawStopReason: 'length',
      usage: { ...NO_USAGE, outputTokens: 3 },
      responseId: 'r1',
      modelId: 'm2',
      provider: 'p2',
      timing: { totalMs: 5 },
    });
  });

  it('asks a function with the request and the index of the call', async () => {
    const llm = scriptedLLM((request, index) => `${request.messages.length} ${index}`);

    await llm.chat(llmRequest());
    const second = await llm.chat(llmRequest());

    expect(second.content).toStrictEqual([{ type: 'text', text: '1 1' }]);
  });

  it('gives no part for empty text', async () => {
    const { deltas, outcome } = await stream('');

    expect(deltas).toStrictEqual([]);
    expect(outcome).toMatchObject({ content: [] });
  });

  it('throws an error reply as it is', async () => {
    const error = new LLMError({ kind: 'overloaded', message: 'busy' });
    const llm = scriptedLLM([error, 'ok']);

    await expect(llm.chat(llmRequest())).rejects.toBe(error);
    await expect(llm.chat(llmRequest())).resolves.toMatchObject({ stopReason: 'end_turn' });
  });

  it('throws anything that a reply object names as its error', async () => {
    const { outcome } = await stream({ content: [], error: 'just text' });

    expect(outcome).toBe('just text');
  });

  it('repeats a reply so many times, then goes on', async () => {
    const llm = scriptedLLM([repeat('again', 2), 'last']);

    const texts = [];
    for (let call = 0; call < 3; call += 1) texts.push((await llm.chat(llmRequest())).content);

    expect(texts).toStrictEqual(['again', 'again', 'last'].map((text) => [{ type: 'text', text }]));
    llm.assertDone();
  });
});

describe('streaming', () => {
  it('streams each part as one fragment by default', async () => {
    const { deltas } = await stream([thinking('hm'), 'hello', toolCall('a', { x: 1 }), toolCall('b', '', { providerId: 'p' })]);

    expect(deltas).toStrictEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'hello' },
      { type: 'tool_call', callIndex: 0, name: 'a', inputText: '{"x":1}' },
      { type: 'tool_call', callIndex: 1, name: 'b', providerId: 'p', inputText: '' },
    ]);
  });

  it('cuts parts into fragments of so many characters', async () => {
    const { deltas } = await stream(['hello', toolCall('a', '{"x":1}')], {}, 3);

    expect(deltas).toStrictEqual([
      { type: 'text', text: 'hel' },
      { type: 'text', text: 'lo' },
      { type: 'tool_call', callIndex: 0, name: 'a', inputText: '{"x' },
      { type: 'tool_call', callIndex: 0, inputText: '":1' },
      { type: 'tool_call', callIndex: 0, inputText: '}' },
    ]);
  });

  it('cuts by a list of sizes, the last for the rest', async () => {
    const { deltas } = await stream('abcdefg', {}, [1, 3, 2]);

    expect(deltas.map((delta) => (delta.type === 'text' ? delta.text : ''))).toStrictEqual(['a', 'bcd', 'ef', 'g']);
  });

  it('never cuts a character outside the basic plane', async () => {
    const { deltas } = await stream('a😀b', {}, 2);

    expect(deltas).toStrictEqual([
      { type: 'text', text: 'a😀' },
      { type: 'text', text: 'b' },
    ]);
  });

  it('streams the fragments that a reply names itself', async () => {
    const given: LLMDelta[] = [{ type: 'text', text: 'x' }];

    const { deltas } = await stream({ content: 'x', deltas: given });

    expect(deltas).toStrictEqual(given);
  });

  it('streams nothing when told not to', async () => {
    const deltas: LLMDelta[] = [];
    const llm = scriptedLLM(['hi'], { streams: false });

    await llm.chat(llmRequest({ onDelta: (delta) => void deltas.push(delta) }));

    expect(deltas).toStrictEqual([]);
  });
});

describe('usage', () => {
  it('derives tokens from sizes', async () => {
    const llm = scriptedLLM([[thinking('12345678'), '1234', toolCall('abcd', '{}..')]], { systemPrompt: '' });

    const { usage } = await llm.chat(llmRequest({ systemPrompt: '12345', messages: [userMessage('123456789')] }));

    expect(usage).toStrictEqual({ inputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 5, thinkingTokens: 2 });
  });

  it('counts the prefix shared with the request before as read from the cache', async () => {
    const llm = scriptedLLM(['a', 'b', 'c'], { cache: true });
    const messages = [userMessage('12345678')];

    const first = await llm.chat(llmRequest({ systemPrompt: '1234', messages }));
    const second = await llm.chat(llmRequest({ systemPrompt: '1234', messages: [...messages, userMessage('1234')] }));
    const third = await llm.chat(llmRequest({ systemPrompt: 'changed!', messages }));

    expect([first, second, third].map(({ usage }) => [usage.inputTokens, usage.cacheReadTokens])).toStrictEqual([
      [3, 0],
      [1, 3],
      [4, 0],
    ]);
  });

  it('takes fixed counters, or a function of the request and reply', async () => {
    const fixed = await scriptedLLM(['a'], { usage: { inputTokens: 7 } }).chat(llmRequest());
    const counted = await scriptedLLM(['a', 'b'], {
      usage: (request, content) => ({ inputTokens: request.messages.length, outputTokens: content.length }),
    }).chat(llmRequest());

    expect(fixed.usage).toStrictEqual({ ...NO_USAGE, inputTokens: 7 });
    expect(counted.usage).toStrictEqual({ ...NO_USAGE, inputTokens: 1, outputTokens: 1 });
  });
});

describe('requests', () => {
  it('keeps each request with a copy of its messages', async () => {
    const llm = scriptedLLM(['a']);
    const message = userMessage('hi');
    const messages = [message];

    await llm.chat(llmRequest({ messages, toolChoice: 'none' }));
    messages.push(userMessage('later'));

    expect(llm.requests[0]?.messages).toStrictEqual([message]);
    expect(llm.requests[0]?.messages[0]).toBe(message);
    expect(llm.requests[0]?.toolChoice).toBe('none');
    expect(llm.callCount).toBe(1);
  });

  it('keeps no request when told not to', async () => {
    const llm = scriptedLLM(['a'], { keepRequests: false });

    await llm.chat(llmRequest());

    expect(llm.requests).toStrictEqual([]);
    expect(llm.callCount).toBe(1);
  });

  it('fails for good and says what was asked when the script is over', async () => {
    const llm = scriptedLLM(['a']);
    await llm.chat(llmRequest());
    const result = toolMessage('the result', { toolCallId: 'call_1', name: 'echo' });
    const tool = { name: 'echo', description: '', inputSchema: { type: 'object' } };

    const error: unknown = await llm.chat(llmRequest({ messages: [result], tools: [tool] })).catch((thrown: unknown) => thrown);

    expect(isLLMError(error) && [error.kind, error.code, error.retryable]).toStrictEqual(['unknown', 'out_of_replies', false]);
    expect(String(error)).toContain(
      'there were 1, and this is request 2. It had 1 messages, the last from "tool": "the result"; tools: echo.',
    );
  });

  it('says so when replies are left or requests found none', async () => {
    const llm = scriptedLLM(['a', repeat('b', 2)]);

    expect(llm.repliesLeft).toBe(3);
    expect(() => llm.assertDone()).toThrow('3 of 3 replies were not asked for, after 0 requests');
    for (let call = 0; call < 3; call += 1) await llm.chat(llmRequest());
    llm.assertDone();
    await llm.chat(llmRequest()).catch(() => undefined);

    expect(() => llm.assertDone()).toThrow('1 of 4 requests found no reply; there were 3');
  });

  it('does not miss replies of an endless script', async () => {
    const llm = scriptedLLM(['a', repeat('b')]);

    await llm.chat(llmRequest());

    expect(llm.repliesLeft).toBe(0);
    llm.assertDone();
  });
});

describe('time and abort', () => {
  it('waits by the runtime of the request', async () => {
    const runtime = virtualRuntime();
    const scope = { turnId: 't', step: 1, stepId: 's', runtime, notify: () => {} };
    const times: number[] = [];
    const llm = scriptedLLM([{ content: 'abc', chunk: 1, delayMs: 100, deltaDelayMs: 10 }]);

    await runtime.settle(llm.chat(llmRequest({ scope, onDelta: () => times.push(runtime.now()) })));

    expect(times).toStrictEqual([110, 120, 130]);
  });

  it('waits by its own runtime where the request has none', async () => {
    const runtime = virtualRuntime();

    await runtime.settle(scriptedLLM([delayed('late', 500)], { runtime }).chat(llmRequest()));

    expect(runtime.now()).toBe(500);
  });

  it('names the missing clock of a delayed reply', async () => {
    await expect(scriptedLLM([delayed('late', 500)]).chat(llmRequest())).rejects.toThrow('{ runtime: virtualRuntime() }');
  });

  it.each<[string, Reply]>([
    ['a hanging reply', hanging()],
    ['a stalled stream', stalled('hello', 1)],
    ['a delayed reply', delayed('late', 1000)],
    ['a function that hangs', () => new Promise<string>(() => {})],
  ])('rejects at once and lets go of the signal when %s is aborted', async (_name, reply) => {
    const runtime = virtualRuntime();
    const controller = watchedController();
    const llm = scriptedLLM([reply], { runtime });
    const chat = llm.chat(llmRequest({ signal: controller.signal }));
    const outcome = chat.catch((error: unknown) => error);
    await runtime.flush();
    const [running, listening] = [llm.runningCount, controller.listenerCount];

    controller.abort('enough');

    expect(await outcome).toBe('enough');
    expect([running, llm.runningCount]).toStrictEqual([1, 0]);
    expect([listening, controller.listenerCount]).toStrictEqual([1, 0]);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('leaves no listener behind after a reply', async () => {
    const runtime = virtualRuntime();
    const controller = watchedController();
    const llm = scriptedLLM([delayed('a', 5), () => 'b'], { runtime });

    await runtime.settle(llm.chat(llmRequest({ signal: controller.signal })));
    await llm.chat(llmRequest({ signal: controller.signal }));

    expect(controller.listenerCount).toBe(0);
  });

  it('stops streaming at the fragment that aborts', async () => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const onDelta = (delta: LLMDelta): void => {
      deltas.push(delta);
      if (deltas.length === 2) controller.abort('enough');
    };

    const { outcome } = await stream('abc', { signal: controller.signal, onDelta }, 1);

    expect(outcome).toBe('enough');
    expect(deltas).toHaveLength(2);
  });

  it('rejects without taking a reply when already aborted', async () => {
    const llm = scriptedLLM(['a']);

    await expect(llm.chat(llmRequest({ signal: AbortSignal.abort('no') }))).rejects.toBe('no');
    expect(llm.repliesLeft).toBe(1);
  });

  it('goes on after an abort when the reply is stubborn', async () => {
    const runtime = virtualRuntime();
    const controller = new AbortController();
    const llm = scriptedLLM([stubborn(delayed('late', 100))], { runtime });
    const chat = llm.chat(llmRequest({ signal: controller.signal }));
    await runtime.flush();

    controller.abort();

    expect(await runtime.settle(chat)).toMatchObject({ content: [{ type: 'text', text: 'late' }] });
    expect(runtime.now()).toBe(100);
  });
});

describe('cut streams', () => {
  const reply: Reply = [thinking('a', { signature: 's' }), thinking('b'), 'hello', toolCall('t', {})];

  it('breaks off with a network error after so many fragments', async () => {
    const { deltas, outcome } = await stream(cutStream(reply, { deltaCount: 3 }));

    expect(deltas).toHaveLength(3);
    expect(outcome).toMatchObject({ kind: 'network', retryable: true, partial: undefined });
  });

  it.each([
    [1, [{ type: 'thinking', text: 'a', signature: 's' }]],
    [3, [{ type: 'thinking', text: 'a', signature: 's' }, { type: 'text', text: 'he' }]],
    [99, [{ type: 'thinking', text: 'a', signature: 's' }, { type: 'text', text: 'hello' }]],
  ])('tells what had arrived after %i fragments', async (deltaCount, partial) => {
    const { outcome } = await stream(cutStream(reply, { deltaCount, partial: true }), {}, 2);

    expect(outcome).toMatchObject({ kind: 'network', partial });
  });

  it('breaks off with an error of choice', async () => {
    const error = new LLMError({ kind: 'server', message: 'gone' });

    const { outcome } = await stream(cutStream('hello', { deltaCount: 0, error }));

    expect(outcome).toBe(error);
  });
});

describe('a script that is wrong', () => {
  it.each<[unknown, unknown, RegExp]>([
    ['hello', {}, /takes a list of replies, or a function of the request: scriptedLLM\(\[/],
    [undefined, {}, /takes a list of replies/],
    [repeat('hello'), {}, /takes a list of replies/],
    [[undefined], {}, /reply 0 is undefined, which is no reply\. A reply is text,/],
    [['a', null], {}, /reply 1 is null/],
    [[{}], {}, /reply 0 has no `content`/],
    [[{ contents: 'x' }], {}, /reply 0 has no option `contents`; it takes content, stopReason/],
    [[{ content: 'x', delay: 5 }], {}, /reply 0 has no option `delay`/],
    [[['a', 5]], {}, /reply 0\[1\] is neither text nor a part/],
    [[repeat(5 as never)], {}, /reply 0 is 5/],
    [['a'], { stream: false }, /has no option `stream`; it takes provider, /],
    [['a'], { chunk: 0 }, /`chunk` is a size in characters, at least 1, or a list of sizes, not 0/],
    [['a'], { chunk: [2, '5'] }, /`chunk` is a size .* not \[2,"5"\]/],
  ])('is refused where it is made: %j with %j', (script, options, message) => {
    const make = (): unknown => scriptedLLM(script as Reply[], options as ScriptedLLMOptions);

    expect(make).toThrow(message);
    expect(make).toThrow(TypeError);
  });

  it('is refused when a function gives what is no reply', async () => {
    const llm = scriptedLLM([(() => undefined) as never]);

    await expect(llm.chat(llmRequest())).rejects.toThrow('what a function of the script gave is undefined, which is no reply');
  });

  it.each([1.5, NaN, -1, '3'])('does not repeat a reply %j times', (times) => {
    expect(() => repeat('a', times as number)).toThrow(/repeat: `times` must be a whole number of at least 0, or Infinity, not/);
  });
});
