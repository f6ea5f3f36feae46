/**
 * What comes from outside, a model's numbers, a person's edit, an adapter's reply and its errors, is checked for what it
 * is before it is used, and named when it will not do.
 */
import { describe, expect, it } from 'vitest';
import { decorateLLM, type Hook, type JsonObject, type LLMRequest, type LLMResponse, LLMError, toUsage } from 'turnloop';
import { recordingTool, runScripted, toolCall } from 'turnloop/testing';
import { resultLines } from './support.ts';

describe('an integer of 16 digits and more', () => {
  it.each([
    '9007199254740993',
    '9007199254740993.0',
    '-9007199254740993.00',
    '1234567890123456789e0',
    '1234567890123456789E+0',
    '[1, 9007199254740993.0]',
  ])('written as %s is refused rather than rounded', async (number) => {
    const tool = recordingTool();

    const { recorded } = await runScripted({ replies: [toolCall('record', `{"id": ${number}}`), 'done'], tools: [tool] });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.stringContaining('too large to be exact')]]);
    expect(tool.runCount).toBe(0);
  });

  it.each(['9007199254740991.0', '1e20', '-1.5e300', '0.1234567890123456789', '1234567890.1234567890', '"9007199254740993.0"'])(
    'is not what %s is, which is run with',
    async (number) => {
      const tool = recordingTool();

      await runScripted({ replies: [toolCall('record', `{"n": ${number}}`), 'done'], tools: [tool] });

      expect(tool.inputs).toStrictEqual([{ n: JSON.parse(number) as unknown }]);
    },
  );
});

describe('arguments with a key that names the prototype', () => {
  // Parsed, since only then is it a key of its own.
  const input = JSON.parse('{"path":"y","__proto__":{"admin":true},"deep":[{"__proto__":{"admin":true}}]}') as JsonObject;

  it.each<[string, Hook]>([
    ['an edit', { name: 'edit', authorizeToolCall: () => ({ action: 'edit', input }) }],
    ['a rewrite', { name: 'rewrite', prepareToolCall: () => ({ action: 'rewrite', input }) }],
  ])('reach the tool without it where they come from %s', async (_what, hook) => {
    const seen: unknown[] = [];
    const tool = recordingTool({
      execute: (given) => {
        seen.push(given['admin'], Object.getPrototypeOf(given) === Object.prototype);
        return 'ok';
      },
    });

    const { recorded } = await runScripted({ replies: [toolCall('record', { path: 'x' }), 'done'], tools: [tool], hooks: [hook] });

    expect(seen).toStrictEqual([undefined, true]);
    expect(tool.inputs).toStrictEqual([{ path: 'y', deep: [{}] }]);
    expect(JSON.stringify(recorded)).not.toContain('admin');
  });
});

describe('what an adapter attaches', () => {
  const call = { type: 'tool_call', name: 'record', inputText: '{}' };
  /** A store that writes lines of JSON. */
  const record = (event: object): void => {
    JSON.stringify(event);
  };

  it.each<[string, object, string]>([
    ['to a call', { ...call, providerData: 1n }, 'content[0] has providerData that is not JSON'],
    ['to a text', { type: 'text', text: 'x', providerData: { at: 1n } }, 'content[0] has providerData that is not JSON'],
    ['to thinking', { type: 'thinking', text: 'x', providerData: () => 1 }, 'content[0] has providerData that is not JSON'],
    ['as the id of a call', { ...call, providerId: 5n }, 'content[0] is a tool call whose providerId is not a string'],
  ])('%s is named where no store could write it', async (_what, part, where) => {
    const tool = recordingTool();
    const reply = { content: [part, { type: 'text', text: 'y' }], stopReason: 'end_turn', usage: toUsage({ outputTokens: 1 }) };
    const chat = (): Promise<LLMResponse> => Promise.resolve(reply as unknown as LLMResponse);

    const { result } = await runScripted({ record, tools: [tool], decorate: (llm) => decorateLLM(llm, chat) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'malformed_response' } });
    expect(result.error?.message).toContain(where);
    expect([result.usage.outputTokens, tool.runCount]).toStrictEqual([1, 0]);
  });

  it.each<[string, object]>([
    ['a part of the provider', { type: 'provider', provider: 'p', data: 1n }],
    ['a text', { type: 'text', text: 'x', providerData: 1n }],
  ])('to a failure as %s is left out where no store could write it: the failure is told', async (_what, part) => {
    const partial = [part, { type: 'text', text: 'so far' }] as unknown as NonNullable<LLMError['partial']>;

    const { result } = await runScripted({ record, replies: [new LLMError({ kind: 'server', message: 'gone', partial })] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', text: 'so far', error: { kind: 'server', message: 'gone' } });
  });
});

describe('one error object that several attempts fail with', () => {
  it('costs its tokens each time', async () => {
    const error = new LLMError({ kind: 'overloaded', message: 'busy', usage: toUsage({ inputTokens: 5 }) });
    const chat = async (request: LLMRequest): Promise<LLMResponse> => {
      for (const delayMs of [1, 2, 3]) await request.onAttemptFailed?.({ error, delayMs });
      return { content: [{ type: 'text', text: 'done' }], stopReason: 'end_turn', usage: toUsage({ inputTokens: 1 }) };
    };

    const { result, recording } = await runScripted({ decorate: (llm) => decorateLLM(llm, chat) });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done', usage: { inputTokens: 16 } });
    expect(recording.of('step.retrying').map(({ attempt }) => attempt)).toStrictEqual([1, 2, 3]);
    expect(recording.of('usage').map(({ purpose }) => purpose)).toStrictEqual(['attempt', 'attempt', 'attempt', 'step']);
  });
});
