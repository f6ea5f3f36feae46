/**
 * Tool names: names as servers take them, and back.
 *
 * - The wire name depends on the name alone, so a call in the history keeps it whatever tools are offered today.
 * - Two tools of a request never share one: a call would go to the wrong tool. Names are data; whoever chooses one may
 *   have chosen it to look like another's wire name, or to have its hash.
 */
import type { ToolDefinition } from '../../core/llm.ts';
import { shortHash } from './hash.ts';

/** Names as OpenAI and Anthropic take them. */
const COMMON_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;
/** Names that start with a letter or an underscore: as Gemini takes them. */
export const IDENTIFIER_NAMES: RegExp = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
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

/**
 * The name as it is where servers take it, else a legal form with a hash, so that `a.b` and `a/b` stay two tools.
 *
 * @param legal - What the server takes; it takes letters, digits, `_` and `-` behind the first character.
 */
export function toWireName(name: string, legal: RegExp = COMMON_NAMES): string {
  return legal.test(name) && !HASHED_END.test(name) ? name : hashedName(name, name, legal);
}

/** Names the tools of a request. Of two with the same hash the later one gets another. @param legal - As for {@link toWireName}. */
export function nameTools(tools: readonly ToolDefinition[], legal: RegExp = COMMON_NAMES): ToolNames {
  const wireNames = new Map<string, string>();
  const names = new Map<string, string>();
  for (const { name } of tools) {
    if (wireNames.has(name)) continue;
    let wireName = toWireName(name, legal);
    for (let again = 1; names.has(wireName); again += 1) wireName = hashedName(name, `${name} ${again}`, legal);
    wireNames.set(name, wireName);
    names.set(wireName, name);
  }
  return {
    toWire: (name) => wireNames.get(name) ?? toWireName(name, legal),
    fromWire: (wireName) => names.get(wireName) ?? wireName,
  };
}

function hashedName(name: string, hashed: string, legal: RegExp): string {
  const readable = name.replace(/[^a-zA-Z0-9_-]+/g, '_');
  const end = `${HASH_MARK}${shortHash(hashed, HASH_LENGTH)}`;
  // Without a character of its own the name starts with the mark's.
  const start = legal.test(readable.slice(0, 1) || HASH_MARK) ? readable : `_${readable}`;
  return `${start.slice(0, MAX_LENGTH - end.length)}${end}`;
}
