/** Run turn: the two entries to the loop. A turn is run to its end, or an open one is given up. */
import type { DispatchEvent, RecordedEvent } from './events.ts';
import { systemRuntime, type Runtime } from './runtime.ts';
import type { Transcript } from './transcript.ts';
import { TurnLoop } from './turn-loop.ts';
import { assertTurnOptions, type RunTurnOptions, type TurnResult } from './turn-options.ts';

/**
 * Runs a turn: asks the model, runs the tools it asks for, and again, until there is a reason to stop.
 *
 * @returns How it ended. Every expected end is a result: limits, aborts, failures of model, tools, hooks and recorder.
 * @throws TypeError for misuse: a missing option, a tool with a broken schema, a control used twice. Nothing was recorded then.
 */
export async function runTurn(options: RunTurnOptions): Promise<TurnResult> {
  assertTurnOptions(options);
  return new TurnLoop(options).run();
}

/** Options of {@link closeOpenTurn}. */
export interface CloseOpenTurnOptions {
  /** Takes the closing events; it has to record them in the transcript too. @defaultValue the transcript alone */
  readonly dispatchEvent?: DispatchEvent | undefined;
  /** Clock of the closing events. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/**
 * Gives up an open turn, suspended or left by a crash: its calls without a result get one that says so, and `turn.end`
 * (`aborted`) is recorded. Does nothing if no turn is open.
 */
export async function closeOpenTurn(transcript: Transcript, options: CloseOpenTurnOptions = {}): Promise<void> {
  const open = transcript.openTurn();
  if (open === undefined) return;
  const record: (event: RecordedEvent) => Promise<void> | void = options.dispatchEvent ?? transcript.record;
  const { runtime = systemRuntime } = options;
  const stamp = { turnId: open.turnId, at: runtime.now(), ...(open.metadata !== undefined && { metadata: open.metadata }) };
  const { step } = open;
  for (const call of step?.ended === undefined ? (step?.calls ?? []) : []) {
    if (call.settled === true || step === undefined) continue;
    const text =
      call.started === true
        ? 'The turn was given up while this call was running: its effects may have happened.'
        : 'This call was not executed: the turn was given up.';
    const result = call.result ?? { content: [{ type: 'text', text }], isError: true };
    const { toolCallId, name } = call;
    const about = { ...stamp, step: step.step, stepId: step.stepId, toolCallId, result };
    if (call.result === undefined) await record({ type: 'tool.finished', ...about });
    await record({ type: 'tool.result', ...about, name });
  }
  const stopMessage = 'The turn was given up.';
  await record({ type: 'turn.end', ...stamp, stopReason: 'aborted', stopMessage, steps: open.steps });
}
