/**
 * Summary request: asks a summariser once, and says what was wrong with its answer.
 *
 * - Tokens are told for every request that cost some, also for those that failed, before anything else is done.
 * - A passing failure is tried again twice, unless the model retries by itself: two policies must not multiply.
 * - With the signal aborted nothing is sent, and no wait goes on.
 */
import { isLLMError, toLLMError, type LLMError } from '../core/errors.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import type { LLM, LLMRequest, LLMResponse, LLMScope } from '../core/llm.ts';
import { textOf, userMessage, type TextPart } from '../core/message.ts';
import { sleep, type Runtime } from '../core/runtime.ts';
import { totalTokens, toUsage, type Usage } from '../core/usage.ts';
import { SUMMARY_SYSTEM_PROMPT } from './summary-prompt.ts';

/** What a summary is asked with. */
export interface Summarizer {
  /** The model. */
  readonly llm: LLM;
  /** Clock and timers. */
  readonly runtime: Runtime;
  /** Ends the request and every wait. */
  readonly signal: AbortSignal;
  /** Most tokens of the reply. */
  readonly maxOutputTokens: number | undefined;
  /** Time, ids and a voice for the model's decorators. */
  readonly scope: LLMScope | undefined;
  /** Told what was spent, and on which model. */
  readonly onUsage: (usage: Usage, modelId: string) => Promise<void> | void;
}

/** What was wrong with an answer, and so what may help: a smaller request, a shorter answer, or nothing. */
export type SummaryProblem = 'too_large' | 'empty' | 'called_tools' | 'truncated' | 'filtered' | 'failed';

/** An answer: notes, or why there are none. */
export type SummaryAnswer =
  | { readonly text: string }
  | { readonly problem: SummaryProblem; readonly error?: LLMError | undefined };

const MAX_RETRIES = 2;
const RETRY_DELAY_MS = 1_000;
const MAX_RETRY_DELAY_MS = 30_000;

/** The request for a summary. It offers no tools, and none may be called. */
export function summaryRequest(prompt: string, { signal, maxOutputTokens, scope }: Pick<Summarizer, 'signal' | 'maxOutputTokens' | 'scope'>): LLMRequest {
  return {
    systemPrompt: SUMMARY_SYSTEM_PROMPT,
    messages: [userMessage(prompt, { id: 'summary_request', origin: 'host' })],
    tools: [],
    signal,
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(scope !== undefined && { scope }),
  };
}

/**
 * Asks for a summary.
 *
 * @throws `signal.reason` if the signal is aborted, also if it is when the answer comes.
 */
export async function askForSummary(request: LLMRequest, summarizer: Summarizer): Promise<SummaryAnswer> {
  const { runtime, signal } = summarizer;
  for (let attempt = 0; ; attempt += 1) {
    signal.throwIfAborted();
    const { response, error, retries } = await attemptOnce(request, summarizer);
    signal.throwIfAborted();
    if (response !== undefined) return judge(response);
    const problem = problemOf(error);
    const mayPass = problem === 'failed' && error?.retryable === true && retries === 0 && attempt < MAX_RETRIES;
    if (!mayPass) return { problem, error };
    const asked = error.retryAfterMs ?? RETRY_DELAY_MS * 2 ** attempt;
    await sleep(Math.min(asked, MAX_RETRY_DELAY_MS), { runtime, signal });
  }
}

interface Attempt {
  readonly response?: LLMResponse;
  readonly error?: LLMError;
  /** How often the model has tried again by itself. */
  readonly retries: number;
}

async function attemptOnce(request: LLMRequest, { llm, onUsage }: Summarizer): Promise<Attempt> {
  let retries = 0;
  const tellFailed = async (error: LLMError): Promise<void> => {
    if (error.usage !== undefined && totalTokens(error.usage) > 0) await onUsage(error.usage, error.modelId ?? llm.modelId);
  };
  try {
    const response = await attemptChat(llm, {
      ...request,
      onAttemptFailed: async ({ error }) => {
        retries += 1;
        await tellFailed(error);
      },
    });
    await onUsage(toUsage(response.usage), response.modelId ?? llm.modelId);
    return { response, retries };
  } catch (thrown) {
    const error = toLLMError(thrown);
    await tellFailed(error);
    return { error, retries };
  }
}

function problemOf(error: LLMError | undefined): SummaryProblem {
  if (!isLLMError(error)) return 'failed';
  if (error.kind === 'context_overflow' || error.kind === 'request_too_large') return 'too_large';
  if (error.kind === 'content_filter') return 'filtered';
  return error.kind === 'malformed_response' && error.code === 'empty' ? 'empty' : 'failed';
}

/** Only a whole text is a summary. */
function judge({ content, stopReason }: LLMResponse): SummaryAnswer {
  // An adapter without types gives anything.
  const given: unknown = content;
  if (!Array.isArray(given)) return { problem: 'failed' };
  if (stopReason === 'filtered') return { problem: 'filtered' };
  if (stopReason === 'max_tokens') return { problem: 'truncated' };
  if (content.some((part) => part.type === 'tool_call')) return { problem: 'called_tools' };
  const text = textOf(content.filter((part): part is TextPart => part.type === 'text')).trim();
  return text === '' ? { problem: 'empty' } : { text };
}
