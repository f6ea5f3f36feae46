/**
 * Tool names: names as servers take them, and back.
 *
 * - The wire name depends on the name alone, so a call in the history keeps it whatever tools are offered today.
 * - Two tools of a request never share one: a call would go to the wrong tool. Names are data; whoever chooses one may
 *   have chosen it to look like another's wire name, or to have its hash.
 */
import type { ToolDefinition } from '../../core/llm.ts';
import { shortHash } from './hash.ts';

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_LENGTH = 64;
const HASH_LENGTH = 8;
/** Stands before the hash. */
const HASH_MARK = '_0x';
/** What a hashed name ends in: a legal name that does is hashed too, so that it is nobody's hashed form. */
const HASHED_END = /_0x[a-z0-9]{8}$/;

/** The tools of one request by name, and by wire name. */
export interface ToolNames {
  /** The wire name of a tool, offered or not. */
  readonly toWire: (name: string) => string;
  /** The tool's own name for a wire name; what is nobody's wire name stays as it is. */
  readonly fromWire: (wireName: string) => string;
}

/** The name as it is where servers take it, else a legal form with a hash, so that `a.b` and `a/b` stay two tools. */
export function toWireName(name: string): string {
  return LEGAL_NAME.test(name) && !HASHED_END.test(name) ? name : hashedName(name, name);
}

/** Names the tools of a request. Of two with the same hash the later one gets another. */
export function nameTools(tools: readonly ToolDefinition[]): ToolNames {
  const wireNames = new Map<string, string>();
  const names = new Map<string, string>();
  for (const { name } of tools) {
    if (wireNames.has(name)) continue;
    let wireName = toWireName(name);
    for (let again = 1; names.has(wireName); again += 1) wireName = hashedName(name, `${name} ${again}`);
    wireNames.set(name, wireName);
    names.set(wireName, name);
  }
  return {
    toWire: (name) => wireNames.get(name) ?? toWireName(name),
    fromWire: (wireName) => names.get(wireName) ?? wireName,
  };
}

function hashedName(name: string, hashed: string): string {
  const readable = name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, MAX_LENGTH - HASH_MARK.length - HASH_LENGTH);
  return `${readable}${HASH_MARK}${shortHash(hashed, HASH_LENGTH)}`;
}
