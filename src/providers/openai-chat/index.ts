/**
 * Chat Completions: OpenAI and the servers compatible with it, as an LLM. Needs nothing but `fetch`.
 *
 * @module
 */
export { openAIChat } from './open-ai-chat.ts';
export type { ChatDialect, OpenAIChatOptions } from './options.ts';
export type { ThinkingField, ThinkingHistory } from './thinking.ts';
export type { ProviderOptions } from '../shared/options.ts';
export type { ErrorPattern } from '../shared/error-patterns.ts';
export type { RequestTimeouts } from '../shared/http.ts';
