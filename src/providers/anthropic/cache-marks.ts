/**
 * Cache marks: up to where the server is to keep a prompt.
 *
 * - At most four in a request, those of the host included: on the newest user turn, the system prompt, the last tool and
 *   the user turn before, in this order of importance.
 * - Tools that are loaded when they are needed stand in no prompt, and take no mark.
 * - In the order of the prompt (tools, system, messages) none that lasts long may follow one that lasts short: ours give
 *   way to the host's.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isJsonObject } from '../shared/own-data.ts';

/** How long marked prompts are kept; `off` marks none. */
export type PromptCache = '5m' | '1h' | 'off';

/** What marks depend on. */
export interface CacheOptions {
  readonly promptCache: PromptCache;
  /** The host's own tools of the server. */
  readonly serverTools: readonly JsonObject[];
  /** The host's own fields of the request. */
  readonly body: Readonly<Record<string, JsonValue | undefined>>;
}

/** The marks of every request: what goes into a block's JSON before its closing brace; empty for none. */
export interface CacheMarks {
  readonly tools: string;
  readonly system: string;
  /** Of the newest user turn, and of the one before. */
  readonly turns: readonly [newest: string, before: string];
}

type Lifetime = '5m' | '1h';

const MAX_MARKS = 4;
const NO_MARKS: CacheMarks = { tools: '', system: '', turns: ['', ''] };

/** Chooses the marks. */
export function planCacheMarks({ promptCache, serverTools, body }: CacheOptions): CacheMarks {
  if (promptCache === 'off') return NO_MARKS;
  const ownTools = lifetimes(body['tools'] ?? serverTools);
  const ownSystem = lifetimes(body['system']);
  const ownMessages = [...lifetimes(body['messages']), ...lifetimes([{ cache_control: body['cache_control'] ?? null }])];
  let left = MAX_MARKS - ownTools.length - ownSystem.length - ownMessages.length;

  function mark(isFree: boolean, before: readonly Lifetime[], after: readonly Lifetime[]): string {
    if (!isFree || left <= 0) return '';
    left -= 1;
    const lifetime = before.includes('5m') ? '5m' : after.includes('1h') ? '1h' : promptCache;
    return `,"cache_control":{"type":"ephemeral"${lifetime === '1h' ? ',"ttl":"1h"' : ''}}`;
  }

  const hasOwnTurns = Object.hasOwn(body, 'messages');
  const hasMarkedTool = lifetimes(serverTools.filter(takesMark).slice(-1)).length > 0;
  const beforeTurns = [...ownTools, ...ownSystem];
  // What the server marks itself is the end of the newest turn.
  const newest = mark(!hasOwnTurns && !isJsonObject(body['cache_control'] ?? null), beforeTurns, ownMessages);
  const system = mark(!Object.hasOwn(body, 'system'), ownTools, ownMessages);
  const tools = mark(!Object.hasOwn(body, 'tools') && !hasMarkedTool, ownTools, [...ownSystem, ...ownMessages]);
  return { tools, system, turns: [newest, mark(!hasOwnTurns, beforeTurns, ownMessages)] };
}

/** Whether a tool may have a mark: the server refuses one on a tool, or a set of tools, that is loaded later. */
export function takesMark({ defer_loading: isDeferred, default_config: defaults }: JsonObject): boolean {
  return isDeferred !== true && !(isJsonObject(defaults) && defaults['defer_loading'] === true);
}

/** A block's JSON with a mark. */
export function markBlock(json: string, mark: string): string {
  return mark === '' ? json : `${json.slice(0, -1)}${mark}}`;
}

/** How long each mark in a list lasts: of tools, of blocks, and of blocks within these. */
function lifetimes(list: JsonValue | undefined): readonly Lifetime[] {
  if (!Array.isArray(list)) return [];
  return (list as readonly JsonValue[]).flatMap((each): readonly Lifetime[] => {
    if (!isJsonObject(each)) return [];
    const { cache_control: mark, content } = each;
    const own: readonly Lifetime[] = isJsonObject(mark) ? [mark['ttl'] === '1h' ? '1h' : '5m'] : [];
    return [...lifetimes(content), ...own];
  });
}
