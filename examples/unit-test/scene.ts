/** What each test starts from: the agent with a scripted model, a clock of the test's own, and a shop that can go wrong. */
import type { ToolCallDecision } from 'turnloop';
import type { Agent, Session } from 'turnloop/agent';
import { inProcessSessionStore, type SessionStore } from 'turnloop/sessions';
import { finishTurn, type Script, type ScriptedLLM, scriptedLLM, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { createDesk, type Shop } from './agent.ts';

/** The agent, and what is around it. */
export interface Scene {
  readonly desk: Agent;
  readonly llm: ScriptedLLM;
  readonly runtime: VirtualRuntime;
  readonly sessions: SessionStore;
  /** Orders that were paid back. */
  readonly refunds: readonly string[];
}

/**
 * Makes the agent.
 *
 * @param replies - What the model says, in order.
 * @param shop - What of the shop is different.
 * @param sessions - What an earlier process left.
 */
export function scene(replies: Script, shop: Partial<Shop> = {}, sessions: SessionStore = inProcessSessionStore()): Scene {
  const llm = scriptedLLM(replies);
  // Ids of a later process are not to be those of an earlier one.
  const runtime = virtualRuntime({ idPrefix: `${(processes += 1)}_` });
  const refunds: string[] = [];
  const works: Shop = { find: async () => 'lost in the mail', refund: async (order) => void refunds.push(order) };
  return { desk: createDesk({ llm, shop: { ...works, ...shop }, runtime, sessions }), llm, runtime, sessions, refunds };
}

let processes = 0;

/** A shop that never answers. */
export function never(): Promise<never> {
  return new Promise(() => {});
}

/** What a person says who agrees to all that is pending. */
export function allowAll(session: Session): { readonly decisions: readonly ToolCallDecision[] } {
  return { decisions: session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' })) };
}

/** What the next process finds in session `chat` when this one dies while the approved call of the scene runs. */
export async function afterCrash({ desk, runtime, sessions }: Scene): Promise<SessionStore> {
  const session = await desk.openSession({ sessionId: 'chat' });
  await finishTurn(session.run('Pay A1 back.'), runtime);
  session.resume(allowAll(session));
  await runtime.flush();
  // A copy of what is recorded by now: nothing that the dead process does later gets into it.
  const { header, events } = await sessions.read('chat');
  const found = inProcessSessionStore();
  await (await found.create({ ...header, events })).close();
  return found;
}
