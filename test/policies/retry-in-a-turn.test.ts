/** withRetry inside a turn, as a black box: what listeners and the transcript see of failed attempts. */
import { describe, expect, it } from 'vitest';
import { decorateLLM, LLMError, type LLMErrorKind, type LLMResponse, type LoopEvent, NO_USAGE, type ToolContext } from 'turnloop';
import { withRetry } from 'turnloop/policies';
import { cutStream, recordingTool, repeat, toolCall } from 'turnloop/testing';
import { runScripted } from './run-scripted.ts';

function failure(kind: LLMErrorKind): LLMError {
  return new LLMError({ kind, message: `${kind}.` });
}

/** The text streamed since the last retraction. */
function visibleText(events: readonly LoopEvent[]): string {
  let text = '';
  for (const event of events) {
    if (event.type === 'step.retrying') text = '';
    if (event.type === 'text.delta') text += event.text;
  }
  return text;
}

describe('withRetry in a turn', () => {
  it('BR-010 shows the text of the last attempt only, and keeps one message', async () => {
    const { result, listener, transcript } = await runScripted({
      replies: [cutStream({ content: 'Hello world', chunk: 7 }, { deltaCount: 1 }), { content: 'Hello world', chunk: 7 }],
      decorate: (llm) => withRetry(llm),
    });

    expect(result.text).toBe('Hello world');
    expect(visibleText(listener.events)).toBe('Hello world');
    expect(listener.of('text.delta').map(({ attempt, text }) => [attempt, text])).toStrictEqual([
      [1, 'Hello w'],
      [2, 'Hello w'],
      [2, 'orld'],
    ]);
    expect(transcript.buildMessages().filter(({ role }) => role === 'assistant')).toHaveLength(1);
  });

  it('BR-010 ends with the partial answer kept in mode beforeFirstDelta', async () => {
    const { result, listener } = await runScripted({
      replies: [cutStream('Hello world', { deltaCount: 1 })],
      decorate: (llm) => withRetry(llm, { mode: 'beforeFirstDelta' }),
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'network' } });
    expect(listener.of('step.retrying')).toStrictEqual([]);
    expect(listener.of('content.part')).toMatchObject([{ part: { type: 'text', text: 'Hello world' } }]);
  });

  it.each([
    ['before any content', 0],
    ['after some text', 1],
  ])('BR-043 retries an overload reported inside the stream, %s', async (_when, deltaCount) => {
    const { result, listener } = await runScripted({
      replies: [cutStream('par', { deltaCount, error: failure('overloaded') }), 'partial no more'],
      decorate: (llm) => withRetry(llm),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'partial no more' });
    expect(visibleText(listener.events)).toBe('partial no more');
  });

  it.each([
    ['is empty', { content: [], stopReason: 'end_turn', usage: NO_USAGE }],
    ['is none', undefined],
  ])('RT1 asks again after a reply that %s, which whoever wrote the adapter did not see', async (_what, reply) => {
    const replies = [reply, { content: [{ type: 'text', text: 'second' }], stopReason: 'end_turn', usage: NO_USAGE }];

    const { result, listener } = await runScripted({
      replies: [],
      decorate: (inner) => withRetry(decorateLLM(inner, async () => replies.shift() as LLMResponse)),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'second' });
    expect(listener.of('step.retrying')).toMatchObject([{ error: { kind: 'malformed_response' } }]);
  });

  it('RT8 emits nine step.retrying events by default, then ends with the error', async () => {
    const { result, listener, llm } = await runScripted({
      replies: [repeat(failure('server'), 10)],
      decorate: (inner) => withRetry(inner),
    });

    expect(llm.callCount).toBe(10);
    expect(result).toMatchObject({ stopReason: 'fatal_error', steps: 1, error: { kind: 'server' } });
    expect(listener.of('step.retrying').map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toStrictEqual(
      Array.from({ length: 9 }, (_, index) => [index + 1, 10]),
    );
  });

  it('RT10 reports the delay the server asked for', async () => {
    const { listener } = await runScripted({
      replies: [new LLMError({ kind: 'rate_limit', message: 'Slow down.', retryAfterMs: 42 }), 'ok'],
      decorate: (llm) => withRetry(llm),
    });

    expect(listener.of('step.retrying')).toMatchObject([{ delayMs: 42 }]);
  });

  describe('BR-040 never runs a tool a second time', () => {
    it('BR-040 when a later step is retried: the same history goes out again', async () => {
      const charge = recordingTool({ name: 'charge' });
      const { result, llm } = await runScripted({
        replies: [toolCall('charge'), failure('server'), 'ok'],
        decorate: (inner) => withRetry(inner),
        tools: [charge],
      });

      expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'ok' });
      expect(charge.runCount).toBe(1);
      expect(llm.requests[2]?.messages).toStrictEqual(llm.requests[1]?.messages);
    });

    it.each([
      ['a dropped connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
      ['a rate limit', Object.assign(new Error('Too many requests.'), { status: 429 })],
      ['an LLMError of a sub-agent', failure('rate_limit')],
    ])('BR-040 when the tool fails with %s: that is its result', async (_what, error) => {
      const charge = recordingTool({
        name: 'charge',
        execute: () => {
          throw error;
        },
      });
      const { result, llm, listener } = await runScripted({
        replies: [toolCall('charge'), 'ok'],
        decorate: (inner) => withRetry(inner),
        tools: [charge],
      });

      expect(result.stopReason).toBe('end_turn');
      expect(charge.runCount).toBe(1);
      expect(llm.callCount).toBe(2);
      expect(listener.of('step.retrying')).toStrictEqual([]);
      expect(listener.of('tool.result')).toMatchObject([{ result: { isError: true } }]);
    });

    it('BR-040 when a hook after the step fails: that is reported', async () => {
      const charge = recordingTool({ name: 'charge' });
      const { result, llm } = await runScripted({
        replies: [toolCall('charge'), 'ok'],
        decorate: (inner) => withRetry(inner),
        tools: [charge],
        options: { hooks: [{ name: 'save', afterStep: () => Promise.reject(new Error('EOF')) }] },
      });

      expect(result.stopReason).toBe('end_turn');
      expect(charge.runCount).toBe(1);
      expect(llm.callCount).toBe(2);
    });

    it('BR-040 when an attempt dies after a complete call: the call of the next attempt runs, once', async () => {
      const runs: string[] = [];
      const charge = recordingTool({
        name: 'charge',
        execute: (_input, context: ToolContext) => {
          runs.push(context.toolCallId);
          return 'charged';
        },
      });
      const { listener } = await runScripted({
        replies: [cutStream(toolCall('charge', { amount: 1 }), { deltaCount: 1 }), toolCall('charge', { amount: 1 }), 'ok'],
        decorate: (inner) => withRetry(inner),
        tools: [charge],
      });

      const called = listener.of('tool.call').map(({ toolCallId }) => toolCallId);
      expect(called).toHaveLength(1);
      expect(runs).toStrictEqual(called);
    });
  });

  it('RT3 ends aborted at once when the turn is aborted between attempts', async () => {
    const controller = new AbortController();
    const { result, llm, runtime } = await runScripted({
      replies: [failure('server'), 'never'],
      decorate: (inner) => withRetry(inner),
      options: {
        signal: controller.signal,
        dispatchEvent: (event: LoopEvent) => {
          if (event.type === 'step.retrying') controller.abort();
        },
      },
    });

    expect(result.stopReason).toBe('aborted');
    expect(llm.callCount).toBe(1);
    expect(runtime.now()).toBe(0);
    expect(runtime.pendingTimers).toBe(0);
  });
});
