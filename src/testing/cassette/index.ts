/**
 * Cassettes: model traffic recorded once from a real server, and replayed in tests without network and key. At the level of
 * HTTP, so for any adapter. Needs Node.
 *
 * @module
 */
export { type Cassette, createCassette } from './cassette.ts';
export { CassetteError, type CassetteErrorCode } from './errors.ts';
export type { FieldRule } from './field-rules.ts';
export type { CassetteOptions } from './options.ts';
