/**
 * Compact now: a summary that a host asks for, between turns.
 *
 * - N1 No turn is opened for it: what it records are single events under an id of their own, so a process that dies
 *   between any two leaves nothing to be gone on with. The history changes with the last of them or not at all.
 * - N2 One at a time for a session; and what it reports is in the history.
 */
import { assertLLM, assertOptions, assertTool } from '../core/assert.ts';
import { TurnloopError } from '../core/errors.ts';
import type { CompactionEvent, RecordedEvent, UsageEvent } from '../core/events.ts';
import type { LLM } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import type { AnyTool } from '../core/tool.ts';
import type { Transcript } from '../core/transcript.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { assertMembers, assertRuntime, assertType } from './assert-context.ts';
import { checkedEdits } from './checked-edits.ts';
import { contextWindow } from './context-window.ts';
import { isEdited, isSameRecord, withoutEqualIds } from './history-edits.ts';
import { applyEdits } from './layer.ts';
import type { PolicySettings } from './policy-settings.ts';
import { requestSize } from './request-size.ts';
import { summaryBudget } from './summary-budget.ts';

const ARGUMENT = { taker: 'policy.compact', example: 'policy.compact({ transcript, llm })' };
const OPTIONS: Readonly<Record<keyof CompactOptions, true>> = {
  transcript: true,
  llm: true,
  tools: true,
  focus: true,
  record: true,
  signal: true,
  runtime: true,
};

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
  /**
   * Makes events durable before the transcript takes them: `usage` for each request, then one `compaction`. They stand
   * between turns, under a `turnId` of their own, without `turn.begin` and `turn.end`.
   *
   * @defaultValue the transcript alone
   */
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

/** Sessions that are being compacted. */
const busy = new WeakSet<CompactOptions['transcript']>();

/** Summarises the history of a session. */
export async function compactNow(settings: PolicySettings, options: CompactOptions): Promise<CompactionReport> {
  assertCompactOptions(options);
  const { transcript } = options;
  const messages = messagesToCompact(transcript);
  busy.add(transcript);
  try {
    return await summarizeSession(messages, { settings, options });
  } finally {
    busy.delete(transcript);
  }
}

async function summarizeSession(
  messages: readonly Message[],
  { settings, options }: { readonly settings: PolicySettings; readonly options: CompactOptions },
): Promise<CompactionReport> {
  const { transcript, llm, runtime = systemRuntime, tools = [], focus = '' } = options;
  const { summarize, estimator } = settings;
  if (summarize === false) throw new TurnloopError('nothing_to_compact', 'This policy writes no summaries: its `summarize` is false.');
  const size = requestSize({ systemPrompt: llm.systemPrompt, tools, messages }, llm, { estimator });
  const window = contextWindow(llm, settings);
  const record = recorder(options);
  let spent = NO_USAGE;
  const { messages: editable } = withoutEqualIds(messages);
  const result = await summarize(editable, {
    llm: settings.summarizer ?? llm,
    estimator,
    runtime,
    signal: options.signal,
    tools,
    keepMessages: settings.keepMessages,
    userMessageTokens: settings.userMessageTokens,
    ...(window !== undefined && {
      ...summaryBudget(window.tokens / size.scale, settings.userMessageTokens),
      maxOutputTokens: window.outputTokens,
    }),
    focus,
    filesOf: settings.filesOf,
    onUsage: async (usage, modelId) => {
      spent = addUsage(spent, usage);
      await record({ type: 'usage', purpose: 'compaction', modelId, usage });
    },
  });
  options.signal?.throwIfAborted();
  if (result.edits.length === 0) throw new TurnloopError('nothing_to_compact', 'There is nothing to summarise: all of the history is recent, or kept.');
  // Nobody hears of what a layer of the host's own may not do: there is no turn.
  const edits = checkedEdits(editable, result.edits, { layer: 'summary', notify: () => undefined });
  if (edits.length === 0) throw new TurnloopError('summary_failed', 'None of the edits of `summarize` may be recorded: see `context.edit_refused` of createContextPolicy.');
  if (transcript.openTurn() !== undefined || !isSameRecord(transcript.buildMessages(), messages)) throw historyChanged();
  const [tokensBefore, tokensAfter] = [size.tokens, size.with(applyEdits(messages, edits))];
  await record({ type: 'compaction', layer: 'summary', edits, tokensBefore, tokensAfter });
  // A turn, or somebody else's compaction, may have come while the event was written.
  if (!isEdited(messages, transcript.buildMessages(), edits)) throw historyChanged();
  return { tokensBefore, tokensAfter, usage: spent };
}

function historyChanged(): TurnloopError {
  return new TurnloopError('history_changed', 'The history changed while it was summarised; the summary was thrown away.');
}

function messagesToCompact(transcript: CompactOptions['transcript']): readonly Message[] {
  const open = transcript.openTurn();
  if (open !== undefined) {
    throw new TurnloopError('turn_open', `Turn "${open.turnId}" is not over: compact between turns. Within one the policy does it by itself.`);
  }
  if (busy.has(transcript)) throw new TurnloopError('history_changed', 'The session is being compacted already: wait for that.');
  const messages = transcript.buildMessages();
  if (messages.length === 0) throw new TurnloopError('empty_history', 'The history is empty: there is nothing to compact.');
  return messages;
}

type Unstamped = Omit<UsageEvent, 'turnId' | 'at'> | Omit<CompactionEvent, 'turnId' | 'at'>;

/** Records single events, each durable before the transcript has it. */
function recorder({ transcript, record, runtime = systemRuntime }: CompactOptions): (event: Unstamped) => Promise<void> {
  let turnId: string | undefined;
  return async (event) => {
    turnId ??= runtime.createId('turn');
    const stamped: RecordedEvent = { ...event, turnId, at: runtime.now() };
    await record?.(stamped);
    transcript.record(stamped);
  };
}

function assertCompactOptions(options: CompactOptions): void {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertMembers(options.transcript, ['buildMessages', 'openTurn', 'record'], { ...ARGUMENT, option: 'transcript' });
  assertLLM(options.llm, ARGUMENT);
  const { tools = [], runtime, signal } = options;
  if (!isList(tools)) throw new TypeError(`${ARGUMENT.taker}: \`tools\` is not a list. For example: policy.compact({ transcript, llm, tools: [readFile] }).`);
  for (const tool of tools) assertTool(tool, { ...ARGUMENT, example: 'policy.compact({ transcript, llm, tools: [readFile] })' });
  if (runtime !== undefined) assertRuntime(runtime, ARGUMENT);
  if (signal !== undefined) assertMembers(signal, ['throwIfAborted', 'addEventListener'], { ...ARGUMENT, option: 'signal' });
  for (const [name, type] of [['focus', 'string'], ['record', 'function']] as const) {
    assertType(options[name], { ...ARGUMENT, option: name, type });
  }
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}
