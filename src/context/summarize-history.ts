/**
 * Summarize history: layer 4. The older part of a history becomes one summary, written by a model.
 *
 * - S1 One summary at most: a former one is what the new one is made of, and is replaced by it.
 * - S2 A summary is shorter than what it replaces, and whole: anything else counts as a failure, and nothing changes.
 * - S3 The newest exchanges stay as they are, as whole exchanges; beside the summary stays what `summary-kept.ts` says.
 * - S4 Bounded: at most 32 requests, at most three answers that are no good.
 *
 * What a part says that is larger than the summariser's window is taken in pieces: each time the notes so far and the
 * next piece make new notes. If that ends early the notes stand for what they are of, and the rest stays as it is.
 */
import { TurnloopError } from '../core/errors.ts';
import type { LLM, LLMScope } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import type { AnyTool } from '../core/tool.ts';
import type { Usage } from '../core/usage.ts';
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import { assertEstimator, assertMembers, assertRuntime, assertType } from './assert-context.ts';
import { isSummary, recentStart, resultOf, unchanged, type LayerResult } from './layer.ts';
import { filesOfHistory, type FilesOfCall } from './summary-files.ts';
import { summaryEntries, type Entry } from './summary-input.ts';
import { keptBeside } from './summary-kept.ts';
import { mergeFiles, readSummary, summaryMessage, type TouchedFiles } from './summary-message.ts';
import { writeNotes } from './summary-notes.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';

const DEFAULT_KEEP_MESSAGES = 20;
const DEFAULT_KEEP_TOKENS = 20_000;
const DEFAULT_USER_MESSAGE_TOKENS = 20_000;
/** Notes of fewer tokens are not worth a request. */
const LEAST_NOTES_TOKENS = 50;

const ARGUMENT = { taker: 'summarizeHistory', example: 'summarizeHistory(messages, { llm })' };
const OPTIONS: Readonly<Record<keyof SummarizeHistoryOptions, true>> = {
  llm: true,
  estimator: true,
  runtime: true,
  signal: true,
  scope: true,
  tools: true,
  keepMessages: true,
  keepTokens: true,
  userMessageTokens: true,
  maxSummaryTokens: true,
  maxOutputTokens: true,
  minGain: true,
  focus: true,
  filesOf: true,
  onUsage: true,
};

/** Options of {@link summarizeHistory}. Tokens are those of the estimator, not calibrated. */
export interface SummarizeHistoryOptions {
  /** Writes the summary. Its own settings, such as the effort of its thinking, hold for the summary too. */
  readonly llm: LLM;
  /** Counts tokens. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /** Clock, timers and ids. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** Ends it: nothing more is asked, and it rejects with `signal.reason`. @defaultValue none */
  readonly signal?: AbortSignal | undefined;
  /** Time, ids and a voice for decorators of the model. @defaultValue none */
  readonly scope?: LLMScope | undefined;
  /** The tools of the conversation: they say which calls change files. @defaultValue none */
  readonly tools?: readonly AnyTool[] | undefined;
  /** How many of the newest messages stay at most; the exchange they begin in stays whole. @defaultValue 20 */
  readonly keepMessages?: number | undefined;
  /** How many tokens of the newest messages stay at most. The last exchange always does. @defaultValue 20,000 */
  readonly keepTokens?: number | undefined;
  /** Tokens of a person's older messages that stay word for word, beside the first and the last. @defaultValue 20,000 */
  readonly userMessageTokens?: number | undefined;
  /** A longer summary is no good. @defaultValue as long as what it replaces */
  readonly maxSummaryTokens?: number | undefined;
  /** Most tokens of a reply of the summariser, its thinking included. @defaultValue its own limit */
  readonly maxOutputTokens?: number | undefined;
  /** Where fewer tokens than this would be gained nothing is asked. @defaultValue 1 */
  readonly minGain?: number | undefined;
  /** What is to be kept above all, in words. @defaultValue empty */
  readonly focus?: string | undefined;
  /** Names the files of a call. @defaultValue arguments called `path`, `file_path` and the like */
  readonly filesOf?: FilesOfCall | undefined;
  /** Awaited with what each request cost, failed ones too. @defaultValue nobody is told */
  readonly onUsage?: ((usage: Usage, modelId: string) => Promise<void> | void) | undefined;
}

/**
 * Replaces the older part of a history by a summary that a model writes. Changes nothing itself: the result's `edits` are
 * for a `compaction` event.
 *
 * @param messages - The history, oldest first.
 * @returns A result without edits if there is nothing to summarise.
 * @throws {@link index.TurnloopError | TurnloopError} `summary_failed` if no good summary was to be had; `signal.reason` if
 * aborted; TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const { edits, tokensBefore, tokensAfter } = await summarizeHistory(messages, { llm });
 * ```
 */
export async function summarizeHistory(messages: readonly Message[], options: SummarizeHistoryOptions): Promise<LayerResult> {
  assertSummarizeOptions(options);
  const { estimator = createTokenEstimator(), runtime = systemRuntime, minGain = 1, maxSummaryTokens = Infinity } = options;
  const partOptions = { ...options, estimator, runtime };
  const part = partToSummarize(messages, partOptions, tailStart(messages, partOptions));
  if (part === undefined) return unchanged(messages, estimator);
  const id = runtime.createId('message');
  const wrapperTokens = estimator.estimateMessage(summaryMessage(id, { text: '', files: part.files }));
  // What the summary has to be shorter than, to gain what is wanted.
  const most = part.removedTokens - wrapperTokens - minGain;
  if (most < Math.max(LEAST_NOTES_TOKENS, part.formerTokens - wrapperTokens)) return unchanged(messages, estimator);

  const { text, count } = await writeNotes({
    entries: part.entries,
    former: part.former,
    maxTokens: Math.min(maxSummaryTokens, most),
    focus: options.focus ?? '',
    leastShare: minGain / part.removedTokens,
    estimator,
    summarizer: {
      llm: options.llm,
      runtime,
      signal: options.signal ?? new AbortController().signal,
      maxOutputTokens: options.maxOutputTokens,
      scope: options.scope,
      onUsage: options.onUsage ?? (() => undefined),
    },
  });
  const noted = notedPart(messages, { part, count, options: partOptions });
  if (noted === undefined) throw new TurnloopError('summary_failed', 'No summary was to be had: too little of the history could be noted.');
  const changes = new Map(noted.changes);
  changes.set(noted.place, [...(changes.get(noted.place) ?? []), summaryMessage(id, { text, files: noted.files })]);
  const result = resultOf(messages, changes, { estimator, minGain: noted === part ? 1 : minGain });
  if (result.edits.length === 0) throw new TurnloopError('summary_failed', 'No summary was to be had: it is longer than what it replaces.');
  return result;
}

/** The part that the notes are of, up to the first exchange of which some is missing. */
function notedPart(
  messages: readonly Message[],
  { part, count, options }: { readonly part: Part; readonly count: number; readonly options: PartOptions },
): Part | undefined {
  const next = part.entries[count]?.message;
  if (next === undefined) return part;
  let end = messages.indexOf(next);
  while (end > 0 && messages[end]?.role === 'tool') end -= 1;
  return partToSummarize(messages, options, end);
}

/** What is to be summarised. */
interface Part {
  /** What is new since the former summary, in words. */
  readonly entries: readonly Entry[];
  /** The former summary. */
  readonly former: string;
  readonly formerTokens: number;
  /** The files that both parts touched. */
  readonly files: TouchedFiles;
  /** What becomes of the messages, the summary aside. */
  readonly changes: ReadonlyMap<Message, readonly Message[]>;
  /** The message in whose place the summary comes: the last that goes. */
  readonly place: Message;
  /** Tokens that go, less what stays shorter. */
  readonly removedTokens: number;
}

type PartOptions = SummarizeHistoryOptions & { readonly estimator: TokenEstimator; readonly runtime: Runtime };

/** @param end - Where what is to be summarised ends. */
function partToSummarize(messages: readonly Message[], options: PartOptions, end: number): Part | undefined {
  const { estimator, runtime, userMessageTokens = DEFAULT_USER_MESSAGE_TOKENS, tools = [], filesOf, minGain = 1 } = options;
  const covered = messages.slice(0, end);
  const changes = keptBeside(messages, covered.length, {
    userMessageTokens,
    estimateMessage: (message) => estimator.estimateMessage(message),
    estimateText: (text) => estimator.estimateText(text),
    createId: () => runtime.createId('message'),
  });
  const place = covered.findLast((message) => changes.has(message));
  const { tokensBefore, tokensAfter } = resultOf(messages, changes, { estimator });
  const former = [...changes.keys()].filter(isSummary);
  // A summary alone would be summarised again and again.
  if (place === undefined || former.length === changes.size || tokensBefore - tokensAfter <= minGain) return undefined;
  const entries = summaryEntries(covered);
  // Thinking alone says nothing.
  if (entries.length === 0) return undefined;
  const summaries = former.map(readSummary);
  return {
    entries,
    former: summaries.map(({ text }) => text).join('\n\n'),
    formerTokens: estimator.estimateMessages(former),
    files: [...summaries.map(({ files }) => files), filesOfHistory(covered, { tools, filesOf })].reduce(mergeFiles),
    changes,
    place,
    removedTokens: tokensBefore - tokensAfter,
  };
}

/** Index of the first message that stays: whole exchanges, by number and by tokens, the last one in any case. */
function tailStart(messages: readonly Message[], options: PartOptions): number {
  const { estimator, keepMessages = DEFAULT_KEEP_MESSAGES, keepTokens = DEFAULT_KEEP_TOKENS } = options;
  const last = recentStart(messages, 0);
  const first = recentStart(messages, keepMessages);
  let tokens = 0;
  let start = last;
  for (const [offset, message] of messages.slice(first).toReversed().entries()) {
    const index = messages.length - 1 - offset;
    tokens += estimator.estimateMessage(message);
    if (index < last && tokens > keepTokens) break;
    if (message.role !== 'tool') start = Math.min(start, index);
  }
  return start;
}

function assertSummarizeOptions(options: SummarizeHistoryOptions): void {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertLLM(options.llm, ARGUMENT);
  const { estimator, runtime, signal } = options;
  assertEstimator(estimator, { taker: ARGUMENT.taker });
  if (runtime !== undefined) assertRuntime(runtime, ARGUMENT);
  if (signal !== undefined) assertMembers(signal, ['throwIfAborted', 'addEventListener'], { ...ARGUMENT, option: 'signal' });
  for (const [name, type] of [['focus', 'string'], ['filesOf', 'function'], ['onUsage', 'function']] as const) {
    assertType(options[name], { ...ARGUMENT, option: name, type });
  }
  assertNumbers(
    options,
    {
      keepMessages: { least: 0, whole: true },
      keepTokens: { least: 0, orInfinity: true },
      userMessageTokens: { least: 0, orInfinity: true },
      maxSummaryTokens: { least: 1, orInfinity: true },
      maxOutputTokens: { least: 1, whole: true },
      minGain: { least: 0 },
    },
    ARGUMENT,
  );
}
