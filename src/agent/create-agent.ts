/** Create agent: puts an agent together, and opens its sessions. */
import { assertOptions } from '../core/assert.ts';
import { isTurnloopError } from '../core/errors.ts';
import { inProcessSessionStore } from '../sessions/in-process-store.ts';
import { SESSION_VERSION, SessionError, type NewSession, type SessionContent, type SessionEvent, type SessionHeader, type SessionLog, type SessionRepair, type SessionStore } from '../sessions/session-store.ts';
import type { Agent, ForkOptions, OpenSessionOptions } from './agent.ts';
import { assertAgentOptions, type AgentOptions } from './agent-options.ts';
import { agentParts, rememberParts, type AgentParts } from './agent-parts.ts';
import { AgentSession } from './agent-session.ts';
import type { Session } from './session.ts';
import { runtimeOf, SessionCast } from './session-cast.ts';
import { SessionState } from './session-state.ts';

const DEFAULT_NAME = 'agent';
const OPEN_ARGUMENT = { taker: 'agent.openSession', example: "agent.openSession({ resumeSessionId: 'session-1' })" };
const OPEN_OPTIONS: Readonly<Record<keyof OpenSessionOptions, true>> = { sessionId: true, resumeSessionId: true, fork: true, metadata: true, memoryOwners: true };

/**
 * Makes an agent: a model with tools, and what a whole turn of it takes. On without being asked for: 25 steps, retries and time
 * limits, a context policy, a loop guard, recoveries. Each is replaced or switched off by the option of its name.
 *
 * @param options - The model, its tools, and what is to be different.
 * @throws TypeError for an option that is missing, does not exist, or makes no sense.
 *
 * @example
 * ```ts
 * const agent = createAgent({ llm: openAIChat({ model: 'gpt-5-mini', apiKey }), tools: [weather], sessions: fileSessionStore('./sessions') });
 * const session = await agent.openSession();
 * const turn = session.run('Do I need an umbrella in Oslo?');
 * for await (const event of turn) if (event.type === 'text.delta') process.stdout.write(event.text);
 * console.log((await turn.result).stopReason);
 * ```
 */
export function createAgent<Output = unknown>(options: AgentOptions<Output>): Agent<Output> {
  assertAgentOptions(options);
  const parts = agentParts(options.name ?? DEFAULT_NAME, options);
  const store = options.sessions ?? inProcessSessionStore();
  const agent: Agent<Output> = {
    name: parts.name,
    sessions: store,
    openSession: (open = {}) => openSession<Output>({ parts, store }, open),
    run: (input, turn = {}) => unkeptSession<Output>(parts).run(input, turn),
  };
  rememberParts(agent, parts);
  return agent;
}

interface Opener {
  readonly parts: AgentParts;
  readonly store: SessionStore;
}

async function openSession<Output>({ parts, store }: Opener, options: OpenSessionOptions): Promise<Session<Output>> {
  assertOpenOptions(options);
  const { memoryOwners = [] } = options;
  const { log, isNew } = await openLog({ parts, store }, options);
  try {
    const { sessionId } = log.header;
    const readEvents = async (): Promise<readonly SessionEvent[]> => (await store.read(sessionId)).events;
    const { state, repairs } = await readState(await log.load(), readEvents);
    restoreLearned(parts, state);
    return new AgentSession<Output>({
      log,
      state,
      repairs,
      cast: (session) => new SessionCast<Output>(parts, session),
      memoryOwners,
      readEvents,
    });
  } catch (error) {
    await log.close();
    // A session that was never open is not left behind.
    if (isNew) await store.delete(log.header.sessionId);
    throw error;
  }
}

async function openLog(opener: Opener, options: OpenSessionOptions): Promise<{ readonly log: SessionLog; readonly isNew: boolean }> {
  const { store } = opener;
  const { sessionId, resumeSessionId } = options;
  if (resumeSessionId === undefined) return { log: await createLog(opener, options), isNew: true };
  try {
    return { log: await store.open(resumeSessionId), isNew: false };
  } catch (error) {
    const mayBeNew = sessionId !== undefined && isTurnloopError(error) && error.code === 'session_not_found';
    if (mayBeNew) return { log: await createLog(opener, options), isNew: true };
    throw error;
  }
}

async function createLog({ parts, store }: Opener, { sessionId, fork, metadata }: OpenSessionOptions): Promise<SessionLog> {
  const runtime = runtimeOf(parts);
  const forked = fork === undefined ? undefined : await readFork(store, fork);
  return store.create({
    sessionId: sessionId ?? runtime.createId('session'),
    createdAt: runtime.now(),
    ...(metadata !== undefined && { metadata }),
    ...forked,
  });
}

/** The events of a session up to the end of a turn, with what changed the history behind it. */
async function readFork(store: SessionStore, { sessionId, afterTurn }: ForkOptions): Promise<Pick<NewSession, 'forkedFrom' | 'events'>> {
  const { events } = await store.read(sessionId);
  const last = events.findLastIndex((event) => event.type === 'turn.end' && (afterTurn === undefined || event.turnId === afterTurn));
  if (last === -1 && afterTurn !== undefined) {
    throw new SessionError('not_in_session', `Session "${sessionId}" has no turn "${afterTurn}" that is over: nothing was forked. session.events() tells its turns.`);
  }
  const next = events.findIndex(({ type }, index) => index > last && type === 'turn.begin');
  const shared = events.slice(0, next === -1 ? events.length : next);
  const lastTurn = shared.findLast((event) => event.type === 'turn.end');
  return {
    forkedFrom: { sessionId, ...(lastTurn !== undefined && { turnId: lastTurn.turnId }) },
    // What is queued there is delivered there.
    events: shared.filter(({ type }) => type !== 'input.queued' && type !== 'input.removed'),
  };
}

/** The state of a session: from its snapshot, or from all its events if the snapshot holds no history. */
async function readState(
  { snapshot, events, repairs }: SessionContent,
  readEvents: () => Promise<readonly SessionEvent[]>,
): Promise<{ readonly state: SessionState; readonly repairs: readonly SessionRepair[] }> {
  try {
    return { state: new SessionState({ snapshot, events }), repairs };
  } catch (error) {
    if (!isTurnloopError(error) || error.code !== 'broken_snapshot') throw error;
    const message = `The snapshot was not used, and the whole log was read: ${error.message}`;
    return { state: new SessionState({ events: await readEvents() }), repairs: [...repairs, { kind: 'snapshot_dropped', message }] };
  }
}

/** Gives the host back what it kept with the session. */
function restoreLearned({ options }: AgentParts, state: SessionState): void {
  for (const [name, learned] of Object.entries(options.learned ?? {})) {
    if (Object.hasOwn(state.learned, name)) learned.restore(state.learned[name] ?? null);
  }
}

/** A session for one turn, kept nowhere. */
function unkeptSession<Output>(parts: AgentParts): Session<Output> {
  const runtime = runtimeOf(parts);
  const header = { version: SESSION_VERSION, sessionId: runtime.createId('session'), createdAt: runtime.now() };
  return new AgentSession<Output>({
    log: unkeptLog(header),
    state: new SessionState({ events: [] }),
    repairs: [],
    cast: (session) => new SessionCast<Output>(parts, session),
    memoryOwners: [],
    readEvents: () => Promise.resolve([]),
  });
}

function unkeptLog(header: SessionHeader): SessionLog {
  const done = (): Promise<void> => Promise.resolve();
  return {
    header,
    load: () => Promise.resolve({ events: [], repairs: [] }),
    append: done,
    saveSnapshot: done,
    child: (id) => Promise.resolve(unkeptLog({ ...header, sessionId: id })),
    close: done,
  };
}

function assertOpenOptions(options: OpenSessionOptions): void {
  assertOptions(options, OPEN_OPTIONS, OPEN_ARGUMENT);
  const { sessionId, resumeSessionId, fork } = options;
  for (const [name, id] of Object.entries({ sessionId, resumeSessionId })) {
    const given: unknown = id;
    if (given !== undefined && typeof given !== 'string') throw new TypeError(`agent.openSession: \`${name}\` must be a text, not ${typeof given}. For example: ${OPEN_ARGUMENT.example}.`);
  }
  if (resumeSessionId !== undefined && sessionId !== undefined && sessionId !== resumeSessionId) {
    throw new TypeError('agent.openSession: `sessionId` and `resumeSessionId` differ. Give one of them; or both the same, to go on with a session or make it.');
  }
  if (fork === undefined) return;
  if (resumeSessionId !== undefined) throw new TypeError("agent.openSession: a fork is a new session. For example: agent.openSession({ fork: { sessionId: 'session-1' } }).");
  assertOptions(fork, { sessionId: true, afterTurn: true }, { taker: 'agent.openSession: `fork`', example: "agent.openSession({ fork: { sessionId: 'session-1' } })" });
}
