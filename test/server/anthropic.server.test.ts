/**
 * The Anthropic adapter against the Messages endpoint of a real llama.cpp server with a real, tiny model: streamed turns
 * with tool calls, abort, overflow and usage. Skipped, saying why, where the server cannot be had.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { type AnyTool, createTranscript, defineTool, type LLM, type LLMDelta, runTurn, userMessage } from 'turnloop';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { errorOf } from '../providers/fake-server.ts';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { startLlamaServer } from './llama-server.ts';

const FILES = new Map([
  ['README.md', '# turn-demo\n\nA small project for trying an agent on real files.\n'],
  ['package.json', '{\n  "name": "turn-demo",\n  "version": "1.0.0"\n}\n'],
]);
const NAMES = ['list_files', 'read_file', 'search', 'edit_file', 'run_command'];
/** Enough for any answer of this model; should it go astray, it stops here. */
const MAX_OUTPUT_TOKENS = 400;

const server = await startLlamaServer();
const skipped = typeof server === 'string' ? server : undefined;
if (skipped !== undefined) console.warn(`Skipped: ${skipped}.`);
afterAll(() => (typeof server === 'string' ? undefined : server.close()));

function tinyModel(options: Partial<AnthropicOptions> = {}): LLM {
  const baseUrl = typeof server === 'string' ? '' : server.baseUrl;
  return anthropic({ model: 'tiny-coder', baseUrl, temperature: 0, maxOutputTokens: MAX_OUTPUT_TOKENS, ...options });
}

/** The five tools that the model knows; of them two work. */
function tools(read: string[]): AnyTool[] {
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

    const result = await runTurn({
      llm: tinyModel({ fetch }),
      tools: tools(read),
      input: [userMessage(input)],
      buildMessages,
      dispatchEvent: (event) => {
        if (event.type === 'text.delta') streamed += event.text;
        else record(event as Parameters<typeof record>[0]);
      },
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: calls.length === 0 ? 1 : 2 });
    expect(read.sort()).toStrictEqual(calls);
    expect(result.text).toMatch(answer);
    expect(streamed).toBe(result.text);
    expect(result.usage.inputTokens + result.usage.cacheReadTokens).toBeGreaterThan(50);
    expect(result.usage.outputTokens).toBeGreaterThan(0);
    for (const body of bodies) expect(checkMessagesRequest(body)).toStrictEqual([]);
  });

  it('answers without a stream as it does with one', async () => {
    const request = { systemPrompt: '', messages: [userMessage('read README.md')], tools: tools([]), signal: new AbortController().signal };
    const [streamed, plain] = [await tinyModel().chat(request), await tinyModel({ stream: false }).chat(request)];

    const calls = [streamed, plain].map(({ content }) => content.map((part) => part.type === 'tool_call' && [part.name, JSON.parse(part.inputText)]));
    expect(calls[0]).toStrictEqual([['read_file', { path: 'README.md' }]]);
    expect(calls[1]).toStrictEqual(calls[0]);
    expect(plain.stopReason).toBe('tool_use');
  });

  it('is aborted in the middle of an answer and answers the next request', async () => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const model = tinyModel();
    const onDelta = (delta: LLMDelta): void => {
      deltas.push(delta);
      if (deltas.length === 3) controller.abort();
    };
    const request = { systemPrompt: '', messages: [userMessage('What can you do?')], tools: tools([]), signal: controller.signal };

    expect(await errorOf(model.chat({ ...request, onDelta }))).toMatchObject({ kind: 'aborted' });
    expect(deltas).toHaveLength(3);
    expect(await model.chat({ ...request, signal: new AbortController().signal })).toMatchObject({ stopReason: 'end_turn' });
  });

  it('reports a prompt that does not fit as an overflow', async () => {
    const request = { systemPrompt: '', messages: [userMessage('word '.repeat(2000))], tools: [], signal: new AbortController().signal };

    expect(await errorOf(tinyModel().chat(request))).toMatchObject({ kind: 'context_overflow', retryable: false, status: 400 });
  });

  it('reports the output limit', async () => {
    const request = { systemPrompt: '', messages: [userMessage('What can you do?')], tools: [], signal: new AbortController().signal };

    expect(await tinyModel({ maxOutputTokens: 4 }).chat(request)).toMatchObject({ stopReason: 'max_tokens', usage: { outputTokens: 4 } });
  });
});
