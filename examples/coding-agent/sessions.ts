/** Sessions: which conversation is gone on with, and which ones there are. */
import { textOf } from 'turnloop';
import type { Agent, Session } from 'turnloop/agent';
import type { SessionStore } from 'turnloop/sessions';
import { MEMORY_OWNERS } from './agent.ts';
import type { Options } from './options.ts';
import { toPrintableLine } from './printable.ts';

/** Opens the session that the command line asks for: a new one, an earlier one, or a fork of one. @throws SessionError, or Error if there is none. */
export async function openSession(agent: Agent, { resume, fork }: Pick<Options, 'resume' | 'fork'>): Promise<Session> {
  const memoryOwners = MEMORY_OWNERS;
  if (fork !== undefined) return agent.openSession({ fork: { sessionId: fork }, memoryOwners });
  if (resume === undefined) return agent.openSession({ memoryOwners });
  return agent.openSession({ resumeSessionId: resume === 'newest' ? await newest(agent.sessions) : resume, memoryOwners });
}

async function newest(sessions: SessionStore): Promise<string> {
  const [session] = await sessions.list();
  if (session === undefined) throw new Error('There is no session in this folder yet. Ask something without --resume.');
  return session.sessionId;
}

/** One line for each session, the newest first: its id, when it was written to, and what it began with. */
export async function listSessions(sessions: SessionStore, width: number): Promise<readonly string[]> {
  const all = await sessions.list();
  return Promise.all(
    all.map(async ({ sessionId, updatedAt }) => {
      const { events } = await sessions.read(sessionId);
      const first = events.find((event) => event.type === 'message');
      const when = new Date(updatedAt).toISOString().slice(0, 'yyyy-mm-ddThh:mm'.length).replace('T', ' ');
      return toPrintableLine(`${sessionId}  ${when}  ${first === undefined ? '' : textOf(first.message)}`, width);
    }),
  );
}
