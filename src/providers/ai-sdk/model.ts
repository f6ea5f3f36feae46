/**
 * Model: the AI SDK's language models, as far as this room looks at them. Written down here, so that the SDK is no
 * dependency; a type test holds them against the SDK's own types.
 *
 * What a model hands out is read as unknown data: providers differ from the specification, and from its versions.
 */
import { isRecord } from '../../core/json.ts';

/** Specifications of language models: of AI SDK 5, 6 and 7. */
export type SpecificationVersion = 'v2' | 'v3' | 'v4';

/** Addresses that a model's server fetches itself: patterns by media type, where `image/*` is any image. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** A language model object of the AI SDK, such as `openai('gpt-5')` of `@ai-sdk/openai` makes. */
export interface AiSdkModel {
  /** Which version of the interface it has. */
  readonly specificationVersion: SpecificationVersion;
  /** The SDK's name of the provider, such as `openai.responses`. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly modelId: string;
  /** Addresses of media that its server fetches itself. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls> | undefined;
  /** Asks for a reply that is not streamed. */
  doGenerate(options: object): PromiseLike<object>;
  /** Asks for a streamed reply. */
  doStream(options: object): PromiseLike<AiSdkStreamResult>;
}

/** What a model gives for a streamed reply. */
export interface AiSdkStreamResult {
  /** The parts of the reply. */
  readonly stream: ReadableStream<unknown>;
}

const VERSIONS: Readonly<Record<SpecificationVersion, true>> = { v2: true, v3: true, v4: true };

/**
 * Checks what was given as a model.
 *
 * @throws TypeError that says what to give instead.
 */
export function assertModel(given: unknown): asserts given is AiSdkModel {
  if (typeof given === 'string') {
    throw new TypeError(`aiSdk takes a model object, not the id ${JSON.stringify(given)}: ${RIGHT_CALLS}`);
  }
  const isObject = isRecord(given) || typeof given === 'function';
  const { doStream, doGenerate, specificationVersion, provider, modelId } = (isObject ? given : {}) as Record<string, unknown>;
  if (typeof doStream !== 'function' || typeof doGenerate !== 'function') {
    throw new TypeError(`aiSdk takes a language model object of the AI SDK, with \`doStream\` and \`doGenerate\`: ${RIGHT_CALLS}`);
  }
  if (typeof specificationVersion !== 'string' || !Object.hasOwn(VERSIONS, specificationVersion)) {
    const version = typeof specificationVersion === 'string' ? JSON.stringify(specificationVersion) : 'none';
    throw new TypeError(
      `aiSdk knows the specifications v2, v3 and v4 of language models (AI SDK 5 to 7); the model's is ${version}. Install a version of its package for one of these.`,
    );
  }
  if (typeof provider !== 'string' || typeof modelId !== 'string') {
    throw new TypeError(`aiSdk: the model names no \`provider\` or no \`modelId\`; is it a language model of the AI SDK? ${RIGHT_CALLS}`);
  }
}

const RIGHT_CALLS = "aiSdk(openai('gpt-5')) with `openai` of '@ai-sdk/openai', or aiSdk(gateway('openai/gpt-5')) with `gateway` of 'ai'.";
