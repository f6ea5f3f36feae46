/**
 * The stateful host most people want, and the parts it is made of, each of which works with plain `runTurn` too.
 *
 * @module
 */
export { assembleSystemPrompt, type SystemPromptParts, withSystemPrompt } from './system-prompt.ts';
export { dispatchAgent } from './dispatch-agent.ts';
export type { DispatchAgentInput, DispatchAgentOptions, SubAgentType } from './dispatch-agent-options.ts';
export type { OpenSubAgentLog, SubAgentLog } from './sub-agent-record.ts';
export { emptyTurnsView, reduceTurnsView, stepsOf, turnsOf, turnsView } from './turn-view.ts';
export type {
  CompactionView,
  PartItem,
  ProgressView,
  ReplySummary,
  StepItem,
  StepLiveView,
  StepView,
  TextItem,
  ThinkingItem,
  ToolCallItem,
  ToolCallLiveView,
  TurnLiveView,
  TurnsView,
  TurnView,
} from './turn-view-types.ts';
