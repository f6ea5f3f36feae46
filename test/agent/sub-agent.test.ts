/**
 * dispatchAgent (E13) in plain turns: what a sub-agent is told and given, what its caller gets, and what is refused.
 */
import { describe, expect, it } from 'vitest';
import { decorateLLM, LLMError, type Hook, toUsage } from 'turnloop';
import { dispatchAgent, type DispatchAgentOptions } from 'turnloop/agent';
import { createRateLimit, finalAnswer, withRateLimit, withRetry } from 'turnloop/policies';
import {
  echoTool,
  failingTool,
  recordingTool,
  repeat,
  runScripted,
  type RunScriptedOptions,
  type Script,
  type ScriptedLLM,
  scriptedLLM,
  type ScriptedOutcome,
  toolCall,
} from 'turnloop/testing';
import { conversation, resultLines, resultTexts } from '../core/support.ts';
import { dispatchCall } from './sub-agent-support.ts';

/** A turn whose first reply dispatches one sub-agent, which plays these replies. */
async function dispatched(
  replies: Script,
  options: DispatchAgentOptions = {},
  more: RunScriptedOptions = {},
): Promise<ScriptedOutcome & { readonly child: ScriptedLLM }> {
  const child = scriptedLLM(replies, { modelId: 'child-model' });
  const outcome = await runScripted({
    replies: [dispatchCall('Find it.'), 'done'],
    tools: [dispatchAgent({ llm: child, ...options })],
    ...more,
  });
  return { ...outcome, child };
}

describe('a dispatched sub-agent', () => {
  it('E13 SA1 gets the prompt as its only input, and its last text is all that the caller sees', async () => {
    const { child, llm, recorded, result } = await dispatched(
      [['I will look.', toolCall('echo', { text: 'a' })], 'It is in a.ts.'],
      { tools: [echoTool({ readOnly: true })] },
      { input: 'A long conversation.' },
    );

    expect(conversation(child.requests[1]!.messages)).toStrictEqual(['user: Find it.', 'assistant: I will look. echo()', 'tool call_2: a']);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'It is in a.ts.']]);
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual([
      'user: A long conversation.',
      'assistant: dispatch_agent()',
      'tool call_1: It is in a.ts.',
    ]);
    expect(result.stopReason).toBe('end_turn');
  });

  it('E13 SA1 has the readOnly tools of its list, without the tool itself', async () => {
    const tools = [echoTool({ name: 'read', readOnly: true }), echoTool({ name: 'write' })];
    const dispatch = dispatchAgent({ tools: [...tools, dispatchAgent()], llm: scriptedLLM([]) });
    const { child } = await dispatched(['ok'], { tools: [...tools, dispatch] });

    expect(child.requests[0]!.tools.map(({ name }) => name)).toStrictEqual(['read']);
  });

  it('E13 has the tools, the model, the system prompt and the steps of its type', async () => {
    const coder = scriptedLLM([toolCall('write'), toolCall('write'), 'never'], { systemPrompt: 'general' });
    const write = recordingTool({ name: 'write' });

    const { recorded, child } = await dispatched(
      [],
      { types: { coder: { description: 'Writes code.', llm: coder, systemPrompt: 'You write code.', tools: [write], maxSteps: 2 } } },
      { replies: [dispatchCall('Do it.', { type: 'coder' }), 'done'] },
    );

    expect(child.callCount).toBe(0);
    expect(coder.requests.map(({ systemPrompt, tools }) => [systemPrompt, tools.map(({ name }) => name)])).toStrictEqual([
      ['You write code.', ['write']],
      ['You write code.', ['write']],
    ]);
    expect(write.runCount).toBe(2);
    expect(resultTexts(recorded)[0]).toContain('max_steps');
  });

  it('E13 has the model of the call, and its system prompt, unless told otherwise', async () => {
    const { llm, recorded } = await runScripted({
      replies: [dispatchCall('Find it.'), 'found', 'done'],
      llmOptions: { systemPrompt: 'Be brief.' },
      tools: [dispatchAgent()],
    });

    expect(llm.requests.map(({ systemPrompt, tools }) => [systemPrompt, tools.length])).toStrictEqual([
      ['Be brief.', 1],
      ['Be brief.', 0],
      ['Be brief.', 1],
    ]);
    expect(resultTexts(recorded)).toStrictEqual(['found']);
  });

  it('E13 SA1 is given the host value of the caller', async () => {
    const host = { cwd: '/project' };
    const read = recordingTool({ name: 'read', readOnly: true });

    await dispatched([toolCall('read'), 'ok'], { tools: [read] }, { host });

    expect(read.runs[0]!.context.host).toBe(host);
  });

  it('E13 may take 8 steps', async () => {
    const { child, recorded } = await dispatched([repeat(['so far', toolCall('read')])], {
      tools: [echoTool({ name: 'read', readOnly: true })],
    });

    expect(child.callCount).toBe(8);
    expect(resultLines(recorded)[0]![1]).toBe('ok');
  });

  it('E13 shares the hooks, the recoveries and the settings that it is given', async () => {
    const seen: string[] = [];
    const hook: Hook = { name: 'watch', beforeStep: ({ turnId, step }) => void seen.push(`${turnId}.${step}`) };
    const overflow = new LLMError({ kind: 'context_overflow', message: 'too long' });

    const { child, recorded } = await dispatched(
      [overflow, 'short'],
      {
        hooks: [hook],
        request: { maxOutputTokens: 500 },
        recoveries: [{ name: 'shorter', kinds: ['context_overflow'], apply: (request) => ({ ...request, messages: request.messages.slice(0, 1) }) }],
      },
      { hooks: [hook] },
    );

    expect(seen).toStrictEqual(['turn_1.1', 'turn_2.1', 'turn_1.2']);
    expect(child.requests.map(({ maxOutputTokens }) => maxOutputTokens)).toStrictEqual([500, 500]);
    expect(resultTexts(recorded)).toStrictEqual(['short']);
  });

  it('E13 ends at its own stop conditions', async () => {
    const { recorded, child } = await dispatched([['half', toolCall('read')], 'never'], {
      tools: [echoTool({ name: 'read', readOnly: true })],
      stopWhen: ({ usage }) => (usage.outputTokens > 0 ? { stopReason: 'max_budget', name: 'mine', reason: 'Enough.' } : undefined),
    });

    expect(child.callCount).toBe(1);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'half']]);
    expect(recorded.find((event) => event.type === 'tool.result')).toMatchObject({ result: { note: expect.stringContaining('max_budget: Enough') as string } });
  });

  it('E13 describes a call by its description, or by the beginning of its prompt', async () => {
    const dispatch = dispatchAgent({ llm: scriptedLLM([]) });
    const long = `${'x'.repeat(100)}\nmore`;

    expect(dispatch.describe?.({ prompt: 'Find it.\nAll of it.' })).toBe('Find it.');
    expect(dispatch.describe?.({ prompt: long })).toHaveLength(80);
    expect(dispatch.describe?.({ prompt: long, description: 'Look around' })).toBe('Look around');
  });
});

describe('the events of a sub-agent', () => {
  const tools = [recordingTool({ name: 'read', readOnly: true, execute: (_input, { progress }) => (progress({ kind: 'status', text: 'half' }), 'text') })];
  const noisy: Hook = {
    name: 'noisy',
    afterStep: ({ notify }) => {
      notify({ name: 'noise', data: 1 });
    },
  };

  it('E13 SA6 reach the caller live with their path, and none is recorded there', async () => {
    const { events, recorded } = await dispatched([toolCall('read'), 'ok'], { tools, hooks: [noisy] });

    const below = events.filter((event) => 'agentPath' in event);
    expect(new Set(below.map((event) => JSON.stringify('agentPath' in event && event.agentPath)))).toStrictEqual(new Set(['["call_1"]']));
    expect(new Set(below.map(({ turnId }) => turnId))).toStrictEqual(new Set(['turn_2']));
    expect(below.map(({ type }) => type)).toStrictEqual([
      'turn.begin', 'message', 'step.begin', 'tool.call.delta', 'usage', 'tool.call', 'tool.progress', 'tool.finished', 'tool.result', 'step.end', 'notice',
      'step.begin', 'text.delta', 'usage', 'content.part', 'step.end', 'notice', 'turn.end',
    ]);
    expect(recorded.filter((event) => 'agentPath' in event)).toStrictEqual([]);
  });

  it('E13 are those of tools, usage and notices alone, if told so', async () => {
    const { events } = await dispatched([toolCall('read'), 'ok'], { tools, hooks: [noisy], forward: 'tools' });

    expect(events.flatMap((event) => ('agentPath' in event ? [event.type] : []))).toStrictEqual([
      'usage', 'tool.call', 'tool.progress', 'tool.finished', 'tool.result', 'notice', 'usage', 'notice',
    ]);
  });

  it('E13 SA6 change nothing, whatever a listener does with them', async () => {
    const { result, recorded } = await dispatched(['ok'], {}, {
      listener: (event) => {
        if ('agentPath' in event) throw new Error('no');
      },
    });

    expect(result.stopReason).toBe('end_turn');
    expect(resultTexts(recorded)).toStrictEqual(['ok']);
  });
});

describe('the tokens of a sub-agent', () => {
  it('E13 are recorded with the caller at once, by model, failed attempts too', async () => {
    const failed = new LLMError({ kind: 'overloaded', message: 'busy', usage: toUsage({ inputTokens: 5 }) });
    const child = scriptedLLM([failed, { content: 'ok', usage: { inputTokens: 7, outputTokens: 2 }, modelId: 'child-b' }], { modelId: 'child-a' });

    const { recorded, result } = await runScripted({
      replies: [{ content: [dispatchCall('x')], usage: { inputTokens: 100 } }, { content: 'done', usage: { inputTokens: 1000 } }],
      tools: [dispatchAgent({ llm: withRetry(child) })],
    });

    expect(recorded.filter((event) => event.type === 'usage').map(({ modelId, purpose, usage }) => [modelId, purpose, usage.inputTokens])).toStrictEqual([
      ['scripted-model', 'step', 100],
      ['child-a', 'child', 5],
      ['child-b', 'child', 7],
      ['scripted-model', 'step', 1000],
    ]);
    expect(result.usage).toStrictEqual(toUsage({ inputTokens: 1112, outputTokens: 2 }));
  });
});

describe('the end of a sub-agent', () => {
  it('BR-149 that failed for good is an error with its stop reason and the kind of the failure, and the caller goes on', async () => {
    const broken = new LLMError({ kind: 'server', message: 'HTTP 500' });
    const child = scriptedLLM([repeat(broken)]);

    const { recorded, result } = await runScripted({
      replies: [dispatchCall('x'), 'done'],
      tools: [dispatchAgent({ llm: withRetry(child, { maxAttempts: 3 }) })],
    });

    expect(child.callCount).toBe(3);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'The sub-agent did not finish (fatal_error, server: HTTP 500). It left no text.']]);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it('BR-149 at its limit of steps is what it had, with a note that says so', async () => {
    const { recorded } = await dispatched([repeat(['Found one so far.', toolCall('read')])], {
      maxSteps: 2,
      tools: [echoTool({ name: 'read', readOnly: true })],
    });

    expect(recorded.find((event) => event.type === 'tool.result')).toMatchObject({
      result: {
        content: [{ type: 'text', text: 'Found one so far.' }],
        note: 'The sub-agent stopped before it was done (max_steps: The limit of 2 steps was reached): the text above is only what it had.',
      },
    });
  });

  it('BR-149 at its limit of steps is an error if it had nothing', async () => {
    const { recorded } = await dispatched([repeat(toolCall('read'))], { maxSteps: 1, tools: [echoTool({ name: 'read', readOnly: true })] });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'The sub-agent did not finish (max_steps: The limit of 1 steps was reached). It left no text.'],
    ]);
  });

  it('BR-149 at its limit may be asked for a last answer by a hook', async () => {
    const { recorded } = await dispatched([toolCall('read'), 'All I know.'], {
      maxSteps: 1,
      tools: [echoTool({ name: 'read', readOnly: true })],
      hooks: [finalAnswer()],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'All I know.']]);
  });

  it('BR-149 whose model says nothing is an error that says so', async () => {
    const { recorded, result } = await dispatched(['']);

    expect(resultLines(recorded)[0]).toStrictEqual(['call_1', 'error', expect.stringContaining('fatal_error, malformed_response: The model') as string]);
    expect(result.text).toBe('done');
  });

  it('SA4 BR-149 with an answer without text is asked about once, and then noted', async () => {
    const image = { type: 'media', mediaType: 'image/png', data: 'AAAA' } as const;
    const { child, recorded } = await dispatched([image, image]);

    expect(child.callCount).toBe(2);
    expect(conversation(child.requests[1]!.messages).at(-1)).toContain('Write your whole answer now');
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', expect.stringContaining('ended without an answer') as string]]);
  });

  it('SA4 with an answer that is too short for the host is asked about once', async () => {
    const { child, recorded } = await dispatched(['Done.', 'I changed a.ts.'], { minAnswerCharacters: 10 });

    expect(child.callCount).toBe(2);
    expect(resultTexts(recorded)).toStrictEqual(['I changed a.ts.']);
  });

  it('SA4 with a short answer is not asked about otherwise', async () => {
    const { child, recorded } = await dispatched(['4']);

    expect(child.callCount).toBe(1);
    expect(resultTexts(recorded)).toStrictEqual(['4']);
  });

  it('SA4 whose reply was cut off by the output limit is an error, without another request', async () => {
    const { child, recorded } = await dispatched([{ content: 'It is in', stopReason: 'max_tokens' }], { minAnswerCharacters: 100 });

    expect(child.callCount).toBe(1);
    const [line] = resultLines(recorded);
    expect(line![1]).toBe('error');
    expect(line![2]).toContain('max_tokens: its reply reached the output limit');
    expect(line![2]).toContain('which is not its answer:\nIt is in');
  });

  it('E13 with a long answer is shortened', async () => {
    const { recorded } = await dispatched([`start${'x'.repeat(20_000)}end`]);

    const [text] = resultTexts(recorded);
    expect(text!.length).toBeLessThanOrEqual(8_192);
    expect(text).toMatch(/^start.*characters left out.*end$/s);
    expect(recorded.find((event) => event.type === 'tool.result')).toMatchObject({ result: { truncated: true } });
  });

  it('BR-149 after a tool of its own failed is its answer', async () => {
    const { recorded } = await dispatched([toolCall('fail'), 'It cannot be read.'], { tools: [failingTool({ readOnly: true })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'It cannot be read.']]);
  });
});

describe('rate limits of sub-agents', () => {
  const limited = new LLMError({ kind: 'rate_limit', message: 'slow down', retryAfterMs: 1_000 });

  it('SA5 a child that was rate-limited is asked again with its prompt once', async () => {
    const child = scriptedLLM([limited, limited, 'ok']);
    const { recorded } = await runScripted({ replies: [dispatchCall('Find it.'), 'done'], tools: [dispatchAgent({ llm: withRetry(child) })] });

    expect(child.requests.map(({ messages }) => conversation(messages))).toStrictEqual(Array(3).fill(['user: Find it.']));
    expect(resultTexts(recorded)).toStrictEqual(['ok']);
  });

  it('SB1 a refusal pauses all that share the limit, and those refused are asked again', async () => {
    const limit = createRateLimit();
    const times: number[] = [];
    const child = scriptedLLM((_request, index) => (index === 0 ? limited : 'ok'));
    const timed = decorateLLM(child, (request) => {
      times.push(request.scope!.runtime.now());
      return child.chat(request);
    });
    const llm = withRetry(withRateLimit(timed, limit));

    const { recorded } = await runScripted({
      replies: [Array.from({ length: 6 }, (_, index) => dispatchCall(`task ${index}`)), 'done'],
      tools: [dispatchAgent({ llm })],
    });

    // Four were sent at once; the refused one and the two that waited for a place come after the pause.
    expect(times).toStrictEqual([0, 0, 0, 0, 1_000, 1_000, 1_000]);
    expect(resultTexts(recorded)).toStrictEqual(Array(6).fill('ok'));
  });

  it('SB1 a lone child that is always refused fails rather than waits for ever', async () => {
    const child = scriptedLLM([repeat(limited)]);
    const { recorded } = await runScripted({
      replies: [dispatchCall('x'), 'done'],
      tools: [dispatchAgent({ llm: withRetry(withRateLimit(child, createRateLimit())) })],
    });

    expect(resultLines(recorded)[0]).toStrictEqual(['call_1', 'error', expect.stringContaining('fatal_error, rate_limit: slow down') as string]);
  });
});

describe('arguments of a dispatch', () => {
  it('SA1 E13 with an unknown type are refused before anything is made, with the names that exist', async () => {
    const asked: string[] = [];
    const authorize: Hook = { name: 'ask', authorizeToolCall: (_context, { name }) => void asked.push(name) };

    const { child, recorded } = await dispatched(
      [],
      { types: { explorer: { description: 'a' }, coder: { description: 'b' } } },
      { replies: [dispatchCall('x', { type: 'toString' }), 'done'], hooks: [authorize] },
    );

    expect(resultLines(recorded)[0]![1]).toBe('error');
    expect(resultTexts(recorded)[0]).toContain('"type" is one of "explorer", "coder"');
    expect([asked, child.callCount]).toStrictEqual([[], 0]);
  });

  it.each([
    ['no prompt', {}, '"prompt" must be a text'],
    ['a blank prompt', { prompt: ' ' }, '"prompt" must be a text'],
    ['a description that is no text', { prompt: 'x', description: 1 }, '"description" must be a text'],
    ['a type where there is none', { prompt: 'x', type: 'a' }, 'Leave "type" out'],
  ])('E13 with %s are refused', async (_what, input, message) => {
    const { recorded, child } = await dispatched([], {}, { replies: [toolCall('dispatch_agent', input), 'done'] });

    expect(resultTexts(recorded)[0]).toContain(message);
    expect(child.callCount).toBe(0);
  });

  it('E13 are described to the model, with the types', () => {
    const { name, description, inputSchema } = dispatchAgent({ name: 'ask_helper', types: { explorer: { description: 'Finds things.' } } });

    expect(name).toBe('ask_helper');
    expect(description).toContain('- explorer: Finds things.');
    expect(inputSchema).toMatchObject({ properties: { type: { enum: ['explorer'] } }, required: ['prompt'] });
    expect(dispatchAgent().inputSchema).not.toHaveProperty('properties.type');
  });
});

describe('options of dispatchAgent', () => {
  it.each<[string, object, string]>([
    ['an unknown option', { maxstep: 3 }, 'has no option `maxstep`'],
    ['no steps', { maxSteps: -1 }, '`maxSteps` must be a whole number of at least 0'],
    ['half a place', { maxParallel: 0.5 }, '`maxParallel` must be a whole number of at least 1'],
    ['no depth', { maxDepth: 0 }, '`maxDepth` must be a whole number of at least 1'],
    ['no time', { deadlineMs: -1 }, '`deadlineMs` must be a number of at least 0'],
    ['no model', { llm: {} }, 'needs an LLM'],
    ['a wrong forward', { forward: 'none' }, "`forward` must be 'all' or 'tools'"],
    ['no name', { name: '' }, '`name` must be a text that is not empty'],
    ['a log that is none', { openLog: {} }, '`openLog` must be a function'],
    ['a tool that is none', { tools: [{}] }, 'tools[0] has no name'],
    ['a hook that is none', { hooks: [() => undefined] }, 'hooks[0] is not a hook'],
    ['types that are a list', { types: [] }, '`types` must be an object'],
    ['a type without a description', { types: { a: {} } }, '`types.a.description` must be a text'],
    ['a type with an unknown option', { types: { a: { description: '', model: 'x' } } }, 'types.a has no option `model`'],
    ['a type with a broken tool', { types: { a: { description: '', tools: [{ name: 'x' }] } } }, 'Tool "x" has no execute'],
  ])('E13 with %s are refused when the tool is made', (_what, options, message) => {
    expect(() => dispatchAgent(options as DispatchAgentOptions)).toThrow(TypeError);
    expect(() => dispatchAgent(options as DispatchAgentOptions)).toThrow(message);
  });
});
