/** Runs one turn of a scripted model on virtual time: what the tests of policies inside a turn have in common. */
import {
  type AnyTool,
  createEventDispatcher,
  createTranscript,
  type LLM,
  type Message,
  type Recovery,
  runTurn,
  type RunTurnOptions,
  type Transcript,
  type TurnResult,
  userMessage,
} from 'turnloop';
import {
  type EventRecording,
  recordEvents,
  type Script,
  scriptedLLM,
  type ScriptedLLM,
  virtualRuntime,
  type VirtualRuntime,
} from 'turnloop/testing';

interface ScriptedTurn {
  readonly replies: Script;
  /** What stands between the loop and the scripted model. @defaultValue nothing */
  readonly decorate?: (llm: LLM) => LLM;
  readonly tools?: readonly AnyTool[];
  readonly recoveries?: readonly Recovery[];
  /** Stands before the transcript's history. */
  readonly history?: readonly Message[];
  readonly transcript?: Transcript;
  readonly runtime?: VirtualRuntime;
  readonly options?: Partial<RunTurnOptions>;
}

interface ScriptedRun {
  readonly result: TurnResult;
  readonly llm: ScriptedLLM;
  readonly listener: EventRecording;
  readonly transcript: Transcript;
  readonly runtime: VirtualRuntime;
}

/** Runs a turn whose input is "Hello". */
export async function runScripted(turn: ScriptedTurn): Promise<ScriptedRun> {
  const { decorate = (inner: LLM) => inner, history = [], transcript = createTranscript(), runtime = virtualRuntime() } = turn;
  const llm = scriptedLLM(turn.replies);
  const listener = recordEvents();
  const result = await runtime.settle(
    runTurn({
      llm: decorate(llm),
      input: [userMessage('Hello')],
      buildMessages: () => [...history, ...transcript.buildMessages()],
      dispatchEvent: createEventDispatcher({ record: transcript.record, emit: listener.emit }),
      tools: turn.tools ?? [],
      recoveries: turn.recoveries ?? [],
      runtime,
      ...turn.options,
    }),
  );
  return { result, llm, listener, transcript, runtime };
}
