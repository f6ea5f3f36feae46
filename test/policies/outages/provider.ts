/**
 * A simulated provider: answers in fragments, or fails as providers do. Keeps what it told of tokens, and reports each
 * request it gets.
 *
 * It is only partly well-behaved: half of the requests that stall do not heed their signal, and answer when nobody
 * listens any more.
 */
import { type LLM, LLMError, type LLMErrorOptions, type LLMRequest, type LLMResponse, NO_USAGE, type Runtime, type Usage } from 'turnloop';
import { createWeather, type Trouble, type Weather } from './weather.ts';

/** Tokens that a provider told somebody of. */
export interface Told {
  readonly turnId: string;
  readonly modelId: string;
  readonly usage: Usage;
}

/** What a provider needs. */
export interface ProviderOptions {
  readonly name: string;
  readonly runtime: Runtime;
  readonly random: () => number;
  /** Told of each request before anything is done with it. */
  readonly onRequest: (stepId: string) => void;
}

/** The longest pause that is asked for and kept, in milliseconds: the cap of `withRetry`. */
const LONGEST_PAUSE_MS = 60_000;

/** The provider, as a model. */
export class OutageProvider implements LLM {
  readonly provider: string;
  readonly modelId: string;
  readonly systemPrompt = '';
  readonly told: Told[] = [];
  /** Requests that came before the pause that their failure asked for was over. */
  readonly early: string[] = [];
  requests = 0;
  failures = 0;
  readonly #options: ProviderOptions;
  readonly #weather: Weather;
  readonly #pausedUntil = new Map<string, number>();
  readonly #late: (() => void)[] = [];

  constructor(options: ProviderOptions) {
    this.provider = options.name;
    this.modelId = `${options.name}-1`;
    this.#options = options;
    this.#weather = createWeather(options.random);
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    const { runtime, onRequest } = this.#options;
    const stepId = request.scope?.stepId ?? '';
    onRequest(stepId);
    this.requests += 1;
    const now = runtime.now();
    const until = this.#pausedUntil.get(stepId) ?? 0;
    if (now < until) this.early.push(`${now}: ${stepId} asked ${this.provider} again before ${until}`);
    const trouble = this.#weather(now);
    if (trouble !== undefined) this.failures += 1;
    await this.#wait(20 + this.#random(3_000), request);
    return trouble === undefined ? this.#answer(request) : this.#fail(trouble, request);
  }

  /** Everything that a request left open and that nobody waits for is settled, with garbage. */
  releaseLate(): void {
    for (const release of this.#late) release();
  }

  async #answer(request: LLMRequest): Promise<LLMResponse> {
    const text = await this.#stream(request, 1 + this.#random(6));
    const callsTool = request.tools.length > 0 && this.#random(100) < 40;
    const usage = this.#tell(request);
    return {
      content: callsTool ? [{ type: 'text', text }, { type: 'tool_call', name: 'note', inputText: '{}' }] : [{ type: 'text', text }],
      stopReason: callsTool ? 'tool_use' : 'end_turn',
      usage,
    };
  }

  async #fail(trouble: Trouble, request: LLMRequest): Promise<LLMResponse> {
    switch (trouble) {
      case 'rate_limit':
        throw this.#rateLimit(request);
      case 'overloaded':
        throw this.#error(request, { kind: 'overloaded', status: 529, message: 'Overloaded.' });
      case 'reset':
        throw this.#error(request, { kind: 'network', code: 'ECONNRESET', message: 'The connection was reset.' });
      case 'stall':
        await this.#stream(request, this.#random(3));
        return this.#stall(request);
      case 'truncated': {
        const text = await this.#stream(request, 1 + this.#random(4));
        const kind = this.#random(2) === 0 ? 'network' : 'malformed_response';
        throw this.#error(request, { kind, message: 'The stream ended early.', partial: [{ type: 'text', text }] });
      }
      case 'invalid':
        throw this.#error(request, { kind: 'invalid_request', status: 400, message: 'Not like that.' });
    }
  }

  #rateLimit(request: LLMRequest): LLMError {
    const seconds = [undefined, 1, 7, 45, 600][this.#random(5)];
    if (seconds !== undefined) {
      const pauseMs = Math.min(seconds * 1_000, LONGEST_PAUSE_MS);
      this.#pausedUntil.set(request.scope?.stepId ?? '', this.#options.runtime.now() + pauseMs);
    }
    const retryAfterMs = seconds === undefined ? undefined : seconds * 1_000;
    return this.#error(request, { kind: 'rate_limit', status: 429, message: 'Too many requests.', retryAfterMs });
  }

  /** Streams so many fragments, and gives their text. */
  async #stream(request: LLMRequest, count: number): Promise<string> {
    let whole = '';
    for (let index = 0; index < count; index += 1) {
      const text = `${this.provider}${this.requests}.${index} `;
      whole += text;
      request.onDelta?.({ type: 'text', text });
      await this.#wait(this.#random(800), request);
    }
    return whole;
  }

  #stall(request: LLMRequest): Promise<LLMResponse> {
    if (this.#random(2) === 0) return this.#wait(Infinity, request).then(() => this.#answer(request));
    return new Promise((resolve, reject) => {
      const fail = this.#random(2) === 0;
      this.#late.push(() => {
        request.onDelta?.({ type: 'text', text: 'late' });
        if (fail) reject(new Error('late'));
        else resolve({ content: [{ type: 'text', text: 'late' }], stopReason: 'end_turn', usage: { ...NO_USAGE, inputTokens: 1e9 } });
      });
    });
  }

  /** Waits; when the request is aborted it ends, and half of the time says what it cost. */
  #wait(delayMs: number, request: LLMRequest): Promise<void> {
    const { signal } = request;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancel();
        reject(this.#error(request, { kind: 'aborted', message: 'Aborted.' }));
      };
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const cancel = this.#options.runtime.setTimer(delayMs, () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #error(request: LLMRequest, options: LLMErrorOptions): LLMError {
    return new LLMError({ ...options, ...(this.#random(2) === 0 && { usage: this.#tell(request) }) });
  }

  #tell(request: LLMRequest): Usage {
    const usage: Usage = { ...NO_USAGE, inputTokens: 100 + this.#random(900), outputTokens: 1 + this.#random(99) };
    this.told.push({ turnId: request.scope?.turnId ?? '', modelId: this.modelId, usage });
    return usage;
  }

  #random(below: number): number {
    return Math.floor(this.#options.random() * below);
  }
}
