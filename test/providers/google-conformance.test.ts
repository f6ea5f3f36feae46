/** The Gemini adapter keeps the contract of `LLM`, over real HTTP, with ids of calls and without. */
import { describe, it } from 'vitest';
import { google } from 'turnloop/providers/google';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import { geminiProtocol } from '../support/scene-server-google.ts';
import { startSceneServer } from '../support/scene-server.ts';

describe.each([
  ['by default', false],
  ['with ids of calls', true],
])('F6: google, %s', (_name, sendCallIds) => {
  async function onScene(scene: LLMScene): Promise<LLMUnderTest> {
    const server = await startSceneServer(scene, geminiProtocol);
    return { ...server, llm: google({ model: 'test-model', apiKey: scene.apiKey, baseUrl: `${server.origin}/v1beta`, sendCallIds }) };
  }

  const AS_VALUE = 'arguments are a value here, not a text';
  const skip = {
    'calls.exact': AS_VALUE,
    'calls.broken': AS_VALUE,
    ...(!sendCallIds && { 'request.round_trip': 'the ids of calls, which Vertex AI refuses, are sent where they are asked for' }),
    'stop.max_tokens_in_call': 'a call comes whole or not at all',
    'stop.stop_sequence': 'a stop sequence ends a reply with `STOP`, as the model does',
    'usage.cache_write': 'writing to the cache is not counted',
    'errors.quota': 'a spent quota is `RESOURCE_EXHAUSTED`, as a rate limit is',
  };

  for (const { name, run } of llmConformance(onScene, { skip })) it(name, run);
});
