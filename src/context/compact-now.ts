/** Compact now: a summary that a host asks for, between turns. */
import { TurnloopError } from '../core/errors.ts';
import { TRANSCRIPT_VERSION, type RecordedEvent, type UsageEvent } from '../core/events.ts';
import type { LLM } from '../core/llm.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import type { AnyTool } from '../core/tool.ts';
import type { Transcript } from '../core/transcript.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { contextWindow } from './context-window.ts';
import type { PolicySettings } from './policy-settings.ts';
import { requestSize } from './request-size.ts';

/** Options of {@link ContextPolicy.compact}. */
export interface CompactOptions {
  /** The session: no turn of it may be open. */
  readonly transcript: Pick<Transcript, 'buildMessages' | 'openTurn' | 'record'>;
  /** The model of the conversation: its window is meant, and without a `summarizer` it writes the summary. */
  readonly llm: LLM;
  /** The tools of the conversation. @defaultValue none */
  readonly tools?: readonly AnyTool[] | undefined;
  /** What is to be kept above all, in words. @defaultValue empty */
  readonly focus?: string | undefined;
  /** Makes events durable before the transcript takes them. @defaultValue the transcript alone */
  readonly record?: ((event: RecordedEvent) => Promise<void> | void) | undefined;
  /** Ends it; nothing is recorded then but the tokens spent. @defaultValue none */
  readonly signal?: AbortSignal | undefined;
  /** Clock and ids. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/** What a compaction came to. */
export interface CompactionReport {
  /** Tokens of the request before. */
  readonly tokensBefore: number;
  /** Tokens of the same request now. */
  readonly tokensAfter: number;
  /** What the summary cost. */
  readonly usage: Usage;
}

type Spent = Pick<UsageEvent, 'modelId' | 'usage'>;

/** Summarises the history of a session. */
export async function compactNow(settings: PolicySettings, options: CompactOptions): Promise<CompactionReport> {
  const { transcript, llm, runtime = systemRuntime, tools = [], focus = '' } = options;
  const { summarize, estimator } = settings;
  const messages = messagesToCompact(transcript);
  if (summarize === false) throw new TurnloopError('nothing_to_compact', 'This policy writes no summaries: its `summarize` is false.');
  const size = requestSize({ systemPrompt: llm.systemPrompt, tools, messages }, llm, { estimator });
  const window = settings.window ?? estimator.windowOf(llm);
  const spent: Spent[] = [];
  const result = await summarize(messages, {
    llm: settings.summarizer ?? llm,
    estimator,
    runtime,
    signal: options.signal,
    tools,
    keepMessages: settings.keepMessages,
    userMessageTokens: settings.userMessageTokens,
    ...(window !== undefined && {
      keepTokens: (window * 0.15) / size.scale,
      userMessageTokens: Math.min(settings.userMessageTokens, (window * 0.125) / size.scale),
      maxOutputTokens: contextWindow(window, llm, settings.outputReserve).outputTokens,
    }),
    focus,
    filesOf: settings.filesOf,
    onUsage: (usage, modelId) => {
      spent.push({ modelId, usage });
    },
  }).catch(async (error: unknown) => {
    await recordTurn(options, { spent, compaction: undefined });
    throw error;
  });
  if (result.edits.length === 0) throw new TurnloopError('nothing_to_compact', 'There is nothing to summarise: all of the history is recent, or kept.');
  if (transcript.openTurn() !== undefined || transcript.buildMessages() !== messages) {
    await recordTurn(options, { spent, compaction: undefined });
    throw new TurnloopError('history_changed', 'The history changed while it was summarised; nothing was done to it.');
  }
  const [tokensBefore, tokensAfter] = [size.tokens, size.with(result.messages)];
  await recordTurn(options, { spent, compaction: { layer: 'summary', edits: result.edits, tokensBefore, tokensAfter } });
  return { tokensBefore, tokensAfter, usage: spent.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE) };
}

function messagesToCompact(transcript: CompactOptions['transcript']): ReturnType<Transcript['buildMessages']> {
  const open = transcript.openTurn();
  if (open !== undefined) {
    throw new TurnloopError('turn_open', `Turn "${open.turnId}" is not over: compact between turns. Within one the policy does it by itself.`);
  }
  const messages = transcript.buildMessages();
  if (messages.length === 0) throw new TurnloopError('empty_history', 'The history is empty: there is nothing to compact.');
  return messages;
}

type Unstamped = RecordedEvent extends infer Event ? (Event extends RecordedEvent ? Omit<Event, 'turnId' | 'at'> : never) : never;

/** Records what was done as a turn without steps: every event belongs to a turn. Nothing if there is nothing to tell. */
async function recordTurn(
  { transcript, record, runtime = systemRuntime }: CompactOptions,
  done: { readonly spent: readonly Spent[]; readonly compaction: Omit<Extract<Unstamped, { type: 'compaction' }>, 'type'> | undefined },
): Promise<void> {
  const { spent, compaction } = done;
  if (spent.length === 0 && compaction === undefined) return;
  const turnId = runtime.createId('turn');
  const events: Unstamped[] = [
    { type: 'turn.begin', version: TRANSCRIPT_VERSION, inputCount: 0 },
    ...spent.map((one): Unstamped => ({ type: 'usage', purpose: 'compaction', ...one })),
    ...(compaction === undefined ? [] : [{ type: 'compaction', ...compaction } satisfies Unstamped]),
    { type: 'turn.end', stopReason: 'end_turn', steps: 0 },
  ];
  for (const event of events) {
    const stamped = { ...event, turnId, at: runtime.now() } as RecordedEvent;
    await record?.(stamped);
    transcript.record(stamped);
  }
}
