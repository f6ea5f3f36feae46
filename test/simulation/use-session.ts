/** What a host does with a session, life after life: goes on with what is open, decides what waits, and gives each prompt its turn. */
import { textOf, type ToolCallDecision } from 'turnloop';
import type { Agent, Session } from 'turnloop/agent';
import type { SimulatedLife } from 'turnloop/testing/simulation';

/** What a host does. */
export interface HostPlan {
  /** Prompts in their order; each is used once. */
  readonly prompts: readonly string[];
  /** What it decides about a call that waits. */
  readonly decide: (toolCallId: string) => ToolCallDecision;
  /** What it does while a turn runs: queue and steer. */
  readonly meanwhile?: (session: Session) => Promise<void> | void;
}

/** A store may fail again, and a person may have to decide: a few times. */
const ATTEMPTS = 8;

/** Plays the host to the end. */
export async function useSession(life: SimulatedLife, agent: Agent, plan: HostPlan): Promise<void> {
  const session = await again(() => agent.openSession({ sessionId: 's', resumeSessionId: 's', memoryOwners: [{ scope: 'user', scopeId: 'u' }] }));
  session.subscribe(life.listener());
  // Turns of the queue have no signal, and one may be about to start: a host that gives up closes the session.
  const giveUp = (): void => void session.close().catch(() => undefined);
  life.signal.addEventListener('abort', giveUp);
  await finishOpenTurn(life, session, plan);
  for (let prompt = nextPrompt(session, plan); prompt !== undefined && !life.signal.aborted; prompt = nextPrompt(session, plan)) {
    const running = session.run(prompt, { signal: life.signal, denyPending: true });
    await plan.meanwhile?.(session);
    await running.result;
    await session.idle();
    await finishOpenTurn(life, session, plan);
  }
  life.signal.removeEventListener('abort', giveUp);
  // What cannot be let go of is the next owner's to take.
  await session.close().catch(() => undefined);
}

/** A disk that failed is asked once more, as often as a disk may fail. */
async function again<Value>(action: () => Promise<Value>, attempts: number = ATTEMPTS): Promise<Value> {
  try {
    return await action();
  } catch (error) {
    if (attempts <= 1) throw error;
    return again(action, attempts - 1);
  }
}

/** The first prompt that is not in the history. */
function nextPrompt(session: Session, { prompts }: HostPlan): string | undefined {
  const said = new Set(session.messages().map(textOf));
  return prompts.find((prompt) => !said.has(prompt));
}

async function finishOpenTurn(life: SimulatedLife, session: Session, plan: HostPlan): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS && !life.signal.aborted; attempt += 1) {
    if (session.openTurn() === undefined) return;
    const decisions = session.pending().map(({ toolCallId }) => plan.decide(toolCallId));
    await session.resume({ signal: life.signal, decisions }).result;
    await session.idle();
  }
}
