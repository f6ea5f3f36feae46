/**
 * The agent loop: give it a model, tools and a place to put events, and it runs a turn to its end. Needs nothing but a
 * JavaScript runtime.
 *
 * @module
 */
export {
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from './core/json.ts';
export {
  assistantMessage,
  type AssistantMessage,
  type AssistantMessageOptions,
  type AssistantPart,
  type InlineMediaPart,
  type LinkedMediaPart,
  type MediaPart,
  type Message,
  type MessagePart,
  type MessageSource,
  type ProviderPart,
  textOf,
  type TextPart,
  type ThinkingPart,
  type ToolCallPart,
  toolMessage,
  type ToolMessage,
  type ToolMessageOptions,
  type ToolResultPart,
  userMessage,
  type UserMessage,
  type UserMessageOptions,
  type UserMessageOrigin,
  type UserPart,
} from './core/message.ts';
export {
  addUsage,
  NO_USAGE,
  totalTokens,
  toUsage,
  type Usage,
} from './core/usage.ts';
export {
  isCompleteReply,
  type StepStopReason,
  type TurnStopReason,
} from './core/stop-reason.ts';
export {
  type ErrorSummary,
  isLLMError,
  isTurnloopError,
  isUserCancel,
  LLMError,
  type LLMErrorKind,
  type LLMErrorOptions,
  type PartialReplyPart,
  summarizeError,
  toLLMError,
  TurnloopError,
  type TurnloopErrorOptions,
  userCancel,
} from './core/errors.ts';
export {
  type IdKind,
  type Runtime,
  sleep,
  systemRuntime,
} from './core/runtime.ts';
export {
  decorateLLM,
  type FailedAttempt,
  type LLM,
  type LLMCapabilities,
  type LLMDelta,
  type LLMRequest,
  type LLMResponse,
  type LLMScope,
  type LLMTiming,
  type NamedToolChoice,
  type Notice,
  type ReplyPart,
  type ReplyToolCall,
  type ToolChoice,
  type ToolDefinition,
} from './core/llm.ts';
export { attemptChat } from './core/attempt-chat.ts';
export {
  accessesConflict,
  type PathOptions,
  type ToolAccess,
  ToolAccesses,
} from './core/tool-access.ts';
export {
  type AnyTool,
  type ChildEvent,
  defineTool,
  type PendingCall,
  replayOf,
  type ResumedCall,
  type StandardIssue,
  type StandardJsonSchema,
  type StandardPathSegment,
  type StandardResult,
  type StandardSchema,
  type StandardTypes,
  suspend,
  type SuspendOptions,
  type Suspension,
  type Tool,
  type ToolCallDecision,
  type ToolContext,
  type ToolOptions,
  type ToolReplay,
  type ToolResult,
  type ToolReturn,
  type ToolUpdate,
} from './core/tool.ts';
export {
  type AfterLimit,
  type AgentEvent,
  type BelowAgent,
  type CompactionEdit,
  type CompactionEvent,
  type ContentPartEvent,
  type DispatchEvent,
  type ForwardedEvent,
  type LiveEvent,
  type LoopEvent,
  type MessageEvent,
  type NoticeEvent,
  type ReachedLimit,
  type RecordedEvent,
  type RecordedToolResult,
  type ReplyInfo,
  type ReplyPosition,
  type StepBeginEvent,
  type StepEndEvent,
  type StepEvent,
  type StepRetryingEvent,
  type SuspendedCall,
  type TextDeltaEvent,
  type ThinkingDeltaEvent,
  type ToolCallDeltaEvent,
  type ToolCallEvent,
  type ToolFinishedEvent,
  type ToolProgressEvent,
  type ToolResultEvent,
  type ToolStartEvent,
  TRANSCRIPT_VERSION,
  type TurnBeginEvent,
  type TurnEndEvent,
  type TurnEvent,
  type TurnInterruptedEvent,
  type TurnResumeEvent,
  type TurnSuspendEvent,
  type UsageEvent,
  type UsagePurpose,
} from './core/events.ts';
export {
  type AuthorizeDecision,
  type BeforeStepResult,
  type FinishedCall,
  type FinishedStep,
  type Hook,
  type HookCall,
  type HookContext,
  type HookRecord,
  type HookSibling,
  type PrepareDecision,
  type Recovery,
  type RecoveryContext,
  type StepSettings,
  type StopCondition,
  type StopDecision,
  type StoppedTurn,
  type StopRequest,
  type StopState,
} from './core/hooks.ts';
export {
  createTurnControl,
  type SteerOptions,
  type SteerOutcome,
  type TurnControl,
} from './core/turn-control.ts';
export {
  type Finding,
  type FindingKind,
  type Projection,
  type ProjectionOptions,
  projectMessages,
  renderToolResult,
  TOOL_ERROR_STATUS,
} from './core/projection.ts';
export {
  createTranscript,
  type ModelUsage,
  type OpenCall,
  type OpenStep,
  type OpenTurn,
  type Transcript,
  type TranscriptOptions,
  type TranscriptSnapshot,
} from './core/transcript.ts';
export {
  createEventDispatcher,
  type EventDispatcherOptions,
  isRecordedEvent,
} from './core/event-dispatcher.ts';
export {
  toolSet,
  type ToolSet,
  type ToolTable,
} from './core/tool-input.ts';
export {
  type ToolOutcome,
} from './core/tool-result.ts';
export {
  type AbortCause,
  createTurnScope,
  type LingeringTool,
  type StepSetUp,
  type TurnScope,
  type TurnScopeOptions,
  type Unstamped,
} from './core/turn-scope.ts';
export {
  type CallPlan,
  type PlannedCall,
  planToolCalls,
  type ToolStep,
} from './core/tool-plan.ts';
export {
  type BatchOutcome,
  runToolCalls,
  type ToolBatch,
} from './core/tool-call.ts';
export {
  createRecoveryState,
  type RecoveryState,
} from './core/step-request.ts';
export {
  resumeStep,
  runStep,
  type StepOptions,
  type StepOutcome,
} from './core/turn-step.ts';
export {
  type ResumeOptions,
  type RunTurnOptions,
  type StepInfo,
  type TurnResult,
} from './core/turn-options.ts';
export {
  closeOpenTurn,
  type CloseOpenTurnOptions,
  runTurn,
} from './core/run-turn.ts';
