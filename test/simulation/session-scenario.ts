/** Scenario: a session of several turns with tools of every kind, calls that need a person, a queue, and a store in the process. */
import { type AnyTool, ToolAccesses } from 'turnloop';
import { type Agent, createAgent, type Session } from 'turnloop/agent';
import { inProcessSessionStore, type SessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedLife, SimulatedRun, SimulatedWorld } from 'turnloop/testing/simulation';
import { plannedLLM, type PlannedCall, type PlannedTurn } from './agent-model.ts';

/** What tools did. */
export interface Effect {
  readonly tool: string;
  readonly toolCallId: string;
  readonly key: string;
}

export const sessionScenario: Scenario = {
  name: 'session',
  build: (world) => {
    const turns = plannedTurns(world);
    const needsApproval = world.chance(0.4);
    const effects: Effect[] = [];
    const store = inProcessSessionStore();
    return {
      live: async (life) => {
        const agent = agentOf({ life, turns, effects, store, needsApproval });
        await useSession(life, agent, turns);
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted, lives }) => checkEffects({ effects, turns, isComplete: fired.length === 0 && !isAborted && lives === 1 }),
    } satisfies SimulatedRun;
  },
};

function plannedTurns(world: SimulatedWorld): readonly PlannedTurn[] {
  return Array.from({ length: 1 + world.int(3) }, (_, turn) => ({
    prompt: `Prompt ${turn}`,
    steps: Array.from({ length: world.int(4) }, () => Array.from({ length: 1 + world.int(4) }, (_, call) => plannedCall(world, call))),
  }));
}

/** Equal calls of a step share a result: each has a number. */
function plannedCall(world: SimulatedWorld, number: number): PlannedCall {
  return { tool: world.pick(['look', 'look', 'put', 'pay', 'write']), input: { at: world.pick(['a', 'b', 'c']), number } };
}

interface Stage {
  readonly life: SimulatedLife;
  readonly turns: readonly PlannedTurn[];
  readonly effects: Effect[];
  readonly store: SessionStore;
  readonly needsApproval: boolean;
}

function agentOf({ life, turns, effects, store, needsApproval }: Stage): Agent {
  const input = { type: 'object', properties: { at: { type: 'string' }, number: { type: 'integer' } }, required: ['at'] } as const;
  const tool = (name: string, rest: Partial<AnyTool>): AnyTool =>
    life.tool({
      name,
      description: `Does ${name}.`,
      inputSchema: input,
      ...rest,
      execute: async (_given, { toolCallId, idempotencyKey }) => {
        effects.push({ tool: name, toolCallId, key: idempotencyKey });
        return `${name} did it`;
      },
    });
  return createAgent({
    llm: life.llm(plannedLLM(turns)),
    tools: [
      tool('look', { readOnly: true }),
      tool('put', { replay: 'idempotent', accesses: (given) => ToolAccesses.write(placeOf(given)) }),
      tool('pay', { replay: 'never', accesses: (given) => ToolAccesses.write(placeOf(given)) }),
      tool('write', { replay: 'never' }),
    ],
    ...(needsApproval && { approval: { rules: [{ tool: 'pay', decision: 'ask' }, { tool: '*', decision: 'allow' }] } }),
    sessions: life.sessions(store),
    runtime: life.runtime,
  });
}

function placeOf(given: unknown): string {
  return String((given as { readonly at: string }).at);
}

/** Goes on with what is open, then has each prompt that was not yet given its turn. */
export async function useSession(life: SimulatedLife, agent: Agent, turns: readonly PlannedTurn[]): Promise<void> {
  const session = await agent.openSession({ sessionId: 's', resumeSessionId: 's' });
  session.subscribe(life.listener());
  await finishOpenTurn(life, session, turns);
  while (session.turns < turns.length && !life.signal.aborted) {
    await session.run(turns[session.turns]!.prompt, { signal: life.signal, denyPending: true }).result;
    await finishOpenTurn(life, session, turns);
  }
  await session.close();
}

/** A store may fail again, and a person may have to decide: a few times. */
async function finishOpenTurn(life: SimulatedLife, session: Session, turns: readonly PlannedTurn[]): Promise<void> {
  for (let attempt = 0; attempt < 8 && !life.signal.aborted; attempt += 1) {
    const open = session.openTurn();
    if (open === undefined) return;
    const decisions = session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const }));
    const missing = open.missingInput > 0 ? { input: turns[session.turns - 1]!.prompt } : {};
    await session.resume({ signal: life.signal, decisions, ...missing }).result;
  }
}

interface Checked {
  readonly effects: readonly Effect[];
  readonly turns: readonly PlannedTurn[];
  readonly isComplete: boolean;
}

function checkEffects({ effects, turns, isComplete }: Checked): void {
  const planned = turns.flatMap(({ steps }) => steps.flat()).map(({ tool }) => tool);
  if (isComplete && effects.length !== planned.length) throw new Error(`${effects.length} calls had an effect, ${planned.length} were planned`);
  for (const tool of ['pay', 'write']) {
    const ids = effects.filter((effect) => effect.tool === tool).map(({ toolCallId }) => toolCallId);
    if (new Set(ids).size < ids.length) throw new Error(`a call of ${tool} had its effect twice`);
  }
}
