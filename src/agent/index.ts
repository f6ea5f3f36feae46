/**
 * The stateful host most people want, and the parts it is made of, each of which works with plain `runTurn` too.
 *
 * @module
 */
export { type DeferredTools, deferTools, type DeferToolsOptions } from './deferred-tools.ts';
export type { Agent, ForkOptions, OpenSessionOptions } from './agent.ts';
export type { AgentOptions, Learned, PromptInfo } from './agent-options.ts';
export { createAgent } from './create-agent.ts';
export { searchConversations, type SearchConversationsOptions } from './search-conversations.ts';
export type {
  AgentInput,
  CompactSessionOptions,
  ResumeTurnOptions,
  RunOptions,
  Session,
  SessionListener,
  SessionStatus,
  TurnOptions,
} from './session.ts';
export type { QueuedInput } from './session-queue.ts';
export type { AgentTurnEvent, AgentTurnResult, Turn } from './turn.ts';
export type { UndoOptions, UndoReport } from './undo.ts';
export { withGuardrails } from './guardrails.ts';
export type { GuardedCall, GuardedReply, Guardrail, GuardrailContext, GuardrailOptions, GuardrailVerdict } from './guardrails-options.ts';
export { structuredOutput, type StructuredOutput, type StructuredOutputOptions } from './structured-output.ts';
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
