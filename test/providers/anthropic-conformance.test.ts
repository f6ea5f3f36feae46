/** The Anthropic adapter keeps the contract of `LLM`, over real HTTP, as it is by default and without cache marks. */
import { describe, it } from 'vitest';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import { anthropicProtocol, withoutCacheMarks, withRawInputs } from '../support/scene-server-anthropic.ts';
import { startSceneServer } from '../support/scene-server.ts';

const NO_SUCH_ERROR = 'Messages refuses by a reply that is filtered, not by an error';

describe.each<readonly [string, Partial<AnthropicOptions>]>([
  ['Claude', { model: 'claude-test-9' }],
  ['Claude without cache marks', { model: 'claude-test-9', promptCache: 'off' }],
  ['another model', { model: 'test-model' }],
])('F6: anthropic, %s', (_name, options) => {
  async function onScene(scene: LLMScene): Promise<LLMUnderTest> {
    const server = await startSceneServer(scene, anthropicProtocol);
    const llm = anthropic({ model: 'test-model', apiKey: scene.apiKey, baseUrl: server.origin, ...options });
    return { ...server, requests: () => server.requests().map(withRawInputs), withoutCacheMarks, llm };
  }

  for (const { name, run } of llmConformance(onScene, { skip: { 'errors.content_filter': NO_SUCH_ERROR } })) it(name, run);
});
