/**
 * Gemini: Google's models as an LLM, by their own API and by Vertex AI. Needs nothing but `fetch`.
 *
 * @module
 */
export { google } from './google.ts';
export type { GoogleOptions } from './options.ts';
export type { SchemaFormat } from './tools.ts';
export type { ErrorPattern } from '../shared/error-patterns.ts';
export type { RequestTimeouts } from '../shared/http.ts';
