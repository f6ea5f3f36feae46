/** The Anthropic adapter keeps the contract of `LLM`, over real HTTP, with and without cache marks. */
import { describe, it } from 'vitest';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing';
import { anthropicProtocol, withRawInputs } from '../support/scene-server-anthropic.ts';
import { startSceneServer } from '../support/scene-server.ts';

const NO_SUCH_ERROR = 'Messages refuses by a reply that is filtered, not by an error';
const MARKS_MOVE = 'marks for the cache move with the newest turn, and count for nothing in it';

describe.each<readonly [string, Partial<AnthropicOptions>, Readonly<Record<string, string>>]>([
  ['Claude', { model: 'claude-test-9', promptCache: 'off' }, { 'errors.content_filter': NO_SUCH_ERROR }],
  ['another model', { model: 'test-model' }, { 'errors.content_filter': NO_SUCH_ERROR, 'request.prefix': MARKS_MOVE }],
])('F6: anthropic, %s', (_name, options, skip) => {
  async function onScene(scene: LLMScene): Promise<LLMUnderTest> {
    const server = await startSceneServer(scene, anthropicProtocol);
    const llm = anthropic({ model: 'test-model', apiKey: scene.apiKey, baseUrl: server.origin, ...options });
    return { ...server, requests: () => server.requests().map(withRawInputs), llm };
  }

  for (const { name, run } of llmConformance(onScene, { skip })) it(name, run);
});
