/**
 * Transcript: the fold of recorded events into a history and, where a turn is open, into what a resume needs.
 *
 * - F1 After any prefix of events the history is valid for every protocol (what a fold cannot place is repaired, and
 *   every repair is a finding).
 * - F2 Incremental: recording an event costs the same after ten events and after a million. Only a compaction looks at
 *   the whole history.
 * - F3 Messages keep their identity: what was handed out once is handed out again.
 * - F4 The events are never changed.
 */
import { assertOptions } from './assert.ts';
import { isTurnloopError, messageOf, TurnloopError } from './errors.ts';
import {
  TRANSCRIPT_VERSION,
  type AfterLimit,
  type CompactionEvent,
  type ContentPartEvent,
  type RecordedEvent,
  type RecordedToolResult,
  type ReplyInfo,
  type StepBeginEvent,
  type SuspendedCall,
  type ToolCallEvent,
  type ToolFinishedEvent,
  type ToolResultEvent,
  type ToolStartEvent,
  type TurnBeginEvent,
  type TurnResumeEvent,
  type UsageEvent,
} from './events.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { AssistantMessage, AssistantPart, Message, ToolCallPart, UserMessage } from './message.ts';
import {
  cleanAssistant,
  cleanUser,
  missingResultMessage,
  projectMessages,
  resultMessage,
  type Finding,
} from './projection.ts';
import type { StepStopReason } from './stop-reason.ts';
import type { ResumedCall, ToolCallDecision } from './tool.ts';
import { addUsage, NO_USAGE, type Usage } from './usage.ts';

/** A call of an open step, as far as the record knows it. Plain JSON. */
export interface OpenCall {
  /** Id of the call. */
  readonly toolCallId: string;
  /** Name of the tool, as the call had it. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** The arguments it was to run with; absent where the text was not an object. */
  readonly input?: JsonValue | undefined;
  /** What it would do, in words, where the tool says. */
  readonly description?: string | undefined;
  /** The earlier call whose result it shares. */
  readonly sameAs?: string | undefined;
  /** A hook kept it from running. */
  readonly held?: boolean | undefined;
  /** It started, and nothing after that says that it is to run again. */
  readonly started?: boolean | undefined;
  /** Its arguments are not those of its `tool.call`: a decision edited them. */
  readonly edited?: boolean | undefined;
  /** The decision about it, given by a resume and not yet carried out. */
  readonly decision?: ToolCallDecision | undefined;
  /** The hook that the decision stands for. */
  readonly decidedFor?: string | undefined;
  /** Its tool suspended and is to run again with this. */
  readonly resumed?: ResumedCall | undefined;
  /** It waits for a decision. */
  readonly suspended?: SuspendedCall | undefined;
  /** Its final result. */
  readonly result?: RecordedToolResult | undefined;
  /** Its result ends the turn after the step. */
  readonly stopTurn?: boolean | undefined;
  /** Its `tool.result` is recorded too. */
  readonly settled?: boolean | undefined;
}

/** The step of an open turn that a resume has to finish. Plain JSON. */
export interface OpenStep {
  /** 1-based. */
  readonly step: number;
  /** Id of the step. */
  readonly stepId: string;
  /** What holds for the whole reply; absent while no reply is recorded whole: the step is then asked again. */
  readonly reply?: ReplyInfo | undefined;
  /** Tokens of the reply. */
  readonly usage: Usage;
  /** The reply's calls, in provider order. */
  readonly calls: readonly OpenCall[];
  /** Set once `step.end` is recorded: only the decision how to go on is missing. */
  readonly ended?: StepStopReason | undefined;
}

/** Tokens that one model was asked for. */
export interface ModelUsage {
  /** The model. */
  readonly modelId: string;
  /** Tokens spent on it. */
  readonly usage: Usage;
}

/** A turn that has begun and not ended. Plain JSON, folded from the events: hand it to `runTurn` as `resume.turn`. */
export interface OpenTurn {
  /** The turn. */
  readonly turnId: string;
  /** The host's JSON about the turn. */
  readonly metadata?: JsonObject | undefined;
  /** Steps begun. */
  readonly steps: number;
  /** How often the turn went on after a stop. */
  readonly continuations: number;
  /** Tokens spent so far. */
  readonly usage: Usage;
  /** Tokens by model, in order of first use. */
  readonly usageByModel: readonly ModelUsage[];
  /** Messages of the input that were not recorded before the process died. */
  readonly missingInput: number;
  /** True if the turn waits for decisions. */
  readonly suspended: boolean;
  /** How often it was resumed. */
  readonly resumes: number;
  /** Set once a last step was granted after a limit. */
  readonly afterLimit?: AfterLimit | undefined;
  /** The turn's last whole reply, as the history has it. */
  readonly lastReply?: AssistantMessage | undefined;
  /** The step to finish; absent between steps. */
  readonly step?: OpenStep | undefined;
}

/** The record of a session: takes events, gives the history. With it a host is ten lines. */
export interface Transcript {
  /**
   * Adds an event and folds it.
   *
   * @throws {@link index.TurnloopError | TurnloopError} `unsupported_version` for a turn of a newer format; `stale_resume`
   * for a `turn.resume` of a turn that is not open, or was resumed since.
   */
  readonly record: (event: RecordedEvent) => void;
  /** All events, oldest first; without those of a snapshot that it began from. Empty if it keeps none. */
  readonly events: readonly RecordedEvent[];
  /** The history: valid for every protocol, whatever the events. The same array until an event changes it. */
  readonly buildMessages: () => readonly Message[];
  /** The turn that has begun and not ended, if there is one. */
  readonly openTurn: () => OpenTurn | undefined;
  /** Every repair so far, oldest first; those of an open step as it stands now. */
  readonly findings: () => readonly Finding[];
  /**
   * What all events so far come to, as plain JSON: a later transcript may begin from it, with the events behind it.
   * Undefined while a turn is open: its events say more than can be written down of it.
   */
  readonly snapshot: () => TranscriptSnapshot | undefined;
}

/** A transcript between two turns. Plain JSON. */
export interface TranscriptSnapshot {
  /** Version of the transcript format, {@link TRANSCRIPT_VERSION}. */
  readonly version: number;
  /** The history. */
  readonly messages: readonly Message[];
}

/** Options of {@link createTranscript}. */
export interface TranscriptOptions {
  /** Where to begin: the events are those behind it. @defaultValue the beginning */
  readonly snapshot?: TranscriptSnapshot | undefined;
  /** Whether `events` keeps them. Without it the transcript is as large as its history. @defaultValue true */
  readonly keepEvents?: boolean | undefined;
}

const TRANSCRIPT_OPTIONS: Readonly<Record<keyof TranscriptOptions, true>> = { snapshot: true, keepEvents: true };

/**
 * Makes a transcript.
 *
 * @param events - Events recorded before, oldest first.
 * @param options - Where to begin, and whether to keep events.
 * @throws {@link index.TurnloopError | TurnloopError} `unsupported_version` if events or snapshot are of a newer format,
 * `broken_event` if an event lacks what its type has, `broken_snapshot` if the snapshot is none.
 */
export function createTranscript(events: readonly RecordedEvent[] = [], options: TranscriptOptions = {}): Transcript {
  if (!isList(events)) throw new TypeError('createTranscript takes a list of events: createTranscript(lines.map((line) => JSON.parse(line))).');
  assertOptions(options, TRANSCRIPT_OPTIONS, { taker: 'createTranscript', example: 'createTranscript(events, { snapshot })' });
  const { snapshot, keepEvents = true } = options;
  const recorded: RecordedEvent[] = [];
  const fold = new Fold(snapshot === undefined ? [] : snapshotMessages(snapshot));
  const record = (event: RecordedEvent): void => {
    if (event.type === 'turn.resume') assertResumable(event, fold.openTurn());
    fold.add(event);
    if (keepEvents) recorded.push(event);
  };
  for (const [index, event] of events.entries()) {
    try {
      fold.add(event);
    } catch (error) {
      throw isTurnloopError(error) ? error : brokenEvent(index, error);
    }
    if (keepEvents) recorded.push(event);
  }
  return {
    record,
    events: recorded,
    buildMessages: () => fold.history(),
    openTurn: () => fold.openTurn(),
    findings: () => fold.allFindings(),
    snapshot: () => (fold.openTurn() === undefined ? { version: TRANSCRIPT_VERSION, messages: fold.history() } : undefined),
  };
}

/** The messages of a snapshot, made valid: it comes from a disk. */
function snapshotMessages({ version, messages }: TranscriptSnapshot): readonly Message[] {
  assertVersion(version);
  try {
    return projectMessages(messages).messages;
  } catch (error) {
    throw new TurnloopError('broken_snapshot', `The snapshot of the transcript has no messages that can be read: ${messageOf(error)}`, { cause: error });
  }
}

function assertVersion(version: unknown): void {
  if (typeof version === 'number' && Number.isInteger(version) && version >= 1 && version <= TRANSCRIPT_VERSION) return;
  throw new TurnloopError(
    'unsupported_version',
    `The transcript has version ${String(version)}; this turnloop reads up to ${TRANSCRIPT_VERSION}. Update turnloop to read it.`,
  );
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

function brokenEvent(index: number, cause: unknown): TurnloopError {
  return new TurnloopError('broken_event', `events[${index}] is not a whole event: ${messageOf(cause)}`, { cause });
}

/** Refuses to go on with a turn that is over, or that somebody else has gone on with since: its calls would run twice. */
function assertResumable(event: TurnResumeEvent, open: OpenTurn | undefined): void {
  if (open?.turnId === event.turnId && (event.ordinal ?? open.resumes + 1) === open.resumes + 1) return;
  throw new TurnloopError(
    'stale_resume',
    `Turn "${event.turnId}" is over, or was resumed elsewhere since: ask transcript.openTurn() again.`,
  );
}

/**
 * An open turn once decisions are made: each suspended call that a decision speaks of is ready to go on.
 *
 * @param calls - Calls of the open step.
 * @param decisions - Decisions about them, or about calls of sub-agents below them.
 */
export function applyDecisions(calls: readonly OpenCall[], decisions: readonly ToolCallDecision[]): readonly OpenCall[] {
  if (decisions.length === 0) return calls;
  const byId = new Map(decisions.map((decision) => [decision.toolCallId, decision]));
  return calls.map((call) => {
    if (call.suspended === undefined) return call;
    const { suspended, ...rest } = call;
    if (suspended.state === undefined) {
      const decision = byId.get(call.toolCallId);
      if (decision === undefined) return call;
      return { ...rest, decision, ...(suspended.hook !== undefined && { decidedFor: suspended.hook }) };
    }
    const ids = new Set([call.toolCallId, ...suspended.pending.map((pending) => pending.toolCallId)]);
    const own = decisions.filter((decision) => ids.has(decision.toolCallId));
    return own.length === 0 ? call : { ...rest, started: false, resumed: { state: suspended.state, decisions: own } };
  });
}

/** A whole reply, cleaned: without a message if nothing was left of it. */
interface CleanReply {
  readonly clean: AssistantMessage | undefined;
  /** The repairs it took. */
  readonly findings: readonly Finding[];
}

/** A record that its owner still adds to. */
type Mutable<Record> = { -readonly [Key in keyof Record]: Record[Key] };

/** A step while its events come in. */
class StepFold {
  readonly begin: StepBeginEvent;
  reply: ReplyInfo | undefined;
  usage: Usage = NO_USAGE;
  ended: StepStopReason | undefined;
  calls: Mutable<OpenCall>[] = [];
  #parts: (AssistantPart | undefined)[] = [];
  readonly #callIndex = new Map<string, number>();
  #received = 0;
  #count = -1;
  #message: CleanReply | undefined;

  constructor(begin: StepBeginEvent) {
    this.begin = begin;
  }

  get isComplete(): boolean {
    return this.#received === this.#count;
  }

  addPart(event: ContentPartEvent | ToolCallEvent): void {
    // A store may hand out an event twice.
    if (this.#parts[event.index] !== undefined) return;
    if (event.index === 0) this.reply = event.reply;
    this.#count = event.count;
    this.#received += 1;
    this.#parts[event.index] = event.type === 'content.part' ? event.part : callPart(event);
    if (event.type === 'tool.call') this.#callIndex.set(event.toolCallId, this.calls.push(openCall(event)) - 1);
  }

  /** What is known of a call, to be added to. */
  call(toolCallId: string): Mutable<OpenCall> | undefined {
    const index = this.#callIndex.get(toolCallId);
    return index === undefined ? undefined : this.calls[index];
  }

  /** The reply and the answers to its calls; nothing while the reply is not whole, or if there is nothing in it. */
  messages(): readonly Message[] {
    const clean = this.#reply()?.clean;
    return clean === undefined ? [] : [clean, ...this.calls.map(answer)];
  }

  /** The reply, once it is whole; without parts if nothing is in it. */
  lastReply(): AssistantMessage | undefined {
    const reply = this.#reply();
    // A step that ended without a part had a reply too: an empty one.
    const isEmpty = this.ended !== undefined && this.#received === 0;
    if (reply === undefined && !isEmpty) return undefined;
    return reply?.clean ?? { ...this.#assistant(), content: [] };
  }

  /** What had to be repaired, once the step is over. */
  findings(): readonly Finding[] {
    const messageId = this.begin.stepId;
    const reply = this.#reply();
    if (reply === undefined) return this.#received > 0 ? [{ kind: 'void_reply_dropped', messageId }] : [];
    const missing = this.calls.filter((call) => call.result === undefined);
    return [
      ...reply.findings,
      ...missing.map(({ toolCallId }): Finding => ({ kind: 'result_synthesized', messageId, toolCallId })),
    ];
  }

  #reply(): CleanReply | undefined {
    if (!this.isComplete) return undefined;
    if (this.#message === undefined) {
      const findings: Finding[] = [];
      const clean = cleanAssistant(this.#assistant(), (finding) => findings.push(finding));
      this.#message = { clean, findings };
    }
    return this.#message;
  }

  #assistant(): AssistantMessage {
    return {
      role: 'assistant',
      id: this.begin.stepId,
      content: this.#parts.filter((part) => part !== undefined),
      ...(this.reply !== undefined && { source: this.reply.source }),
      ...(this.reply?.interrupted !== undefined && { status: 'interrupted' }),
    };
  }

  open(): OpenStep {
    const { step, stepId } = this.begin;
    const known = this.isComplete;
    return {
      step,
      stepId,
      ...(known && this.reply !== undefined && { reply: this.reply }),
      usage: this.usage,
      calls: known ? this.calls.map((call) => ({ ...call })) : [],
      ...(this.ended !== undefined && { ended: this.ended }),
    };
  }
}

function callPart(event: ToolCallEvent): ToolCallPart {
  const { name, inputText, input, providerId, providerData } = event;
  return {
    type: 'tool_call',
    id: event.toolCallId,
    name,
    inputText,
    ...(input !== undefined && { input }),
    ...(providerId !== undefined && { providerId }),
    ...(providerData !== undefined && { providerData }),
  };
}

function openCall(event: ToolCallEvent): OpenCall {
  const { toolCallId, name, inputText, input, description, sameAs, held } = event;
  return {
    toolCallId,
    name,
    inputText,
    ...(input !== undefined && { input }),
    ...(description !== undefined && { description }),
    ...(sameAs !== undefined && { sameAs }),
    ...(held !== undefined && { held }),
  };
}

/** A turn while its events come in. */
class TurnFold {
  readonly begin: TurnBeginEvent;
  steps = 0;
  continuations = 0;
  usage: Usage = NO_USAGE;
  readonly usageByModel = new Map<string, Usage>();
  missingInput: number;
  suspended = false;
  resumes = 0;
  /** The last step, if it ended and only a compaction followed. */
  endedStep: StepFold | undefined;
  lastReply: AssistantMessage | undefined;
  afterLimit: AfterLimit | undefined;
  /** The last step ended with a stop: anything that follows but the end means that the turn went on. */
  stopped = false;

  constructor(begin: TurnBeginEvent) {
    this.begin = begin;
    this.missingInput = begin.inputCount;
  }

  /** The turn goes on, possibly after a stop. */
  goOn(): void {
    if (this.stopped) this.continuations += 1;
    this.stopped = false;
    this.endedStep = undefined;
  }

  open(step: StepFold | undefined): OpenTurn {
    const { turnId, metadata } = this.begin;
    const { afterLimit } = this;
    const openStep = (step ?? this.endedStep)?.open();
    const lastReply = step?.lastReply() ?? this.lastReply;
    return {
      turnId,
      ...(metadata !== undefined && { metadata }),
      steps: this.steps,
      continuations: this.continuations,
      usage: this.usage,
      usageByModel: Array.from(this.usageByModel, ([modelId, usage]) => ({ modelId, usage })),
      missingInput: this.missingInput,
      suspended: this.suspended,
      resumes: this.resumes,
      ...(afterLimit !== undefined && { afterLimit }),
      ...(lastReply !== undefined && { lastReply }),
      ...(openStep !== undefined && { step: openStep }),
    };
  }
}

class Fold {
  /** The repairs it took. */
  readonly #findings: Finding[] = [];
  #messages: Message[];
  #snapshot: readonly Message[] | undefined;
  #turn: TurnFold | undefined;
  #step: StepFold | undefined;
  /** Messages that came while calls had no result: they stand behind the results. */
  #deferred: UserMessage[] = [];

  constructor(messages: readonly Message[]) {
    this.#messages = [...messages];
  }

  readonly #report = (finding: Finding): void => {
    this.#findings.push(finding);
  };

  add(event: RecordedEvent): void {
    switch (event.type) {
      case 'turn.begin':
        this.#beginTurn(event);
        break;
      case 'message':
        this.#addMessage(event.message);
        if (this.#turn !== undefined && event.afterLimit !== undefined) this.#turn.afterLimit = event.afterLimit;
        break;
      case 'step.begin':
        this.#beginStep(event);
        break;
      case 'usage':
        this.#addUsage(event);
        return;
      case 'content.part':
      case 'tool.call':
        if (this.#stepOf(event) === undefined) this.#report({ kind: 'part_misplaced', messageId: event.stepId });
        else this.#step?.addPart(event);
        break;
      case 'tool.start':
        this.#startCall(event);
        break;
      case 'tool.finished':
      case 'tool.result':
        this.#finishCall(event);
        break;
      case 'step.end':
        if (this.#stepOf(event) !== undefined) this.#endStep(event.stopReason);
        return;
      case 'compaction':
        this.#compact(event);
        break;
      case 'turn.suspend':
        this.#suspend(event.calls);
        break;
      case 'turn.resume':
        this.#resume(event.decisions);
        break;
      case 'turn.end':
        this.#sealStep();
        this.#turn = undefined;
        break;
      default:
        // An event of a later minor version: kept in the record, without a part in the history.
        event satisfies never;
        return;
    }
    this.#snapshot = undefined;
  }

  history(): readonly Message[] {
    // `concat` copies references several times faster than spreads do.
    this.#snapshot ??= this.#messages.concat(this.#step?.messages() ?? [], this.#deferred);
    return this.#snapshot;
  }

  allFindings(): readonly Finding[] {
    return [...this.#findings, ...(this.#step?.findings() ?? [])];
  }

  openTurn(): OpenTurn | undefined {
    return this.#turn?.open(this.#step);
  }

  #beginTurn(event: TurnBeginEvent): void {
    assertVersion(event.version);
    // A turn before that never ended, because its recorder died, is over now.
    this.#sealStep();
    this.#turn = new TurnFold(event);
  }

  #beginStep(event: StepBeginEvent): void {
    if (this.#step?.begin.stepId === event.stepId) return;
    this.#sealStep();
    this.#step = new StepFold(event);
    if (this.#turn === undefined) return;
    this.#turn.goOn();
    this.#turn.steps = event.step;
    this.#turn.afterLimit = event.afterLimit;
  }

  #startCall(event: ToolStartEvent): void {
    const call = this.#stepOf(event)?.call(event.toolCallId);
    if (call === undefined) return;
    call.started = true;
    if (event.input === undefined) return;
    call.input = event.input;
    call.edited = true;
  }

  #finishCall(event: ToolFinishedEvent | ToolResultEvent): void {
    const call = this.#stepOf(event)?.call(event.toolCallId);
    if (call === undefined) return;
    call.result ??= event.result;
    if (event.type === 'tool.result') call.settled = true;
    else if (event.stopTurn === true) call.stopTurn = true;
  }

  /** The open step, if it is the one that an event belongs to: turns that overlap must not mix. */
  #stepOf(event: { readonly stepId: string }): StepFold | undefined {
    return this.#step?.begin.stepId === event.stepId ? this.#step : undefined;
  }

  #endStep(stopReason: StepStopReason): void {
    if (this.#step === undefined) return;
    this.#step.ended = stopReason;
    if (this.#turn !== undefined) this.#turn.stopped = stopReason !== 'tool_use';
  }

  /** What comes after a step's end stands behind it, and says that the turn goes on. */
  #sealEndedStep(): void {
    if (this.#step?.ended !== undefined) this.#sealStep();
  }

  #addMessage(message: UserMessage): void {
    if (this.#turn !== undefined && this.#turn.missingInput > 0) this.#turn.missingInput -= 1;
    if (this.#step?.ended !== undefined || this.#turn?.endedStep !== undefined) this.#turn?.goOn();
    this.#sealEndedStep();
    const clean = cleanUser(message, this.#report);
    if (clean === undefined) return;
    if (this.#step === undefined) this.#messages.push(clean);
    else this.#deferred.push(clean);
  }

  #addUsage({ turnId, modelId, usage, purpose, stepId }: UsageEvent): void {
    const turn = this.#turn;
    const sum = addUsage(turn?.usage ?? NO_USAGE, usage);
    // What is spent beside the turn, such as a summary between two turns, is not the turn's.
    if (turn?.begin.turnId === turnId) {
      turn.usage = sum;
      turn.usageByModel.set(modelId, addUsage(turn.usageByModel.get(modelId) ?? NO_USAGE, usage));
    }
    if (purpose === 'step' && stepId !== undefined && this.#step?.begin.stepId === stepId) this.#step.usage = usage;
  }

  #suspend(calls: readonly SuspendedCall[]): void {
    if (this.#turn !== undefined) this.#turn.suspended = true;
    for (const suspended of calls) {
      const call = this.#step?.call(suspended.toolCallId);
      if (call === undefined) continue;
      call.suspended = suspended;
      if (suspended.input === undefined) continue;
      call.input = suspended.input;
      call.edited = true;
    }
  }

  #resume(decisions: readonly ToolCallDecision[]): void {
    if (this.#turn !== undefined) {
      this.#turn.suspended = false;
      this.#turn.resumes += 1;
    }
    if (this.#step !== undefined) this.#step.calls = [...applyDecisions(this.#step.calls, decisions)];
  }

  #sealStep(): void {
    if (this.#step !== undefined) {
      this.#findings.push(...this.#step.findings());
      this.#messages.push(...this.#step.messages());
      if (this.#turn !== undefined) this.#turn.lastReply = this.#step.lastReply() ?? this.#turn.lastReply;
      this.#step = undefined;
    }
    this.#messages.push(...this.#deferred);
    this.#deferred = [];
  }

  #compact(event: CompactionEvent): void {
    // It may come from a hook that runs behind the step: the turn is not said to go on.
    if (this.#step?.ended !== undefined && this.#turn !== undefined) this.#turn.endedStep = this.#step;
    this.#sealEndedStep();
    const before = this.#messages;
    const positions = new Map(before.map(({ id }, index) => [id, index]));
    const pieces: (readonly Message[])[] = [];
    let done = 0;
    for (const edit of event.edits) {
      const from = positions.get(edit.from) ?? -1;
      const to = positions.get(edit.to) ?? -1;
      if (from < done || to < from) {
        this.#report({ kind: 'edit_not_applied', messageId: edit.from });
        continue;
      }
      pieces.push(before.slice(done, from), edit.messages);
      done = to + 1;
    }
    const projection = projectMessages([...pieces, before.slice(done)].flat());
    this.#findings.push(...projection.findings);
    this.#messages = [...projection.messages];
  }
}

/** The message that answers a call, made once for each: a history hands out the same object every time. */
const answers = new WeakMap<RecordedToolResult, Map<string, Message>>();

function answer(call: OpenCall): Message {
  if (call.result === undefined) return missingResultMessage(call.toolCallId, call.name, call.started);
  // Calls that share a result share the object.
  const known = answers.get(call.result) ?? new Map<string, Message>();
  answers.set(call.result, known);
  const message = known.get(call.toolCallId) ?? resultMessage(call.toolCallId, call.name, call.result);
  known.set(call.toolCallId, message);
  return message;
}
