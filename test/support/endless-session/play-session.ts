/** Play session: lives through a simulated session under a policy, and says what became of it. */
import { createEventDispatcher, createTranscript, createTurnControl, runTurn, userMessage, type Hook, type LLM, type LoopEvent, type Recovery } from 'turnloop';
import { virtualRuntime } from 'turnloop/testing';
import { createFakeModels, type ModelFigures } from './fake-model.ts';
import { createRequestChecks, type Rule, type RuleBreaks } from './request-checks.ts';
import { createTokenCounter } from './token-counter.ts';
import { createWorld, STEPS_PER_TURN } from './world.ts';

/** What keeps a session inside the window. */
export interface SessionPolicy {
  readonly hooks: readonly Hook[];
  readonly recoveries?: readonly Recovery[];
  /** @defaultValue the model as it is */
  decorate?(llm: LLM): LLM;
}

export interface SessionOptions {
  readonly seed: number;
  readonly turns: number;
  /** Makes the policy anew: a session shares nothing with another. */
  readonly createPolicy: () => SessionPolicy;
  /** Called with each event. */
  readonly onEvent?: (event: LoopEvent) => void;
}

export interface SessionReport {
  readonly seed: number;
  readonly turns: number;
  readonly turnsLost: number;
  /** Why the first was lost. */
  readonly firstLoss: string | undefined;
  readonly model: ModelFigures;
  /** Compactions by layer. */
  readonly compactions: ReadonlyMap<string, number>;
  readonly broken: ReadonlyMap<Rule, RuleBreaks>;
  /** Bytes of tool outputs, before they were cut. */
  readonly outputBytes: readonly number[];
  /** Live notices by name. */
  readonly notices: ReadonlyMap<string, number>;
  readonly messagesAtEnd: number;
}

const TURN_MS = 60_000;

export async function playSession({ seed, turns, createPolicy, onEvent }: SessionOptions): Promise<SessionReport> {
  const world = createWorld(seed, turns);
  const checks = createRequestChecks(world);
  const models = createFakeModels({ world, counter: createTokenCounter(), checks });
  const policy = createPolicy();
  const runtime = virtualRuntime({ seed });
  const transcript = createTranscript();
  const compactions = new Map<string, number>();
  const notices = new Map<string, number>();
  let turnsLost = 0;
  let firstLoss: string | undefined;
  let onStep = (_step: number): void => undefined;

  const dispatchEvent = createEventDispatcher({
    record: transcript.record,
    emit: (event) => {
      if (event.type === 'step.begin') onStep(event.step);
      if (event.type === 'compaction') count(compactions, event.layer);
      if (event.type === 'notice') count(notices, event.name);
      onEvent?.(event);
    },
  });

  for (let turn = 1; turn <= turns; turn += 1) {
    const llm = models.of(turn);
    const control = createTurnControl();
    onStep = (step) => {
      const remark = world.remark(turn);
      if (remark?.step === step) void control.steer(userMessage(remark.text, { origin: 'steering' }));
    };
    const result = await runTurn({
      llm: policy.decorate?.(llm) ?? llm,
      tools: world.tools,
      hooks: policy.hooks,
      recoveries: policy.recoveries ?? [],
      input: world.task(turn),
      turnId: `turn-${turn}`,
      control,
      buildMessages: transcript.buildMessages,
      dispatchEvent,
      runtime,
    });
    const isWhole = result.stopReason === 'end_turn' && result.text === world.finalText(turn) && result.steps === STEPS_PER_TURN;
    if (!isWhole) {
      turnsLost += 1;
      firstLoss ??= `turn ${turn}, step ${result.steps}: ${result.stopReason} ${result.error?.message ?? result.stopMessage ?? ''}`;
    }
    for (const { kind, messageId } of transcript.findings().slice(0, 1)) checks.note('findings', `turn ${turn}: ${kind} ${messageId}`);
    if (runtime.pendingTimers > 0) throw new Error(`A turn left ${runtime.pendingTimers} timers behind.`);
    await runtime.advance(TURN_MS);
  }

  return {
    seed,
    turns,
    turnsLost,
    firstLoss,
    model: models.figures,
    compactions,
    broken: checks.broken,
    outputBytes: world.outputBytes,
    notices,
    messagesAtEnd: transcript.buildMessages().length,
  };
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
