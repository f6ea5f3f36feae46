/** AI SDK models as types: the SDK's own model types are taken as they are, and nothing that is no model. */
import { createGateway, type LanguageModel } from 'ai';
import type { MockLanguageModelV3 } from 'ai/test';
import { describe, expectTypeOf, it } from 'vitest';
import type { LLM, LLMCapabilities } from 'turnloop';
import { aiSdk, type AiSdkModel, type AiSdkOptions } from 'turnloop/providers/ai-sdk';

type ModelObject = Exclude<LanguageModel, string>;
type ModelV3 = Extract<ModelObject, { specificationVersion: 'v3' }>;
type ModelV2 = Extract<ModelObject, { specificationVersion: 'v2' }>;

/** The newest specification, as far as it differs from the one before: what a model is asked with is its own business. */
interface ModelV4 {
  readonly specificationVersion: 'v4';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  doGenerate(options: { prompt: { role: 'system'; content: string }[]; reasoning?: 'none' | 'high' }): PromiseLike<{ content: { type: 'text'; text: string }[] }>;
  doStream(options: { prompt: { role: 'system'; content: string }[]; reasoning?: 'none' | 'high' }): PromiseLike<{ stream: ReadableStream<{ type: 'ping' }> }>;
}

describe('aiSdk', () => {
  const gateway = createGateway({ apiKey: 'k' });

  it('takes the language models of the AI SDK without a cast', () => {
    expectTypeOf<ModelV3>().not.toBeNever();
    expectTypeOf<ModelV2>().not.toBeNever();
    expectTypeOf<ModelV3>().toExtend<AiSdkModel>();
    expectTypeOf<ModelV2>().toExtend<AiSdkModel>();
    expectTypeOf<ModelV4>().toExtend<AiSdkModel>();
    expectTypeOf<MockLanguageModelV3>().toExtend<AiSdkModel>();
    expectTypeOf(aiSdk(gateway('openai/gpt-5'))).toEqualTypeOf<LLM>();
  });

  it('refuses ids of models, providers, and specifications that it does not know', () => {
    // @ts-expect-error -- an id is not a model
    aiSdk('openai/gpt-5');
    // @ts-expect-error -- a provider is not a model
    aiSdk(gateway);
    // @ts-expect-error -- the id may be a text
    aiSdk({} as LanguageModel);
    // @ts-expect-error -- an unknown specification
    aiSdk({} as Omit<ModelV3, 'specificationVersion'> & { specificationVersion: 'v1' });
  });

  it('takes the tools that a provider runs as the SDK makes them', () => {
    aiSdk(gateway('openai/gpt-5'), { providerTools: { search: gateway.tools.perplexitySearch() } });
    expectTypeOf<AiSdkOptions['capabilities']>().toEqualTypeOf<LLMCapabilities | undefined>();
    // @ts-expect-error -- no such option
    aiSdk(gateway('openai/gpt-5'), { apiKey: 'k' });
  });
});
