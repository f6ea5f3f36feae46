/** What the tests of sessions have in common: an agent with a scripted model and a virtual clock, and sessions in short. */
import type { Message } from 'turnloop';
import { type Agent, type AgentOptions, type AgentTurnEvent, createAgent, type OpenSessionOptions, type Session } from 'turnloop/agent';
import { inProcessSessionStore, type SessionEvent, type SessionStore } from 'turnloop/sessions';
import { type Script, type ScriptedLLM, scriptedLLM, type ScriptedLLMOptions, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { conversation } from '../../core/support.ts';

/** Options of {@link startAgent}: those of an agent, with everything optional. */
export interface StartOptions extends Partial<Omit<AgentOptions, 'runtime' | 'llm'>> {
  /** Options of the scripted model. */
  readonly llmOptions?: ScriptedLLMOptions | undefined;
  /** Stands in the ids of a second process. */
  readonly idPrefix?: string | undefined;
  /** How its session is opened. @defaultValue a new session, `s` */
  readonly open?: OpenSessionOptions | undefined;
}

/** An agent with a session. */
export interface Started {
  readonly agent: Agent;
  readonly llm: ScriptedLLM;
  readonly runtime: VirtualRuntime;
  readonly store: SessionStore;
  readonly session: Session;
}

/** An agent whose model plays these replies. */
export function scriptedAgent(replies: Script = [], options: Omit<StartOptions, 'open'> = {}): Omit<Started, 'session'> {
  const { llmOptions, idPrefix, sessions: store = inProcessSessionStore(), ...agentOptions } = options;
  const llm = scriptedLLM(replies, llmOptions);
  const runtime = virtualRuntime({ ...(idPrefix !== undefined && { idPrefix }) });
  const agent = createAgent({ llm, runtime, sessions: store, ...agentOptions });
  return { agent, llm, runtime, store };
}

/** The same, with a session. */
export async function startAgent(replies: Script = [], { open = { sessionId: 's' }, ...options }: StartOptions = {}): Promise<Started> {
  const started = scriptedAgent(replies, options);
  return { ...started, session: await started.agent.openSession(open) };
}

/** Goes on with session `s` in another process. */
export function reopen(sessions: SessionStore, replies: Script = [], options: StartOptions = {}): Promise<Started> {
  return startAgent(replies, { sessions, idPrefix: 'b', open: { resumeSessionId: 's' }, ...options });
}

/** The history of a session in short. */
export function said(session: { messages(): readonly Message[] }): readonly string[] {
  return conversation(session.messages());
}

/** The texts that wait. */
export function queued(session: Session): readonly string[] {
  return conversation(session.queue.map(({ message }) => message)).map((line) => line.replace('user: ', ''));
}

/** Types of events, without deltas. */
export function types(events: readonly (AgentTurnEvent | SessionEvent)[]): readonly string[] {
  return events.map(({ type }) => type).filter((type) => !type.endsWith('.delta'));
}

/** The code of a typed error that a call throws or rejects with; what it gave otherwise. */
export async function codeOf(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
}

/** Whether a promise has settled, once everything has run that can. */
export async function hasSettled(runtime: VirtualRuntime, promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const onSettled = (): void => {
    settled = true;
  };
  promise.then(onSettled, onSettled);
  await runtime.flush();
  return settled;
}

/** The last request of a model, its conversation in short. */
export function lastRequest({ requests }: ScriptedLLM): readonly string[] {
  return conversation(requests.at(-1)?.messages ?? []);
}

/** A history in short, without the ids that differ from process to process. */
export function story(session: { messages(): readonly Message[] }): readonly string[] {
  return said(session).map((line) => line.replace(/^tool \S+:/, 'tool:'));
}
