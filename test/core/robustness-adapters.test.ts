/**
 * Adapters that keep no promise: replies without usage or with parts that are none, wrong deltas, late calls of
 * callbacks, errors that carry secrets. Each is named for what it is, and nothing of it ends up in the record.
 */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  createTranscript,
  decorateLLM,
  LLMError,
  type LLMDelta,
  type LLMRequest,
  type LLMResponse,
  type Recovery,
  toUsage,
} from 'turnloop';
import { echoTool, runScripted, type RunScriptedOptions, type ScriptedOutcome, toolCall } from 'turnloop/testing';
import { throughJson } from './support.ts';

const TEXT = { type: 'text', text: 'hi' } as const;
const USAGE = toUsage({ inputTokens: 9 });
const WHOLE = { content: [TEXT], stopReason: 'end_turn', usage: USAGE } as const;

/** Runs a turn with an adapter that nobody type-checked. */
function runWith(chat: (request: LLMRequest) => unknown, options: RunScriptedOptions = {}): Promise<ScriptedOutcome> {
  const untyped = (request: LLMRequest): Promise<LLMResponse> => Promise.resolve(chat(request)) as Promise<LLMResponse>;
  return runScripted({ ...options, decorate: (llm) => decorateLLM(llm, untyped) });
}

/** Makes an adapter that gives these replies in order. */
function inOrder(...replies: readonly unknown[]): () => unknown {
  let asked = 0;
  return () => replies[(asked += 1) - 1];
}

describe('a reply', () => {
  it('without usage costs nothing', async () => {
    const { result } = await runWith(() => ({ content: [TEXT], stopReason: 'end_turn' }));

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'hi', usage: { inputTokens: 0, outputTokens: 0 } });
  });

  it.each<[string, unknown, string]>([
    ['that is no object', undefined, 'no "content" list'],
    ['whose content is a text', { ...WHOLE, content: 'hi' }, 'no "content" list'],
    ['without a stop reason', { ...WHOLE, stopReason: undefined }, '"stopReason" is undefined'],
    ['with a stop reason of the provider', { ...WHOLE, stopReason: 'STOP' }, '"stopReason" is "STOP"'],
    ['with a part that is nothing', { ...WHOLE, content: [null] }, 'content[0] is not a part'],
    ['with a second part without text', { ...WHOLE, content: [TEXT, { type: 'text' }] }, 'content[1] has no text'],
    ['with a part of an unknown type', { ...WHOLE, content: [{ type: 'audio' }] }, 'content[0] has the unknown type "audio"'],
    ['with a call without a name', { ...WHOLE, content: [{ type: 'tool_call', inputText: '{}' }] }, 'without a name'],
    ['with a call whose input is parsed', { ...WHOLE, content: [{ type: 'tool_call', name: 'a', inputText: {} }] }, 'inputText'],
    ['with media without data', { ...WHOLE, content: [{ type: 'media', mediaType: 'image/png' }] }, 'content[0] is media without'],
    ['with a part of no provider', { ...WHOLE, content: [{ type: 'provider', data: {} }] }, 'without "provider"'],
    ['with data that is no JSON', { ...WHOLE, content: [{ type: 'provider', provider: 'p', data: 1n }] }, 'whose data is not JSON'],
  ])('%s is malformed, and the error says where', async (_what, reply, where) => {
    const { result, recorded } = await runWith(() => reply);

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'malformed_response', retryable: true } });
    expect(result.error?.message).toContain(where);
    expect(createTranscript(throughJson(recorded)).buildMessages()).toHaveLength(1);
  });

  it('that is malformed is paid for all the same', async () => {
    const { result } = await runWith(() => ({ ...WHOLE, content: [{ type: 'audio' }] }));

    expect(result.usage).toStrictEqual(USAGE);
  });

  it('that tells nothing of a model is kept with the name that the turn knows', async () => {
    const { result } = await runWith(() => ({ ...WHOLE, modelId: undefined, provider: undefined }));

    expect(result.message?.source).toStrictEqual({ provider: 'scripted', modelId: 'scripted-model' });
  });
});

describe('a model that is none', () => {
  it('ends the turn before a step begins', async () => {
    const { result, recorded } = await runScripted({ decorate: () => () => undefined as never });

    expect(result.error).toMatchObject({ code: 'setup_failed', message: expect.stringContaining('"llm" gave no model') as string });
    expect(recorded.map((event) => event.type)).toStrictEqual(['turn.begin', 'message', 'turn.end']);
  });
});

describe('a delta', () => {
  it.each<[string, unknown]>([
    ['a text', 'hel'],
    ['nothing', undefined],
    ['an object without text', { type: 'text', delta: 'hel' }],
    ['a call without its text', { type: 'tool_call', callIndex: 0, name: 'echo' }],
  ])('that is %s is refused with what onDelta takes', async (_what, delta) => {
    const refusals: unknown[] = [];
    const chat = ({ onDelta }: LLMRequest): LLMResponse => {
      try {
        onDelta?.(delta as LLMDelta);
      } catch (error) {
        refusals.push(error);
      }
      return WHOLE;
    };

    const { result, recording } = await runWith(chat);

    expect(refusals).toMatchObject([{ name: 'TypeError', message: expect.stringContaining('onDelta takes { type: "text", text }') as string }]);
    expect([result.text, recording.of('text.delta')]).toStrictEqual(['hi', []]);
  });
});

describe('onAttemptFailed', () => {
  const error = new LLMError({ kind: 'server', message: 'down', usage: toUsage({ inputTokens: 5 }) });

  it('does nothing once the request has settled', async () => {
    let late: LLMRequest['onAttemptFailed'];
    const replies = inOrder({ content: [toolCall('echo', { text: 'a' })], stopReason: 'tool_use', usage: USAGE }, WHOLE);
    const chat = (request: LLMRequest): unknown => {
      late ??= request.onAttemptFailed;
      return replies();
    };
    const tool = echoTool();
    const hooks = [{ name: 'late', authorizeToolCall: async () => { await late?.({ error }); } }];

    const { result, recording } = await runWith(chat, { tools: [tool], hooks });

    expect(recording.of('step.retrying')).toStrictEqual([]);
    expect([result.usage.inputTokens, tool.runCount]).toStrictEqual([18, 1]);
  });
});

describe('a failure', () => {
  it.each<[string, unknown, string]>([
    ['a text', 'what came', ''],
    ['parts that are none', [null, { type: 'text' }, { type: 'thinking', signature: 's' }], ''],
    ['some parts that are whole', [{ type: 'text' }, TEXT], 'hi'],
  ])('is told as it is where what had arrived is %s', async (_what, partial, text) => {
    const failure = new LLMError({ kind: 'server', message: 'gone', partial: partial as [] });

    const { result, recorded } = await runScripted({ replies: [failure] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'server', message: 'gone' }, text });
    expect(() => JSON.stringify(createTranscript(recorded).buildMessages())).not.toThrow();
  });

  it('costs its tokens once an attempt, also where attempts fail with one and the same error', async () => {
    const error = new LLMError({ kind: 'server', message: 'gone', usage: toUsage({ inputTokens: 5 }) });
    const chat = async ({ onAttemptFailed }: LLMRequest): Promise<never> => {
      await onAttemptFailed?.({ error }); // The first of three attempts.
      await onAttemptFailed?.({ error });
      throw error;
    };

    const { result } = await runWith(chat);

    expect(result).toMatchObject({ error: { kind: 'server' }, usage: { inputTokens: 15 } });
  });

  it('that is reported without an error is one of an unknown kind', async () => {
    const chat = async ({ onAttemptFailed }: LLMRequest): Promise<unknown> => {
      await onAttemptFailed?.({} as never);
      return WHOLE;
    };

    const { result, recording } = await runWith(chat);

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'hi' });
    expect(recording.of('step.retrying')).toMatchObject([{ attempt: 1, error: { kind: 'unknown' } }]);
  });
});

describe('a recovery', () => {
  it('that stands in the list twice is tried twice, not for ever', async () => {
    let applied = 0;
    const again: Recovery = {
      name: 'again',
      kinds: ['server'],
      apply: (request) => {
        applied += 1;
        return request;
      },
    };

    const { result, llm } = await runScripted({
      replies: () => new LLMError({ kind: 'server', message: 'down' }),
      recoveries: [again, again],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'server' } });
    expect([applied, llm.callCount]).toStrictEqual([2, 3]);
  });
});

describe('an error', () => {
  it('shows no header of what led to it, however it is looked at', async () => {
    const headers = { authorization: 'Bearer sk-SECRET' };
    const refused = Object.assign(new Error('401 from the server'), { headers, config: { headers } });

    const { result, recorded } = await runScripted({ replies: [refused] });

    expect(result.error?.message).toBe('401 from the server');
    for (const shown of [inspect(result, { depth: 9 }), inspect(result.error), JSON.stringify(result), JSON.stringify(recorded), String(result.error)]) {
      expect(shown).not.toContain('SECRET');
    }
  });
});
