/**
 * Scenario: turns of the loop alone, with a recorder and no agent around it: hooks that rewrite, deny and suspend, tools that
 * suspend, steering, limits, and calls that are cancelled.
 */
import { createEventDispatcher, createTranscript, createTurnControl, type Hook, type JsonObject, type RecordedEvent, runTurn, type RunTurnOptions, userMessage } from 'turnloop';
import { checkTranscript } from 'turnloop/testing';
import type { ListenedEvent, Scenario, SimulatedLife, SimulatedWorld } from 'turnloop/testing/simulation';
import { plannedLLM, type PlannedTurn } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';

export const coreScenario: Scenario = {
  name: 'core',
  build: (world) => {
    const turns = plannedTurns(world, { turns: 2, steps: 4, calls: 5 });
    const plan = planOf(world);
    const effects: Effect[] = [];
    const log: RecordedEvent[] = [];
    return {
      live: async (life) => {
        const prompts = turns.map(({ prompt }) => prompt);
        for (let attempt = 0; attempt < prompts.length + 8 && !life.signal.aborted; attempt += 1) {
          const isOver = await runNext({ life, turns, plan, effects, log });
          if (isOver) return;
        }
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted }) => {
        assertOnce(effects);
        if (fired.length === 0 && !isAborted && !plan.changes) assertAll(effects, turns);
      },
    };
  },
};

interface CorePlan {
  readonly hook: 'none' | 'rewrites' | 'denies' | 'suspends' | 'answers';
  readonly maxSteps: number;
  readonly maxParallelTools: number;
  readonly act: 'nothing' | 'steers' | 'cancels' | 'stops';
  readonly actAfter: number;
  /** Whether not all that was planned is done. */
  readonly changes: boolean;
}

function planOf(world: SimulatedWorld): CorePlan {
  const hook = world.pick(['none', 'none', 'rewrites', 'denies', 'suspends', 'answers'] as const);
  const act = world.pick(['nothing', 'nothing', 'steers', 'cancels', 'stops'] as const);
  const maxSteps = world.pick([3, 100]);
  return { hook, maxSteps, maxParallelTools: world.pick([1, 2, 8]), act, actAfter: world.int(30), changes: hook === 'denies' || hook === 'answers' || act === 'cancels' || act === 'stops' || maxSteps === 3 };
}

interface Stage {
  readonly life: SimulatedLife;
  readonly turns: readonly PlannedTurn[];
  readonly plan: CorePlan;
  readonly effects: Effect[];
  readonly log: RecordedEvent[];
}

/** Resumes the open turn, or starts the next. True if there is none. */
async function runNext({ life, turns, plan, effects, log }: Stage): Promise<boolean> {
  const transcript = createTranscript([...log]);
  const open = transcript.openTurn();
  const begun = log.filter(({ type }) => type === 'turn.begin').length;
  const prompt = turns[open === undefined ? begun : begun - 1]?.prompt;
  if (prompt === undefined) return true;
  const record = life.recorder(log);
  const control = createTurnControl();
  const listener = life.listener(actor(plan, control));
  const waiting = open?.suspended === true ? (open.step?.calls ?? []).filter(({ suspended }) => suspended !== undefined) : [];
  const decisions = waiting.map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const }));
  let isKept = true;
  const options: RunTurnOptions = {
    llm: life.llm(plannedLLM(turns)),
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({
      record: async (event) => {
        isKept = false;
        await record(event);
        transcript.record(event);
        isKept = true;
      },
      emit: (event) => listener(event),
    }),
    input: prompt,
    tools: plannedTools(life, effects),
    hooks: hooksOf(plan),
    stopWhen: ({ steps }) => (steps >= plan.maxSteps ? { stopReason: 'max_steps', name: 'maxSteps' } : undefined),
    control,
    signal: life.signal,
    maxParallelTools: plan.maxParallelTools,
    runtime: life.runtime,
    ...(open !== undefined && { resume: { turn: open, decisions } }),
  };
  const result = await runTurn(options);
  // What could not be kept is not in the record, and is in the result.
  const problems = checkTranscript(transcript.events, isKept ? { result } : {});
  if (problems.length > 0) throw new Error(problems.map(({ law, message }) => `law ${law}: ${message}`).join('; '));
  return false;
}

function hooksOf({ hook }: CorePlan): readonly Hook[] {
  switch (hook) {
    case 'none':
      return [];
    case 'rewrites':
      return [{ name: 'rewrites', prepareToolCall: (_context, { input }) => ({ action: 'rewrite', input: { ...(input as JsonObject), at: 'c' } }) }];
    case 'answers':
      return [{ name: 'answers', prepareToolCall: (_context, { name }) => (name === 'look' ? { action: 'answer', result: 'nothing to see' } : undefined) }];
    case 'denies':
      return [{ name: 'denies', authorizeToolCall: (_context, { name }) => (name === 'pay' ? { action: 'deny', reason: 'Not now.' } : undefined) }];
    case 'suspends':
      return [{ name: 'suspends', authorizeToolCall: (_context, { name }) => (name === 'pay' ? { action: 'suspend' } : undefined) }];
  }
}

/** What a person does after so many events. */
function actor({ act, actAfter }: CorePlan, control: ReturnType<typeof createTurnControl>): (event: ListenedEvent) => void {
  let seen = 0;
  return (event) => {
    seen += 1;
    if (seen !== actAfter) return;
    if (act === 'steers') void control.steer(userMessage('By the way.'));
    if (act === 'stops') control.stop();
    if (act === 'cancels' && 'toolCallId' in event) control.cancelToolCall(String(event.toolCallId));
  };
}
