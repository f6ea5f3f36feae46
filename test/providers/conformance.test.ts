/** The adapters of the package keep the contract of `LLM`, over real HTTP, in the words of their protocols. */
import { describe, it } from 'vitest';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import { chatProtocol } from '../support/scene-server-chat.ts';
import { startSceneServer } from '../support/scene-server.ts';

describe('F6: openAIChat', () => {
  async function onScene(scene: LLMScene): Promise<LLMUnderTest> {
    const server = await startSceneServer(scene, chatProtocol);
    return { ...server, llm: openAIChat({ model: 'test-model', apiKey: scene.apiKey, baseUrl: server.origin }) };
  }

  const skip = {
    'stop.stop_sequence': 'Chat Completions ends a reply at a stop sequence with `stop`',
    'request.result_error': 'Chat Completions has no field for it: what went wrong is in the text',
  };

  for (const { name, run } of llmConformance(onScene, { skip })) it(name, run);
});
