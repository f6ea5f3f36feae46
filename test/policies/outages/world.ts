/**
 * An outage: turns that run at once on one stack of decorators, while its providers have good and bad times. Plays it on
 * virtual time, and says what must not have been.
 */
import {
  addUsage,
  createEventDispatcher,
  createTranscript,
  isLLMError,
  type LLM,
  type LoopEvent,
  NO_USAGE,
  runTurn,
  totalTokens,
  type TurnResult,
  type TurnStopReason,
  type Usage,
  type UsageEvent,
  userMessage,
} from 'turnloop';
import type { CircuitBreaker } from 'turnloop/policies';
import { checkTranscript, recordingTool, seededRandom, type VirtualRuntime, virtualRuntime, watchedController } from 'turnloop/testing';
import { BreakerModel } from './breaker-model.ts';
import type { Order } from './orders.ts';
import { OutageProvider, type Told } from './provider.ts';

const GRACE_MS = 2_000;

/** What came of an outage. */
export interface Outage {
  readonly reasons: readonly TurnStopReason[];
  readonly problems: readonly string[];
  readonly requests: number;
  readonly failures: number;
  readonly opened: number;
  readonly probes: number;
  readonly retracted: number;
}

interface PlayedTurn {
  readonly result: TurnResult;
  readonly problems: readonly string[];
  readonly retracted: number;
  readonly usage: readonly UsageEvent[];
  /** Whether something was told after the end. */
  readonly isQuiet: () => boolean;
}

/** Plays turns on one stack. */
export async function playOutage(order: Order, options: { readonly seed: number; readonly turns: number }): Promise<Outage> {
  const random = seededRandom(options.seed);
  const runtime = virtualRuntime({ seed: options.seed });
  const breakers: { readonly breaker: CircuitBreaker; readonly model: BreakerModel; readonly behind: readonly LLM[] }[] = [];
  const makeProvider = (name: string): OutageProvider => {
    const provider: OutageProvider = new OutageProvider({
      name,
      runtime,
      random,
      onRequest: (stepId) => {
        for (const { model, behind } of breakers) if (behind.includes(provider)) model.sent(stepId);
      },
    });
    return provider;
  };
  const providers = [makeProvider('acme'), makeProvider('bolt')] as const;
  const llm = order.build({
    providers,
    watch: (breaker, settings, behind) => {
      const model = new BreakerModel({ now: () => runtime.now(), ...settings });
      breakers.push({ breaker, model, behind });
      return model;
    },
  });

  const turns = Array.from({ length: options.turns }, () => playTurn(llm, { runtime, random, order }));
  const played = await runtime.settle(Promise.all(turns));
  const problems = played.flatMap((turn) => turn.problems);
  if (runtime.pendingTimers > 0) problems.push(`${runtime.pendingTimers} timers are left`);
  for (const provider of providers) provider.releaseLate();
  await runtime.runUntilIdle();
  for (const turn of played) {
    if (!turn.isQuiet()) problems.push('an event came after the end of a turn');
    problems.push(...usageProblems(turn, providers).map((problem) => `${turn.result.turnId} (${turn.result.stopReason}): ${problem}`));
  }
  for (const { breaker, model } of breakers) {
    problems.push(...model.violations);
    if (breaker.state !== model.state) problems.push(`the breaker is ${breaker.state}, and should be ${model.state}`);
  }
  for (const provider of providers) problems.push(...provider.early);

  const sum = (of: (provider: OutageProvider) => number): number => providers.reduce((total, provider) => total + of(provider), 0);
  return {
    reasons: played.map(({ result }) => result.stopReason),
    problems,
    requests: sum((provider) => provider.requests),
    failures: sum((provider) => provider.failures),
    opened: breakers.reduce((total, { model }) => total + model.opened, 0),
    probes: breakers.reduce((total, { model }) => total + model.probes, 0),
    retracted: played.reduce((total, turn) => total + turn.retracted, 0),
  };
}

interface Stage {
  readonly runtime: VirtualRuntime;
  readonly random: () => number;
  readonly order: Order;
}

/** Starts a turn some time in the first minutes, aborts some, and looks at what a listener sees. */
async function playTurn(llm: LLM, { runtime, random, order }: Stage): Promise<PlayedTurn> {
  const startsAt = Math.floor(random() * 600_000);
  const abortsAfter = random() < 0.2 ? Math.floor(random() * 120_000) : undefined;
  const deadlineMs = random() < 0.05 ? 1_000 + Math.floor(random() * 120_000) : undefined;
  await new Promise<void>((resolve) => runtime.setTimer(startsAt, resolve));

  const controller = watchedController();
  const transcript = createTranscript();
  const view = new View();
  let abortedAt: number | undefined;
  const cancelAbort = runtime.setTimer(abortsAfter ?? Infinity, () => {
    abortedAt = runtime.now();
    controller.abort();
  });
  const result = await runTurn({
    llm,
    input: [userMessage('Hello')],
    buildMessages: () => transcript.buildMessages(),
    dispatchEvent: createEventDispatcher({ record: transcript.record, emit: view.take }),
    tools: [recordingTool({ name: 'note' })],
    signal: controller.signal,
    graceMs: GRACE_MS,
    runtime,
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
  cancelAbort();

  const problems = [...view.problems];
  const seen = view.count;
  const { stopReason, error } = result;
  if (abortedAt !== undefined && runtime.now() - abortedAt > GRACE_MS) problems.push(`the turn ended ${runtime.now() - abortedAt} ms after its abort`);
  if (!isExpected(result, { isAborted: abortedAt !== undefined, deadlineMs })) problems.push(`the turn ended ${stopReason}: ${error?.message ?? 'no error'}`);
  if (controller.listenerCount > 0) problems.push(`${controller.listenerCount} listeners are left`);
  if (order.keepsText === true && view.retracted > 0) problems.push('text was taken back');
  problems.push(...checkTranscript(transcript.events, { complete: true, result }).map(({ law, message }) => `law ${law}: ${message}`));
  const usage = transcript.events.filter((event) => event.type === 'usage');
  return { result, problems, usage, retracted: view.retracted, isQuiet: () => view.count === seen };
}

const MODEL_FAILURES = ['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response'];

function isExpected({ stopReason, error }: TurnResult, turn: { readonly isAborted: boolean; readonly deadlineMs: number | undefined }): boolean {
  const kind = isLLMError(error) ? error.kind : '';
  switch (stopReason) {
    case 'end_turn':
      return error === undefined;
    case 'aborted':
      return turn.isAborted;
    case 'deadline':
      return turn.deadlineMs !== undefined;
    case 'fatal_error':
      return MODEL_FAILURES.includes(kind) || kind === 'invalid_request';
    case 'circuit_breaker':
      return MODEL_FAILURES.includes(kind) || (kind === 'refused' && error?.message.includes('the last time with') === true);
    default:
      return false;
  }
}

/** A listener that honours `step.retrying`: what it shows must be what is recorded. */
class View {
  readonly problems: string[] = [];
  count = 0;
  /** How often it had to take text back. */
  retracted = 0;
  #shown = '';
  #recorded = '';

  readonly take = (event: LoopEvent): void => {
    this.count += 1;
    switch (event.type) {
      case 'step.begin':
        this.#compare();
        break;
      case 'text.delta':
        this.#shown += event.text;
        break;
      case 'step.retrying':
        if (this.#shown !== '') this.retracted += 1;
        this.#shown = '';
        break;
      case 'content.part':
        if (event.part.type === 'text') this.#recorded += event.part.text;
        break;
      case 'turn.end':
        this.#compare();
        break;
      default:
    }
  };

  #compare(): void {
    if (this.#shown !== this.#recorded) this.problems.push(`shown is "${this.#shown}", recorded "${this.#recorded}"`);
    this.#shown = '';
    this.#recorded = '';
  }
}

/** Tokens that a provider told of and the turn does not know of, or the other way round; by model. */
function usageProblems({ result, usage }: PlayedTurn, providers: readonly OutageProvider[]): readonly string[] {
  const problems: string[] = [];
  for (const { modelId, told } of providers) {
    const of = (events: readonly (Told | UsageEvent)[]): Usage =>
      events.filter((one) => one.turnId === result.turnId && one.modelId === modelId).reduce((sum, one) => addUsage(sum, one.usage), NO_USAGE);
    const [spent, known] = [of(told), of(usage)];
    if (totalTokens(spent) !== totalTokens(known)) problems.push(`${modelId} told of ${totalTokens(spent)} tokens, the turn knows of ${totalTokens(known)}`);
  }
  const sum = usage.reduce((total, one) => total + totalTokens(one.usage), 0);
  if (sum !== totalTokens(result.usage)) problems.push(`the result has ${totalTokens(result.usage)} tokens, the record ${sum}`);
  return problems;
}
