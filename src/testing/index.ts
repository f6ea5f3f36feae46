/**
 * Fakes for tests of agents, models, tools and policies: a scripted model, a virtual clock, tools that wait, fail or
 * hang, listeners and recorders that break. Needs no test runner and no platform beside the web's.
 *
 * @module
 */
export {
  type ChunkSize,
  cutStream,
  type CutStreamOptions,
  delayed,
  hanging,
  repeat,
  type RepeatedReply,
  type Reply,
  type ReplyContent,
  type ReplyFunction,
  type ScriptedReply,
  stalled,
  stubborn,
  thinking,
  toolCall,
  type ToolCallOptions,
} from './reply.ts';
export type { Script } from './script-cursor.ts';
export { scriptedLLM, type ScriptedLLM, type ScriptedLLMOptions } from './scripted-llm.ts';
export { virtualRuntime, type VirtualRuntime, type VirtualRuntimeOptions } from './virtual-runtime.ts';
export { seededRandom } from './seeded-random.ts';
export { type EventRecording, type LoopEventOf, type LoopEventType, recordEvents } from './record-events.ts';
export {
  abortAt,
  type Abortable,
  crashingRecorder,
  type CrashingRecorder,
  type CrashingRecorderOptions,
  type EventMoment,
  failingRecorder,
  type FailingRecorderOptions,
  type FaultMode,
  faultyListener,
  type FaultyListenerOptions,
  hangingRecorder,
  type RecorderOptions,
  type TestListener,
  type TestRecorder,
} from './event-faults.ts';
export {
  recordingTool,
  type RecordingToolOptions,
  type TestTool,
  type TestToolExecute,
  type TestToolInput,
  type TestToolOptions,
  type ToolRun,
} from './recording-tool.ts';
export {
  echoTool,
  failingTool,
  type FailingToolOptions,
  hangingTool,
  type HangingToolOptions,
  slowTool,
  type SlowToolOptions,
} from './test-tools.ts';
export { type FinishedTurn, finishTurn, type RunningTurn } from './finish-turn.ts';
export { gatedTool, type GatedTool, type GatedToolOptions } from './gated-tool.ts';
export { watchedController, type WatchedController } from './watched-controller.ts';
export {
  checkTranscript,
  type CheckedResult,
  type CheckTranscriptOptions,
  type LawViolation,
} from './check-transcript.ts';
export {
  runScripted,
  type RunScriptedOptions,
  type ScriptedOutcome,
  type ScriptedScene,
  type ScriptedTurn,
  startScripted,
} from './run-scripted.ts';
export { type AnyEvent, type EventHolder, type RecordedCall, toolCallsOf, type TurnRecord } from './turn-record.ts';
export { llmRequest, type ReportedUsage, toolContext, type TestToolContext } from './builders.ts';
