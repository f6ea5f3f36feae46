/**
 * Breaker model: what a circuit breaker has to do, told by nothing but what goes through it. Independent of the one under
 * test: it sees which requests are let in, which go out to a provider, and how they end, and says what must not be.
 *
 * It is put together as `withCircuitBreaker(model.tap(inner), breaker)`; providers report to `sent`.
 */
import { decorateLLM, isLLMError, type LLM, type LLMErrorKind } from 'turnloop';

const COUNTED: ReadonlySet<LLMErrorKind> = new Set<LLMErrorKind>(['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response']);

/** A request that was let in. */
interface Visit {
  readonly stepId: string;
  /** The closed time in which it was last sent. */
  era: number | undefined;
}

type State = { readonly is: 'closed'; failures: number } | { readonly is: 'open'; readonly until: number } | { readonly is: 'half_open'; readonly probe: Visit };

/** Follows one breaker. */
export class BreakerModel {
  readonly violations: string[] = [];
  opened = 0;
  probes = 0;
  readonly #now: () => number;
  readonly #failures: number;
  readonly #openMs: number;
  readonly #visits = new Map<string, Visit>();
  #era = 0;
  #state: State = { is: 'closed', failures: 0 };

  constructor(options: { readonly now: () => number; readonly failures: number; readonly openMs: number }) {
    this.#now = options.now;
    this.#failures = options.failures;
    this.#openMs = options.openMs;
  }

  get state(): 'closed' | 'open' | 'half_open' {
    return this.#state.is;
  }

  /** Stands directly inside of the breaker. */
  tap(llm: LLM): LLM {
    return decorateLLM(llm, async (request) => {
      const visit: Visit = { stepId: request.scope?.stepId ?? '', era: undefined };
      const onAbort = (): void => {
        this.#give(visit);
      };
      this.#visits.set(visit.stepId, visit);
      this.#admit(visit, 'let in');
      request.signal.addEventListener('abort', onAbort);
      try {
        const response = await llm.chat(request);
        if (!request.signal.aborted) this.#end(visit, 'replied');
        return response;
      } catch (thrown) {
        const counts = isLLMError(thrown) && COUNTED.has(thrown.kind) && !request.signal.aborted;
        this.#end(visit, counts ? 'failed' : 'nothing');
        throw thrown;
      } finally {
        request.signal.removeEventListener('abort', onAbort);
      }
    });
  }

  /** A provider got a request. */
  sent(stepId: string): void {
    const visit = this.#visits.get(stepId);
    if (visit === undefined) this.violations.push(`${this.#now()}: a request went past the breaker`);
    else this.#admit(visit, 'sent');
  }

  #admit(visit: Visit, what: string): void {
    const state = this.#state;
    if (state.is === 'closed') {
      visit.era = this.#era;
      return;
    }
    if (state.is === 'half_open') {
      if (state.probe !== visit) this.violations.push(`${this.#now()}: ${visit.stepId} was ${what} beside the probe ${state.probe.stepId}`);
      return;
    }
    if (this.#now() < state.until) {
      this.violations.push(`${this.#now()}: ${visit.stepId} was ${what} though the breaker is open until ${state.until}`);
      return;
    }
    this.probes += 1;
    this.#state = { is: 'half_open', probe: visit };
  }

  #end(visit: Visit, how: 'replied' | 'failed' | 'nothing'): void {
    const state = this.#state;
    if (state.is === 'half_open' && state.probe === visit) {
      if (how === 'replied') this.#close();
      else if (how === 'failed') this.#open();
      else this.#give(visit);
    } else if (state.is === 'closed' && visit.era === this.#era) {
      if (how === 'replied') state.failures = 0;
      if (how !== 'failed') return;
      state.failures += 1;
      if (state.failures >= this.#failures) this.#open();
    }
  }

  #open(): void {
    this.opened += 1;
    this.#state = { is: 'open', until: this.#now() + this.#openMs };
  }

  #close(): void {
    this.#era += 1;
    this.#state = { is: 'closed', failures: 0 };
  }

  /** A probe that decides nothing: it is somebody else's. */
  #give(visit: Visit): void {
    if (this.#state.is === 'half_open' && this.#state.probe === visit) this.#state = { is: 'open', until: this.#now() };
  }
}
