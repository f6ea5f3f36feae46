/** Simulation: what it finds, how small it makes it, and that it finds nothing where nothing is wrong. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { type AnyTool, createEventDispatcher, createTranscript, type LLM, type RecordedEvent, runTurn, type RunTurnOptions, textOf, toUsage, type Transcript } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { inProcessSessionStore, type SessionEvent, type SessionLog, type SessionStore } from 'turnloop/sessions';
import { echoTool, scriptedLLM, toolCall } from 'turnloop/testing';
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
    await expect(simulate({} as never)).rejects.toThrow(/simulate takes a scenario: \{ name, build \}/);
    for (const seeds of [0, -1, Number.NaN, Infinity, 1.5, '5', [], [-1], ['a']]) await expect(simulate(scenarioOf(), { seeds } as object)).rejects.toThrow(/simulate: `seeds` must be a whole number of at least 1, or a list of seeds/);
    for (const from of [-1, 2 ** 53, 0.5]) await expect(simulate(scenarioOf(), { from, seeds: 1 })).rejects.toThrow(/`from` must be/);
    for (const options of [{ graceMs: -1 }, { patienceMs: 0 }, { calm: 'yes' }, { faults: 'store:error@1' }]) await expect(simulate(scenarioOf(), options as object)).rejects.toThrow(new RegExp(`\`${Object.keys(options)[0]!}\` must be`));
    await expect(simulate(scenarioOf(), { faults: ['store:melts@1'] })).rejects.toThrow('"store:melts@1" is no fault: write boundary:kind@number, such as store:crash_after@12. What can go wrong with store is error, slow, crash_before, crash_after.');
  });
});

/** A scenario that is nothing but what it lives. */
function bare(live: Awaited<ReturnType<Scenario['build']>>['live'], more: object = {}): Scenario {
  return { name: 'bare', build: () => ({ live, ...more }) };
}

describe('F5 a scenario that is wrong itself', () => {
  it.each<[string, Scenario, RegExp]>([
    ['fails to build', { name: 'bare', build: () => { throw new Error('no bricks'); } }, /build\(\) failed: no bricks/],
    ['fails at once', bare(() => { throw new Error('stillborn'); }), /live\(\) failed: stillborn/],
    ['fails to say what it came to', bare(async () => undefined, { outcome: () => { throw new Error('no words'); } }), /outcome\(\) failed: no words/],
    ['comes to what is no JSON', bare(async () => undefined, { outcome: () => ({ at: new Date() }) }), /outcome\(\) gave what is not plain JSON, and cannot be compared/],
    ['goes round and round at one moment', bare(async (life) => { for (;;) await life.pause(0); }), /law 4: live\(\) goes round and round: 20000 uses .* at 0 ms, and the clock stands still/],
    ['leaves a turn to itself', bare(async ({ signal }) => signal.addEventListener('abort', () => undefined)), /1 listeners are left on the host's signal: is there a turn that was not awaited\?/],
  ])('and %s is told of with its name and seed', async (_what, scenario, message) => {
    const failure = await failureOf(scenario);
    expect(failure.message).toMatch(/^Scenario "bare" fails with seed 0:/);
    expect(failure.message).toMatch(message);
  });

  it('may give nothing, and come to a promise', async () => {
    expect((await simulate(bare((() => undefined) as never, { outcome: async () => 1 }), { seeds: 3 })).runs).toBe(3);
  });

  it('and is another each time is told to be', async () => {
    let played = 0;
    const failure = await failureOf(bare(async () => { if ((played += 1) === 1) throw new Error('once'); }));
    expect(failure.violations.map(({ message }) => message)).toStrictEqual(['live() failed: once', expect.stringMatching(/^played again, the same seed went well: is all time/)]);
  });

  it('is to be repeated with the patience that it had', async () => {
    const failure = await simulate(bare((life) => life.pause(10_000_000)), { seeds: 1, patienceMs: 1_000, graceMs: 10 }).catch((error: unknown) => error as SimulationError) as SimulationError;
    expect(failure.message).toContain('calm: true, graceMs: 10, patienceMs: 1000 })');
    expect(failure.message).not.toContain('Nothing in it waits');
  });
});

describe('F5 a store', () => {
  it.each([[], ['tool:crash_after@1'], ['event:crash_after@6']])('that has not kept what it said it had is found out, with %j', async (...faults) => {
    /** Keeps all but the last event until it is closed. */
    const lazy = (store: SessionStore): SessionStore => {
      const delayed = async (opening: Promise<SessionLog>): Promise<SessionLog> => {
        const log = await opening;
        let held: readonly SessionEvent[] = [];
        return {
          header: log.header,
          load: () => log.load(),
          saveSnapshot: async () => undefined,
          child: (id) => log.child(id),
          append: async (events) => {
            const all = [...held, ...events];
            held = all.slice(-2);
            if (all.length > 2) await log.append(all.slice(0, -2));
          },
          close: async () => {
            if (faults.length > 0 && held.length > 0) await log.append(held);
            await log.close();
          },
        };
      };
      return { ...store, create: (session) => delayed(store.create(session)), open: (id) => delayed(store.open(id)) };
    };
    const scenario: Scenario = {
      name: 'lazy',
      build: () => {
        const store = lazy(inProcessSessionStore());
        return {
          live: async (life) => {
            const llm = life.llm(scriptedLLM(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Done.' : toolCall('echo', { text: 'a' }))));
            const agent = createAgent({ llm, tools: [life.tool(echoTool())], sessions: life.sessions(store), runtime: life.runtime });
            const session = await agent.openSession({ sessionId: 's', resumeSessionId: 's' });
            session.subscribe(life.listener());
            if (session.openTurn() !== undefined) await session.resume({ signal: life.signal }).result;
            else if (session.messages().length === 0) await session.run('Go.', { signal: life.signal }).result;
            await session.close();
          },
        };
      },
    };
    const failure = await simulate(scenario, { seeds: [0], faults, calm: true }).then(() => undefined, (error: unknown) => error as SimulationError);
    expect(failure?.message).toMatch(/law 9: the log of s has \d+ events, and \d+ were kept/);
  });
});

describe('F4 a death of the process', () => {
  it('F4 lets go of all that lived', async () => {
    const refs: WeakRef<object>[] = [];
    const dying = scenarioOf({ turn: ({ log }) => (refs.push(new WeakRef(log)), {}) });
    await simulate(dying, { seeds: 40, faults: ['tool:crash_before@1'] });
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await expect.poll(() => {
      collect();
      return refs.filter((ref) => ref.deref() !== undefined).length;
    }).toBeLessThanOrEqual(2);
  });

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
