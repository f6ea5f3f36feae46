/**
 * Child of the kill test: a host as one would write it. Opens the session, goes on where it was, and ends when all is done;
 * unless it is killed before.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf, userMessage, type Message, type UserMessage } from 'turnloop';
import { createAgent, type Session } from 'turnloop/agent';
import { fileSessionStore } from 'turnloop/sessions';
import { DeathWatch, watchedDisk, watchedStore, type Death } from './death.ts';
import { FIRST_INPUT, scriptModel, STEPS_OF_TURN, TURNS, UNKNOWN } from './script.ts';
import { World, worldTools, type WorldReply } from './world.ts';

/** What a child is told, as JSON in its argument. */
export interface ChildTask {
  readonly folder: string;
  /** Number of the process in its session, 0-based. */
  readonly process: number;
  readonly death?: Death | undefined;
}

/** What a child leaves behind that came to the end. */
export interface ChildReport {
  readonly messages: readonly Message[];
  readonly usage: Session['usage'];
  readonly turns: number;
  readonly repairs: Session['repairs'];
  /** What went wrong beside the turns. */
  readonly problems: readonly string[];
  /** How each turn of the session that ended here ended. */
  readonly stopReasons: readonly string[];
  readonly counts: { readonly events: number; readonly writes: number; readonly calls: number };
}

export const SESSION_ID = 'session of the kill test/1';
/** Its report, in the folder. */
export const REPORT_FILE = 'report.json';

/** The session as its host sees it, over its processes. */
class Host {
  session: Session | undefined;
  /** Ids of inputs that are queued or delivered, and of steering that was given here. */
  readonly #known = new Set<string>();
  readonly #work: Promise<unknown>[] = [];

  /** What the log has says what was done before this process. */
  async goOn(session: Session): Promise<void> {
    this.session = session;
    const events = await session.events();
    for (const event of events) {
      if (event.type === 'input.queued' || event.type === 'message') this.#known.add(event.message.id);
    }
    if (session.openTurn() !== undefined) session.resume();
    else if (!events.some(({ type }) => type === 'message')) session.run(FIRST_INPUT);
    else session.runQueued();
    // What was to go into the turn and did not come to it goes there now.
    if (session.queue.some(({ message }) => message.id.startsWith('remark-'))) this.#steerQueued(session);
    for (const event of events) {
      if (event.type !== 'tool.call' || event.name !== 'steer') continue;
      const ended = events.some((other) => other.type === 'tool.finished' && other.toolCallId === event.toolCallId);
      if (ended) this.steer((JSON.parse(event.inputText) as { readonly label: string }).label);
    }
  }

  async queue(id: string, steer: boolean): Promise<void> {
    if (this.#known.has(id)) return;
    this.#known.add(id);
    await this.session?.followUp(inputOf(id));
    // The tool is a part of the turn that it steers: it must not wait for it.
    if (steer && this.session !== undefined) this.#steerQueued(this.session);
  }

  steer(id: string): void {
    if (this.#known.has(id)) return;
    this.#known.add(id);
    this.#work.push(this.session?.turn?.steer(inputOf(id)) ?? Promise.resolve());
  }

  #steerQueued(session: Session): void {
    this.#work.push(session.steerQueued());
  }
}

function inputOf(id: string): UserMessage {
  return userMessage(`Do ${id}.`, { id });
}

/** Labels of unknown outcomes that the model is told of for the first time. */
function toldUnknown(messages: readonly Message[]): readonly string[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const calls = messages[last]?.role === 'assistant' ? messages[last].content : [];
  return messages.slice(last + 1).flatMap((message) => {
    if (message.role !== 'tool' || !UNKNOWN.test(textOf(message))) return [];
    return calls.flatMap((part) => (part.type === 'tool_call' && part.id === message.toolCallId ? [part.providerId ?? ''] : []));
  });
}

async function main({ folder, process: number, death }: ChildTask): Promise<void> {
  const watch = new DeathWatch(death, () => process.send?.('now'));
  const world = new World(folder);
  const host = new Host();
  const pause = (): Promise<void> => sleep(Math.random() * 3);
  const tools = worldTools({ world, process: number, pause, host });
  const problems: string[] = [];
  const agent = createAgent({
    llm: scriptModel({
      pause,
      onReply: ({ messages }) => {
        world.add('replies', { process: number, unknown: toldUnknown(messages) } satisfies WorldReply);
      },
    }),
    tools: [...tools.writing, ...tools.hosting],
    subAgents: { types: { writer: { description: 'Writes.', tools: tools.writing } }, maxDepth: 2, accesses: () => [] },
    maxSteps: STEPS_OF_TURN + 5,
    sessions: watchedStore(fileSessionStore(join(folder, 'store'), { files: watchedDisk(watch) }), watch),
    onProblem: (problem) => problems.push(String(problem)),
  });
  const session = await agent.openSession({ sessionId: SESSION_ID, resumeSessionId: SESSION_ID });
  const stopReasons: string[] = [];
  session.subscribe((event) => {
    if (event.type === 'turn.end' && !('agentPath' in event)) stopReasons.push(event.stopReason);
  });
  await host.goOn(session);
  await session.idle();
  if (session.turns !== TURNS || session.status !== 'idle') throw new Error(`The session is ${session.status} behind turn ${session.turns}.`);

  const { usage, turns, repairs } = session;
  const messages = session.messages();
  await session.close();
  const counts = { events: watch.events, writes: watch.writes, calls: watch.calls };
  const report: ChildReport = { messages, usage, turns, repairs, problems, stopReasons, counts };
  writeFileSync(join(folder, REPORT_FILE), JSON.stringify(report));
}

if (process.argv[2] !== undefined && process.send !== undefined) {
  process.once('disconnect', () => process.exit(1));
  await main(JSON.parse(process.argv[2]) as ChildTask);
  process.exit(0);
}
