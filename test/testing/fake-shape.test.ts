/**
 * The scripted model gives turns the same events as real adapters do, which read one script as the wire bytes of their
 * protocols: what is green on the fake is green on them.
 */
import { expect, it, onTestFinished } from 'vitest';
import type { LLM, LoopEvent } from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { echoTool, scriptedLLM, startScripted, thinking, toolCall } from 'turnloop/testing';
import type { LLMScene, LLMScenePart, LLMSceneStep } from 'turnloop/testing/conformance';
import { anthropicProtocol } from '../support/scene-server-anthropic.ts';
import { chatProtocol } from '../support/scene-server-chat.ts';
import { geminiProtocol } from '../support/scene-server-google.ts';
import { responsesProtocol } from '../support/scene-server-responses.ts';
import { startSceneServer } from '../support/scene-server.ts';

const USAGE = { inputTokens: 21, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 13, thinkingTokens: 0 };
const REPLY = [thinking('t'), { type: 'text', text: 'ab' } as const, toolCall('echo', { x: 1 })];

function part(whole: LLMScenePart, pieces: readonly string[]): readonly LLMSceneStep[] {
  return [{ type: 'part.begin', part: whole }, ...pieces.map((text) => ({ type: 'part.delta', part: whole, text }) as const), { type: 'part.end', part: whole }];
}

const SCENE: LLMScene = {
  id: 'fake.shape',
  apiKey: 'k',
  answers: [
    [
      { type: 'start' },
      ...part({ type: 'thinking', index: 0, text: 't', signature: 'c2lnbmVk' }, ['t']),
      ...part({ type: 'text', index: 1, text: 'ab' }, ['a', 'b']),
      ...part({ type: 'tool_call', index: 2, callIndex: 0, name: 'echo', providerId: 'wire_1', inputText: '{"x":1}' }, ['{"x"', ':1}']),
      { type: 'finish', stopReason: 'tool_use', usage: USAGE },
    ],
    [{ type: 'start' }, ...part({ type: 'text', index: 0, text: 'c' }, ['c']), { type: 'finish', stopReason: 'end_turn', usage: USAGE }],
  ],
};

/** A server that plays the scene, for as long as the test runs. */
async function serve(protocol: Parameters<typeof startSceneServer>[1]): Promise<string> {
  const server = await startSceneServer(SCENE, protocol);
  onTestFinished(() => server.close());
  return server.origin;
}

const ADAPTERS: Readonly<Record<string, () => Promise<LLM>>> = {
  openAIChat: async () => openAIChat({ model: 'm', apiKey: 'k', baseUrl: await serve(chatProtocol) }),
  openAIResponses: async () => openAIResponses({ model: 'm', apiKey: 'k', baseUrl: await serve(responsesProtocol) }),
  anthropic: async () => anthropic({ model: 'm', apiKey: 'k', baseUrl: await serve(anthropicProtocol) }),
  google: async () => google({ model: 'm', apiKey: 'k', baseUrl: `${await serve(geminiProtocol)}/v1beta` }),
};

/** What only a provider can say, and what differs from one turn to the next. */
const OWN = new Set(['at', 'turnId', 'stepId', 'id', 'modelId', 'provider', 'providerId', 'providerData', 'responseId', 'rawStopReason', 'timing', 'source', 'signature', 'redactedData']);

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, child: unknown) => (OWN.has(key) ? undefined : child)));
}

/** The events, with the fragments of a part as one: a protocol cuts them as it likes. */
function shapeOf(events: readonly LoopEvent[]): readonly LoopEvent[] {
  const shape: LoopEvent[] = [];
  for (const event of events) {
    const last = shape.at(-1);
    if (event.type === 'tool.call.delta' && last?.type === 'tool.call.delta') shape.splice(-1, 1, { ...last, inputText: last.inputText + event.inputText });
    else if (event.type === 'text.delta' && last?.type === 'text.delta') shape.splice(-1, 1, { ...last, text: last.text + event.text });
    else shape.push(event);
  }
  return shape;
}

async function play(llm: LLM) {
  const turn = startScripted({ decorate: () => llm, tools: [echoTool()] });
  const result = await turn.result;
  return { events: plain(shapeOf(turn.events)), messages: plain(turn.transcript.buildMessages()), usage: result.usage, stopReason: result.stopReason };
}

it.each(Object.entries(ADAPTERS))('BR-133 %s and the scripted model give a turn the same events, messages and usage', async (_name, make) => {
  const fake = await play(scriptedLLM([{ content: REPLY, chunk: 1, usage: USAGE }, { content: 'c', usage: USAGE }]));
  const real = await play(await make());

  expect(fake.stopReason).toBe('end_turn');
  expect(real).toStrictEqual(fake);
});
