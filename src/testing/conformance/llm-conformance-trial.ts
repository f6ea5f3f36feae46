/**
 * Trial: one run of one case. Opens scenes, sends requests, waits no longer than it may, and cleans up.
 *
 * - No promise is waited for without a limit.
 * - Every fragment and every rejection is checked, whatever the case is about.
 * - However a case ends: requests are aborted, waiting servers go on, scenes are closed.
 */
import type { LLMError } from '../../core/errors.ts';
import type { LLM, LLMDelta, LLMRequest, LLMResponse } from '../../core/llm.ts';
import { llmRequest } from '../builders.ts';
import { checkDelta, checkError, checkReply, expectNoSecret, fail, shown } from './llm-conformance-checks.ts';
import type { LLMScene, LLMSceneRequest, LLMSceneStep, LLMSceneWait, LLMUnderTest } from './llm-conformance-scene.ts';
import { createGate, pause, startLimit } from './llm-conformance-wait.ts';
import { nextTask } from '../next-task.ts';
import { watchedController, type WatchedController } from '../watched-controller.ts';

/** Makes an adapter on a fake server that plays a scene. */
export type CreateLLM = (scene: LLMScene) => LLMUnderTest | Promise<LLMUnderTest>;

/** The key of every scene. */
export const SCENE_KEY = 'sk-conformance-SECRET-7f3a';

/** Which part of the limit to wait for fragments: an adapter that does not stream has none, and its reply must still come in time. */
const HEARING = 0.5;
/** Which part of it a server waits for what need not come, several times in a reply. */
const PATIENCE = 0.25;
/** How long to listen for what must not come. */
const QUIET_MS = 50;
const SETTLED_HOPS = 3;

/** What a trial needs. */
export interface TrialOptions {
  readonly id: string;
  readonly createLLM: CreateLLM;
  readonly settleWithinMs: number;
}

/** A point in a scene at which the server waits for the case. */
export interface Checkpoint {
  readonly step: LLMSceneWait;
  /** Resolves when a server gets there. */
  readonly reached: Promise<void>;
  /** Lets servers go on. */
  release(this: void): void;
}

/** One run of one case. */
export class Trial {
  readonly #options: TrialOptions;
  readonly #subjects: LLMUnderTest[] = [];
  readonly #exchanges: Exchange[] = [];
  readonly #releases: (() => void)[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #patienceMs: number;

  constructor(options: TrialOptions) {
    this.#options = options;
    this.#patienceMs = options.settleWithinMs * PATIENCE;
  }

  /** Makes an LLM whose server gives these answers. */
  open(answers: readonly (readonly LLMSceneStep[])[], chunkBytes?: number): Promise<Subject> {
    const { id, createLLM } = this.#options;
    const scene: LLMScene = { id, apiKey: SCENE_KEY, answers, ...(chunkBytes !== undefined && { chunkBytes }) };
    const opening = (async () => {
      const made = await createLLM(scene);
      this.#subjects.push(made);
      return new Subject(this, made);
    })();
    return this.within(opening, 'createLLM');
  }

  /** Sends one request to an LLM whose server gives this answer, and gives its reply, checked. */
  async reply(steps: readonly LLMSceneStep[], request: Partial<LLMRequest> = {}): Promise<Replied> {
    const subject = await this.open([steps]);
    const exchange = subject.send(request);
    return { response: await exchange.response(), deltas: exchange.deltas, subject };
  }

  /** Sends one request to an LLM whose server gives this answer, and gives its error, checked. */
  async failure(steps: readonly LLMSceneStep[]): Promise<LLMError> {
    const subject = await this.open([steps]);
    return subject.send().error();
  }

  /** Waits for a promise, but not for ever. @param what - What it is, for the message. */
  within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
    const { settleWithinMs } = this.#options;
    return new Promise((resolve, reject) => {
      const cancel = startLimit(settleWithinMs, () => {
        reject(new Error(`${what} did not settle within ${settleWithinMs} ms (the option \`settleWithinMs\`)`));
      });
      promise.then(resolve, reject).finally(cancel);
    });
  }

  /** A point at which the server waits until the case releases it. */
  checkpoint(): Checkpoint {
    const [reached, released] = [createGate(), createGate()];
    this.#releases.push(released.open);
    const until = (): Promise<void> => {
      reached.open();
      return released.opened;
    };
    return { step: { type: 'wait', until }, reached: reached.opened, release: released.open };
  }

  /** A step at which the server waits until that text was heard as fragments, for a short time only. */
  untilHeard(text: string): LLMSceneWait {
    return { type: 'wait', until: () => this.heard(text, this.#patienceMs).then(() => undefined) };
  }

  /** Resolves when the fragments of some request hold the text; false if they do not in time. */
  heard(text: string, limitMs: number = this.#options.settleWithinMs * HEARING): Promise<boolean> {
    return this.#when(() => this.#exchanges.some((exchange) => exchange.heardText.includes(text)), limitMs);
  }

  /** Resolves when as many requests have got fragments; false if they have not in time. */
  heardIn(count: number, limitMs: number = this.#patienceMs): Promise<boolean> {
    return this.#when(() => this.#exchanges.filter(({ deltas }) => deltas.length > 0).length >= count, limitMs);
  }

  /** A step at which the servers of so many requests wait for each other, for a short time only. */
  meeting(count: number): LLMSceneWait {
    const met = createGate();
    let arrived = 0;
    const until = async (): Promise<void> => {
      arrived += 1;
      if (arrived >= count) met.open();
      const cancel = startLimit(this.#patienceMs, met.open);
      await met.opened;
      cancel();
    };
    return { type: 'wait', until };
  }

  /** Listens for a while, so that fragments that come too late come now. */
  async quiet(): Promise<void> {
    await pause(QUIET_MS);
  }

  /** Takes a request on. */
  add(exchange: Exchange): void {
    this.#exchanges.push(exchange);
  }

  /** Says that something was heard. */
  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Looks for fragments that came too late, and cleans up. Throws only if `isOver`: else the case has failed already. */
  async finish(): Promise<void> {
    for (let hop = 0; hop < SETTLED_HOPS; hop += 1) await nextTask();
    for (const exchange of this.#exchanges) exchange.controller.abort();
    for (const release of this.#releases) release();
    const problem = this.#exchanges.map((exchange) => exchange.problem).find((each) => each !== undefined);
    const closings = this.#subjects.map(async (subject) => subject.close?.());
    const [closed] = await Promise.allSettled([this.within(Promise.all(closings), '`close` of the scene')]);
    if (problem !== undefined) fail(problem);
    if (closed.status === 'rejected') throw closed.reason;
  }

  #when(isTrue: () => boolean, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (isTrue()) end(true);
      };
      const end = (result: boolean): void => {
        cancel();
        this.#listeners.delete(look);
        resolve(result);
      };
      const cancel = startLimit(limitMs, () => end(isTrue()));
      this.#listeners.add(look);
      look();
    });
  }
}

/** What came of one request. */
export interface Replied {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
  readonly subject: Subject;
}

/** An LLM on a scene. */
export class Subject {
  readonly #trial: Trial;
  readonly #made: LLMUnderTest;

  constructor(trial: Trial, made: LLMUnderTest) {
    this.#trial = trial;
    this.#made = made;
  }

  get llm(): LLM {
    return this.#made.llm;
  }

  /**
   * Sends a request.
   *
   * @param parts - What is to differ from `llmRequest()`. `onDelta: undefined` listens to nothing.
   * @param onHeard - Called within `onDelta`.
   */
  send(parts: Partial<LLMRequest> = {}, onHeard?: (exchange: Exchange) => void): Exchange {
    return new Exchange(this.#trial, { llm: this.llm, parts, onHeard });
  }

  /** The requests so far. @param field - Which part of them the case needs. */
  requests<Field extends keyof LLMSceneRequest>(field: Field): readonly NonNullable<LLMSceneRequest[Field]>[] {
    const requests = this.#made.requests?.();
    if (requests === undefined) return fail('this case needs `requests()` of what createLLM gives: offer it, or skip the case with a reason');
    const needed = `this case needs \`${field}\` of each request in \`requests()\`: offer it, or skip the case with a reason`;
    return requests.map((request) => request[field] ?? fail(needed));
  }

  /** The bodies so far, without what moves in them for a cache's sake. */
  bodies(): readonly string[] {
    return this.requests('body').map((body) => this.#made.withoutCacheMarks?.(body) ?? body);
  }
}

interface ExchangeOptions {
  readonly llm: LLM;
  readonly parts: Partial<LLMRequest>;
  readonly onHeard: ((exchange: Exchange) => void) | undefined;
}

/** One request. */
export class Exchange {
  readonly #trial: Trial;
  readonly controller: WatchedController = watchedController();
  readonly deltas: LLMDelta[] = [];
  /** All text fragments so far, joined. */
  heardText = '';
  /** What was wrong with a fragment, or with when it came. */
  problem: string | undefined;
  readonly #onHeard: ((exchange: Exchange) => void) | undefined;
  #isSettled = false;
  readonly #chat: Promise<LLMResponse>;

  constructor(trial: Trial, { llm, parts, onHeard }: ExchangeOptions) {
    this.#trial = trial;
    this.#onHeard = onHeard;
    trial.add(this);
    const request = llmRequest({ onDelta: (delta) => this.#hear(delta), signal: this.controller.signal, ...parts });
    // A synchronous throw is a rejection, as it is for the loop.
    this.#chat = (async () => llm.chat(request))();
    const onSettled = (): void => {
      this.#isSettled = true;
    };
    this.#chat.then(onSettled, onSettled);
  }

  /** True once `chat` has resolved or rejected. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The reply, checked. */
  async response(): Promise<LLMResponse> {
    const response = await this.#trial.within(this.#chat, 'chat').catch((thrown: unknown) => {
      expectNoSecret(thrown, SCENE_KEY, 'the error');
      throw thrown;
    });
    this.#assertHeard();
    checkReply(response, this.deltas);
    return response;
  }

  /** The error, checked. */
  async error(): Promise<LLMError> {
    return checkError(await this.rejection('the server failed'));
  }

  /** Whatever chat rejects with. @param why - Why it has to. */
  async rejection(why: string): Promise<unknown> {
    const outcome = await this.#trial.within(
      this.#chat.then(
        (response) => ({ response }),
        (thrown: unknown) => ({ thrown }),
      ),
      `chat (${why})`,
    );
    this.#assertHeard();
    if ('response' in outcome) fail(`${why}, and chat resolved all the same: ${shown(outcome.response)}`);
    expectNoSecret(outcome.thrown, SCENE_KEY, 'the error');
    return outcome.thrown;
  }

  #hear(delta: LLMDelta): void {
    try {
      if (this.#isSettled) fail(`a fragment came after chat had settled: ${shown(delta)}`);
      checkDelta(delta, this.deltas);
    } catch (found) {
      // Thrown here it would end up in the adapter, whose business it is not.
      this.problem ??= found instanceof Error ? found.message : shown(found);
    }
    this.deltas.push(delta);
    if (delta.type === 'text') this.heardText += delta.text;
    this.#trial.notify();
    this.#onHeard?.(this);
  }

  #assertHeard(): void {
    if (this.problem !== undefined) fail(this.problem);
  }
}
