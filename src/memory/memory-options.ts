/** Memory options: what `createMemory` takes, and what holds where nothing is said. */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import type { LLM, Notice } from '../core/llm.ts';
import { type Runtime, systemRuntime } from '../core/runtime.ts';
import { isRecord } from '../core/json.ts';
import { assertEmbedder, type Embedder } from './embedder.ts';
import { estimateTokens } from './estimate-tokens.ts';
import { type ExtractionOptions, type ExtractionSettings, toExtractionSettings } from './extraction-options.ts';
import type { MemoryOwner, MemoryStore } from './memory-store.ts';
import type { HalfLives, RankWeights } from './rank.ts';

/** What was said in a past conversation. */
export interface PastConversation {
  /** The session it was said in. */
  readonly sessionId: string;
  /** What was said. */
  readonly text: string;
  /** When, in milliseconds since the epoch, where that is known. */
  readonly at?: number | undefined;
}

/** Who searches past conversations, for how many, and until when. */
export interface ConversationSearch {
  /** The session that asks. */
  readonly sessionId: string;
  /** Whose memory it recalls: those whose conversations it may see are for the host to say. */
  readonly owners: readonly MemoryOwner[];
  /** Most of them. */
  readonly limit: number;
  /** Ends the search. */
  readonly signal: AbortSignal;
}

/** Options of {@link createMemory}. */
export interface MemoryOptions {
  /** Keeps the entries: `fileMemoryStore(folder)`, `inProcessMemoryStore()`, or any other. */
  readonly store: MemoryStore;
  /** Makes vectors, so that entries are found by what they mean too: `hashEmbedder()`, or a model. @defaultValue words alone */
  readonly embedder?: Embedder | undefined;
  /** Asked after a turn what is worth remembering; a small model does. @defaultValue nothing is extracted */
  readonly llm?: LLM | undefined;
  /** Most entries of the block. @defaultValue 15 */
  readonly maxEntries?: number | undefined;
  /** Most tokens of the block. @defaultValue 2,000 */
  readonly maxTokens?: number | undefined;
  /** Tokens of a text. @defaultValue an estimate that is rather too high */
  readonly estimate?: ((text: string) => number) | undefined;
  /** How much each side of the ranking counts. */
  readonly weights?: RankWeights | undefined;
  /** How soon entries fade, by their kind, in milliseconds. @defaultValue 90 days, 30 days and one day */
  readonly halfLives?: Partial<HalfLives> | undefined;
  /** Longest time that recalling may take, in milliseconds; the block then stays as it is. @defaultValue 3,000 */
  readonly recallTimeoutMs?: number | undefined;
  /** Bounds of the extraction. */
  readonly extraction?: ExtractionOptions | undefined;
  /** Searches past conversations for `recall_memory`: what fits best first. @defaultValue entries alone are searched */
  readonly searchConversations?: ((query: string, search: ConversationSearch) => Promise<readonly PastConversation[]>) | undefined;
  /**
   * Told what went wrong, since memory never fails a turn: `memory.recall_failed`, `memory.embedder_failed`,
   * `memory.extraction_failed`, `memory.search_failed`, each `{code, message}`. @defaultValue nobody is told
   */
  readonly notify?: ((notice: Notice) => void) | undefined;
  /** Clock, timers and ids. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/** What holds for a memory. */
export interface MemorySettings extends Pick<MemoryOptions, 'store' | 'embedder' | 'llm' | 'weights' | 'halfLives' | 'searchConversations'> {
  readonly maxEntries: number;
  readonly maxTokens: number;
  readonly estimate: (text: string) => number;
  readonly recallTimeoutMs: number;
  readonly extraction: ExtractionSettings;
  readonly notify: (notice: Notice) => void;
  readonly runtime: Runtime;
}

const ARGUMENT = { taker: 'createMemory', example: 'createMemory({ store: inProcessMemoryStore(), maxEntries: 15 })' };
const OPTIONS: Readonly<Record<keyof MemoryOptions, true>> = {
  store: true,
  embedder: true,
  llm: true,
  maxEntries: true,
  maxTokens: true,
  estimate: true,
  weights: true,
  halfLives: true,
  recallTimeoutMs: true,
  extraction: true,
  searchConversations: true,
  notify: true,
  runtime: true,
};
const WEIGHTS: Readonly<Record<keyof RankWeights, true>> = { words: true, vector: true, recency: true, importance: true };
const HALF_LIVES: Readonly<Record<keyof HalfLives, true>> = { fact: true, experience: true, working: true };
const STORE_METHODS = ['add', 'find', 'get', 'list', 'update', 'forget', 'export', 'import', 'close'] as const;
/** The frame of a block alone takes some 50. */
const LEAST_TOKENS = 100;

/** @throws TypeError for an option that is missing, does not exist or makes no sense. */
export function toMemorySettings(options: MemoryOptions): MemorySettings {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { store, embedder, llm, weights, halfLives, searchConversations, notify, estimate } = options;
  const given: unknown = store;
  if (!isRecord(given) || STORE_METHODS.some((name) => typeof given[name] !== 'function')) {
    throw new TypeError(`createMemory needs a \`store\`, which has ${STORE_METHODS.join(', ')}. For example: ${ARGUMENT.example}.`);
  }
  if (embedder !== undefined) assertEmbedder(embedder, ARGUMENT.taker);
  if (llm !== undefined) assertLLM(llm, { taker: 'createMemory: `llm`', example: 'createMemory({ store, llm })' });
  for (const [name, value] of Object.entries({ searchConversations, notify, estimate })) {
    if (value === undefined || typeof value === 'function') continue;
    throw new TypeError(`createMemory: \`${name}\` must be a function, not ${typeof value}. For example: ${ARGUMENT.example}.`);
  }
  assertNumbers(
    options,
    {
      maxEntries: { least: 1, whole: true },
      maxTokens: { least: LEAST_TOKENS, whole: true },
      recallTimeoutMs: { least: 0, orInfinity: true },
    },
    ARGUMENT,
  );
  assertWeights(weights);
  assertHalfLives(halfLives);
  return {
    store,
    embedder,
    llm,
    weights: { ...(embedder?.weight !== undefined && { vector: embedder.weight }), ...weights },
    halfLives,
    searchConversations,
    maxEntries: options.maxEntries ?? 15,
    maxTokens: options.maxTokens ?? 2_000,
    estimate: estimate ?? estimateTokens,
    recallTimeoutMs: options.recallTimeoutMs ?? 3_000,
    extraction: toExtractionSettings(options.extraction),
    notify: harmless(notify),
    runtime: options.runtime ?? systemRuntime,
  };
}

function assertWeights(weights: RankWeights | undefined): void {
  if (weights === undefined) return;
  const argument = { taker: 'createMemory: `weights`', example: 'createMemory({ store, weights: { recency: 0.5 } })' };
  assertOptions(weights, WEIGHTS, argument);
  assertNumbers(weights, { words: { least: 0 }, vector: { least: 0 }, recency: { least: 0 }, importance: { least: 0 } }, argument);
}

function assertHalfLives(halfLives: Partial<HalfLives> | undefined): void {
  if (halfLives === undefined) return;
  const argument = { taker: 'createMemory: `halfLives`', example: 'createMemory({ store, halfLives: { working: 3_600_000 } })' };
  assertOptions(halfLives, HALF_LIVES, argument);
  const range = { least: 1, orInfinity: true };
  assertNumbers(halfLives, { fact: range, experience: range, working: range }, argument);
}

/** Whoever listens cannot make memory fail. */
function harmless(notify: MemoryOptions['notify']): (notice: Notice) => void {
  return (notice) => {
    try {
      notify?.(notice);
    } catch {
      // A listener changes nothing.
    }
  };
}
