/**
 * Proves that `tinyLLM` keeps the contract of an `LLM`: streaming, abort, usage, limits and errors.
 * Black-box; what the model says comes from `oracle.json`.
 */
import { describe, expect, it } from 'vitest';
import { isLLMError, userMessage, type LLMDelta, type LLMError, type LLMRequest, type LLMResponse } from 'turnloop';
import { tinyLLM } from '../index.ts';
import { oracleCase, toRequest } from './oracle.ts';

/** The request of an oracle's case, with whatever a test is about. */
function requestOf(name: string, extra: Partial<LLMRequest> = {}): LLMRequest {
  return { ...toRequest(oracleCase(name)), signal: new AbortController().signal, ...extra };
}

/** The error that a request ends with. */
async function failureOf(response: Promise<LLMResponse>): Promise<LLMError> {
  const error: unknown = await response.then(() => undefined, (reason: unknown) => reason);
  if (!isLLMError(error)) throw new TypeError('The request did not end with an LLMError.');
  return error;
}

describe('replies', () => {
  it('answers with text and ends the turn', async () => {
    const response = await tinyLLM().chat(requestOf('hello-1'));

    expect(response).toStrictEqual({
      content: [{ type: 'text', text: 'Hello! What should I do?' }],
      stopReason: 'end_turn',
      usage: { inputTokens: 90, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 25, thinkingTokens: 0 },
    });
  });

  it('calls several tools in one reply', async () => {
    const response = await tinyLLM().chat(requestOf('read-two-1'));

    expect(response.content).toStrictEqual([
      { type: 'tool_call', name: 'read_file', inputText: '{"path": "README.md"}' },
      { type: 'tool_call', name: 'read_file', inputText: '{"path": "package.json"}' },
    ]);
    expect(response.stopReason).toBe('tool_use');
  });

  it('gives overlapping requests the replies they would get alone', async () => {
    const llm = tinyLLM();
    const names = ['edit-2', 'read-1', 'search-none-2'];

    const replies = await Promise.all(names.map((name) => llm.chat(requestOf(name))));

    const alone = await Promise.all(names.map((name) => tinyLLM().chat(requestOf(name))));
    expect(replies).toStrictEqual(alone);
  });
});

describe('streaming', () => {
  it('passes text on byte by byte', async () => {
    const deltas: LLMDelta[] = [];

    await tinyLLM().chat(requestOf('hello-1', { onDelta: (delta) => deltas.push(delta) }));

    expect(deltas).toStrictEqual(Array.from('Hello! What should I do?', (text) => ({ type: 'text', text })));
  });

  it('passes each call on by name and then in pieces of its input', async () => {
    const deltas: LLMDelta[] = [];

    await tinyLLM().chat(requestOf('read-two-1', { onDelta: (delta) => deltas.push(delta) }));

    const calls = [0, 1].map((index) => deltas.flatMap((delta) => (delta.type === 'tool_call' && delta.callIndex === index ? [delta] : [])));
    expect(calls.map((pieces) => pieces.map((piece) => piece.name).filter((name) => name !== undefined))).toStrictEqual([['read_file'], ['read_file']]);
    expect(calls.map((pieces) => pieces.map((piece) => piece.inputText).join(''))).toStrictEqual(['{"path": "README.md"}', '{"path": "package.json"}']);
    expect(calls[0]?.length).toBeGreaterThan(15);
  });

  it('lets timers run while it generates', async () => {
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 1);

    await tinyLLM().chat(requestOf('read-three-2'));

    clearInterval(timer);
    expect(ticks).toBeGreaterThan(20);
  });
});

describe('abort', () => {
  it('stops between two tokens and keeps what was said and spent', async () => {
    const controller = new AbortController();
    let text = '';
    const onDelta = (delta: LLMDelta): void => {
      if (delta.type === 'text') text += delta.text;
      if (text.length === 5) controller.abort();
    };

    const error = await failureOf(tinyLLM().chat(requestOf('hello-1', { signal: controller.signal, onDelta })));

    expect(text).toBe('Hello');
    expect(error.kind).toBe('aborted');
    expect(error.cause).toBe(controller.signal.reason);
    expect(error.partial).toStrictEqual([{ type: 'text', text: 'Hello' }]);
    expect(error.usage).toMatchObject({ inputTokens: 90, outputTokens: 5 });
  });

  it('stops while it still reads the prompt', async () => {
    const controller = new AbortController();
    setImmediate(() => controller.abort());

    const error = await failureOf(tinyLLM().chat(requestOf('read-three-2', { signal: controller.signal })));

    expect(error.kind).toBe('aborted');
    expect(error.usage?.inputTokens).toBeLessThan(100);
    expect(error.usage?.outputTokens).toBe(0);
  });

  it('does not begin when aborted already', async () => {
    const error = await failureOf(tinyLLM().chat(requestOf('hello-1', { signal: AbortSignal.abort() })));

    expect(error.kind).toBe('aborted');
    expect(error.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 });
  });

  it('leaves the model as fit as before', async () => {
    const llm = tinyLLM();
    const controller = new AbortController();
    setImmediate(() => controller.abort());
    await failureOf(llm.chat(requestOf('edit-1', { signal: controller.signal })));

    const response = await llm.chat(requestOf('hello-1'));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'Hello! What should I do?' }]);
  });
});

describe('usage', () => {
  it.each(['no-tools-1', 'read-2', 'search-none-2'].map(oracleCase))('counts the tokens of $name', async (oracle) => {
    const { usage } = await tinyLLM().chat(requestOf(oracle.name));

    expect(usage).toMatchObject({ inputTokens: oracle.prompt_tokens.length, outputTokens: oracle.output_tokens.length });
  });

  it('counts what the next request shares with the last as read from the cache', async () => {
    const llm = tinyLLM();
    const first = await llm.chat(requestOf('two-step-1'));

    const second = await llm.chat(requestOf('two-step-2'));

    const reused = first.usage.inputTokens + first.usage.outputTokens;
    expect(second.usage.cacheReadTokens).toBe(reused - 1);
    expect(second.usage.cacheReadTokens + second.usage.inputTokens).toBe(oracleCase('two-step-2').prompt_tokens.length);
  });
});

describe('limits', () => {
  it('stops at the output limit of the request', async () => {
    const response = await tinyLLM().chat(requestOf('hello-1', { maxOutputTokens: 5 }));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'Hello' }]);
    expect(response.stopReason).toBe('max_tokens');
    expect(response.usage.outputTokens).toBe(5);
  });

  it('keeps a call that the limit cut as far as it came', async () => {
    const response = await tinyLLM().chat(requestOf('read-1', { maxOutputTokens: 50 }));

    expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'read_file', inputText: '{"path": "REA' }]);
    expect(response.stopReason).toBe('max_tokens');
  });

  it('refuses a prompt that does not fit its context', async () => {
    const messages = [userMessage('x'.repeat(4_100))];

    const error = await failureOf(tinyLLM().chat(requestOf('hello-1', { messages })));

    expect(error.kind).toBe('context_overflow');
    expect(error.message).toMatch(/4185 tokens .* 4096/);
  });
});

describe('requests for what it cannot do', () => {
  it('refuses media, so that a recovery can leave them out', async () => {
    const messages = [userMessage([{ type: 'media', mediaType: 'image/png', data: 'AA==' }])];

    expect((await failureOf(tinyLLM().chat(requestOf('hello-1', { messages })))).kind).toBe('media_rejected');
  });

  it('refuses to answer in JSON', async () => {
    const responseSchema = { type: 'object' };

    expect((await failureOf(tinyLLM().chat(requestOf('hello-1', { responseSchema })))).kind).toBe('invalid_request');
  });
});

describe('tool choice', () => {
  it('calls no tool when told so', async () => {
    const { content } = await tinyLLM().chat(requestOf('read-1', { toolChoice: 'none', maxOutputTokens: 40 }));

    expect(content.map((part) => part.type)).toStrictEqual(['text']);
  });

  it('calls some tool when one is required', async () => {
    const { content } = await tinyLLM().chat(requestOf('hello-1', { toolChoice: 'required' }));

    expect(content.map((part) => part.type)).toContain('tool_call');
  });

  it('calls the tool it is told to', async () => {
    const { content } = await tinyLLM().chat(requestOf('read-1', { toolChoice: { name: 'list_files' } }));

    expect(content).toMatchObject([{ type: 'tool_call', name: 'list_files' }]);
  });
});

describe('the model file', () => {
  it('is refused when it is none', () => {
    expect(() => tinyLLM({ modelFile: new URL('../oracle.json', import.meta.url) })).toThrow('Not a GGUF file');
  });
});
