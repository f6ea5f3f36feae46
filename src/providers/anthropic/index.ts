/**
 * Anthropic Messages: Claude and the servers compatible with it, as an LLM. Needs nothing but `fetch`.
 *
 * @module
 */
export { anthropic } from './anthropic.ts';
export type { AnthropicOptions } from './options.ts';
export type { PromptCache } from './cache-marks.ts';
export type { ErrorPattern } from '../shared/error-patterns.ts';
export type { RequestTimeouts } from '../shared/http.ts';
