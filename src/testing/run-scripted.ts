/**
 * Runs a turn with a scripted model, a virtual runtime, a transcript and a recording listener: the one helper that most
 * tests need.
 *
 * `runScripted` drives the clock until the turn ends. `startScripted` leaves that to the test, which then can do things
 * in between: finish a gated tool, steer, abort.
 */
import {
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  runTurn,
  type LoopEvent,
  type Message,
  type RecordedEvent,
  type ResumeOptions,
  type RunTurnOptions,
  type Transcript,
  type TurnControl,
  type TurnResult,
} from '../index.ts';
import { checkTranscript } from './check-transcript.ts';
import { recordEvents, type EventRecording } from './record-events.ts';
import type { Script } from './script-cursor.ts';
import { scriptedLLM, type ScriptedLLM, type ScriptedLLMOptions } from './scripted-llm.ts';
import { virtualRuntime, type VirtualRuntime } from './virtual-runtime.ts';

/** Options of {@link runScripted} and {@link startScripted}: those of `runTurn`, with everything optional. */
export interface RunScriptedOptions
  extends Partial<Omit<RunTurnOptions, 'llm' | 'dispatchEvent' | 'runtime' | 'resume' | 'control'>> {
  /** What the model says. @defaultValue nothing: the first request fails */
  readonly replies?: Script | undefined;
  /** Options of the scripted model. */
  readonly llmOptions?: ScriptedLLMOptions | undefined;
  /** A scripted model made before, instead of `replies`. */
  readonly llm?: ScriptedLLM | undefined;
  /** What the turn gets in place of the scripted model: it in a decorator, or a function asked for each step. */
  readonly decorate?: ((llm: ScriptedLLM) => RunTurnOptions['llm']) | undefined;
  /** What the turn starts from. @defaultValue `'hi'`, nothing for a resume */
  readonly input?: RunTurnOptions['input'];
  /** What the model is told before the transcript's messages. @defaultValue nothing */
  readonly history?: readonly Message[] | undefined;
  /** @defaultValue a new one; in a transcript with events its ids begin with how many, since theirs are taken */
  readonly runtime?: VirtualRuntime | undefined;
  /** Where the turn goes on. @defaultValue an empty one */
  readonly transcript?: Transcript | undefined;
  /** Makes recorded events durable before the transcript takes them; where it fails, the transcript does not. */
  readonly record?: ((event: RecordedEvent) => Promise<void> | void) | undefined;
  /** Also sees every event, after the recording has. */
  readonly listener?: ((event: LoopEvent) => unknown) | undefined;
  /** Goes on with the transcript's open turn, or with the one given. */
  readonly resume?: Partial<ResumeOptions> | undefined;
  /** @defaultValue a new one */
  readonly control?: TurnControl | undefined;
  /** Whether the transcript is checked against the laws when the turn has ended. @defaultValue true */
  readonly check?: boolean | undefined;
}

/** Everything around a scripted turn. */
export interface ScriptedScene {
  /** The model, with the requests it got. */
  readonly llm: ScriptedLLM;
  /** The clock, ids and randomness. */
  readonly runtime: VirtualRuntime;
  /** The record, folded. */
  readonly transcript: Transcript;
  /** The handle of the turn. */
  readonly control: TurnControl;
  /** All events that a listener saw, in order. */
  readonly events: readonly LoopEvent[];
  /** The same, with ways to ask about them. */
  readonly recording: EventRecording;
  /** The events of this turn that were recorded, in order. */
  readonly recorded: readonly RecordedEvent[];
  /** What the listener failed with, in order. */
  readonly listenerErrors: readonly unknown[];
}

/** A turn that ended. Made by {@link runScripted}. */
export interface ScriptedOutcome extends ScriptedScene {
  /** How it ended. */
  readonly result: TurnResult;
}

/** A turn under way. Made by {@link startScripted}. */
export interface ScriptedTurn extends ScriptedScene {
  /** How it will end; the clock stands still meanwhile. */
  readonly result: Promise<TurnResult>;
  /**
   * Drives the clock until the turn ends.
   *
   * @throws Error if the turn cannot end, or if its transcript breaks a law.
   */
  finish(): Promise<ScriptedOutcome>;
}

/**
 * Runs a turn to its end.
 *
 * @throws Error if the turn cannot end, or if its transcript breaks a law.
 * @example
 * ```ts
 * const { result, llm } = await runScripted({ replies: [toolCall('echo', { text: 'hi' }), 'done'], tools: [echoTool()] });
 * ```
 */
export async function runScripted(options: RunScriptedOptions = {}): Promise<ScriptedOutcome> {
  return startScripted(options).finish();
}

/** Starts a turn and leaves the clock to the test. */
export function startScripted(options: RunScriptedOptions = {}): ScriptedTurn {
  const { replies = [], llmOptions, decorate, transcript = createTranscript(), runtime = runtimeFor(transcript), ...rest } = options;
  const { history, record, listener, resume, check, llm = scriptedLLM(replies, llmOptions), control = createTurnControl(), ...turn } = rest;
  const recording = recordEvents();
  const listenerErrors: unknown[] = [];
  const dispatchEvent = createEventDispatcher({
    record: recorderOf(recording, transcript, record),
    emit: (event) => {
      recording.emit(event);
      return listener?.(event);
    },
    onListenerError: (error) => {
      listenerErrors.push(error);
    },
  });
  const resumed = resume === undefined ? undefined : resumeOptions(resume, transcript);
  const input = options.input ?? (resumed === undefined ? 'hi' : undefined);
  const result = runTurn({
    buildMessages: history === undefined ? transcript.buildMessages : () => [...history, ...transcript.buildMessages()],
    ...turn,
    ...(input !== undefined && { input }),
    ...(resumed !== undefined && { resume: resumed }),
    llm: decorate === undefined ? llm : decorate(llm),
    dispatchEvent,
    runtime,
    control,
  });
  // Whoever awaits it sees the failure; a test that never does must not end the process.
  result.catch(() => undefined);

  const scene = { llm, runtime, transcript, control, events: recording.events, recording, recorded: recording.recorded, listenerErrors };
  return {
    ...scene,
    result,
    finish: async () => {
      const settled = await runtime.settle(result);
      if (check !== false) assertLaws(transcript.events, settled, record === undefined);
      return { ...scene, result: settled };
    },
  };
}

/** A runtime whose ids are none of the transcript's. */
function runtimeFor({ events }: Transcript): VirtualRuntime {
  return events.length === 0 ? virtualRuntime() : virtualRuntime({ idPrefix: `${events.length}_` });
}

function recorderOf(
  recording: EventRecording,
  transcript: Transcript,
  record: RunScriptedOptions['record'],
): (event: RecordedEvent) => Promise<void> | void {
  const keep = (event: RecordedEvent): void => {
    transcript.record(event);
    recording.record(event);
  };
  if (record === undefined) return keep;
  return (event) => {
    const durable = record(event);
    if (durable === undefined) return keep(event);
    return durable.then(() => {
      keep(event);
    });
  };
}

function resumeOptions(resume: Partial<ResumeOptions>, transcript: Transcript): ResumeOptions {
  const turn = resume.turn ?? transcript.openTurn();
  if (turn === undefined) throw new TypeError('runScripted has no turn to resume: pass the `transcript` of an open one, or `resume.turn`.');
  return { ...resume, turn };
}

/** With a recorder of the test's own the record may stop anywhere. */
function assertLaws(events: readonly RecordedEvent[], result: TurnResult, complete: boolean): void {
  const violations = checkTranscript(events, { complete, result });
  if (violations.length === 0) return;
  const lines = violations.map(({ law, message, index }) => `  law ${law}, event ${index}: ${message}`);
  throw new Error(`The transcript breaks ${violations.length} laws:\n${lines.join('\n')}`);
}
