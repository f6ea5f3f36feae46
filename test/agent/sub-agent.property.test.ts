/**
 * The law of sub-agents, over random trees of them with tools, failures, deadlines, approvals, cancels, aborts and deaths of the
 * process, with their events in logs or in memory: each reply is counted once with the turn, each call has one result, nothing
 * is asked of a model after an abort, never are there more at work than there are places, and nothing stays behind.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createTranscript, type LLM, LLMError, type LLMRequest, type LLMResponse, type PendingCall, sleep, ToolAccesses, type ToolCallDecision, toUsage } from 'turnloop';
import { dispatchAgent } from 'turnloop/agent';
import { approval } from 'turnloop/policies';
import { checkTranscript, type ScriptedTurn, slowTool, startScripted, toolCall, virtualRuntime } from 'turnloop/testing';
import { watchRejections } from '../core/support.ts';
import { Disk, dispatchCall, promptOf, ROOT } from './sub-agent-support.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 300);

/** What an agent does in a step beside others: a tool, one that a person has to allow, or a sub-agent. */
type Action = { readonly kind: 'work' | 'ask'; readonly ms: number } | { readonly kind: 'agent'; readonly plan: Plan };

/** What an agent does, and how it ends. */
interface Plan {
  readonly steps: readonly (readonly Action[])[];
  readonly end: 'answers' | 'fails' | 'is cut off' | 'hangs' | 'ignores aborts';
  /** How long each of its replies takes. */
  readonly ms: number;
}

interface World {
  readonly root: Plan;
  readonly places: number;
  readonly durable: boolean;
  /** When the turn is aborted, in the first process. */
  readonly abortAt: number | undefined;
  /** When the turn's first dispatch is cancelled, in the first process. */
  readonly cancelAt: number | undefined;
  /** After how many durable events the first process dies. */
  readonly crashAfter: number | undefined;
  /** What is decided about the calls that wait, over and over; `later` leaves one to the next process. */
  readonly decisions: readonly ('allow' | 'deny' | 'later')[];
}

const ms = fc.integer({ min: 0, max: 20 });
const action = (depth: number): fc.Arbitrary<Action> => {
  const tool = fc.record({ kind: fc.constantFrom('work' as const, 'ask' as const), ms });
  return depth === 0 ? tool : fc.oneof(tool, fc.record({ kind: fc.constant('agent' as const), plan: plan(depth - 1) }));
};
const plan = (depth: number): fc.Arbitrary<Plan> =>
  fc.record({
    steps: fc.array(fc.array(action(depth), { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
    end: fc.oneof({ weight: 5, arbitrary: fc.constant('answers' as const) }, fc.constantFrom('fails' as const, 'is cut off' as const, 'hangs' as const, 'ignores aborts' as const)),
    ms,
  });
const worlds: fc.Arbitrary<World> = fc.record({
  root: plan(3).map((root) => ({ ...root, end: 'answers' as const })),
  places: fc.integer({ min: 1, max: 3 }),
  durable: fc.boolean(),
  abortAt: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined, freq: 2 }),
  cancelAt: fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined, freq: 2 }),
  crashAfter: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined, freq: 2 }),
  decisions: fc.array(fc.constantFrom('allow', 'deny', 'later'), { minLength: 1, maxLength: 5 }),
});

/** The models of one process: each reply costs what no other costs, of a model of its own. */
class Models implements LLM {
  readonly provider = 'plans';
  readonly modelId = 'none';
  readonly systemPrompt = '';
  /** What each reply cost, by its model. */
  readonly spent = new Map<string, number>();
  requests = 0;
  busy = 0;
  mostBusy = 0;
  readonly #root: Plan;
  readonly #process: string;

  constructor(root: Plan, process: string) {
    this.#root = root;
    this.#process = process;
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    request.signal.throwIfAborted();
    const path = promptOf(request);
    this.requests += 1;
    if (path !== ROOT) this.busy += 1;
    this.mostBusy = Math.max(this.mostBusy, this.busy);
    try {
      return await this.#reply(path, request);
    } finally {
      if (path !== ROOT) this.busy -= 1;
    }
  }

  async #reply(path: string, { messages, signal, scope }: LLMRequest): Promise<LLMResponse> {
    const { runtime } = scope!;
    const { steps, end, ms: delay } = planAt(this.#root, path);
    const step = messages.filter(({ role }) => role === 'assistant').length;
    await sleep(delay, { runtime, signal: end === 'ignores aborts' ? undefined : signal });
    const actions = steps[step];
    if (actions === undefined && end === 'hangs') await sleep(Infinity, { runtime, signal });
    const modelId = `${this.#process}${this.spent.size}`;
    const usage = toUsage({ inputTokens: this.spent.size + 1 });
    this.spent.set(modelId, usage.inputTokens);
    if (actions === undefined && end === 'fails') throw new LLMError({ kind: 'server', message: 'no', usage, modelId });
    if (actions === undefined) return { content: [{ type: 'text', text: `done ${path}` }], stopReason: end === 'is cut off' ? 'max_tokens' : 'end_turn', usage, modelId };
    const calls = actions.map((one, index) => (one.kind === 'agent' ? dispatchCall(`${path}/${step}.${index}`, { type: 'any' }) : toolCall(one.kind, { ms: one.ms })));
    return { content: calls, stopReason: 'tool_use', usage, modelId };
  }
}

/** The plan of the agent with this prompt: which call of which step leads to it. */
function planAt(root: Plan, path: string): Plan {
  let current = root;
  for (const place of path.split('/').slice(1)) {
    const [step, index] = place.split('.').map(Number);
    const one = current.steps[step!]![index!]!;
    if (one.kind === 'agent') current = one.plan;
  }
  return current;
}

interface Process {
  readonly turn: ScriptedTurn;
  readonly models: Models;
  readonly disk: Disk;
}

function start(world: World, name: string, disk: Disk): Process {
  const models = new Models(world.root, name);
  const delay = ({ ms: time }: Readonly<Record<string, unknown>>): number => Number(time);
  const work = slowTool(delay, { name: 'work', readOnly: true });
  const ask = slowTool(delay, { name: 'ask', accesses: ToolAccesses.write('shared') });
  const hooks = [approval({ rules: [{ tool: 'ask', decision: 'ask' }, { decision: 'allow' }] })];
  const dispatch = dispatchAgent({
    types: { any: { description: 'Does anything.', tools: [work, ask] } },
    hooks,
    maxDepth: 3,
    maxParallel: world.places,
    deadlineMs: 150,
    accesses: () => [],
    ...(world.durable && { openLog: disk.openLog }),
  });
  const transcript = createTranscript(disk.files.get(ROOT) ?? []);
  const open = transcript.openTurn();
  const turn = startScripted({
    input: ROOT,
    decorate: () => models,
    hooks,
    tools: [dispatch, work, ask],
    transcript,
    record: disk.record,
    check: false,
    runtime: virtualRuntime({ idPrefix: name }),
    ...(open !== undefined && { resume: { decisions: decide(world, open.step?.calls.flatMap((call) => call.suspended?.pending ?? []) ?? []) } }),
  });
  return { turn, models, disk };
}

/** At least one of the calls that wait is decided. */
function decide({ decisions }: World, pending: readonly PendingCall[]): readonly ToolCallDecision[] {
  return pending.flatMap(({ toolCallId }, index): readonly ToolCallDecision[] => {
    const decision = decisions[index % decisions.length]!;
    return decision === 'later' && index > 0 ? [] : [{ toolCallId, action: decision === 'deny' ? 'deny' : 'allow' }];
  });
}

async function check(world: World): Promise<void> {
  const all: Process[] = [];
  let inFlight = 0;
  let requestsAtAbort: number | undefined;
  let disk = new Disk(new Map(), world.crashAfter);
  for (let ended = false; !ended; ) {
    const process = start(world, `p${all.length}_`, disk);
    const { turn, models } = process;
    const isFirst = all.push(process) === 1;
    if (isFirst) {
      const { runtime, control } = turn;
      if (world.cancelAt !== undefined) runtime.setTimer(world.cancelAt, () => void control.cancelToolCall('call_p0_1'));
      if (world.abortAt !== undefined) {
        runtime.setTimer(world.abortAt, () => {
          requestsAtAbort = models.requests;
          control.abort();
        });
      }
    }
    const died = disk.crashed.then(() => undefined);
    const result = await turn.runtime.settle(Promise.race([turn.result, died]));
    expect(models.mostBusy).toBeLessThanOrEqual(world.places);
    // A process that died had at most a reply of each agent at work on its way, and the turn's own.
    if (result === undefined) inFlight = world.places + 1;
    else {
      if (isFirst && requestsAtAbort !== undefined && result.stopReason === 'aborted') expect(models.requests).toBe(requestsAtAbort);
      expect(models.busy).toBe(0);
      await turn.runtime.runUntilIdle();
      expect(turn.runtime.pendingTimers).toBe(0);
      expect([...disk.open]).toStrictEqual([]);
      checkUsage(all, disk, { result: result.usage.inputTokens, inFlight });
      for (const [file, events] of disk.files) {
        const isSuspended = events.at(-1)?.type === 'turn.suspend';
        expect(checkTranscript(events, { complete: !isSuspended }), file).toStrictEqual([]);
      }
    }
    const events = disk.files.get(ROOT) ?? [];
    ended = events.at(-1)?.type === 'turn.end' || (result !== undefined && result.stopReason !== 'suspended');
    disk = new Disk(disk.files);
    expect(all.length).toBeLessThan(60);
  }
}

/** Every reply is counted once with the turn, but for those that were on their way when a process died. */
function checkUsage(all: readonly Process[], disk: Disk, told: { readonly result: number; readonly inFlight: number }): void {
  const spent = new Map(all.flatMap(({ models }) => [...models.spent]));
  const counted = (disk.files.get(ROOT) ?? []).flatMap((event) => (event.type === 'usage' ? [[event.modelId, event.usage.inputTokens] as const] : []));
  expect(new Set(counted.map(([modelId]) => modelId)).size).toBe(counted.length);
  for (const [modelId, tokens] of counted) expect(spent.get(modelId)).toBe(tokens);
  expect(counted.reduce((sum, [, tokens]) => sum + tokens, 0)).toBe(told.result);
  expect(spent.size - counted.length).toBeLessThanOrEqual(told.inFlight);
  expect(spent.size).toBeGreaterThanOrEqual(counted.length);
}

it('E13 law 5 SA2 each reply of any depth counts once, each call has one result, and nothing is asked after an abort', { timeout: 120_000 }, async () => {
  const rejections = watchRejections();
  await fc.assert(fc.asyncProperty(worlds, check), { numRuns: RUNS, seed: Number(process.env['FC_SEED'] ?? 13) });
  expect(rejections.reasons).toStrictEqual([]);
  rejections.stop();
});
