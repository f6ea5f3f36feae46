/**
 * Budget ledger: what was spent, what requests under way may still cost, and who may send the next one.
 *
 * The law it keeps: once all requests have ended, no more was spent than the limit and the output of one request, as far
 * as estimates of prompts are right and no reply is longer than was reserved for it.
 *
 * - BL1 A request may go if its prompt fits beside what was spent and all that the others under way may cost. So the one
 *   that went last is the only one whose output was not reserved.
 * - BL2 One that does not even fit beside what was spent is refused; one that only has to see what becomes of the others
 *   waits. First come, first served.
 *   Whoever is under way must not wait for anybody in turn: {@link withBudget} releases it while it does.
 * - BL3 Nobody waits for a request that was aborted: a model that does not listen would hold up everybody. Until it
 *   settles it counts with its prompt and what it has streamed.
 */
import { LLMError } from '../core/errors.ts';
import { addUsage, NO_USAGE, toUsage, totalTokens, type Usage } from '../core/usage.ts';
import { money, reachedLimit, spendingOf, type BudgetLimits, type Spending } from './budget-limits.ts';
import { WaitingLine } from './waiting-line.ts';

/** Tokens and what they cost; a cost of 0 where there is no price. */
export interface Amount {
  readonly tokens: number;
  readonly cost: number;
}

/** A request that wants to be sent, or is. */
export interface Reservation {
  /** The model that it is for. */
  readonly modelId: string;
  /** What its prompt costs, by the estimate. */
  readonly input: Amount;
  /** What it costs at most: the prompt, and the longest reply. */
  readonly most: Amount;
  /** What it has come to so far: the prompt, and what was streamed. */
  readonly soFar: () => Amount;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Told if it has to wait for others, and for how many. */
  readonly onWait: (underWay: number) => void;
}

/** The books of one budget. */
export class BudgetLedger {
  readonly limits: BudgetLimits;
  readonly usageByModel: Map<string, Usage> = new Map<string, Usage>();
  /** Whether a request ever came by. */
  wasAsked = false;
  /** Tokens that nobody told of, and that are booked as estimated. */
  estimatedTokens = 0;
  /** Requests under way, each with what takes its listener off its signal. */
  readonly #underWay = new Map<Reservation, () => void>();
  readonly #line: WaitingLine<Reservation, undefined>;
  #spending: Spending | undefined;

  constructor(limits: BudgetLimits) {
    this.limits = limits;
    this.#line = new WaitingLine(() => {
      this.#serve();
    });
  }

  /** What was spent so far. */
  get spending(): Spending {
    return (this.#spending ??= spendingOf(this.usageByModel, this.limits.prices));
  }

  /** What is left, at least 0; Infinity without a limit. */
  get left(): Amount {
    const { maxTokens = Infinity, maxCost = Infinity } = this.limits;
    const { tokens, cost = 0 } = this.spending;
    return { tokens: Math.max(0, maxTokens - tokens), cost: Math.max(0, maxCost - cost) };
  }

  /** Adds what was spent. */
  book(modelId: string, spent: Usage): void {
    const usage = toUsage(spent);
    this.usageByModel.set(modelId, addUsage(this.usageByModel.get(modelId) ?? NO_USAGE, usage));
    this.#spending = undefined;
  }

  /** Adds what was probably spent. */
  bookEstimate(modelId: string, usage: Usage): void {
    this.book(modelId, usage);
    this.estimatedTokens += totalTokens(usage);
  }

  /**
   * Undefined if a request may be sent now, else when: it has been let go then. Whoever sends it has to {@link release} it
   * once it has settled, or is not sent after all.
   *
   * Rejects with {@link index.LLMError | LLMError} `refused` if it may not be, and with `signal.reason` if aborted before.
   */
  reserve(reservation: Reservation): Promise<void> | undefined {
    if (this.#underWay.has(reservation)) return undefined;
    const go = this.#line.join(reservation, reservation.signal);
    this.#serve();
    if (this.#underWay.has(reservation)) return undefined;
    // Whoever joined is the last: a line that is not empty ends with it.
    if (this.#line.size > 0 && !reservation.signal.aborted) reservation.onWait(this.#underWay.size);
    return go;
  }

  /** Gives back what was reserved; doing it again does nothing. */
  release(reservation: Reservation): void {
    const stopListening = this.#underWay.get(reservation);
    if (stopListening === undefined) return;
    stopListening();
    this.#underWay.delete(reservation);
    this.#serve();
  }

  /** Why a request cannot be sent, whatever becomes of the others; undefined if it can, now or later. */
  refusalOf({ modelId, input }: Reservation): LLMError | undefined {
    const reached = reachedLimit(this.spending, this.limits);
    if (reached === undefined && this.#fits(this.#committed(false), input)) return undefined;
    return refusal(`The request to ${JSON.stringify(modelId)} was not sent: ${reached ?? this.#figures(input)}`);
  }

  /** Lets everybody go whose turn it is. */
  #serve(): void {
    for (let first = this.#line.first; first !== undefined; first = this.#line.first) {
      const refused = this.refusalOf(first);
      if (refused !== undefined) {
        this.#line.refuseFirst(refused);
        continue;
      }
      if (!this.#fits(this.#committed(true), first.input)) return;
      this.#start(first);
      this.#line.letFirstGo(undefined);
    }
  }

  #start(reservation: Reservation): void {
    const { signal } = reservation;
    // By BL3 an abort may be what the first in line waits for. Requests may share a signal: each has its own listener.
    const onAbort = (): void => {
      this.#serve();
    };
    // Once: what was aborted may never settle, and nothing is to stay on its signal.
    signal.addEventListener('abort', onAbort, { once: true });
    this.#underWay.set(reservation, () => {
      signal.removeEventListener('abort', onAbort);
    });
  }

  /** What was spent, and what requests under way cost: those that were aborted, or all of them. */
  #committed(all: boolean): Amount {
    let { tokens, cost = 0 } = this.spending;
    for (const { soFar, most, signal } of this.#underWay.keys()) {
      if (!all && !signal.aborted) continue;
      const part = signal.aborted ? soFar() : most;
      tokens += part.tokens;
      cost += part.cost;
    }
    return { tokens, cost };
  }

  #fits(committed: Amount, wanted: Amount): boolean {
    const { maxTokens = Infinity, maxCost = Infinity } = this.limits;
    return committed.tokens + wanted.tokens <= maxTokens && committed.cost + wanted.cost <= maxCost;
  }

  #figures(input: Amount): string {
    const { maxTokens = Infinity, maxCost = Infinity } = this.limits;
    const { tokens, cost } = this.left;
    const parts = [`its prompt is estimated at ${input.tokens} tokens`];
    if (maxTokens !== Infinity) parts.push(`${tokens} of ${maxTokens} tokens are left`);
    if (maxCost !== Infinity) parts.push(`it costs up to ${money(input.cost)}, and ${money(cost)} of ${money(maxCost)} is left`);
    return `${parts.join('; ')}.`;
  }
}

function refusal(message: string): LLMError {
  return new LLMError({ kind: 'refused', code: 'max_budget', stopReason: 'max_budget', message });
}
