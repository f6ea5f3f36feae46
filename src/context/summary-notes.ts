/**
 * Summary notes: from a conversation in words to notes of it, in as many requests as it takes.
 *
 * - At most 32 requests, and at most three answers that are no good. What was noted until then is kept: the notes of the
 *   older part stand for that part. Where so many requests could not do what is wanted at least, none is sent.
 * - What was too large is asked for in two pieces, what was too long in half as many words: never one message at a time.
 */
import { messageOf, TurnloopError } from '../core/errors.ts';
import { contextWindow } from './context-window.ts';
import { learnWindow } from './learn-window.ts';
import { summaryPrompt } from './summary-prompt.ts';
import { askForSummary, summaryRequest, type SummaryAnswer, type SummaryProblem, type Summarizer } from './summary-request.ts';
import { takeEntries, type Entry } from './summary-input.ts';
import type { TokenEstimator } from './token-estimator.ts';

/** What notes are made of. */
interface NotesOptions {
  /** The conversation in words. */
  readonly entries: readonly Entry[];
  /** The notes so far; empty for none. */
  readonly former: string;
  /** Longer notes are no good. */
  readonly maxTokens: number;
  /** What is to be kept above all; empty for nothing. */
  readonly focus: string;
  /** Counts tokens. */
  readonly estimator: TokenEstimator;
  /** Share of the conversation that has to be noted to be of use. */
  readonly leastShare: number;
  /** Whom to ask. */
  readonly summarizer: Summarizer;
}

/** Notes of some part. */
export interface Notes {
  /** The notes, made of the former and of what is noted. */
  readonly text: string;
  /** How many entries are noted, from the oldest on. */
  readonly count: number;
}

/** A summariser with a window of a tenth of the conversation's needs about 20. */
const MAX_REQUESTS = 32;
const MAX_FAILURES = 3;
/** A summary of more words is read by nobody. */
const MAX_WORDS = 900;
const LEAST_WORDS = 50;
const WORDS_PER_TOKEN = 0.6;
/** Share of what the summariser's window has for input: the rest is for the notes so far, and for errors of the estimate. */
const INPUT_SHARE = 0.75;
/** A good half: whole messages seldom come to exactly one. */
const PIECE_SHARE = 0.55;
/** Requests are never made smaller than this: what does not fit then never will. */
const LEAST_TOKENS = 200;

/** What is tried next. */
interface Trial {
  pieceTokens: number;
  maxWords: number;
}

/**
 * Writes notes, of all entries or of the oldest of them.
 *
 * @throws {@link index.TurnloopError | TurnloopError} `summary_failed`; `signal.reason` if aborted
 */
export async function writeNotes(options: NotesOptions): Promise<Notes> {
  const { entries, estimator, summarizer, maxTokens, focus } = options;
  const estimate = (text: string): number => estimator.estimateText(text);
  const trial: Trial = { pieceTokens: pieceTokensFor(options), maxWords: wordsFor(maxTokens) };
  const tokens = entries.reduce((sum, { text }) => sum + estimate(text), 0);
  if (trial.pieceTokens * MAX_REQUESTS < tokens * options.leastShare) throw tooSmall(tokens);
  let notes = options.former;
  let failures = 0;
  let done = 0;
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const piece = takeEntries(entries, done, { maxTokens: trial.pieceTokens, estimate });
    const prompt = summaryPrompt({ conversation: piece.text, former: notes, maxWords: trial.maxWords, focus });
    const request = summaryRequest(prompt, summarizer);
    const answer = checkLength(await askForSummary(request, summarizer), { maxTokens, estimate });
    if ('text' in answer) {
      notes = answer.text;
      done = piece.end;
      if (done >= entries.length) break;
      continue;
    }
    failures += 1;
    if (answer.problem === 'too_large') learnWindow({ request, llm: summarizer.llm, error: answer.error }, { estimator });
    if (failures < MAX_FAILURES && shrink(trial, answer.problem, piece.tokens)) continue;
    if (done === 0) throw failed(answer);
    break;
  }
  if (done === 0) throw tooSmall(tokens);
  return { text: notes, count: done };
}

function pieceTokensFor({ estimator, summarizer }: NotesOptions): number {
  const window = contextWindow(summarizer.llm, { estimator, outputReserve: summarizer.maxOutputTokens });
  if (window === undefined) return Infinity;
  return Math.max(LEAST_TOKENS, (window.inputTokens * INPUT_SHARE) / estimator.factorOf(summarizer.llm));
}

function wordsFor(maxTokens: number): number {
  return Math.max(LEAST_WORDS, Math.min(MAX_WORDS, Math.floor(maxTokens * WORDS_PER_TOKEN)));
}

type CheckedAnswer = { readonly text: string } | { readonly problem: SummaryProblem | 'too_long'; readonly error?: unknown };

function checkLength(
  answer: SummaryAnswer,
  { maxTokens, estimate }: { readonly maxTokens: number; readonly estimate: (text: string) => number },
): CheckedAnswer {
  return 'text' in answer && estimate(answer.text) > maxTokens ? { problem: 'too_long' } : answer;
}

/** Asks for less; false if that would not help. */
function shrink(trial: Trial, problem: SummaryProblem | 'too_long', tokens: number): boolean {
  switch (problem) {
    case 'filtered':
    case 'failed':
      return false;
    case 'too_long':
    case 'truncated':
      trial.maxWords = Math.max(LEAST_WORDS, Math.floor(trial.maxWords / 2));
      return true;
    case 'too_large':
    case 'empty':
    case 'called_tools':
      trial.pieceTokens = Math.max(LEAST_TOKENS, tokens * PIECE_SHARE);
      return true;
  }
}

function tooSmall(tokens: number): TurnloopError {
  const reason = `about ${Math.round(tokens)} tokens in words take more than ${MAX_REQUESTS} requests of the summariser's window`;
  return new TurnloopError('summary_failed', `No summary was to be had: ${reason}.`);
}

const WORDING: Readonly<Record<SummaryProblem | 'too_long', string>> = {
  too_large: 'what was to be summarised is too large for the summariser',
  empty: 'the summariser gave no text',
  called_tools: 'the summariser called tools, though there are none',
  truncated: 'the summary was truncated at the output limit',
  filtered: 'a content filter stopped the summary',
  too_long: 'the summary is longer than what it replaces',
  failed: 'the request failed',
};

function failed({ problem, error }: { readonly problem: SummaryProblem | 'too_long'; readonly error?: unknown }): TurnloopError {
  const detail = error === undefined ? '' : ` (${messageOf(error)})`;
  return new TurnloopError('summary_failed', `No summary was to be had: ${WORDING[problem]}${detail}.`, { cause: error });
}
