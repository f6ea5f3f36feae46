/**
 * Memory session: what one conversation recalls and learns.
 *
 * - The block is made when `recall` is called, at a turn's start, and stands still until the next call. It is the same object as
 *   long as it would say the same: the request then begins with the same bytes, and the provider's cache goes on.
 * - Nothing here fails a turn: what goes wrong is told to the host, and the block stays as it was.
 * - Extractions of one session run one after the other, so that the second knows what the first has kept.
 */
import { isRecord } from '../core/json.ts';
import { type Message, textOf, type UserMessage } from '../core/message.ts';
import type { Tool } from '../core/tool.ts';
import { addUsage, NO_USAGE, totalTokens, type Usage } from '../core/usage.ts';
import { askForEntries, conversationText, type Finding } from './extract.ts';
import { toMemoryBlock } from './memory-block.ts';
import type { MemorySettings } from './memory-options.ts';
import type { MemorySearcher } from './memory-search.ts';
import { type FoundMemory, type MemoryEntry, MemoryError, type MemoryOwner } from './memory-store.ts';
import type { NewMemory } from './new-memory.ts';
import { fullerText, saysTheSame } from './near-duplicates.ts';
import { recallTool, type RecallInput } from './recall-tool.ts';
import { termsOf } from './terms.ts';
import { type TimeLimit, withinTime } from './time-limit.ts';

/** Options of {@link MemorySession.recall}. */
export interface RecallOptions {
  /** Gives up recalling; the block then stays as it is. */
  readonly signal?: AbortSignal | undefined;
}

/** What {@link MemorySession.extract} is given. */
export interface ExtractRequest {
  /** What the turn added to the conversation, oldest first. */
  readonly messages: readonly Message[];
  /** The turn, for the `source` of entries. */
  readonly turnId?: string | undefined;
  /** Gives up the extraction. */
  readonly signal?: AbortSignal | undefined;
}

/** What came of an extraction. */
export interface ExtractionReport {
  /** Entries that are new. */
  readonly added: readonly MemoryEntry[];
  /** Entries that were corrected, or had said the same already, as they are now. */
  readonly merged: readonly MemoryEntry[];
  /** Tokens spent; the session's bill is the host's to keep. */
  readonly usage: Usage;
  /** The model that they were spent on; absent if none was asked. */
  readonly modelId?: string | undefined;
  /** Why nothing was kept, or not all: there is no `llm`, the turn said nothing, the session's budget is spent, or it failed. */
  readonly problem?: 'no_llm' | 'nothing_said' | 'budget_spent' | 'failed' | undefined;
}

/** What one conversation recalls and learns. Made by {@link Memory.openSession}. */
export interface MemorySession {
  /** The block as `recall` last made it; undefined before, and while nothing is remembered. */
  readonly block: UserMessage | undefined;
  /**
   * Recalls what fits an input: for the head of the history, before everything else, until the turn ends. Call it once, at the
   * turn's start.
   *
   * An input without a word of its own ("go on") is about what the one before was about. Never rejects.
   *
   * @returns A transient message, never to be recorded; the same object as before if it says the same. Undefined if nothing is
   * remembered.
   */
  recall(input: string | UserMessage | readonly UserMessage[], options?: RecallOptions): Promise<UserMessage | undefined>;
  /**
   * Asks the model what of a turn is worth remembering, and keeps it. For after a turn, in the background: it is bounded in time
   * and in tokens, and never rejects.
   */
  extract(request: ExtractRequest): Promise<ExtractionReport>;
  /** `recall_memory`, for the tools of the turn. The same list each time. */
  readonly tools: readonly Tool<RecallInput>[];
}

/** What a session needs of its memory. */
export interface SessionSeat {
  readonly settings: MemorySettings;
  readonly searcher: MemorySearcher;
  readonly add: (entries: readonly NewMemory[], signal: AbortSignal) => Promise<readonly MemoryEntry[]>;
  readonly sessionId: string;
  /** Those that the host named, then the session itself. */
  readonly owners: readonly MemoryOwner[];
}

/** Entries that an extraction is shown as known, and that a finding is compared with. */
const KNOWN_LIMIT = 20;
const SIMILAR_LIMIT = 5;

/** Makes a session. */
export function createMemorySession(seat: SessionSeat): MemorySession {
  return new Session(seat);
}

class Session implements MemorySession {
  readonly tools: readonly Tool<RecallInput>[];
  readonly #seat: SessionSeat;
  #block: UserMessage | undefined;
  #question = '';
  #usage = NO_USAGE;
  #extraction: Promise<unknown> = Promise.resolve();

  constructor(seat: SessionSeat) {
    this.#seat = seat;
    const { sessionId, owners } = seat;
    const { searchConversations } = seat.settings;
    this.tools = [
      recallTool({
        findEntries: (query, search) => withinTime(this.#limit('Searching', search.signal), (signal) => this.#findForModel(query, { ...search, signal })),
        findConversations:
          searchConversations &&
          ((query, bounds) => withinTime(this.#limit('Searching', bounds.signal), (signal) => searchConversations(query, { ...bounds, signal, sessionId, owners }))),
      }),
    ];
  }

  get block(): UserMessage | undefined {
    return this.#block;
  }

  async recall(input: string | UserMessage | readonly UserMessage[], options: RecallOptions = {}): Promise<UserMessage | undefined> {
    const text = textOfInput(input);
    const { searcher } = this.#seat;
    if (termsOf(text).length > 0) this.#question = text;
    try {
      await withinTime(this.#limit('Recalling', options.signal), (signal) => this.#recall(signal));
    } catch (error) {
      if (options.signal?.aborted !== true) searcher.report('memory.recall_failed', error);
    }
    return this.#block;
  }

  /** How long a store and an embedder may take, whether or not they listen to their signal. */
  #limit(what: string, signal: AbortSignal | undefined): TimeLimit {
    const { recallTimeoutMs: ms, runtime } = this.#seat.settings;
    return { ms, runtime, reason: () => new MemoryError('store_failed', `${what} took more than ${ms} ms, and was given up.`), signal };
  }

  async #recall(signal: AbortSignal): Promise<void> {
    const { settings, searcher, owners } = this.#seat;
    const { store, maxEntries } = settings;
    const found = await searcher.find({ text: this.#question, owners, signal });
    // What is pinned, and what is new where little fits.
    const always = await Promise.all([store.list({ owners, pinned: true }), store.list({ owners, limit: maxEntries })]);
    signal.throwIfAborted();
    const ranked = searcher.rank(withUnfound(found, always.flat())).map(({ entry }) => entry);
    const { message, entries } = toMemoryBlock(ranked, settings);
    if (textOf(message) === textOf(this.#block)) return;
    this.#block = message;
    const fitting = new Set(found.filter(({ textScore }) => textScore > 0).map(({ entry }) => entry.id));
    await searcher.noteUse(entries.filter(({ id }) => fitting.has(id)));
  }

  extract(request: ExtractRequest): Promise<ExtractionReport> {
    const report = this.#extraction.then(() => this.#extract(request));
    this.#extraction = report;
    return report;
  }

  async #extract({ messages, turnId, signal }: ExtractRequest): Promise<ExtractionReport> {
    const { settings, searcher } = this.#seat;
    const { llm, extraction, runtime } = settings;
    const nothing = { added: [], merged: [], usage: NO_USAGE };
    if (llm === undefined) return { ...nothing, problem: 'no_llm' };
    if (totalTokens(this.#usage) >= extraction.maxSessionTokens) return { ...nothing, problem: 'budget_spent' };

    const kept = new KeptFindings();
    let [usage, modelId]: [Usage, string | undefined] = [NO_USAGE, undefined];
    const onUsage = (spent: Usage, by: string): void => {
      [usage, modelId] = [addUsage(usage, spent), by];
      this.#usage = addUsage(this.#usage, spent);
    };
    const report = (problem?: ExtractionReport['problem']): ExtractionReport => ({ ...kept.report(), usage, modelId, problem });
    try {
      const text = conversationText(messages, extraction.maxInputTokens, settings.estimate);
      if (text === '') return { ...nothing, problem: 'nothing_said' };
      const limit = {
        ms: extraction.timeoutMs,
        runtime,
        reason: () => new MemoryError('extraction_failed', `Extracting took more than ${extraction.timeoutMs} ms. What was kept before stays.`),
        signal,
      };
      await withinTime(limit, async (bounded) => {
        const known = (await searcher.find({ text, owners: this.#seat.owners, limit: KNOWN_LIMIT, signal: bounded })).slice(0, KNOWN_LIMIT).map(({ entry }) => entry);
        const question = { messages, known, scopes: this.#seat.owners.map(({ scope }) => scope), estimate: settings.estimate, signal: bounded, onUsage };
        for (const finding of await askForEntries(llm, question, extraction)) {
          bounded.throwIfAborted();
          await this.#keep(finding, { kept, turnId, signal: bounded });
        }
      });
      return report();
    } catch (error) {
      if (signal?.aborted !== true) searcher.report('memory.extraction_failed', toExtractionError(error));
      return report('failed');
    }
  }

  /** Adds what is new, and merges what corrects or repeats an entry into it. */
  async #keep(finding: Finding, { kept, turnId, signal }: { readonly kept: KeptFindings; readonly turnId: string | undefined; readonly signal: AbortSignal }): Promise<void> {
    const { settings, searcher, add, owners, sessionId } = this.#seat;
    const { text, kind, importance, replaces } = finding;
    const owner = owners.find(({ scope }) => scope === finding.scope) ?? owners[0] ?? { scope: 'session', scopeId: sessionId };
    const same = replaces ?? (await this.#sameAs(finding, owner));
    if (same === undefined) {
      const source = { sessionId, ...(turnId !== undefined && { turnId }) };
      kept.added.push(...(await add([{ ...owner, text, kind, importance, source }], signal)));
      return;
    }
    const merged = replaces === undefined ? fullerText(same.text, text) : text;
    const [vector] = merged === same.text ? [] : ((await searcher.vectorsOf([merged], signal)) ?? []);
    await settings.store.update([{ id: same.id, text: merged, vector, importance: Math.max(importance, same.importance) }]);
    if (vector === undefined) searcher.expectMissing();
    const now = await settings.store.get(same.id);
    if (now !== undefined) kept.merged.push(now);
  }

  async #sameAs({ text, kind }: Finding, owner: MemoryOwner): Promise<MemoryEntry | undefined> {
    const similar = await this.#seat.settings.store.find({ text, owners: [owner], kinds: [kind], limit: SIMILAR_LIMIT });
    return similar.find(({ entry }) => saysTheSame(text, entry))?.entry;
  }

  async #findForModel(query: string, { limit, signal }: { readonly limit: number; readonly signal: AbortSignal }): Promise<readonly MemoryEntry[]> {
    const { searcher, owners } = this.#seat;
    const found = await searcher.find({ text: query, owners, limit, signal });
    const entries = searcher
      .rank(found)
      .slice(0, limit)
      .map(({ entry }) => entry);
    await searcher.noteUse(entries);
    return entries;
  }
}

class KeptFindings {
  readonly added: MemoryEntry[] = [];
  readonly merged: MemoryEntry[] = [];

  report(): Pick<ExtractionReport, 'added' | 'merged'> {
    return { added: [...this.added], merged: [...this.merged] };
  }
}

/** Entries that were found, and others that were not looked for by words. */
function withUnfound(found: readonly FoundMemory[], others: readonly MemoryEntry[]): readonly FoundMemory[] {
  const all = new Map(found.map((one) => [one.entry.id, one]));
  for (const entry of others) if (!all.has(entry.id)) all.set(entry.id, { entry, textScore: 0 });
  return [...all.values()];
}

function textOfInput(input: string | UserMessage | readonly UserMessage[]): string {
  if (typeof input === 'string') return input;
  const messages: readonly UserMessage[] = isRecord(input) ? [input as UserMessage] : (input as readonly UserMessage[]);
  return messages.map((message) => textOf(message)).join('\n');
}

function toExtractionError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  return new MemoryError('extraction_failed', `What a turn said could not be extracted: ${error instanceof Error ? error.message : 'it failed'}. What was kept before stays.`, { cause: error });
}
