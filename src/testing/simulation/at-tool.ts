/**
 * Tools: they throw, hang, are slow, and the process dies around them; who runs when, and how often, is looked at.
 *
 * Law 6: calls that conflict do not overlap. Law 9: a call runs once, and only behind the event that says so; a second time only
 * if its tool allows that, with the same idempotency key, and never once it is known to have finished.
 */
import { type ToolAccess, ToolAccesses, accessesConflict } from '../../core/tool-access.ts';
import { type AnyTool, isSuspension, replayOf, type ToolContext, type ToolReturn } from '../../core/tool.ts';
import type { Passage, SimulatedProcess } from './simulated-process.ts';
import type { ToolRun } from './world.ts';

interface RunningCall {
  readonly context: ToolContext;
  readonly name: string;
  readonly accesses: readonly ToolAccess[];
}

/** The tool calls of one process. */
export class ToolWatch {
  readonly #process: SimulatedProcess;
  readonly #running = new Set<RunningCall>();

  constructor(process: SimulatedProcess) {
    this.#process = process;
  }

  watch<One extends AnyTool>(tool: One): One {
    const execute = (input: unknown, context: ToolContext): Promise<ToolReturn> => this.#execute(tool, input, context);
    const watched: unknown = Object.create(Reflect.getPrototypeOf(tool));
    return Object.assign(watched as One, tool, { execute }); // The same tool but for how it runs.
  }

  /** Nothing runs any more when all is over, but for what was given up. */
  checkEnd(): void {
    for (const { name, context } of this.#running) this.#process.world.report(`call ${context.toolCallId} of ${name} still runs when all is over, and was not aborted`, 4);
  }

  async #execute(tool: AnyTool, input: unknown, context: ToolContext): Promise<ToolReturn> {
    if (this.#process.isDead) return this.#process.deaf();
    const { world } = this.#process;
    const { toolCallId } = context;
    world.tell('tool', `${tool.name} starts: call ${toolCallId} with ${context.inputText}`);
    const run = this.#look(tool, context);
    const call: RunningCall = { context, name: tool.name, accesses: accessesOf(tool, input) };
    this.#lookForConflicts(call);
    this.#running.add(call);
    const leave = (): void => void this.#running.delete(call);
    // A call that hangs is given up, and others may have its place.
    context.signal.addEventListener('abort', leave, { once: true });
    try {
      const returned = await this.#process.pass('tool', context.signal, (passage) => this.#run({ tool, input, context }, passage));
      run.didSuspend = isSuspension(returned);
      world.tell('tool', `${tool.name} ends: call ${toolCallId} returns ${JSON.stringify(returned)}`);
      return returned;
    } finally {
      context.signal.removeEventListener('abort', leave);
      leave();
    }
  }

  async #run({ tool, input, context }: { readonly tool: AnyTool; readonly input: unknown; readonly context: ToolContext }, { fault }: Passage): Promise<ToolReturn> {
    if (fault === 'stall') return this.#process.stall(context.signal);
    if (fault === 'deaf') return this.#process.deaf();
    if (fault === 'error') throw new Error(`simulated: ${tool.name} throws`);
    return tool.execute(input, context);
  }

  #look(tool: AnyTool, { toolCallId, turnId, idempotencyKey }: ToolContext): ToolRun {
    const { world } = this.#process;
    const before = world.toolRuns.get(toolCallId);
    const run: ToolRun = { idempotencyKey, didSuspend: false };
    world.toolRuns.set(toolCallId, run);
    const kept = this.#keptOf(turnId);
    const replay = replayOf(tool);
    const what = `call ${toolCallId} of ${tool.name}`;
    if (kept.some((event) => event.type === 'tool.finished' && event.toolCallId === toolCallId)) world.report(`${what} runs again, and is known to have finished`, 9);
    if (kept.length > 0 && replay !== 'safe' && !kept.some((event) => event.type === 'tool.start' && event.toolCallId === toolCallId)) {
      world.report(`${what} runs before its start is kept`, 9);
    }
    if (before === undefined || before.didSuspend) return run;
    if (replay === 'never') world.report(`${what} runs again, and must never`, 9);
    if (before.idempotencyKey !== idempotencyKey) world.report(`${what} runs again with another idempotency key`, 9);
    return run;
  }

  /** What is kept of a turn. */
  #keptOf(turnId: string): readonly { readonly type: string; readonly toolCallId?: string | undefined }[] {
    for (const events of this.#process.world.logs.values()) {
      const ofTurn = events.filter((event) => 'turnId' in event && event.turnId === turnId);
      if (ofTurn.length > 0) return ofTurn;
    }
    return [];
  }

  #lookForConflicts(call: RunningCall): void {
    for (const other of this.#running) {
      if (other.context.turnId !== call.context.turnId || !accessesConflict(other.accesses, call.accesses)) continue;
      this.#process.world.report(`calls ${other.context.toolCallId} of ${other.name} and ${call.context.toolCallId} of ${call.name} conflict, and overlap`, 6);
    }
  }
}

function accessesOf(tool: AnyTool, input: unknown): readonly ToolAccess[] {
  try {
    return tool.accesses?.(input) ?? (tool.readOnly === true ? ToolAccesses.readAll() : ToolAccesses.all());
  } catch {
    return ToolAccesses.all();
  }
}
