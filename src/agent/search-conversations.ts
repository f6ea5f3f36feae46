/**
 * Search conversations: what was said in the sessions of a store, for `recall_memory`.
 *
 * - Whose conversations may be seen is the host's to say: sessions of several people often share a store.
 * - What is read is bounded: the newest sessions, each from its log. Nothing is kept between two searches.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { textOf } from '../core/message.ts';
import type { ConversationSearch, MemoryOptions, PastConversation } from '../memory/memory-options.ts';
import { TextIndex } from '../memory/text-index.ts';
import type { SessionEvent, SessionStore, SessionSummary } from '../sessions/session-store.ts';

/** Options of {@link searchConversations}. */
export interface SearchConversationsOptions {
  /**
   * Whether a session may be searched on behalf of another, such as only those of the same user:
   * `(session, { owners }) => owners.some(({ scopeId }) => scopeId === session.metadata?.user)`.
   */
  readonly maySee: (session: SessionSummary, search: ConversationSearch) => boolean;
  /** Most sessions that a search reads, the last written first. @defaultValue 50 */
  readonly maxSessions?: number | undefined;
}

const ARGUMENT = {
  taker: 'searchConversations',
  example: 'createMemory({ store, searchConversations: searchConversations(sessions, { maySee: () => true }) })',
};
const OPTIONS: Readonly<Record<keyof SearchConversationsOptions, true>> = { maySee: true, maxSessions: true };
const DEFAULT_MAX_SESSIONS = 50;

/**
 * Makes the search of past conversations that `createMemory` takes: the messages of people and the answers that fit best by
 * their words, one for each session at most. The session that asks is left out: the model sees it anyway.
 *
 * @param store - Where the sessions are kept.
 * @param options - Which of them may be seen.
 * @throws TypeError for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const sessions = fileSessionStore('./sessions');
 * const memory = createMemory({ store: fileMemoryStore('./memory'), searchConversations: searchConversations(sessions, { maySee: () => true }) });
 * const agent = createAgent({ llm, sessions, memory });
 * ```
 */
export function searchConversations(store: SessionStore, options: SearchConversationsOptions): NonNullable<MemoryOptions['searchConversations']> {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { maySee, maxSessions = DEFAULT_MAX_SESSIONS } = options;
  if (typeof maySee !== 'function') throw new TypeError(`searchConversations needs \`maySee\`, a function that says whose sessions may be searched. For example: ${ARGUMENT.example}.`);
  assertNumbers(options, { maxSessions: { least: 1, whole: true } }, ARGUMENT);
  return async (query, search) => {
    const sessions = (await store.list()).filter((session) => session.sessionId !== search.sessionId && maySee(session, search));
    const index = new TextIndex();
    const said: PastConversation[] = [];
    for (const { sessionId } of sessions.slice(0, maxSessions)) {
      search.signal.throwIfAborted();
      for (const { text, at } of await textsOf(store, sessionId)) {
        index.add(said.length, text);
        said.push({ sessionId, text, at });
      }
    }
    return bestOf(said, index.score(query)).slice(0, search.limit);
  };
}

/** The best of each session, the best first. */
function bestOf(said: readonly PastConversation[], scores: Float64Array): readonly PastConversation[] {
  const seen = new Set<string>();
  return said
    .map((one, slot) => ({ one, score: scores[slot] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .map(({ one }) => one)
    .filter(({ sessionId }) => !seen.has(sessionId) && seen.add(sessionId).size > 0);
}

/** What people and models said in a session; nothing if it cannot be read any more. */
async function textsOf(store: SessionStore, sessionId: string): Promise<readonly { readonly text: string; readonly at: number }[]> {
  try {
    return (await store.read(sessionId)).events.flatMap((event) => {
      const text = saidIn(event);
      return text === '' ? [] : [{ text, at: event.at }];
    });
  } catch {
    // One that was deleted meanwhile, or is broken, keeps none of the others from being found.
    return [];
  }
}

function saidIn(event: SessionEvent): string {
  if (event.type === 'message') return event.message.origin === 'user' ? textOf(event.message) : '';
  return event.type === 'content.part' && event.part.type === 'text' ? event.part.text : '';
}
