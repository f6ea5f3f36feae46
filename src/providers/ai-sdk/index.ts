/**
 * AI SDK models as LLMs: every provider of that ecosystem. Needs nothing but the model object.
 *
 * @module
 */
export { aiSdk } from './ai-sdk.ts';
export type { AiSdkModel, AiSdkStreamResult, SpecificationVersion, SupportedUrls } from './model.ts';
export type { AiSdkOptions, AiSdkSettings } from './options.ts';
export type { ErrorPattern } from '../shared/error-patterns.ts';
export type { RequestTimeouts } from '../shared/http.ts';
