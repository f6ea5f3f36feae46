/** Tools of every kind, whose effects are kept in a list, and a check that no effect happened twice where it may not. */
import { type AnyTool, ToolAccesses } from 'turnloop';
import type { SimulatedLife, SimulatedWorld } from 'turnloop/testing/simulation';
import type { PlannedCall, PlannedTurn } from './planned-llm.ts';

/** What a tool did. */
export interface Effect {
  readonly tool: string;
  readonly toolCallId: string;
  readonly key: string;
}

const INPUT = { type: 'object', properties: { at: { type: 'string' }, number: { type: 'integer' } }, required: ['at'] } as const;
const NAMES = ['look', 'look', 'put', 'pay', 'write'];

/** Tools that read (`look`), may be repeated (`put`), must not be (`pay`), and touch everything (`write`). */
export function plannedTools(life: SimulatedLife, effects: Effect[]): readonly AnyTool[] {
  const tool = (name: string, rest: Partial<AnyTool>): AnyTool =>
    life.tool({
      name,
      description: `Does ${name}.`,
      inputSchema: INPUT,
      ...rest,
      execute: async (_input, { toolCallId, idempotencyKey }) => {
        effects.push({ tool: name, toolCallId, key: idempotencyKey });
        return `${name} did it`;
      },
    });
  const writes: AnyTool['accesses'] = (input) => ToolAccesses.write((input as { readonly at: string }).at);
  return [tool('look', { readOnly: true }), tool('put', { replay: 'idempotent', accesses: writes }), tool('pay', { replay: 'never', accesses: writes }), tool('write', { replay: 'never' })];
}

/** Turns with calls of these tools. */
export function plannedTurns(world: SimulatedWorld, most: { readonly turns: number; readonly steps: number; readonly calls: number }): readonly PlannedTurn[] {
  return Array.from({ length: 1 + world.int(most.turns) }, (_, turn) => ({
    prompt: `Prompt ${turn}`,
    steps: Array.from({ length: world.int(most.steps + 1) }, () => Array.from({ length: 1 + world.int(most.calls) }, (_unused, call) => plannedCall(world, call))),
  }));
}

/** Equal calls of a step share a result: each has a number. */
function plannedCall(world: SimulatedWorld, number: number): PlannedCall {
  return { tool: world.pick(NAMES), input: { at: world.pick(['a', 'b', 'c']), number } };
}

/** @throws Error if a call that must not be repeated had its effect twice, or one that may had it with two keys. */
export function assertOnce(effects: readonly Effect[]): void {
  const first = new Map<string, Effect>();
  for (const effect of effects) {
    const before = first.get(effect.toolCallId);
    first.set(effect.toolCallId, before ?? effect);
    if (before === undefined) continue;
    if (effect.tool === 'pay' || effect.tool === 'write') throw new Error(`call ${effect.toolCallId} of ${effect.tool} had its effect twice`);
    if (effect.key !== before.key) throw new Error(`call ${effect.toolCallId} of ${effect.tool} had its effect with two keys`);
  }
}

/** @throws Error unless all that was planned had its effect. */
export function assertAll(effects: readonly Effect[], turns: readonly PlannedTurn[]): void {
  const planned = turns.flatMap(({ steps }) => steps.flat()).length;
  if (effects.length !== planned) throw new Error(`${effects.length} calls had an effect, ${planned} were planned`);
}
