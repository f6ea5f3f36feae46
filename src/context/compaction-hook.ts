/**
 * Compaction hook: which layer runs before a step, and that what it did is recorded.
 *
 * - H1 Between steps only, and the turn waits for it. What was recorded is what the next request has.
 * - H2 The layers run in order, each only if it is due on the figure after the one before.
 * - H3 A layer acts only if it frees a worthwhile batch: between its acts the request before is the beginning of the next.
 * - H4 A summary whose history changed while it was written is thrown away; what was added behind it stays.
 * - H5 A summary that fails changes nothing; layer 5 then does what must be done. Three failures in a row pause summaries.
 */
import { messageOf } from '../core/errors.ts';
import type { CompactionEdit } from '../core/events.ts';
import type { FinishedStep, Hook, HookContext } from '../core/hooks.ts';
import type { JsonObject } from '../core/json.ts';
import type { LLM, LLMScope } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { contextWindow, type ContextWindow } from './context-window.ts';
import { reduceHistory } from './last-layers.ts';
import { applyEdits, type LayerResult } from './layer.ts';
import type { PolicySettings } from './policy-settings.ts';
import { requestSize, type Conversation, type Conversations, type RequestSize } from './request-size.ts';

/** With a cold cache a change costs nothing but its own work. */
const COLD_BATCH = 0.02;
/** A summary costs a request: what it frees has to be more than a few steps' worth. */
const SUMMARY_BATCH = 0.1;
/** Of what the window has for messages: what a trim leaves, and the parts of what a summary leaves. */
const TARGET_SHARE = 0.4;
const TAIL_SHARE = 0.15;
const USER_SHARE = 0.125;
const SUMMARY_SHARE = 0.125;
const MAX_FAILURES = 3;
/** Occasions for a summary that pass without one after too many failures. */
const PAUSED_OCCASIONS = 2;

/** A conversation at a safe point. */
interface View {
  readonly context: HookContext;
  readonly messages: readonly Message[];
  readonly size: RequestSize;
  readonly window: ContextWindow;
  readonly conversation: Conversation;
}

/** Makes the hook. */
export function compactionHook(settings: PolicySettings, conversations: Conversations): Hook {
  const look = async (context: HookContext): Promise<View | undefined> => {
    const messages = await context.messages();
    const conversation = conversations.of(context.signal, messages);
    conversation.tools = context.tools;
    const tokens = settings.window ?? settings.estimator.windowOf(context.llm);
    if (tokens === undefined) return undefined;
    const window = contextWindow(tokens, context.llm, settings.outputReserve);
    const request = { systemPrompt: context.llm.systemPrompt, tools: context.tools, messages };
    const size = requestSize(request, context.llm, { estimator: settings.estimator, conversation });
    return { context, messages, size, window, conversation };
  };
  return {
    name: 'context',
    beforeStep: async (context) => {
      const view = await look(context);
      if (view !== undefined) await new Compaction(settings, look, view).run();
    },
    afterStep: async (context, step) => {
      await learn(settings, context, { step, conversations });
    },
  };
}

type Look = (context: HookContext) => Promise<View | undefined>;

/** What one safe point comes to. */
class Compaction {
  readonly #settings: PolicySettings;
  readonly #look: Look;
  #view: View;

  constructor(settings: PolicySettings, look: Look, view: View) {
    this.#settings = settings;
    this.#look = look;
    this.#view = view;
  }

  async run(): Promise<void> {
    const { clear, clearAt, fold, foldAt, keepMessages, estimator, summarizeAt } = this.#settings;
    for (const { layer, name, at } of [{ layer: clear, name: 'clear', at: clearAt }, { layer: fold, name: 'fold', at: foldAt }]) {
      if (layer === false || !this.#isDue(at)) continue;
      const { messages, size, context } = this.#view;
      const minGain = this.#batch() / size.scale;
      const { edits } = layer(messages, { estimator, tools: context.tools, keepNewest: keepMessages, minGain });
      if (edits.length > 0) await this.#record(name, edits);
    }
    if (this.#isDue(summarizeAt)) await this.#summarizeOrTrim();
  }

  #isDue(share: number): boolean {
    const { size, window, conversation } = this.#view;
    return !conversation.isStuck && size.tokens >= Math.min(share * window.tokens, window.reserveAt);
  }

  /** Tokens that clearing or folding has to free. */
  #batch(): number {
    const { conversation, context, window } = this.#view;
    const { cacheIdleMs, minBatch } = this.#settings;
    const { lastReplyAt } = conversation;
    // Of a conversation that nobody remembers the cache may well be warm.
    const isCold = lastReplyAt !== undefined && context.runtime.now() - lastReplyAt > cacheIdleMs;
    return window.tokens * (isCold ? Math.min(COLD_BATCH, minBatch) : minBatch);
  }

  get #isOver(): boolean {
    return this.#view.size.tokens > this.#view.window.inputTokens;
  }

  async #summarizeOrTrim(): Promise<void> {
    const { conversation } = this.#view;
    const { summarize } = this.#settings;
    if (summarize === false) return this.#trim();
    if (conversation.pause > 0) {
      conversation.pause -= 1;
      return this.#trim();
    }
    const outcome = await this.#summarize(summarize);
    if (conversation.isStuck) return;
    if (outcome === 'failed' || (outcome === 'done' && this.#isOver)) await this.#trim();
  }

  async #summarize(summarize: NonNullable<Exclude<PolicySettings['summarize'], false>>): Promise<'done' | 'failed' | 'discarded'> {
    const { context, messages, size, window, conversation } = this.#view;
    const { estimator, summarizer, keepMessages, userMessageTokens, filesOf } = this.#settings;
    const room = this.#room() / size.scale;
    let usage = NO_USAGE;
    let result: LayerResult;
    try {
      result = await summarize(messages, {
        llm: summarizer ?? context.llm,
        estimator,
        runtime: context.runtime,
        signal: context.signal,
        scope: scopeOf(context),
        tools: context.tools,
        keepMessages,
        keepTokens: room * TAIL_SHARE,
        userMessageTokens: Math.min(userMessageTokens, room * USER_SHARE),
        maxSummaryTokens: Math.max(1, room * SUMMARY_SHARE),
        maxOutputTokens: this.#outputTokensOf(summarizer ?? context.llm),
        minGain: (window.tokens * SUMMARY_BATCH) / size.scale,
        filesOf,
        onUsage: async (spent, modelId) => {
          usage = addUsage(usage, spent);
          await context.record({ type: 'usage', purpose: 'compaction', modelId, usage: spent });
        },
      });
    } catch (error) {
      if (context.signal.aborted) throw error;
      this.#failed(messageOf(error), usage);
      return 'failed';
    }
    context.signal.throwIfAborted();
    conversation.failures = 0;
    if (result.edits.length === 0) return 'done';
    const current = await context.messages();
    if (!isStillThere(messages, current, result.edits)) {
      context.notify({ name: 'context.summary_discarded', data: { usage: { ...usage } } });
      return 'discarded';
    }
    await this.#record('summary', result.edits, usage);
    return 'done';
  }

  /** Most tokens of a summariser's reply: what is kept free for one of the conversation's, or less if its window is smaller. */
  #outputTokensOf(summarizer: LLM): number {
    const { estimator, outputReserve } = this.#settings;
    return contextWindow(estimator.windowOf(summarizer) ?? this.#view.window.tokens, summarizer, outputReserve).outputTokens;
  }

  #failed(reason: string, usage: Usage): void {
    const { conversation, context } = this.#view;
    conversation.failures += 1;
    if (conversation.failures >= MAX_FAILURES) conversation.pause = PAUSED_OCCASIONS;
    context.notify({
      name: 'context.summary_failed',
      data: { reason, failures: conversation.failures, paused: conversation.pause > 0, usage: { ...usage } },
    });
  }

  async #trim(): Promise<void> {
    const { messages, size, window, context } = this.#view;
    const target = size.with([]) + this.#room() * TARGET_SHARE;
    const { edits, messages: reduced } = reduceHistory(messages, { settings: this.#settings, size, target, tools: context.tools });
    if (edits.length === 0) return;
    const tokens = size.with(reduced);
    // What may not go can be too large by itself: to take bit by bit of the rest would help nobody.
    const isWorth = tokens <= window.inputTokens || size.tokens - tokens >= window.tokens * COLD_BATCH;
    if (isWorth) await this.#record('trim', edits);
  }

  /** What the window has for messages. */
  #room(): number {
    const { size, window } = this.#view;
    const most = Math.min(this.#settings.summarizeAt * window.tokens, window.reserveAt);
    return Math.max(0, most - size.with([]));
  }

  async #record(layer: string, edits: readonly CompactionEdit[], usage?: Usage): Promise<void> {
    const { context, messages, size, window, conversation } = this.#view;
    const tokensAfter = size.with(applyEdits(messages, edits));
    await context.record({ type: 'compaction', layer, edits, tokensBefore: size.tokens, tokensAfter });
    const data: JsonObject = { layer, tokensBefore: size.tokens, tokensAfter, window: window.tokens, ...(usage !== undefined && { usage: { ...usage } }) };
    context.notify({ name: 'context.compacted', data });
    const view = await this.#look(context);
    if (view === undefined) return;
    this.#view = view;
    // The history is not built from the record, or not by its ids: doing it again would change nothing again.
    if (view.messages.some((message, index) => message === messages[index] && edits.some(({ from }) => from === message.id))) {
      conversation.isStuck = true;
      context.notify({ name: 'context.ineffective', data: { layer } });
    }
  }
}

/** What decorators of the summariser get. */
function scopeOf(context: HookContext): LLMScope {
  const { turnId, step, runtime } = context;
  return {
    turnId,
    step,
    stepId: `${turnId}.summary`,
    runtime,
    notify: (notice) => {
      context.notify(notice);
    },
  };
}

/** True if all messages up to the last that an edit replaces are there as they were. */
function isStillThere(before: readonly Message[], now: readonly Message[], edits: readonly CompactionEdit[]): boolean {
  const last = edits.at(-1)?.to;
  const end = before.findIndex(({ id }) => id === last) + 1;
  return before.slice(0, end).every((message, index) => isSame(message, now[index]));
}

/** A history may be built anew each time, of equal messages. */
function isSame(left: Message, right: Message | undefined): boolean {
  return left === right || (left.id === right?.id && JSON.stringify(left) === JSON.stringify(right));
}

/** Takes in what a request did cost. */
async function learn(
  { estimator, window }: PolicySettings,
  context: HookContext,
  { step, conversations }: { readonly step: FinishedStep; readonly conversations: Conversations },
): Promise<void> {
  const messages = await context.messages();
  const conversation = conversations.of(context.signal, messages);
  conversation.lastReplyAt = context.runtime.now();
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = step.usage;
  const tokens = inputTokens + cacheReadTokens + cacheWriteTokens;
  const end = messages.findLastIndex(({ id }) => id === step.message.id);
  // A reply that told no count, or left nothing in the history, says nothing about the request.
  if (tokens === 0 || end === -1) return;
  const tail = messages.slice(end).filter((message) => message.role === 'user' && message.transient === true);
  const request = { systemPrompt: context.llm.systemPrompt, tools: context.tools, messages: [...messages.slice(0, end), ...tail] };
  const { llm } = context;
  const source = step.message.source ?? llm;
  const fits = window ?? estimator.windowOf(llm) ?? Infinity;
  // Less than the window for a request that is larger: the server threw a part of it away, and counted the rest.
  if (tokens <= fits && estimator.estimateRequest(request, llm) > fits) return;
  // A model's full name is often longer than what it was asked by; another provider's count is another tokenizer's.
  const model = source.provider === llm.provider ? llm : source;
  estimator.observe(request, model, tokens);
  if (model === llm) conversation.counted = { request, model: { provider: llm.provider, modelId: llm.modelId }, tokens };
}
