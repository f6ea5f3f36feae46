/** The Responses adapter keeps the contract of `LLM`, over real HTTP, in both of its ways. */
import { describe, it } from 'vitest';
import { openAIResponses, type OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import { responsesProtocol } from '../support/scene-server-responses.ts';
import { startSceneServer } from '../support/scene-server.ts';

const ENCRYPTED = 'Responses encrypts thinking, and does not sign it: it is in `redactedData`';
const skip = {
  'stop.stop_sequence': 'Responses knows no stop sequences',
  'request.result_error': 'Responses has no field for it: what went wrong is in the text',
  'thinking.signature': ENCRYPTED,
  'cut.thinking': ENCRYPTED,
} as const;

describe.each<NonNullable<OpenAIResponsesOptions['state']>>(['stateless', 'incremental'])('F6: openAIResponses, %s', (state) => {
  async function onScene(scene: LLMScene): Promise<LLMUnderTest> {
    const server = await startSceneServer(scene, responsesProtocol);
    return { ...server, llm: openAIResponses({ model: 'test-model', apiKey: scene.apiKey, baseUrl: server.origin, state }) };
  }

  for (const { name, run } of llmConformance(onScene, { skip })) it(name, run);
});
