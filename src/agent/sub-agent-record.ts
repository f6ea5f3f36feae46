/**
 * Sub-agent record: where the events of one sub-agent are, so that it can be gone on with.
 *
 * - With a log they are durable there. Without one they are in memory, and go into the state of a suspension.
 * - A record that cannot be read, or does not belong to the call, is a typed error: nothing of it is changed then.
 */
import { isTurnloopError, messageOf, TurnloopError } from '../core/errors.ts';
import type { RecordedEvent } from '../core/events.ts';
import { isRecord, toJson, type JsonValue } from '../core/json.ts';
import { textOf } from '../core/message.ts';
import type { ToolCallDecision, ToolContext } from '../core/tool.ts';
import { createTranscript, type OpenTurn, type Transcript } from '../core/transcript.ts';
import { endOfRecord, type SubAgentEnd } from './sub-agent-result.ts';

/** Keeps the events of one sub-agent durably. */
export interface SubAgentLog {
  /** The events so far, oldest first; empty for a sub-agent that has not begun. */
  load(): Promise<readonly RecordedEvent[]>;
  /** Appends an event; resolves once it is durable. A rejection ends the sub-agent. */
  record(event: RecordedEvent): Promise<void>;
  /** Lets go of it. Called once, when the sub-agent has ended or suspended; what it throws is dropped. */
  close(): Promise<void>;
}

/** Opens the log of the sub-agent that a call runs: the same one each time for the same id. */
export type OpenSubAgentLog = (toolCallId: string, context: ToolContext) => Promise<SubAgentLog>;

/** The events of one sub-agent. Made by {@link openRecord}. */
export interface SubAgentRecord {
  /** The events, folded. */
  readonly transcript: Transcript;
  /** How it ended, if it had before. */
  readonly ended: SubAgentEnd | undefined;
  /** The turn to go on with, if one is open. */
  readonly open: OpenTurn | undefined;
  /** The decisions that are new to the record. */
  readonly decisions: readonly ToolCallDecision[];
  /** Adds an event. */
  write(event: RecordedEvent): Promise<void> | undefined;
  /** What a suspended call needs to find this record again. */
  state(): JsonValue;
  /** Lets go of it; never rejects. */
  close(): Promise<void>;
}

/** What a suspended call keeps. Plain JSON. */
interface SavedState {
  readonly kind: typeof STATE_KIND;
  readonly version: typeof STATE_VERSION;
  /** How often the turn had been resumed when it suspended: decisions are about that suspension, and no later one. */
  readonly resumes: number;
  /** The events, where no log has them. */
  readonly events?: readonly RecordedEvent[] | undefined;
}

const STATE_KIND = 'turnloop.sub_agent';
const STATE_VERSION = 1;

/**
 * Opens the record of the sub-agent that a call runs.
 *
 * @throws {@link index.TurnloopError | TurnloopError} `sub_agent_record` if it cannot be opened or read, or is not that of the call.
 */
export async function openRecord(context: ToolContext, openLog: OpenSubAgentLog | undefined): Promise<SubAgentRecord> {
  const { resumed } = context;
  const saved = resumed === undefined ? undefined : readState(resumed.state, openLog !== undefined);
  const log = openLog && (await openLogOf(context, openLog));
  try {
    const stored = log === undefined ? saved?.events : await untilAborted(log.load(), context.signal);
    return makeRecord({ log, saved, events: stored ?? [], decisions: resumed?.decisions ?? [] });
  } catch (error) {
    await closeLog(log);
    if (context.signal.aborted || isBroken(error)) throw error;
    throw broken(`it cannot be read: ${messageOf(error)}`, error);
  }
}

interface Parts {
  readonly log: SubAgentLog | undefined;
  readonly saved: SavedState | undefined;
  readonly events: readonly RecordedEvent[];
  readonly decisions: readonly ToolCallDecision[];
}

function makeRecord({ log, saved, events, decisions }: Parts): SubAgentRecord {
  const transcript = createTranscript(events, { keepEvents: log === undefined });
  const open = transcript.openTurn();
  const ended = open === undefined ? endOf(events) : undefined;
  if (saved !== undefined && open === undefined && ended === undefined) throw broken('it has no turn to go on with');
  // What was decided of an earlier suspension is in the record already: a process stopped behind it.
  const isNew = open?.suspended === true && open.resumes === saved?.resumes;
  return {
    transcript,
    open,
    ended,
    decisions: isNew ? decisions : [],
    write: (event) => {
      transcript.record(event);
      return log?.record(event);
    },
    state: () => {
      const resumes = transcript.openTurn()?.resumes ?? 0;
      const state: SavedState = { kind: STATE_KIND, version: STATE_VERSION, resumes, ...(log === undefined && { events: transcript.events }) };
      return toJson(state) ?? null;
    },
    close: () => closeLog(log),
  };
}

/** How a turn had ended, by its events. */
function endOf(events: readonly RecordedEvent[]): SubAgentEnd | undefined {
  const index = events.findLastIndex(({ type }) => type === 'turn.end');
  const end = events[index];
  if (end?.type !== 'turn.end') return undefined;
  // Only an open turn knows which reply was its last.
  const lastReply = createTranscript(events.slice(0, index)).openTurn()?.lastReply;
  return endOfRecord(end, textOf(lastReply));
}

/** What a suspended call kept. @throws TurnloopError if this tool did not make it */
function readState(state: unknown, hasLog: boolean): SavedState {
  const { kind, version, resumes, events }: Record<string, unknown> = isRecord(state) ? state : {};
  if (kind !== STATE_KIND || version !== STATE_VERSION || typeof resumes !== 'number') throw broken('what the call kept when it suspended is not from this tool');
  if (Array.isArray(events) === hasLog) {
    throw broken(hasLog ? 'its events are in the call, but the tool was given `openLog`' : 'its events are in a log, but the tool was given no `openLog`');
  }
  // The fold checks the events.
  return { kind, version, resumes, ...(!hasLog && { events: events as readonly RecordedEvent[] }) };
}

async function openLogOf(context: ToolContext, openLog: OpenSubAgentLog): Promise<SubAgentLog> {
  const { signal, toolCallId } = context;
  let opening: Promise<SubAgentLog> | undefined;
  try {
    opening = openLog(toolCallId, context);
    return await untilAborted(opening, signal);
  } catch (error) {
    // One that opens after all is not left open.
    if (signal.aborted) void opening?.then(closeLog, () => undefined);
    throw signal.aborted ? error : broken(`its log cannot be opened: ${messageOf(error)}`, error);
  }
}

async function closeLog(log: SubAgentLog | undefined): Promise<void> {
  try {
    await log?.close();
  } catch {
    // Every event was durable when it was recorded: what the sub-agent came to stands.
  }
}

const BROKEN = 'sub_agent_record';

function isBroken(error: unknown): boolean {
  return isTurnloopError(error) && error.code === BROKEN;
}

function broken(what: string, cause?: unknown): TurnloopError {
  return new TurnloopError(BROKEN, `The sub-agent was not run, and its record was left as it is: ${what}.`, { cause });
}

/** Waits, but no longer than until the signal aborts. */
async function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
