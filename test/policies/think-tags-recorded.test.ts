/** withThinkTags around the chat adapter: recorded answers over HTTP, in any chunking, and what goes back in the history. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLM, type LLMDelta, type ReplyPart, runTurn, userMessage } from 'turnloop';
import { withThinkTags } from 'turnloop/policies';
import { openAIChat, type OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { echoTool, llmRequest } from 'turnloop/testing';
import { answer, answerEvents, type ReplayServer, startReplayServer } from '../support/replay-server.ts';
import { CHUNKINGS, cut, loadStreamCases } from '../support/stream-cases.ts';

const FIXTURES = 'test/fixtures/streams';

interface Tagged {
  readonly text: string;
  readonly thinkTagText?: string;
  readonly textAfterThinkTag?: string;
}

const cases = loadStreamCases(FIXTURES)
  .filter(({ protocol }) => protocol === 'chat-completions')
  .map((streamCase) => ({ ...streamCase, tagged: JSON.parse(readFileSync(`${FIXTURES}/${streamCase.name}.expected.json`, 'utf8')) as Tagged }));
const tagged = cases.filter((each) => each.tagged.thinkTagText !== undefined);
const untagged = cases.filter((each) => each.tagged.thinkTagText === undefined && each.expected.outcome === 'complete');

let server: ReplayServer;

beforeAll(async () => {
  server = await startReplayServer();
});

afterAll(() => server.close());

function chat(options: Partial<OpenAIChatOptions> = {}): LLM {
  return withThinkTags(openAIChat({ model: 'model', baseUrl: server.baseUrl, apiKey: 'sk-think-tags-key', ...options }));
}

function joined(parts: readonly (ReplyPart | LLMDelta)[], type: 'text' | 'thinking'): string {
  return parts.map((part) => (part.type === type && 'text' in part ? part.text : '')).join('');
}

it('B5 has every recorded answer with think tags', () => {
  expect(tagged.map(({ name }) => name)).toStrictEqual([
    'chat-completions/huggingface-think-length',
    'chat-completions/together-think-tags',
  ]);
});

describe.each(CHUNKINGS)('B5 recorded answers, %s', (chunking) => {
  it.each(tagged.map((each) => [each.name, each] as const))('splits %s', async (_name, { model, isStreamed, bytes, headers, tagged: right }) => {
    server.respond(answer(cut(bytes, chunking), 200, { ...headers }));
    const deltas: LLMDelta[] = [];

    const { content } = await chat({ model, stream: isStreamed }).chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));

    for (const parts of [content, deltas]) {
      expect(joined(parts, 'thinking')).toBe(right.thinkTagText);
      expect(joined(parts, 'text')).toBe(right.textAfterThinkTag);
    }
  });
});

it.each(untagged.map((each) => [each.name, each] as const))('B5 leaves an answer without think tags as the adapter read it: %s', async (_name, streamCase) => {
  const { model, isStreamed: stream, bytes, headers } = streamCase;
  server.respond(answer([bytes], 200, { ...headers }));
  const options = { model, baseUrl: server.baseUrl, apiKey: 'sk-think-tags-key', stream };

  const readings = [];
  for (const llm of [openAIChat(options), withThinkTags(openAIChat(options))]) {
    const deltas: LLMDelta[] = [];
    const { content, stopReason, usage } = await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));
    // A fragment that may be the beginning of a tag joins the next one.
    readings.push({ content, stopReason, usage, text: joined(deltas, 'text'), thinking: joined(deltas, 'thinking'), calls: deltas.filter(({ type }) => type === 'tool_call') });
  }

  expect(readings[1]).toStrictEqual(readings[0]);
});

describe('thinking of think tags in the next request', () => {
  const eventsOf = (model: string): readonly unknown[] => [
    { model, choices: [{ index: 0, delta: { content: '<think>Look first.</thi' } }] },
    { choices: [{ index: 0, delta: { content: 'nk>Looking.' } }] },
    { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: 'echo', arguments: '{"text":"a"}' } }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  ];

  async function secondRequest(options: Partial<OpenAIChatOptions>, model = 'model'): Promise<string> {
    const before = server.requests.length;
    server.respond((response, request) => {
      const isFirst = server.requests.length === before + 1;
      const last = { choices: [{ index: 0, delta: { content: 'Done.' }, finish_reason: 'stop' }] };
      return answerEvents(isFirst ? eventsOf(model) : [last])(response, request);
    });
    const transcript = createTranscript();
    const result = await runTurn({
      llm: chat(options),
      input: [userMessage('hi')],
      tools: [echoTool()],
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({ record: transcript.record }),
    });
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Done.' });
    return JSON.stringify((JSON.parse(server.requests[before + 1]!.body) as { messages: unknown[] }).messages[1]);
  }

  it('does not go back by itself, nor do the tags', async () => {
    const message = await secondRequest({});

    expect(message).toContain('Looking.');
    expect(message).not.toContain('Look first.');
    expect(message).not.toContain('think');
  });

  it('goes back in the field that the adapter is told of', async () => {
    const message = await secondRequest({ thinkingField: 'reasoning_content' });

    expect(JSON.parse(message)).toMatchObject({ content: 'Looking.', reasoning_content: 'Look first.' });
  });

  it('does not go back to a server that answers under another name than it was asked by', async () => {
    const message = await secondRequest({ thinkingField: 'reasoning_content' }, 'model-2026');

    expect(message).not.toContain('Look first.');
  });
});
