/**
 * Responses: OpenAI and the servers that speak its newer protocol, as an LLM. Needs nothing but `fetch`.
 *
 * @module
 */
export { openAIResponses } from './open-ai-responses.ts';
export type { OpenAIResponsesOptions } from './options.ts';
export type { ProviderOptions } from '../shared/options.ts';
export type { ErrorPattern } from '../shared/error-patterns.ts';
export type { RequestTimeouts } from '../shared/http.ts';
