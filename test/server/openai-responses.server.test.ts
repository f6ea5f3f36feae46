/**
 * The Responses adapter against a real llama.cpp server with a real, tiny model: streamed turns with tool calls, abort,
 * overflow and usage, and a server that keeps no conversations. Skipped, saying why, where the server cannot be had.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { type AnyTool, createEventDispatcher, createTranscript, defineTool, type LLM, type LLMDelta, type LLMRequest, runTurn, userMessage } from 'turnloop';
import { openAIResponses, type OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { errorOf } from '../providers/fake-server.ts';
import { checkResponsesRequest } from '../support/responses-rules.ts';
import { startLlamaServer } from './llama-server.ts';

const FILES = new Map([
  ['README.md', '# turn-demo\n\nA small project for trying an agent on real files.\n'],
  ['package.json', '{\n  "name": "turn-demo",\n  "version": "1.0.0"\n}\n'],
]);
const NAMES = ['list_files', 'read_file', 'search', 'edit_file', 'run_command'];

const server = await startLlamaServer();
const skipped = typeof server === 'string' ? server : undefined;
if (skipped !== undefined) console.warn(`Skipped: ${skipped}.`);
afterAll(() => (typeof server === 'string' ? undefined : server.close()));

function tinyModel(options: Partial<OpenAIResponsesOptions> = {}): LLM {
  const baseUrl = typeof server === 'string' ? '' : server.baseUrl;
  return openAIResponses({ model: 'tiny-coder', baseUrl, temperature: 0, maxOutputTokens: 400, ...options });
}

/** The five tools that the model knows; of them two work. */
function tools(read: string[] = []): AnyTool[] {
  return NAMES.map((name) =>
    defineTool({
      name,
      description: `The tool ${name}.`,
      input: { type: 'object', properties: { path: { type: 'string' } } },
      execute(input) {
        const { path } = input as { path?: string };
        read.push(`${name} ${path}`);
        if (name === 'list_files') return [...FILES.keys()].join('\n');
        return FILES.get(path ?? '') ?? `Error: no such file: ${path}`;
      },
    }),
  );
}

function ask(text: string, more: Partial<LLMRequest> = {}): LLMRequest {
  return { systemPrompt: '', messages: [userMessage(text)], tools: tools(), signal: new AbortController().signal, ...more };
}

describe.skipIf(skipped !== undefined)(`a real server${skipped === undefined ? '' : `, skipped: ${skipped}`}`, () => {
  it.each([
    ['read README.md', ['read_file README.md'], /README\.md begins: # turn-demo/],
    ['list the files', ['list_files .'], /README\.md/],
    ['read README.md and package.json', ['read_file README.md', 'read_file package.json'], /begins/],
    ['hello', [], /./],
  ])('answers "%s" in a streamed turn', async (input, calls, answer) => {
    const bodies: unknown[] = [];
    const fetch: typeof globalThis.fetch = (url, init) => {
      bodies.push(JSON.parse(init?.body as string));
      return globalThis.fetch(url, init);
    };
    const { record, buildMessages } = createTranscript();
    const read: string[] = [];
    let streamed = '';
    const emit = (event: { readonly type: string; readonly text?: string }): void => void (streamed += event.type === 'text.delta' ? (event.text ?? '') : '');

    const result = await runTurn({ llm: tinyModel({ fetch }), tools: tools(read), input, buildMessages, dispatchEvent: createEventDispatcher({ record, emit }) });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: calls.length === 0 ? 1 : 2 });
    expect(read.sort()).toStrictEqual(calls);
    expect(result.text).toMatch(answer);
    expect(streamed).toBe(result.text);
    expect(result.usage.inputTokens + result.usage.cacheReadTokens).toBeGreaterThan(50);
    expect(result.usage.outputTokens).toBeGreaterThan(0);
    for (const body of bodies) expect(checkResponsesRequest(body)).toStrictEqual([]);
  });

  it('answers without a stream as it does with one', async () => {
    const [streamed, plain] = [await tinyModel().chat(ask('read README.md')), await tinyModel({ stream: false }).chat(ask('read README.md'))];
    const calls = [streamed, plain].map(({ content }) => content.map((part) => part.type === 'tool_call' && [part.name, JSON.parse(part.inputText)]));

    expect(calls[0]).toStrictEqual([['read_file', { path: 'README.md' }]]);
    expect(calls[1]).toStrictEqual(calls[0]);
    expect(plain.stopReason).toBe('tool_use');
  });

  it('B2: keeps no conversations, so it is told the whole of them', async () => {
    const ids: unknown[] = [];
    const fetch: typeof globalThis.fetch = (url, init) => {
      ids.push((JSON.parse(init?.body as string) as { previous_response_id?: unknown }).previous_response_id);
      return globalThis.fetch(url, init);
    };
    const llm = tinyModel({ fetch, state: 'incremental' });
    const { record, buildMessages } = createTranscript();
    const turn = { llm, tools: tools(), buildMessages, dispatchEvent: createEventDispatcher({ record }) };

    expect(await runTurn({ ...turn, input: 'read README.md' })).toMatchObject({ stopReason: 'end_turn', steps: 2, text: expect.stringContaining('turn-demo') as string });
    expect(await runTurn({ ...turn, input: 'hello' })).toMatchObject({ stopReason: 'end_turn' });
    // Tried twice, and not again.
    expect(ids.map((id) => typeof id)).toStrictEqual(['undefined', 'string', 'undefined', 'string', 'undefined']);
  });

  it('is aborted in the middle of an answer and answers the next request', async () => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const model = tinyModel();
    const onDelta = (delta: LLMDelta): void => {
      deltas.push(delta);
      if (deltas.length === 3) controller.abort();
    };

    expect(await errorOf(model.chat(ask('What can you do?', { signal: controller.signal, onDelta })))).toMatchObject({ kind: 'aborted' });
    expect(deltas).toHaveLength(3);
    expect(await model.chat(ask('What can you do?'))).toMatchObject({ stopReason: 'end_turn' });
  });

  it('reports a prompt that does not fit as an overflow', async () => {
    expect(await errorOf(tinyModel().chat(ask('word '.repeat(2000), { tools: [] })))).toMatchObject({ kind: 'context_overflow', retryable: false, status: 400 });
  });
});
