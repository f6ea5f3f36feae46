/** Simulation: what it finds, how small it makes it, and that it finds nothing where nothing is wrong. */
import { describe, expect, it } from 'vitest';
import { type AnyTool, createEventDispatcher, createTranscript, type LLM, type RecordedEvent, runTurn, type RunTurnOptions, textOf, toUsage, type Transcript } from 'turnloop';
import { BOUNDARIES, FAULT_KINDS, formatFault, parseFault, type Scenario, simulate, SimulationError, type SimulatedLife, type SimulationReport } from 'turnloop/testing/simulation';

/** Calls a tool once for each prompt, then says what came of it. All it knows is the history. */
const MODEL: LLM = {
  provider: 'test',
  modelId: 'm',
  systemPrompt: '',
  chat: async ({ messages }) => {
    const last = messages.at(-1);
    const usage = toUsage({ inputTokens: 1, outputTokens: 1 });
    if (last?.role === 'user') return { content: [{ type: 'tool_call', name: 'pay', inputText: '{}' }], stopReason: 'tool_use', usage };
    return { content: [{ type: 'text', text: last === undefined ? 'Nothing.' : textOf(last) }], stopReason: 'end_turn', usage };
  },
};

interface Parts {
  readonly llm?: LLM;
  readonly tool?: Partial<AnyTool>;
  /** Options of the turn that are wrong on purpose. */
  readonly turn?: (stage: { readonly life: SimulatedLife; readonly transcript: Transcript; readonly log: RecordedEvent[] }) => Partial<RunTurnOptions>;
  readonly check?: (paid: readonly string[]) => void;
}

/** One turn of the loop, resumed after each death. */
function scenarioOf({ llm = MODEL, tool, turn, check }: Parts = {}): Scenario {
  return {
    name: 'pays',
    build: () => {
      const log: RecordedEvent[] = [];
      const paid: string[] = [];
      return {
        live: async (life) => {
          const transcript = createTranscript([...log]);
          const open = transcript.openTurn();
          if (open === undefined && log.length > 0) return;
          const record = life.recorder(log);
          const pay: AnyTool = { name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, execute: (_input, { toolCallId }) => (paid.push(toolCallId), 'paid'), ...tool };
          await runTurn({
            llm: life.llm(llm),
            buildMessages: transcript.buildMessages,
            dispatchEvent: createEventDispatcher({
              record: async (event) => {
                await record(event);
                transcript.record(event);
              },
              emit: life.listener(),
            }),
            tools: [life.tool(pay)],
            input: 'Pay.',
            signal: life.signal,
            runtime: life.runtime,
            ...(open !== undefined && { resume: { turn: open } }),
            ...turn?.({ life, transcript, log }),
          });
        },
        outcome: () => paid.length,
        ...(check !== undefined && { check: () => check(paid) }),
      };
    },
  };
}

async function failureOf(scenario: Scenario, seeds = 400): Promise<SimulationError> {
  try {
    await simulate(scenario, { seeds });
  } catch (error) {
    if (error instanceof SimulationError) return error;
    throw error;
  }
  throw new Error(`nothing was found wrong in ${seeds} seeds`);
}

describe('F5 a simulation', () => {
  it('F5 finds nothing wrong with the loop, and has each fault of each boundary fire that is used', { timeout: 60_000 }, async () => {
    const report = await simulate(scenarioOf(), { seeds: 600 });

    expect(report).toMatchObject({ scenario: 'pays', runs: 600 } satisfies Partial<SimulationReport>);
    expect(report.faultedRuns / report.runs).toBeGreaterThan(0.8);
    const used = (['model', 'tool', 'store', 'listener', 'event'] as const).flatMap((boundary) => FAULT_KINDS[boundary].map((kind) => `${boundary}:${kind}`));
    expect([...report.fired.keys()].sort()).toStrictEqual([...used].sort());
    expect([...report.fired].filter(([, times]) => times === 0)).toStrictEqual([]);
  });

  it('F5 is the same for the same seeds, and goes on from any of them', async () => {
    const firedOf = async (from: number, seeds: number): Promise<readonly (readonly [string, number])[]> => [...(await simulate(scenarioOf(), { seeds, from })).fired];
    expect(await firedOf(70, 30)).toStrictEqual(await firedOf(70, 30));
    const [parts, whole] = [[await firedOf(0, 20), await firedOf(20, 20)], await firedOf(0, 40)];
    const sums = whole.map(([fault]) => [fault, parts.reduce((sum, part) => sum + (new Map(part).get(fault) ?? 0), 0)]);
    expect(sums).toStrictEqual(whole);
  });

  it('F5 tells a failure by its law, the smallest seed and the fewest faults, as a story that can be played again', async () => {
    // A resume that has forgotten what has happened.
    const forgetful = scenarioOf({ turn: ({ transcript }) => (transcript.openTurn() === undefined ? {} : { resume: { turn: { ...transcript.openTurn()!, step: undefined } } }) });
    const failure = await failureOf(forgetful);

    expect(failure.seed).toBe(0);
    expect(failure.faults).toHaveLength(1);
    expect(failure.message).toContain(`To repeat it in a test: simulate(scenario, { seeds: [0], faults: ['${failure.faults[0]}'], calm: true })`);
    expect(failure.message).toMatch(/store {5}tool\.call is kept/);
    expect(failure.message).toContain('lives again: life 2');
    await expect(simulate(forgetful, { seeds: [failure.seed], faults: failure.faults, calm: true })).rejects.toThrow(failure.message);
  });

  it('F5 says what a scenario finds wrong itself', async () => {
    const failure = await failureOf(scenarioOf({ check: (paid) => { if (paid.length !== 1) throw new Error(`paid ${paid.length} times`); } }));
    expect(failure.violations).toMatchObject([{ message: 'paid 0 times' }]);
  });

  it('F5 refuses options that make no sense', async () => {
    await expect(simulate(scenarioOf(), { seed: 1 } as object)).rejects.toThrow(/`seed`/);
    await expect(simulate(scenarioOf(), { faults: ['store:melts@1'] })).rejects.toThrow('"store:melts@1" is no fault: write boundary:kind@number, such as store:crash_after@12. What can go wrong with store is error, slow, crash_before, crash_after.');
  });
});

describe('F4 a death of the process', () => {
  it.each([
    ['store:crash_before@3', 2],
    ['store:crash_after@3', 3],
    ['model:crash_before@1', 3],
    ['tool:crash_before@1', 6],
    ['tool:crash_after@1', 6],
    ['event:crash_after@1', 1],
  ])('F4 at %s is one: %i events were kept then, and the next life goes on from them', async (fault, kept) => {
    const lives: (readonly string[])[] = [];
    const watched = scenarioOf({ turn: ({ log }) => (lives.push(log.map(({ type }) => type)), {}) });
    await simulate(watched, { seeds: [0], faults: [fault], calm: true });
    // The run in which nothing goes wrong is the first.
    const [, , second, ...more] = lives;
    expect([second?.length, more]).toStrictEqual([kept, []]);
  });
});

describe('F5 a fault', () => {
  it('F4 is a text that is read again', () => {
    const all = BOUNDARIES.flatMap((boundary) => FAULT_KINDS[boundary].map((kind) => ({ boundary, kind, at: 3 })));
    expect(all.map(formatFault).map(parseFault)).toStrictEqual(all);
  });
});

/** What is wrong with a host, a model, a tool or a recorder, and which law shows it. */
const PLANTED: readonly (readonly [what: string, law: number | undefined, parts: Parts])[] = [
  ['a resume that does not know what had started', 9, { turn: ({ log }) => resumeWithout(log, 'tool.start') }],
  ['a resume that does not know what had finished', 9, { tool: { replay: 'idempotent' }, turn: ({ log }) => resumeWithout(log, 'tool.finished') }],
  ['a tool that ignores its signal and waits for the clock of the agent', 4, { tool: { execute: (_input, { runtime }) => new Promise((resolve) => void runtime.setTimer(100_000, () => resolve('late'))) }, turn: () => ({ deadlineMs: 10 }) }],
  ['a history with a call and no result', 2, { turn: ({ transcript }) => ({ buildMessages: () => transcript.buildMessages().filter(({ role }) => role !== 'tool') }) }],
  ['a history that is written anew for each request', 11, { turn: ({ transcript, life }) => ({ buildMessages: () => transcript.buildMessages().map((message) => (message.role === 'user' ? { ...message, content: [{ type: 'text' as const, text: `${textOf(message)} It is ${life.runtime.createId('message')}.` }] } : message)) }) }],
  ['a listener that the turn waits for', 7, { turn: ({ life, transcript, log }) => ({ dispatchEvent: awaiting(life, transcript, log) }) }],
  ['randomness from nowhere', 8, { turn: ({ life }) => ({ runtime: { ...life.runtime, createId: (kind) => `${kind}_${Math.random().toString(36).slice(2)}` } }) }],
  ['a rejection that nobody handles', 4, { tool: { execute: () => { void Promise.reject(new Error('nobody')); return 'paid'; } } }],
];

/** Goes on with a turn of which a kind of event was lost. */
function resumeWithout(log: readonly RecordedEvent[], type: RecordedEvent['type']): Partial<RunTurnOptions> {
  const turn = createTranscript(log.filter((event) => event.type !== type)).openTurn();
  return turn === undefined ? {} : { resume: { turn } };
}

/** A dispatcher that lets a listener's failure through. */
function awaiting(life: SimulatedLife, transcript: Transcript, log: RecordedEvent[]): RunTurnOptions['dispatchEvent'] {
  const record = life.recorder(log);
  const listener = life.listener();
  return async (event) => {
    if (!event.type.endsWith('.delta') && event.type !== 'notice' && event.type !== 'turn.interrupted' && event.type !== 'step.retrying' && event.type !== 'tool.progress') {
      await record(event as RecordedEvent);
      transcript.record(event as RecordedEvent);
    }
    await listener(event);
  };
}

describe('F5 what is planted is found', () => {
  it.each(PLANTED)('F5 %s: law %s', async (_what, law, parts) => {
    const failure = await failureOf(scenarioOf(parts));
    expect(failure.violations.map((violation) => violation.law)).toContain(law);
  });
});
