/**
 * Tool names: names as servers take them, and back.
 *
 * The wire name depends on the name alone, so a call in the history keeps it whatever tools are offered today.
 */
import type { ToolDefinition } from '../../core/llm.ts';
import { shortHash } from './hash.ts';

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/** The name as it is where servers take it, else a legal form with a hash, so that `a.b` and `a/b` stay two tools. */
export function toWireName(name: string): string {
  if (LEGAL_NAME.test(name)) return name;
  const readable = name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, MAX_LENGTH - HASH_LENGTH - 1);
  return `${readable}_${shortHash(name, HASH_LENGTH)}`;
}

/** Tools by their wire names: of those whose name had to change only. */
export function renamedTools(tools: readonly ToolDefinition[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { name } of tools) {
    const wireName = toWireName(name);
    if (wireName !== name) names.set(wireName, name);
  }
  return names;
}
