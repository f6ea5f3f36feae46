/**
 * Compaction hook: which layer runs before a step, and that what it did is recorded.
 *
 * - H1 Between steps only, and the turn waits for it. What was recorded is what the next request has.
 * - H2 The layers run in order, each only if it is due on the figure after the one before.
 * - H3 A layer acts only if it frees a worthwhile batch: between its acts the request before is the beginning of the next.
 * - H4 A summary whose history changed while it was written is thrown away; what was added behind it stays, and what is
 *   built anew for each request does not count.
 * - H5 A summary that fails or is thrown away changes nothing; layer 5 then does what must be done. Three in a row pause
 *   summaries.
 * - H6 A layer that found nothing worth a change is asked again when the request has grown: it looks at the whole history.
 * - H7 A history that a compaction did not change is left alone: nothing is paid for twice.
 */
import { messageOf } from '../core/errors.ts';
import type { CompactionEdit } from '../core/events.ts';
import type { Hook, HookContext } from '../core/hooks.ts';
import type { JsonObject } from '../core/json.ts';
import type { LLM, LLMScope } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { attemptLayer, checkedEdits } from './checked-edits.ts';
import { contextWindow, type ContextWindow } from './context-window.ts';
import { isStillThere, isUnedited, withoutEqualIds } from './history-edits.ts';
import { reduceHistory } from './last-layers.ts';
import { applyEdits, type LayerResult } from './layer.ts';
import { learnCost } from './learn-cost.ts';
import type { PolicySettings } from './policy-settings.ts';
import { requestSize, type Conversation, type Conversations, type RequestSize } from './request-size.ts';
import { summaryBudget } from './summary-budget.ts';

/** With a cold cache a change costs nothing but its own work. */
const COLD_BATCH = 0.02;
/** A summary costs a request: what it frees has to be more than a few steps' worth. */
const SUMMARY_BATCH = 0.1;
/** Of what the window has for messages: what a trim leaves. */
const TARGET_SHARE = 0.4;
/** Ids in a notice: enough to find out why. */
const MOST_TOLD = 10;
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
    const window = contextWindow(context.llm, settings);
    if (window === undefined) return undefined;
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
      await learnCost(settings, context, { step, conversations });
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
      const { size, context } = this.#view;
      const minGain = this.#batch() / size.scale;
      if (this.#isIdle(name, minGain)) continue;
      const whose = { layer: name, notify: notifierOf(context) };
      const messages = this.#editable();
      const edits = attemptLayer(whose, () => {
        const result = layer(messages, { estimator, tools: context.tools, keepNewest: keepMessages, minGain });
        return checkedEdits(messages, result.edits, whose);
      });
      if (edits !== undefined && edits.length > 0) await this.#record(name, edits);
      else this.#view.conversation.idle.set(name, { tokens: size.tokens, minGain });
    }
    if (this.#isDue(summarizeAt)) await this.#summarizeOrTrim();
  }

  #isDue(share: number): boolean {
    const { size, window, conversation } = this.#view;
    return !conversation.isStuck && size.tokens >= Math.min(share * window.tokens, window.reserveAt);
  }

  /** True if a layer found nothing when the request was hardly smaller, and no less would do now. */
  #isIdle(layer: string, minGain: number): boolean {
    const { conversation, size, window } = this.#view;
    const idle = conversation.idle.get(layer);
    return idle !== undefined && minGain >= idle.minGain && size.tokens < idle.tokens + window.tokens * COLD_BATCH;
  }

  /** The history as layers get it. */
  #editable(): readonly Message[] {
    const { context, conversation } = this.#view;
    const { messages, equalIds } = withoutEqualIds(this.#view.messages);
    if (equalIds.length > 0 && !conversation.toldEqualIds) {
      conversation.toldEqualIds = true;
      context.notify({ name: 'context.equal_ids', data: { ids: equalIds.slice(0, MOST_TOLD) } });
    }
    return messages;
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
    if (outcome === 'failed' || this.#isOver) await this.#trim();
  }

  async #summarize(summarize: NonNullable<Exclude<PolicySettings['summarize'], false>>): Promise<'done' | 'failed' | 'discarded'> {
    const { context, size, window, conversation } = this.#view;
    const { estimator, summarizer, keepMessages, userMessageTokens, filesOf } = this.#settings;
    const messages = this.#editable();
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
        ...summaryBudget(this.#room() / size.scale, userMessageTokens),
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
      this.#failed('context.summary_failed', { reason: messageOf(error), usage: { ...usage } });
      return 'failed';
    }
    context.signal.throwIfAborted();
    if (result.edits.length === 0) return 'done';
    const edits = checkedEdits(messages, result.edits, { layer: 'summary', notify: notifierOf(context) });
    if (edits.length === 0) {
      this.#failed('context.summary_failed', { reason: 'None of its edits may be recorded.', usage: { ...usage } });
      return 'failed';
    }
    const now = await this.#look(context);
    if (now === undefined || !isStillThere(messages, withoutEqualIds(now.messages).messages, edits)) {
      this.#view = now ?? this.#view;
      this.#failed('context.summary_discarded', { usage: { ...usage } });
      return 'discarded';
    }
    conversation.failures = 0;
    await this.#record('summary', edits, usage);
    return 'done';
  }

  /** Most tokens of a summariser's reply: what is kept free for one of the conversation's, or less if its window is smaller. */
  #outputTokensOf(summarizer: LLM): number {
    const { estimator, outputReserve } = this.#settings;
    return (contextWindow(summarizer, { estimator, outputReserve }) ?? this.#view.window).outputTokens;
  }

  #failed(name: string, data: JsonObject): void {
    const { conversation, context } = this.#view;
    conversation.failures += 1;
    if (conversation.failures >= MAX_FAILURES) conversation.pause = PAUSED_OCCASIONS;
    context.notify({ name, data: { ...data, failures: conversation.failures, paused: conversation.pause > 0 } });
  }

  async #trim(): Promise<void> {
    const { size, window, context } = this.#view;
    const target = size.with([]) + this.#room() * TARGET_SHARE;
    const { edits, messages: reduced } = reduceHistory(this.#editable(), {
      settings: this.#settings,
      size,
      target,
      tools: context.tools,
      notify: notifierOf(context),
    });
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
    conversation.idle.clear();
    const view = await this.#look(context);
    if (view === undefined) return;
    this.#view = view;
    // Doing it again would change nothing again.
    if (isUnedited({ before: messages, now: view.messages, edits }, size.with)) {
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
    notify: notifierOf(context),
  };
}

function notifierOf(context: HookContext): HookContext['notify'] {
  return (notice) => {
    context.notify(notice);
  };
}
