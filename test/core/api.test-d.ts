/** SH1: the public surface of `turnloop` as types. What compiles here is what a user may write; what must not is expected to fail. */
import { describe, expectTypeOf, it } from 'vitest';
import {
  type AnyTool,
  type AssistantMessage,
  type AuthorizeDecision,
  type BeforeStepResult,
  closeOpenTurn,
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  decorateLLM,
  defineTool,
  type DispatchEvent,
  type ErrorSummary,
  type FinishedStep,
  type ForwardedEvent,
  type Hook,
  type HookCall,
  type HookContext,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type LiveEvent,
  type LLM,
  type LLMCapabilities,
  LLMError,
  type LLMErrorKind,
  type LLMRequest,
  type LLMResponse,
  type LoopEvent,
  type MediaPart,
  type Message,
  type MessagePart,
  type ModelUsage,
  type OpenTurn,
  type PendingCall,
  type PrepareDecision,
  type RecordedEvent,
  type RecordedToolResult,
  type Recovery,
  type ReplyPart,
  type ResumeOptions,
  runStep,
  runToolCalls,
  runTurn,
  type RunTurnOptions,
  type Runtime,
  type StandardSchema,
  type SteerOptions,
  type SteerOutcome,
  type StepSettings,
  type StepStopReason,
  type StopCondition,
  type StopDecision,
  suspend,
  type Suspension,
  systemRuntime,
  type TextPart,
  textOf,
  type ThinkingPart,
  type Tool,
  ToolAccesses,
  type ToolAccess,
  type ToolCallDecision,
  type ToolCallPart,
  type ToolContext,
  type ToolDefinition,
  toolMessage,
  type ToolMessage,
  type ToolReplay,
  type ToolResult,
  type ToolReturn,
  type Transcript,
  type TranscriptOptions,
  type TurnControl,
  type TurnloopError,
  type TurnResult,
  type TurnStopReason,
  type Usage,
  userCancel,
  userMessage,
  type UserMessage,
  type UserMessageOrigin,
} from 'turnloop';

/** Names of the members that must be there. */
type RequiredKeys<Type> = { [Key in keyof Type]-?: Partial<Pick<Type, Key>> extends Pick<Type, Key> ? never : Key }[keyof Type];
/** Names of the members that may be left out. */
type OptionalKeys<Type> = Exclude<keyof Type, RequiredKeys<Type>>;

/** Takes a value of a type: for literals that are to be refused. */
const takes = <Type>(value: Type): Type => value;
declare const llm: LLM;
declare const transcript: Transcript;
declare const runtime: Runtime;
declare const signal: AbortSignal;
declare const usage: Usage;

const dispatchEvent = createEventDispatcher({ record: transcript.record });
const base = { llm, buildMessages: transcript.buildMessages, dispatchEvent };

describe('SH1 runTurn', () => {
  it('SH1 takes three options, and gives a result', () => {
    expectTypeOf(runTurn).toEqualTypeOf<(options: RunTurnOptions) => Promise<TurnResult>>();
    expectTypeOf<RequiredKeys<RunTurnOptions>>().toEqualTypeOf<'llm' | 'buildMessages' | 'dispatchEvent'>();
    expectTypeOf(runTurn(base)).resolves.toEqualTypeOf<TurnResult>();
  });

  it('SH1 has these options beside them', () => {
    expectTypeOf<OptionalKeys<RunTurnOptions>>().toEqualTypeOf<
      | 'input'
      | 'tools'
      | 'hooks'
      | 'stopWhen'
      | 'recoveries'
      | 'request'
      | 'control'
      | 'signal'
      | 'deadlineMs'
      | 'graceMs'
      | 'maxParallelTools'
      | 'runtime'
      | 'resume'
      | 'turnId'
      | 'host'
      | 'metadata'
    >();
    expectTypeOf<RunTurnOptions['host']>().toBeUnknown();
    expectTypeOf<RunTurnOptions['resume']>().toEqualTypeOf<ResumeOptions | undefined>();
    expectTypeOf<RunTurnOptions['request']>().toEqualTypeOf<StepSettings | undefined>();
    expectTypeOf<RunTurnOptions['metadata']>().toEqualTypeOf<JsonObject | undefined>();
  });

  it('SH1 takes input, models, tools and conditions in several forms', () => {
    void runTurn({ ...base, input: 'Hello' });
    void runTurn({ ...base, input: userMessage('Hello') });
    void runTurn({ ...base, input: [userMessage('Hello'), userMessage('there')] });
    void runTurn({ ...base, llm: ({ step }) => (step === 1 ? llm : Promise.resolve(llm)) });
    void runTurn({ ...base, tools: async ({ turnId, step, usage: spent }) => (expectTypeOf(spent).toEqualTypeOf<Usage>(), [`${turnId}${step}`].map(() => tool())) });
    void runTurn({ ...base, stopWhen: () => undefined });
    void runTurn({ ...base, stopWhen: [() => ({ stopReason: 'max_budget', name: 'mine' })] });
    void runTurn({ ...base, signal, runtime, host: { any: 'value' }, metadata: { session: 1 } });
    void runTurn({ ...base, input: undefined, tools: undefined, signal: undefined });
  });

  it('SH1 refuses wrong options', () => {
    // @ts-expect-error A turn needs a model.
    void runTurn({ buildMessages: transcript.buildMessages, dispatchEvent });
    // @ts-expect-error A turn needs a history.
    void runTurn({ llm, dispatchEvent });
    // @ts-expect-error A turn needs a place for its events.
    void runTurn({ llm, buildMessages: transcript.buildMessages });
    // @ts-expect-error Input is text or messages, not a list of texts.
    void runTurn({ ...base, input: ['Hello'] });
    // @ts-expect-error An option that does not exist is a slip.
    void runTurn({ ...base, maxSteps: 5 });
    // @ts-expect-error A condition cannot suspend a turn.
    void runTurn({ ...base, stopWhen: () => ({ stopReason: 'suspended', name: 'x' }) });
    // @ts-expect-error Metadata is JSON, since it is recorded.
    void runTurn({ ...base, metadata: { date: new Date() } });
    // @ts-expect-error A tool has an execute function.
    void runTurn({ ...base, tools: [{ name: 'x', description: '', inputSchema: { type: 'object' } }] });
  });

  it('SH1 gives a read-only result', () => {
    expectTypeOf<TurnResult>().toEqualTypeOf<{
      readonly turnId: string;
      readonly stopReason: TurnStopReason;
      readonly steps: number;
      readonly usage: Usage;
      readonly usageByModel: readonly ModelUsage[];
      readonly message?: AssistantMessage | undefined;
      readonly text: string;
      readonly error?: TurnloopError | undefined;
      readonly stoppedBy?: string | undefined;
      readonly stopMessage?: string | undefined;
      readonly pending?: readonly PendingCall[] | undefined;
      readonly undelivered?: readonly UserMessage[] | undefined;
    }>();
    const result = {} as TurnResult;
    // @ts-expect-error A result is read-only.
    result.text = 'other';
  });

  it('SH1 names every reason to stop', () => {
    expectTypeOf<StepStopReason>().toEqualTypeOf<
      'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence' | 'filtered' | 'paused' | 'unknown'
    >();
    expectTypeOf<TurnStopReason>().toEqualTypeOf<
      | Exclude<StepStopReason, 'tool_use'>
      | 'max_steps'
      | 'max_budget'
      | 'deadline'
      | 'circuit_breaker'
      | 'context_overflow'
      | 'aborted'
      | 'stopped'
      | 'suspended'
      | 'fatal_error'
    >();
  });
});

describe('SH1 messages', () => {
  it('SH1 are three roles with lists of parts', () => {
    expectTypeOf<Message['role']>().toEqualTypeOf<'user' | 'assistant' | 'tool'>();
    expectTypeOf<MessagePart['type']>().toEqualTypeOf<'text' | 'thinking' | 'media' | 'tool_call' | 'provider'>();
    expectTypeOf<UserMessage['content']>().toEqualTypeOf<readonly (TextPart | MediaPart)[]>();
    expectTypeOf<ToolMessage['content']>().toEqualTypeOf<readonly (TextPart | MediaPart)[]>();
    expectTypeOf<AssistantMessage['status']>().toEqualTypeOf<'interrupted' | undefined>();
    expectTypeOf<UserMessageOrigin>().toEqualTypeOf<'user' | 'steering' | 'memory' | 'summary' | 'reminder' | 'host'>();
    expectTypeOf<RequiredKeys<ToolCallPart>>().toEqualTypeOf<'type' | 'id' | 'name' | 'inputText'>();
    expectTypeOf<OptionalKeys<ThinkingPart>>().toEqualTypeOf<'signature' | 'redactedData' | 'providerData'>();
  });

  it('SH1 narrow by role and by type', () => {
    const message = {} as Message;
    if (message.role === 'tool') expectTypeOf(message.toolCallId).toBeString();
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool_call') expectTypeOf(part.inputText).toBeString();
    }
  });

  it('SH1 are built by helpers', () => {
    expectTypeOf(userMessage('hi', { origin: 'host', pinned: true })).toEqualTypeOf<UserMessage>();
    expectTypeOf(toolMessage('ok', { toolCallId: 'c', name: 'n' })).toEqualTypeOf<ToolMessage>();
    expectTypeOf(textOf).returns.toBeString();
    // @ts-expect-error Media has its bytes or an address, not both.
    userMessage([{ type: 'media', mediaType: 'image/png', data: 'a', url: 'b' }]);
    // @ts-expect-error A person does not think aloud in parts.
    userMessage([{ type: 'thinking', text: 'hm' }]);
    // @ts-expect-error A tool message answers a call.
    toolMessage('ok', { name: 'n' });
  });
});

describe('SH1 LLM', () => {
  it('SH1 is metadata and one function', () => {
    expectTypeOf<RequiredKeys<LLM>>().toEqualTypeOf<'provider' | 'modelId' | 'systemPrompt' | 'chat'>();
    expectTypeOf<LLM['capabilities']>().toEqualTypeOf<LLMCapabilities | undefined>();
    expectTypeOf<LLM['chat']>().toEqualTypeOf<(request: LLMRequest) => Promise<LLMResponse>>();
    expectTypeOf<RequiredKeys<LLMRequest>>().toEqualTypeOf<'systemPrompt' | 'messages' | 'tools' | 'signal'>();
    expectTypeOf<RequiredKeys<LLMResponse>>().toEqualTypeOf<'content' | 'stopReason' | 'usage'>();
    expectTypeOf<LLMRequest['tools']>().toEqualTypeOf<readonly ToolDefinition[]>();
    expectTypeOf<keyof Usage>().toEqualTypeOf<'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens' | 'outputTokens' | 'thinkingTokens'>();
  });

  it('SH1 can be written by hand, and decorated', () => {
    const own: LLM = {
      provider: 'own',
      modelId: 'tiny',
      systemPrompt: '',
      chat: async ({ messages, onDelta }) => {
        onDelta?.({ type: 'text', text: 'a' });
        return { content: [{ type: 'text', text: `${messages.length}` }], stopReason: 'end_turn', usage };
      },
    };

    expectTypeOf(decorateLLM(own, (request) => own.chat(request))).toEqualTypeOf<LLM>();
  });

  it('SH1 leaves ids of calls to the loop', () => {
    expectTypeOf<Extract<ReplyPart, { type: 'tool_call' }>>().not.toHaveProperty('id');
    expectTypeOf<Extract<ReplyPart, { type: 'tool_call' }>>().toHaveProperty('providerId');
  });

  it('SH1 refuses wrong models', () => {
    // @ts-expect-error A model says who it is.
    takes<LLM>({ modelId: 'x', systemPrompt: '', chat: llm.chat });
    // @ts-expect-error `stop` is a provider's word; ours is `end_turn`.
    takes<LLMResponse>({ content: [], stopReason: 'stop', usage });
    // @ts-expect-error All counters are numbers, always.
    takes<Usage>({ inputTokens: 1, outputTokens: 2 });
  });

  it('SH1 fails with an LLMError of a kind', () => {
    const error = new LLMError({ kind: 'rate_limit', message: 'slow down', retryAfterMs: 5 });

    expectTypeOf(error).toExtend<TurnloopError>();
    expectTypeOf(error.kind).toEqualTypeOf<LLMErrorKind>();
    expectTypeOf(error.retryable).toBeBoolean();
    expectTypeOf(error.toJSON()).toEqualTypeOf<ErrorSummary>();
    // @ts-expect-error There is no such kind.
    new LLMError({ kind: 'rate-limit', message: '' });
    // @ts-expect-error A partial reply holds no calls: none of them may run.
    new LLMError({ kind: 'network', message: '', partial: [{ type: 'tool_call', id: 'a', name: 'b', inputText: '' }] });
  });
});

function tool(): AnyTool {
  return defineTool({ name: 'any', description: '', input: { type: 'object' }, execute: () => 'ok' });
}

describe('SH1 tools', () => {
  const schema = {} as StandardSchema<{ readonly path: string; readonly limit?: number }>;
  const json: JsonSchema = { type: 'object', properties: { path: { type: 'string' } } };

  it('SH1 infer their input from a Standard Schema', () => {
    const read = defineTool({
      name: 'read',
      description: 'Reads a file.',
      input: schema,
      readOnly: true,
      accesses: (input) => (expectTypeOf(input.path).toBeString(), ToolAccesses.readFile(input.path)),
      describe: ({ path }) => (expectTypeOf(path).toBeString(), path),
      execute: ({ path, limit }, context) => {
        expectTypeOf(path).toBeString();
        expectTypeOf(limit).toEqualTypeOf<number | undefined>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return path;
      },
    });

    expectTypeOf(read).toEqualTypeOf<Tool<{ readonly path: string; readonly limit?: number }>>();
  });

  it('SH1 get a record of unknowns from a JSON Schema', () => {
    const read = defineTool({
      name: 'read',
      description: '',
      input: json,
      execute: (input) => {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>();
        return [{ type: 'text', text: String(input['path']) }];
      },
    });

    expectTypeOf(read).toEqualTypeOf<Tool<Record<string, unknown>>>();
  });

  it('SH1 mix in one list, whatever their inputs', () => {
    const tools: readonly AnyTool[] = [
      defineTool({ name: 'a', description: '', input: schema, execute: ({ path }) => path }),
      defineTool({ name: 'b', description: '', input: json, execute: async () => ({ content: 'ok', stopTurn: true }) }),
      tool(),
    ];

    void runTurn({ ...base, tools });
  });

  it('SH1 may return text, parts, a result or a suspension', () => {
    expectTypeOf<ToolReturn>().toEqualTypeOf<string | readonly (TextPart | MediaPart)[] | ToolResult | Suspension>();
    expectTypeOf(suspend({ state: { page: 1 } })).toEqualTypeOf<Suspension>();
    expectTypeOf<keyof ToolResult>().toEqualTypeOf<'content' | 'isError' | 'display' | 'note' | 'stopTurn' | 'truncated'>();
    expectTypeOf<ToolReplay>().toEqualTypeOf<'safe' | 'idempotent' | 'never'>();
    expectTypeOf(ToolAccesses.all()).toEqualTypeOf<readonly ToolAccess[]>();
  });

  it('SH1 are given this context', () => {
    expectTypeOf<keyof ToolContext>().toEqualTypeOf<
      | 'turnId'
      | 'step'
      | 'toolCallId'
      | 'idempotencyKey'
      | 'inputText'
      | 'signal'
      | 'progress'
      | 'llm'
      | 'host'
      | 'runtime'
      | 'forward'
      | 'recordUsage'
      | 'resumed'
    >();
  });

  it('SH1 refuse wrong members', () => {
    // @ts-expect-error A tool has a description.
    defineTool({ name: 'a', input: json, execute: () => 'ok' });
    // @ts-expect-error The schema has no `file`.
    defineTool({ name: 'a', description: '', input: schema, execute: ({ file }) => String(file) });
    // @ts-expect-error A number is no result: the model reads text.
    defineTool({ name: 'a', description: '', input: json, execute: () => 42 });
    // @ts-expect-error There is no such replay rule.
    defineTool({ name: 'a', description: '', input: json, replay: 'always', execute: () => 'ok' });
    // @ts-expect-error State is recorded, so it is JSON.
    suspend({ state: new Map() });
  });
});

describe('SH1 events', () => {
  it('SH1 have a recorded lane', () => {
    expectTypeOf<RecordedEvent['type']>().toEqualTypeOf<
      | 'turn.begin'
      | 'message'
      | 'step.begin'
      | 'usage'
      | 'content.part'
      | 'tool.call'
      | 'tool.start'
      | 'tool.finished'
      | 'tool.result'
      | 'step.end'
      | 'compaction'
      | 'turn.suspend'
      | 'turn.resume'
      | 'turn.end'
    >();
  });

  it('SH1 have a live lane', () => {
    expectTypeOf<LiveEvent['type']>().toEqualTypeOf<
      | 'text.delta'
      | 'thinking.delta'
      | 'tool.call.delta'
      | 'tool.progress'
      | 'step.retrying'
      | 'turn.interrupted'
      | 'notice'
    >();
    expectTypeOf<LoopEvent>().toEqualTypeOf<RecordedEvent | LiveEvent | ForwardedEvent>();
  });

  it('SH1 narrow by type', () => {
    const event = {} as LoopEvent;
    switch (event.type) {
      case 'text.delta':
        expectTypeOf(event.text).toBeString();
        expectTypeOf(event.attempt).toBeNumber();
        break;
      case 'tool.result':
        expectTypeOf(event.result).toEqualTypeOf<RecordedToolResult>();
        expectTypeOf(event.stepId).toBeString();
        break;
      case 'turn.end':
        expectTypeOf(event.stopReason).toEqualTypeOf<TurnStopReason>();
        expectTypeOf(event.error).toEqualTypeOf<ErrorSummary | undefined>();
        break;
      case 'usage':
        expectTypeOf(event.purpose).toEqualTypeOf<'step' | 'attempt' | 'compaction' | 'child' | 'other'>();
        break;
      default:
        expectTypeOf(event.turnId).toBeString();
        expectTypeOf(event.at).toBeNumber();
    }
  });

  it('SH1 go through a dispatcher typed by lane', () => {
    const dispatch: DispatchEvent = createEventDispatcher({
      record: async (event) => {
        expectTypeOf(event).toEqualTypeOf<RecordedEvent>();
      },
      emit: (event) => {
        expectTypeOf(event).toEqualTypeOf<LoopEvent>();
      },
      onListenerError: (error, event) => {
        expectTypeOf(error).toBeUnknown();
        expectTypeOf(event).toEqualTypeOf<LoopEvent>();
      },
    });

    expectTypeOf(dispatch({} as RecordedEvent)).toEqualTypeOf<Promise<void> | void>();
    expectTypeOf((event: LiveEvent) => {
      dispatch(event);
    }).returns.toBeVoid();
    expectTypeOf(dispatch({} as LoopEvent)).toEqualTypeOf<Promise<void> | void>();
    // @ts-expect-error Every event says which turn it belongs to.
    void dispatch({ type: 'notice', name: 'x', data: null, at: 0 });
  });

  it('SH1 are read-only', () => {
    const event = {} as RecordedEvent;
    // @ts-expect-error An event is read-only.
    event.at = 1;
  });
});

describe('SH1 transcript', () => {
  it('SH1 is made of events, and gives a history and an open turn', () => {
    expectTypeOf(createTranscript).toEqualTypeOf<(events?: readonly RecordedEvent[], options?: TranscriptOptions) => Transcript>();
    expectTypeOf<keyof Transcript>().toEqualTypeOf<'record' | 'events' | 'buildMessages' | 'openTurn' | 'findings' | 'snapshot'>();
    expectTypeOf(transcript.record).toEqualTypeOf<(event: RecordedEvent) => void>();
    expectTypeOf(transcript.buildMessages()).toEqualTypeOf<readonly Message[]>();
    expectTypeOf(transcript.openTurn()).toEqualTypeOf<OpenTurn | undefined>();
    expectTypeOf(closeOpenTurn).parameter(0).toEqualTypeOf<Transcript>();
  });

  it('SH1 refuses live events', () => {
    // @ts-expect-error A fragment is not recorded.
    transcript.record({} as LiveEvent);
    // @ts-expect-error Neither is an event of a sub-agent's lane.
    createTranscript([{} as LoopEvent]);
  });

  it('SH1 has an open turn that a resume takes, with decisions', () => {
    const decisions: ToolCallDecision[] = [
      { toolCallId: 'a', action: 'allow' },
      { toolCallId: 'b', action: 'deny', reason: 'no' },
      { toolCallId: 'c', action: 'edit', input: { path: 'x' } },
      { toolCallId: 'd', action: 'answer', result: { content: 'ok' } },
    ];

    void runTurn({ ...base, resume: { turn: transcript.openTurn()!, decisions } });
    // @ts-expect-error There may be no open turn.
    void runTurn({ ...base, resume: { turn: transcript.openTurn() } });
    // @ts-expect-error An edit says what to run with.
    decisions.push({ toolCallId: 'e', action: 'edit' });
  });
});

describe('SH1 turn control', () => {
  it('SH1 is the handle of one turn', () => {
    expectTypeOf(createTurnControl).toEqualTypeOf<() => TurnControl>();
    expectTypeOf<keyof TurnControl>().toEqualTypeOf<'abort' | 'stop' | 'steer' | 'cancelToolCall'>();
    expectTypeOf<TurnControl['abort']>().toEqualTypeOf<(reason?: unknown) => void>();
    expectTypeOf<TurnControl['stop']>().toEqualTypeOf<() => void>();
    expectTypeOf<TurnControl['steer']>().toEqualTypeOf<(message: UserMessage | string, options?: SteerOptions) => Promise<SteerOutcome>>();
    expectTypeOf<TurnControl['cancelToolCall']>().toEqualTypeOf<(toolCallId: string) => boolean>();
    expectTypeOf<SteerOutcome>().toEqualTypeOf<'delivered' | 'undelivered'>();
    expectTypeOf(userCancel()).toEqualTypeOf<TurnloopError>();
  });

  it('SH1 takes text or a user message for steering, and nothing else', () => {
    void createTurnControl().steer('hurry up');
    // @ts-expect-error Only a user may steer.
    void createTurnControl().steer(toolMessage('ok', { toolCallId: 'c', name: 'n' }));
  });
});

describe('SH1 hooks, conditions and recoveries', () => {
  it('SH1 have a name, and every point is optional', () => {
    expectTypeOf<RequiredKeys<Hook>>().toEqualTypeOf<'name'>();
    expectTypeOf<keyof Hook>().toEqualTypeOf<
      | 'name'
      | 'beforeStep'
      | 'prepareToolCall'
      | 'authorizeToolCall'
      | 'finalizeToolResult'
      | 'finalizeProgress'
      | 'afterStep'
      | 'shouldContinueAfterStop'
    >();
    expectTypeOf<keyof HookContext>().toEqualTypeOf<
      'turnId' | 'step' | 'signal' | 'llm' | 'tools' | 'input' | 'runtime' | 'host' | 'usage' | 'messages' | 'record' | 'notify'
    >();
  });

  it('SH1 infer what they are told and what they may decide', () => {
    const hook: Hook = {
      name: 'all',
      beforeStep: async ({ messages, step }) => ((await messages()).length > step ? { block: { reason: 'x' } } : undefined),
      prepareToolCall: (_context, call) => {
        expectTypeOf(call).toEqualTypeOf<HookCall>();
        return { action: 'rewrite', input: { a: 1 } };
      },
      authorizeToolCall: async () => ({ action: 'suspend', reason: 'ask' }),
      finalizeToolResult: (_context, _call, result) => ({ ...result, note: 'seen' }),
      finalizeProgress: (_call, update) => (update.kind === 'stdout' ? null : update),
      afterStep: (_context, step) => {
        expectTypeOf(step).toEqualTypeOf<FinishedStep>();
      },
      shouldContinueAfterStop: (_context, stop) => stop.continuations < 3,
    };

    void runTurn({ ...base, hooks: [hook, { name: 'silent', beforeStep: () => {} }] });
    expectTypeOf<PrepareDecision['action']>().toEqualTypeOf<'rewrite' | 'block' | 'answer' | 'same_as'>();
    expectTypeOf<AuthorizeDecision['action']>().toEqualTypeOf<'allow' | 'deny' | 'edit' | 'answer' | 'suspend'>();
    expectTypeOf<keyof BeforeStepResult>().toEqualTypeOf<'toolChoice' | 'responseSchema' | 'maxOutputTokens' | 'block'>();
  });

  it('SH1 refuse wrong decisions', () => {
    // @ts-expect-error A hook has a name, for `stoppedBy` and notices.
    takes<Hook>({ beforeStep: () => undefined });
    // @ts-expect-error There is no such decision.
    takes<Hook>({ name: 'x', authorizeToolCall: () => ({ action: 'maybe' }) });
    // @ts-expect-error A block has a reason.
    takes<Hook>({ name: 'x', prepareToolCall: () => ({ action: 'block' }) });
  });

  it('SH1 stop and recover by plain functions', () => {
    const condition: StopCondition = ({ steps, usage: spent }) => (steps > spent.inputTokens ? { stopReason: 'stopped', name: 'x' } : undefined);
    const recovery: Recovery = { name: 'r', kinds: ['context_overflow'], apply: (request) => ({ ...request, messages: [] }) };

    expectTypeOf(condition).returns.toEqualTypeOf<StopDecision | undefined>();
    void runTurn({ ...base, stopWhen: condition, recoveries: [recovery] });
    // @ts-expect-error There is no such kind of failure.
    takes<Recovery>({ name: 'r', kinds: ['overflow'], apply: () => undefined });
  });
});

describe('SH1 everything else', () => {
  it('SH1 is there for hosts that drive steps themselves', () => {
    expectTypeOf(runStep).toBeFunction();
    expectTypeOf(runToolCalls).toBeFunction();
    expectTypeOf(systemRuntime).toEqualTypeOf<Runtime>();
    expectTypeOf<JsonValue>().toEqualTypeOf<string | number | boolean | null | readonly JsonValue[] | JsonObject>();
  });
});
