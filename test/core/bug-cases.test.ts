/** What went wrong in comparable projects, as far as core is concerned: one test or more for each case, named by its id. */
import { describe, expect, it } from 'vitest';
import {
  type AssistantPart,
  assistantMessage,
  attemptChat,
  decorateLLM,
  type Hook,
  isLLMError,
  type LLM,
  LLMError,
  type LLMResponse,
  projectMessages,
  runTurn,
  systemRuntime,
  textOf,
  toolMessage,
  toUsage,
  userMessage,
} from 'turnloop';
import { maxSteps } from 'turnloop/policies';
import {
  cutStream,
  delayed,
  echoTool,
  failingTool,
  faultyListener,
  gatedTool,
  hangingTool,
  recordEvents,
  recordingTool,
  repeat,
  runScripted,
  scriptedLLM,
  slowTool,
  stalled,
  startScripted,
  thinking,
  toolCall,
  watchedController,
} from 'turnloop/testing';
import { conversation, resultLines, resultTexts, secondProcess, watchRejections } from './support.ts';

const STATUS = 'Error: the tool call failed.';

function callPart(id: string): AssistantPart {
  return { type: 'tool_call', id, name: 'read', inputText: '{}', input: {} };
}

/** Asks once more after a failure. */
function twice(llm: LLM): LLM {
  return decorateLLM(llm, async (request) => {
    try {
      return await attemptChat(llm, request);
    } catch (error) {
      if (!isLLMError(error)) throw error;
      await request.onAttemptFailed?.({ error });
      return attemptChat(llm, request);
    }
  });
}

describe('orphan calls and results', () => {
  it('BR-001 has one result for each call directly behind it, after an abort and a new prompt', async () => {
    const turn = startScripted({ replies: [[toolCall('hang'), toolCall('hang')]], tools: [hangingTool()] });
    await turn.runtime.flush();
    turn.control.abort();
    const before = await turn.finish();

    const { llm } = await runScripted({ ...secondProcess(before.recorded), replies: ['ok'], input: 'next' });

    const lines = conversation(llm.requests[0]!.messages);
    expect(lines.map((line) => line.split(':')[0])).toStrictEqual(['user', 'assistant', 'tool call_1', 'tool call_2', 'user']);
    expect(lines[2]).toContain('The turn was aborted while this call was running');
    expect(lines[3]).toContain('The turn was aborted before this call started');
  });

  it('BR-001 has a synthetic result for a call whose result was never stored', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [echoTool()] });
    const killed = recorded.slice(0, recorded.findIndex((event) => event.type === 'tool.finished'));

    const { llm } = await runScripted({ ...secondProcess(killed), replies: ['ok'], input: 'next', turnId: 'turn_b', check: false });

    const [, , result, prompt] = llm.requests[0]!.messages;
    expect(result).toMatchObject({ role: 'tool', toolCallId: 'call_1', isError: true });
    expect(textOf(result)).toContain('it was interrupted before a result was recorded');
    expect(conversation([prompt!])).toStrictEqual(['user: next']);
  });

  it('BR-124 keeps the whole message with its thinking, and adds a result', () => {
    const message = assistantMessage([thinking('hm', { signature: 'sig' }), callPart('t1')], { id: 'm1' });

    const { messages } = projectMessages([message, userMessage('hi', { id: 'u' })]);

    expect(messages[0]).toBe(message);
    expect(messages.map((one) => one.role)).toStrictEqual(['assistant', 'tool', 'user']);
  });

  it('BR-124 gives each of two calls of one id its own result', () => {
    const history = [
      assistantMessage([callPart('t1')], { id: 'm1' }),
      toolMessage('real', { toolCallId: 't1', name: 'read', id: 'r1' }),
      assistantMessage([callPart('t1')], { id: 'm2' }),
    ];

    const { messages } = projectMessages(history);

    expect(messages.map((one) => one.role)).toStrictEqual(['assistant', 'tool', 'assistant', 'tool']);
    expect([textOf(messages[1]), textOf(messages[3]).startsWith(STATUS)]).toStrictEqual(['real', true]);
  });
});

describe('order and empty content', () => {
  it('BR-053 sends no blank text and no empty message', () => {
    const history = [
      userMessage('a', { id: 'u1' }),
      assistantMessage([], { id: 'm1' }),
      userMessage('  \n', { id: 'u2' }),
      assistantMessage([{ type: 'text', text: '' }, callPart('t')], { id: 'm2' }),
      toolMessage('', { toolCallId: 't', name: 'read', id: 'r' }),
    ];

    expect(conversation(projectMessages(history).messages)).toStrictEqual([
      'user: a',
      'assistant: read()',
      'tool t: (The tool gave no output.)',
    ]);
  });

  it('BR-076 has parallel results in the order of the calls, however they end', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    for (const id of ['call_3', 'call_1', 'call_2']) {
      gate.finish(id, id);
      await turn.runtime.flush();
    }
    const { llm } = await turn.finish();

    expect(conversation(llm.requests[1]!.messages).slice(2)).toStrictEqual([
      'tool call_1: call_1',
      'tool call_2: call_2',
      'tool call_3: call_3',
    ]);
  });

  it('BR-110 has a steered text behind all results, also when one holds an image', async () => {
    const shot = recordingTool({
      execute: () => (void turn.control.steer(userMessage('also X')), [
        { type: 'text', text: 'a screenshot' },
        { type: 'media', mediaType: 'image/png', data: 'aGk=' },
      ]),
    });
    const turn = startScripted({ replies: [[toolCall('record'), toolCall('echo', { text: 'b' })], 'done'], tools: [shot, echoTool()] });

    const { llm } = await turn.finish();

    expect(conversation(llm.requests[1]!.messages).slice(1)).toStrictEqual([
      'assistant: record() echo()',
      'tool call_1: a screenshot',
      'tool call_2: b',
      'user: also X',
    ]);
  });
});

describe('reasons a reply ends for', () => {
  it.each([
    ['filtered', [] as string[]],
    ['paused', ['searching']],
    ['unknown', ['hm']],
  ] as const)('BR-035 %s is visible, not retried, and leaves no empty message', async (stopReason, content) => {
    const { result, llm, transcript, recording } = await runScripted({
      replies: [{ content: [...content], stopReason, rawStopReason: 'brand_new_reason' }],
    });

    expect(result).toMatchObject({ stopReason, steps: 1 });
    expect(llm.callCount).toBe(1);
    expect(recording.of('step.end')).toMatchObject([{ rawStopReason: 'brand_new_reason' }]);
    expect(transcript.buildMessages().every((message) => message.content.length > 0)).toBe(true);
  });

  it('BR-064 a call cut off by the output limit never runs, and the turn ends max_tokens', async () => {
    const write = recordingTool({ name: 'write' });

    const { result, llm, recorded } = await runScripted({
      replies: [{ content: [toolCall('write', '{"path":"a.txt","text":"abc')], stopReason: 'max_tokens' }],
      tools: [write],
    });

    expect(write.runCount).toBe(0);
    expect(result.stopReason).toBe('max_tokens');
    expect(llm.callCount).toBe(1);
    expect(resultTexts(recorded)[0]).toMatch(/not executed: the reply was cut off at the output limit/);
  });

  it('BR-065 a stream that breaks off is an error with the partial text kept, never a finished answer', async () => {
    const { result } = await runScripted({
      replies: [cutStream({ content: 'The answer is 4 or 5', chunk: 15 }, { deltaCount: 1 })],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', text: 'The answer is 4', error: { kind: 'network', retryable: true } });
    expect(result.message).toMatchObject({ status: 'interrupted' });
  });

  it.each([
    ['BR-065 half a call', '{"path":"/tm'],
    ['BR-098 a call that had just begun', ''],
  ])('%s of a broken stream does not run', async (_name, inputText) => {
    const write = recordingTool({ name: 'write' });

    const { result, recorded } = await runScripted({
      replies: [cutStream([toolCall('write', inputText), 'never'], { deltaCount: 1 })],
      tools: [write],
    });

    expect(write.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { retryable: true } });
    expect(recorded.map((event) => event.type)).not.toContain('tool.call');
  });

  it('BR-098 a whole call runs although the reply says that the turn is over', async () => {
    const echo = echoTool();

    await runScripted({ replies: [{ content: [toolCall('echo', { a: 1 })], stopReason: 'end_turn' }, 'done'], tools: [echo] });

    expect(echo.inputs).toStrictEqual([{ a: 1 }]);
  });

  it('BR-121 a budget spent on thinking alone ends max_tokens, with its usage', async () => {
    const { result, transcript } = await runScripted({
      replies: [{ content: [thinking('hmm')], stopReason: 'max_tokens', usage: { outputTokens: 32_000, thinkingTokens: 32_000 } }],
    });

    expect(result).toMatchObject({ stopReason: 'max_tokens', text: '', usage: toUsage({ outputTokens: 32_000, thinkingTokens: 32_000 }) });
    expect(transcript.openTurn()).toBeUndefined();
  });
});

describe('tools, results and steering', () => {
  it('BR-026 a failing tool or hook loses none of the other results', async () => {
    const slow = slowTool(20, { accesses: [], result: 'slow' });
    const text = failingTool({ name: 'text', accesses: [], error: 'x' });
    const hook: Hook = {
      name: 'audit',
      finalizeToolResult: (_context, call) => {
        if (call.toolCallId === 'call_1') throw new Error('audit failed');
      },
    };

    const { recorded, llm } = await runScripted({
      replies: [[toolCall('slow'), toolCall('fail'), toolCall('text'), toolCall('echo', { text: 'd' })], 'done'],
      tools: [slow, failingTool({ mode: 'throws', accesses: [] }), text, echoTool({ accesses: [] })],
      hooks: [hook],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'The call is over, but its result is withheld: hook "audit" failed to look at it.'],
      ['call_2', 'error', 'the tool failed'],
      ['call_3', 'error', 'x'],
      ['call_4', 'ok', 'd'],
    ]);
    expect(llm.callCount).toBe(2);
  });

  it('BR-032 A steering during tools stands behind the results, and interrupts no call', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    void turn.control.steer(userMessage('S'));
    gate.open('ran');
    const { llm } = await turn.finish();

    expect(conversation(llm.requests[1]!.messages).slice(1)).toStrictEqual([
      'assistant: gate() gate()',
      'tool call_1: ran',
      'tool call_2: ran',
      'user: S',
    ]);
  });

  it('BR-032 B steering while the last answer streams opens one more step', async () => {
    const turn = startScripted({ replies: [delayed('answer', 10), 'to S'] });
    await turn.runtime.flush();

    void turn.control.steer(userMessage('S'));
    const { result, llm } = await turn.finish();

    expect(result).toMatchObject({ steps: 2, text: 'to S' });
    expect(conversation(llm.requests[1]!.messages).at(-1)).toBe('user: S');
  });

  it('BR-032 C steering before an abort comes back exactly once', async () => {
    const turn = startScripted({ replies: [toolCall('hang')], tools: [hangingTool()] });
    await turn.runtime.flush();

    void turn.control.steer(userMessage('S'));
    turn.control.abort();
    const { result, transcript } = await turn.finish();

    expect(result.undelivered).toStrictEqual([userMessage('S')]);
    expect(JSON.stringify(transcript.events)).not.toContain('"S"');
  });

  it.each<[string, () => unknown, string]>([
    ['undefined', () => undefined, 'returned nothing'],
    ['null', () => null, 'null'],
    ['a big integer', () => 10n, '10'],
    ['an object with a big integer', () => ({ a: 1n }), '{"a":"1"}'],
    ['a cycle', () => cycle(), '[seen above]'],
    ['a symbol', () => Symbol('s'), 'Symbol(s)'],
    ['a function', () => () => 1, '=>'],
    ['a map', () => new Map([[1, 2]]), '{"1":2}'],
    ['bytes', () => new Uint8Array([1, 2, 3]), '1'],
    ['an object whose toJSON throws', () => ({ toJSON: () => { throw new Error('no json'); } }), 'no json'],
  ])('BR-086 a tool that returns %s has one error result that shows it', async (_what, make, shown) => {
    const tool = recordingTool({ execute: () => make() as string });

    const { recorded, result } = await runScripted({ replies: [toolCall('record'), 'done'], tools: [tool] });

    expect(resultLines(recorded).map(([id, outcome]) => [id, outcome])).toStrictEqual([['call_1', 'error']]);
    expect(resultTexts(recorded)[0]).toContain(shown);
    expect(result.stopReason).toBe('end_turn');
  });

  it.each<[string, unknown, RegExp]>([
    ['a string', 'str', /^str$/],
    ['null', null, /not an error was thrown: null/],
    ['undefined', undefined, /not an error was thrown/],
    ['an empty string', '', /not an error was thrown/],
    ['an object', { code: 1 }, /\{"code":1\}/],
    ['an error without a message', new RangeError(), /^RangeError$/],
    ['a cycle', cycle(), /not an error was thrown/],
  ])('BR-086 a tool that throws %s has one error result with a text', async (_what, error, text) => {
    const tool = recordingTool({
      execute: () => {
        throw error;
      },
    });

    const { recorded } = await runScripted({ replies: [toolCall('record'), 'done'], tools: [tool] });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.stringMatching(text)]]);
  });

  it('BR-161 a result that was finished before an abort is the real one', async () => {
    const turn = startScripted({
      replies: [[toolCall('slow'), toolCall('hang')]],
      tools: [slowTool(10, { accesses: [], result: 'real' }), hangingTool({ accesses: [], ignoresAbort: true })],
    });
    await turn.runtime.advance(50);

    turn.control.abort();
    const { recorded } = await turn.finish();

    expect(resultLines(recorded)[0]).toStrictEqual(['call_1', 'ok', 'real']);
    expect(resultLines(recorded)[1]![2]).toContain('The turn was aborted while this call was running');
  });
});

describe('abort', () => {
  it('BR-044 leaves no listener on a signal that outlives 200 turns with three tools each', async () => {
    const controller = watchedController();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);

    for (let turn = 0; turn < 200; turn += 1) {
      await runScripted({
        replies: [[toolCall('slow'), toolCall('slow'), toolCall('slow')], 'done'],
        tools: [slowTool(1, { accesses: [] })],
        signal: controller.signal,
      });
    }
    process.off('warning', onWarning);

    expect(controller.listenerCount).toBe(0);
    expect(warnings).toStrictEqual([]);
  });

  it('BR-070 a stream that stalls and is aborted ends aborted, with its partial text and one end', async () => {
    const turn = startScripted({ replies: [stalled({ content: 'The answer is 42', chunk: 7 }, 1)] });
    await turn.runtime.flush();

    turn.control.abort();
    const { result, recording, llm } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', text: 'The ans' });
    expect(recording.of('turn.end')).toHaveLength(1);
    expect(llm.runningCount).toBe(0);
  });

  it('BR-070 an adapter that reports a clean end on abort does not make the cut answer a finished one', async () => {
    const cut: LLMResponse = { content: [{ type: 'text', text: 'The ans' }, toolCall('echo')], stopReason: 'tool_use', usage: toUsage({ outputTokens: 2 }) };
    const echo = echoTool();
    const decorate = (llm: LLM): LLM =>
      decorateLLM(llm, ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(cut), { once: true })));
    const turn = startScripted({ decorate, tools: [echo] });
    await turn.runtime.flush();

    turn.control.abort();
    const { result } = await turn.finish();

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'aborted', usage: toUsage({ outputTokens: 2 }) });
  });

  it('BR-157 a signal that was aborted before settles the turn at once', async () => {
    const { result, llm, runtime, transcript } = await runScripted({ signal: AbortSignal.abort(), tools: [echoTool()] });

    expect(result.stopReason).toBe('aborted');
    expect([llm.callCount, runtime.now(), transcript.buildMessages().length]).toStrictEqual([0, 0, 0]);
  });
});

describe('malformed arguments', () => {
  it.each(['{"a": 1,, }', '{"{"tagIds":'])('BR-005 %s is not run, told to the model, and the run ends normally', async (inputText) => {
    const f = recordingTool({ name: 'f' });

    const { result, llm, recorded } = await runScripted({ replies: [toolCall('f', inputText), 'done'], tools: [f] });

    expect(f.runCount).toBe(0);
    expect(resultLines(recorded)[0]![1]).toBe('error');
    expect(resultTexts(recorded)[0]).toMatch(/The arguments of "f" are not valid JSON/);
    expect(llm.callCount).toBe(2);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it('BR-083 types are not coerced, and a legal string is not changed', async () => {
    const f = recordingTool({
      name: 'f',
      inputSchema: { type: 'object', properties: { n: { type: 'integer' }, s: { type: 'string' }, u: { type: ['string', 'integer'] } } },
    });

    const { recorded, recording } = await runScripted({
      replies: [[toolCall('f', { n: '5' }), toolCall('f', { n: 'abc' }), toolCall('f', { s: '[1]', u: '5' })], 'done'],
      tools: [f],
    });

    expect(f.inputs).toStrictEqual([{ s: '[1]', u: '5' }]);
    expect(resultTexts(recorded).slice(0, 2).every((text) => text.includes('"n" must be integer, not string'))).toBe(true);
    expect(recording.of('tool.call')[2]).toMatchObject({ input: { s: '[1]', u: '5' } });
  });

  it('BR-092 bad arguments stay in the record as they were, without a value to send back', async () => {
    const { llm, recording } = await runScripted({ replies: [toolCall('echo', '{"a":'), 'done'], tools: [echoTool()] });

    const [part] = llm.requests[1]!.messages[1]!.content;
    expect(part).toStrictEqual({ type: 'tool_call', id: 'call_1', name: 'echo', inputText: '{"a":' });
    expect(recording.of('tool.call')[0]!.inputText).toBe('{"a":');
    expect(textOf(llm.requests[1]!.messages[2])).toContain('The arguments were: {"a":');
  });

  it('BR-019 an empty argument text runs a tool without parameters once, with {}', async () => {
    const now = recordingTool({ name: 'now' });

    const { recording } = await runScripted({ replies: [toolCall('now', ''), 'done'], tools: [now] });

    expect(now.inputs).toStrictEqual([{}]);
    expect(recording.of('tool.call')[0]).toMatchObject({ inputText: '', input: {} });
  });

  it('BR-158 an integer that a number cannot hold is refused, not rounded', async () => {
    const send = recordingTool({ name: 'send' });
    const calls = ['{"id":9223372036854775807}', '{"id":"9223372036854775807"}', '{"id":9007199254740991}'];

    const { recorded } = await runScripted({ replies: [calls.map((text) => toolCall('send', text)), 'done'], tools: [send] });

    expect(send.inputs).toStrictEqual([{ id: '9223372036854775807' }, { id: 9_007_199_254_740_991 }]);
    expect(send.runs[0]!.context.inputText).toBe('{"id":"9223372036854775807"}');
    expect(resultTexts(recorded)[0]).toMatch(/at position 6, .* is too large to be exact; send it as a string/);
  });
});

describe('loops and retries', () => {
  it('BR-011 an endless repetition ends after maxSteps requests, with every call paired', async () => {
    const read = recordingTool({ name: 'read' });
    const orders = ['{"path":"a","line":1}', '{"line":1,"path":"a"}'];

    const { result, llm, recorded } = await runScripted({
      replies: (_request, callIndex) => toolCall('read', orders[callIndex % 2]),
      tools: [read],
      stopWhen: maxSteps(5),
    });

    expect(llm.callCount).toBe(5);
    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 5 });
    expect(resultLines(recorded)).toHaveLength(5);
  });

  it('BR-040 a retried request does not run the tools of an earlier step again', async () => {
    const charge = recordingTool({ name: 'charge' });

    const { llm, result } = await runScripted({
      replies: [toolCall('charge'), new LLMError({ kind: 'server', message: '500' }), 'ok'],
      tools: [charge],
      decorate: twice,
    });

    expect(charge.runCount).toBe(1);
    expect(result.text).toBe('ok');
    expect(llm.requests[2]!.messages).toStrictEqual(llm.requests[1]!.messages);
  });

  it.each([
    ['ECONNRESET', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
    ['a 429', Object.assign(new Error('Too many requests'), { status: 429 })],
    ['an LLMError', new LLMError({ kind: 'rate_limit', message: 'Too many requests' })],
  ])('BR-040 a tool that throws %s is a failed tool, not a failed request', async (_what, error) => {
    const charge = failingTool({ name: 'charge', error });

    const { result, recording, recorded } = await runScripted({ replies: [toolCall('charge'), 'ok'], tools: [charge], decorate: twice });

    expect(charge.runCount).toBe(1);
    expect(resultTexts(recorded)).toStrictEqual([error.message]);
    expect(recording.of('step.retrying')).toStrictEqual([]);
    expect(result.text).toBe('ok');
  });

  it('BR-040 a hook that fails after the step is reported, and nothing runs again', async () => {
    const charge = recordingTool({ name: 'charge' });

    const { recording, llm } = await runScripted({
      replies: [toolCall('charge'), 'ok'],
      tools: [charge],
      hooks: [{ name: 'save', afterStep: () => Promise.reject(new Error('EOF')) }],
    });

    expect(charge.runCount).toBe(1);
    expect(llm.callCount).toBe(2);
    expect(recording.of('notice').map((event) => event.name)).toStrictEqual(['hook.failed', 'hook.failed']);
  });

  it('BR-040 the call of a failed attempt is discarded, and the one of the next runs once', async () => {
    const charge = recordingTool({ name: 'charge' });
    const call = toolCall('charge', { n: 1 });

    const { recording } = await runScripted({
      replies: [cutStream([call, 'and'], { deltaCount: 1 }), call, 'ok'],
      tools: [charge],
      decorate: twice,
    });

    expect(charge.inputs).toStrictEqual([{ n: 1 }]);
    expect(recording.of('tool.call')).toHaveLength(1);
  });
});

describe('listeners and unhandled rejections', () => {
  const boom = (): never => {
    throw new Error('boom');
  };

  it.each<[string, Parameters<typeof runScripted>[0]]>([
    ['chat throws at once', { decorate: (llm) => decorateLLM(llm, boom) }],
    ['the key of a request cannot be had', { decorate: (llm) => decorateLLM(llm, () => Promise.reject(new Error('boom'))) }],
    ['buildMessages throws', { buildMessages: boom }],
    ['a beforeStep hook throws', { hooks: [{ name: 'compaction', beforeStep: boom }] }],
    ['a recovery throws', {
      replies: [new LLMError({ kind: 'context_overflow', message: 'boom', stopReason: 'fatal_error' })],
      recoveries: [{ name: 'compact', kinds: ['context_overflow'], apply: boom }],
    }],
    ['the system prompt throws', { decorate: (llm) => ({ ...llm, provider: 'x', modelId: 'y', get systemPrompt() { return boom(); }, chat: boom }) }],
  ])('BR-071 ends once, as a failure, when %s', async (_what, options) => {
    const rejections = watchRejections();

    const { result, recording, runtime } = await runScripted(options);
    await runtime.flush();
    rejections.stop();

    expect(result).toMatchObject({ stopReason: 'fatal_error' });
    expect(result.error!.message).toContain('boom');
    expect(recording.types().filter((type) => type === 'turn.end')).toHaveLength(1);
    expect(recording.types().at(-1)).toBe('turn.end');
    expect(rejections.reasons).toStrictEqual([]);
  });

  it('BR-080 a listener that throws on every event breaks nothing, and is reported once per event', async () => {
    const { result, events, listenerErrors } = await runScripted({
      replies: [toolCall('echo'), 'ok'],
      tools: [echoTool()],
      listener: faultyListener('throws'),
    });

    expect(result.text).toBe('ok');
    expect(events.filter((event) => event.type === 'turn.begin' || event.type === 'turn.end')).toHaveLength(2);
    expect(listenerErrors).toHaveLength(events.length);
  });
});

describe('prototype members', () => {
  const names = ['constructor', 'toString', '__proto__', 'hasOwnProperty'];

  it('BR-055 calls named like members of Object.prototype are unknown tools', async () => {
    const { recorded, result } = await runScripted({
      replies: [names.map((name) => toolCall(name)), 'done'],
      tools: [recordingTool({ name: 'noop' })],
    });

    expect(resultTexts(recorded).map((text) => text.split(',')[0])).toStrictEqual(
      names.map((name) => `There is no tool named "${name}"`),
    );
    expect(result.stopReason).toBe('end_turn');
  });

  it('BR-055 tools named like them are offered and run', async () => {
    const tools = names.map((name) => recordingTool({ name }));

    const { llm } = await runScripted({ replies: [names.map((name) => toolCall(name)), 'done'], tools });

    expect(llm.requests[0]!.tools.map((tool) => tool.name)).toStrictEqual(names);
    expect(tools.map((tool) => tool.runCount)).toStrictEqual([1, 1, 1, 1]);
  });

  it('BR-139 words of a provider are data: raw reasons, tool names, arguments that are a JSON string', async () => {
    const tool = recordingTool({ name: 'valueOf', inputSchema: { type: 'object', properties: { toString: { type: 'string' } } } });

    const { recording, recorded, events } = await runScripted({
      replies: [[toolCall('valueOf', '"hello"')], { content: 'ok', stopReason: 'unknown', rawStopReason: 'constructor' }],
      tools: [tool],
    });

    expect(resultTexts(recorded)[0]).toContain('they must be an object, not string');
    expect(recording.of('step.end')[1]).toMatchObject({ stopReason: 'unknown', rawStopReason: 'constructor' });
    expect(JSON.stringify(events)).not.toContain('native code');
  });

  it('BR-139 a stop reason that does not exist runs no tool', async () => {
    const echo = echoTool();

    const { result } = await runScripted({
      replies: [{ content: [toolCall('echo')], stopReason: 'toString' as 'unknown' }],
      tools: [echo],
    });

    expect(echo.runCount).toBe(0);
    expect(result.stopReason).not.toBe('end_turn');
    expect(JSON.stringify(result)).not.toContain('native code');
  });
});

describe('ids', () => {
  it('BR-046 ids of calls are the turn\'s own, fit every protocol, and are not derived from the provider\'s', async () => {
    const providerIds = ['functions.todo:0', `call_A|fc_${'f'.repeat(400)}`, 'a/b', 'a/b'];
    const recording = recordEvents();

    await runTurn({
      llm: scriptedLLM([providerIds.map((providerId) => toolCall('echo', {}, { providerId })), 'done']),
      buildMessages: () => [userMessage('hi', { id: 'u' })],
      dispatchEvent: recording.dispatchEvent,
      tools: [echoTool()],
      runtime: systemRuntime,
    });

    const calls = recording.of('tool.call');
    expect(calls.map(({ providerId }) => providerId)).toStrictEqual(providerIds);
    expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(4);
    expect(calls.every(({ toolCallId }) => /^[a-zA-Z0-9_-]{1,40}$/.test(toolCallId))).toBe(true);
  });
});

describe('time limits of tools', () => {
  it('BR-115 a tool that hangs or listens has a timeout result, and the turn goes on', async () => {
    const deaf = hangingTool({ name: 'deaf', accesses: [], timeoutMs: 50, ignoresAbort: true });
    const polite = hangingTool({ name: 'polite', accesses: [], timeoutMs: 50 });

    const { result, recorded, runtime } = await runScripted({ replies: [[toolCall('deaf'), toolCall('polite')], 'done'], tools: [deaf, polite] });

    expect(resultTexts(recorded).every((text) => text.includes('its time limit of 50 ms (timeout)'))).toBe(true);
    expect(polite.runs[0]!.context.signal.reason).toMatchObject({ code: 'tool_timeout' });
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([50, 0]);
  });

  it('BR-115 a result that comes after the timeout is ignored', async () => {
    const late = slowTool(80, { timeoutMs: 50, ignoresAbort: true, result: 'too late' });

    const { recorded, runtime } = await runScripted({ replies: [toolCall('slow'), delayed('done', 100)], tools: [late] });

    expect(late.runs[0]!.state).toBe('returned');
    expect(JSON.stringify(recorded)).not.toContain('too late');
    expect(runtime.now()).toBe(150);
  });

  it('BR-115 the timer of a tool that ends in time is cleared', async () => {
    const { runtime, result } = await runScripted({
      replies: [repeat(toolCall('slow'), 2), 'done'],
      tools: [slowTool(10, { timeoutMs: 60_000 })],
    });

    expect(result.stopReason).toBe('end_turn');
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([20, 0]);
  });
});

function cycle(): object {
  const value: Record<string, unknown> = { name: 'loop' };
  value['self'] = value;
  return value;
}
