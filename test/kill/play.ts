/**
 * Play: one session of the kill test, from its beginning to its end over as many processes as deaths ask for, and what can
 * be seen of it then.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addUsage, createTranscript, NO_USAGE, textOf, type Message, type RecordedEvent, type Usage } from 'turnloop';
import { fileSessionStore, type SessionEvent, type SessionLog } from 'turnloop/sessions';
import { REPORT_FILE, SESSION_ID, type ChildReport } from './child.ts';
import type { Death } from './death.ts';
import { type DiskState, readDisk } from './disk-state.ts';
import type { ChildProgram } from './processes.ts';
import { World } from './world.ts';

/** A session that came to its end. */
export interface Play {
  readonly world: World;
  readonly report: ChildReport;
  /** What was on the disk at each death, in their order. A process that ended before its death left none. */
  readonly deaths: readonly DiskState[];
  /** What is on the disk at the end. */
  readonly disk: DiskState;
  /** Events of the session. */
  readonly events: readonly SessionEvent[];
  /** Those of its sub-agents, by the label of the call that dispatched each. */
  readonly agents: ReadonlyMap<string, readonly RecordedEvent[]>;
}

/** What else happens to a session while it is played. */
export interface PlayOptions {
  /** Called at each death, 0-based, with the folder of the store. */
  readonly atDeath?: (death: number, store: string) => void;
  /** Goes on beside the first process, with the folder of the session. */
  readonly beside?: (folder: string) => Promise<void>;
}

/**
 * Plays a session: its processes die by the list, the last one comes to the end.
 *
 * @param deaths - With events counted from the start of the session.
 */
export async function play(program: ChildProgram, deaths: readonly Death[], { atDeath, beside }: PlayOptions = {}): Promise<Play> {
  const folder = program.newFolder();
  const store = join(folder, 'store');
  const besides = beside?.(folder);
  const states: DiskState[] = [];
  for (let process = 0; ; process += 1) {
    const death = deaths[process];
    const task = { folder, process };
    const isDone = await program.run(death === undefined ? task : { ...task, death: inProcess(death, states.at(-1)?.events ?? 0) });
    if (process === 0) await besides;
    if (isDone) break;
    states.push(readDisk(store));
    atDeath?.(process, store);
  }
  const disk = readDisk(store);
  const report = JSON.parse(readFileSync(join(folder, REPORT_FILE), 'utf8')) as ChildReport;
  return { world: new World(folder), report, deaths: states, disk, ...(await readLogs(store)) };
}

/** A death with its events counted from the start of the process. */
function inProcess(death: Death, eventsBefore: number): Death {
  return death.kind === 'event' || death.kind === 'instant' ? { ...death, at: Math.max(1, death.at - eventsBefore) } : death;
}

async function readLogs(store: string): Promise<Pick<Play, 'events' | 'agents'>> {
  const log = await fileSessionStore(store).open(SESSION_ID);
  try {
    await log.load();
    const { events } = await fileSessionStore(store).read(SESSION_ID);
    const agents = new Map<string, readonly RecordedEvent[]>();
    await readAgents(log, { events: turnEvents(events), agents });
    return { events, agents };
  } finally {
    await log.close();
  }
}

async function readAgents(log: SessionLog, { events, agents }: { readonly events: readonly RecordedEvent[]; readonly agents: Map<string, readonly RecordedEvent[]> }): Promise<void> {
  const labels = labelsOf(events);
  const dispatched = new Set(events.flatMap((event) => (event.type === 'tool.start' ? [event.toolCallId] : [])));
  for (const event of events) {
    if (event.type !== 'tool.call' || event.name !== 'dispatch_agent' || !dispatched.has(event.toolCallId)) continue;
    const child = await log.child(event.toolCallId);
    const own = turnEvents((await child.load()).events);
    await child.close();
    agents.set(labels.get(event.toolCallId) ?? '', own);
    await readAgents(log, { events: own, agents });
  }
}

/** The events of turns among those of a session. */
export function turnEvents(events: readonly SessionEvent[]): readonly RecordedEvent[] {
  return events.filter((event): event is RecordedEvent => event.type !== 'input.queued' && event.type !== 'input.removed' && event.type !== 'handoff');
}

/** Labels of calls, by their ids. */
export function labelsOf(events: readonly RecordedEvent[]): ReadonlyMap<string, string> {
  return new Map(events.flatMap((event) => (event.type === 'tool.call' ? [[event.toolCallId, event.providerId ?? '']] : [])));
}

/** The history of a sub-agent. */
export function historyOf(events: readonly RecordedEvent[]): readonly Message[] {
  return createTranscript(events).buildMessages();
}

/** A history as lines that are equal in all runs: labels instead of ids. Results of the calls in `unknown` are left out. */
export function linesOf(messages: readonly Message[], unknown: ReadonlySet<string> = new Set()): readonly string[] {
  const labels = new Map(messages.flatMap(({ content }) => content.flatMap((part) => (part.type === 'tool_call' ? [[part.id, part.providerId ?? ''] as const] : []))));
  return messages.map((message) => {
    if (message.role === 'tool') {
      const label = labels.get(message.toolCallId) ?? 'nothing';
      return `result of ${label}: ${unknown.has(label) ? 'unknown' : `${message.isError === true ? 'error ' : ''}${textOf(message)}`}`;
    }
    const parts = message.content.map((part) => (part.type === 'tool_call' ? `${part.name} ${String(part.providerId)} ${part.inputText}` : part.type === 'text' ? part.text : part.type));
    return `${message.role}${message.role === 'assistant' && message.status !== undefined ? ` ${message.status}` : ''}: ${parts.join(' | ')}`;
  });
}

/** Tokens of all `usage` events. */
export function usageOf(events: readonly RecordedEvent[]): Usage {
  return events.reduce((sum, event) => (event.type === 'usage' ? addUsage(sum, event.usage) : sum), NO_USAGE);
}
