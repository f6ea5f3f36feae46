/** The AI SDK adapter keeps the contract of `LLM`, with models of each specification. */
import { describe, it } from 'vitest';
import { aiSdk } from 'turnloop/providers/ai-sdk';
import { llmConformance, type LLMScene, type LLMUnderTest } from 'turnloop/testing/conformance';
import type { Version } from './ai-sdk-models.ts';
import { sceneModel } from './ai-sdk-scene-model.ts';

const AS_VALUE = { 'calls.exact': 'the SDK takes arguments as a value, not as a text' };
const OF_V2 = { 'usage.cache_write': 'only providers of metadata have it there', 'stop.stop_sequence': 'the SDK says `stop`, and nobody says more' };

describe.each<readonly [Version, Readonly<Record<string, string>>]>([
  ['v2', { ...AS_VALUE, ...OF_V2 }],
  ['v3', AS_VALUE],
  ['v4', AS_VALUE],
])('F6: aiSdk, %s', (version, skip) => {
  function onScene(scene: LLMScene): LLMUnderTest {
    const { model, requests } = sceneModel(scene, version);
    return { llm: aiSdk(model), requests };
  }

  for (const { name, run } of llmConformance(onScene, { skip })) it(name, run);
});
