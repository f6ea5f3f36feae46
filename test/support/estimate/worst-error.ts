/** The worst error of the estimator over the requests of a history, against a real tokenizer. */
import type { Message, MessagePart } from 'turnloop';
import { createTokenEstimator, type EstimatedRequest } from 'turnloop/context';
import { requestsOf, type Steps, stepsOf, type Switch } from './histories.ts';
import { type Kind, KINDS } from './texts.ts';

/** Counts the tokens of a text. */
export type CountTokens = (text: string) => number;

/** What a server counts for roles, ids and separators. */
const TOKENS_OF_MESSAGE = 4;
const TOKENS_OF_CALL = 5;
/** Before it an estimator may still learn. */
const FIRST_MEASURED = 16;
const MODEL = { provider: 'measured', modelId: 'model' };

/** Counts requests as a server would, each message once. */
class RealCounter {
  readonly #count: CountTokens;
  readonly #known = new Map<object | string, number>();

  constructor(count: CountTokens) {
    this.#count = count;
  }

  ofRequest({ systemPrompt, tools, messages }: EstimatedRequest): number {
    const offered = tools.map((tool) => this.#once(tool, () => this.#count(JSON.stringify(tool))));
    const said = messages.map((message) => this.#once(message, () => this.#ofMessage(message)));
    return [...offered, ...said].reduce((sum, tokens) => sum + tokens, this.#once(systemPrompt, () => this.#count(systemPrompt)));
  }

  #ofMessage(message: Message): number {
    const parts: readonly MessagePart[] = message.content;
    return parts.reduce((sum, part) => sum + this.#ofPart(part), TOKENS_OF_MESSAGE);
  }

  #ofPart(part: MessagePart): number {
    if (part.type === 'text' || part.type === 'thinking') return this.#count(part.text);
    if (part.type === 'tool_call') return this.#count(part.name) + this.#count(part.inputText) + TOKENS_OF_CALL;
    throw new Error(`The real count of ${part.type} is not known.`);
  }

  #once(key: object | string, count: () => number): number {
    const known = this.#known.get(key) ?? count();
    this.#known.set(key, known);
    return known;
  }
}

/** The largest error, as a share, over requests 16 to the last. Each is observed after it was estimated, or none is. */
function worstError(requests: readonly EstimatedRequest[], real: RealCounter, isObserved = true): number {
  const estimator = createTokenEstimator();
  let worst = 0;
  requests.forEach((request, index) => {
    const tokens = real.ofRequest(request);
    const error = Math.abs(estimator.estimateRequest(request, MODEL) / tokens - 1);
    if (index + 1 >= FIRST_MEASURED) worst = Math.max(worst, error);
    if (isObserved) estimator.observe(request, MODEL, tokens);
  });
  return worst;
}

/** A measured history: one kind, or two with a switch from the first to the second. */
export interface MeasuredHistory {
  readonly first: Kind;
  readonly second: Kind;
  readonly how: Switch | 'stays';
  /** As a share. */
  readonly error: number;
  /** The same without any calibration. */
  readonly firstGuess: number;
}

export interface MeasureOptions {
  /** Of the texts. @defaultValue 1 */
  readonly seed?: number;
  /** @defaultValue both */
  readonly switches?: readonly Switch[];
}

/** Measures every kind, and every switch from one to another. */
export function measureHistories(count: CountTokens, { seed = 1, switches = ['grows', 'replaced'] }: MeasureOptions = {}): readonly MeasuredHistory[] {
  const real = new RealCounter(count);
  const steps = new Map<Kind, Steps>(KINDS.map((kind, index) => [kind, stepsOf(kind, seed * 100 + index)]));
  const measure = (first: Kind, second: Kind, how: Switch | 'stays'): MeasuredHistory => {
    const requests = requestsOf(steps.get(first)!, steps.get(second), how === 'stays' ? 'grows' : how);
    return { first, second, how, error: worstError(requests, real), firstGuess: worstError(requests, real, false) };
  };
  return KINDS.flatMap((first) => [
    measure(first, first, 'stays'),
    ...KINDS.filter((second) => second !== first).flatMap((second) => switches.map((how) => measure(first, second, how))),
  ]);
}
