/**
 * Session state: what the events of a session come to, beside the snapshot it began from.
 *
 * - Folded from events alone, so that it is the same after a crash as it was before.
 * - As large as the history: events are not kept.
 */
import { isTurnloopError, messageOf, TurnloopError } from '../core/errors.ts';
import { isRecord, type JsonObject } from '../core/json.ts';
import type { UserMessage } from '../core/message.ts';
import { createTranscript, type Transcript } from '../core/transcript.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { SESSION_VERSION, SessionError, type SessionContent, type SessionEvent, type SessionSnapshot } from '../sessions/session-store.ts';

/** What a snapshot says beside the state itself. */
export interface SnapshotOptions {
  readonly sessionId: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** What was learned and is in no event. */
  readonly learned: JsonObject;
}

/** A history that was valid when it was kept needs no repair. */
function assertWhole({ transcript: { messages } }: SessionSnapshot, transcript: Transcript): void {
  if (transcript.findings().length === 0 && transcript.buildMessages().length === messages.length) return;
  throw new TurnloopError('broken_snapshot', 'The messages of the snapshot are not those of a history.');
}

/** The state of a session. */
export class SessionState {
  /** The conversation. */
  readonly transcript: Transcript;
  /** Turns begun. */
  turns: number;
  /** Steps begun. */
  steps: number;
  /** Tokens spent, over all turns. */
  usage: Usage;
  /** Name of the agent that has the conversation; undefined for the one that the session was opened with. */
  agent: string | undefined;
  /** The same for the step that was begun last: it ends under the agent that began it. */
  stepAgent: string | undefined;
  /** What the snapshot had of things that are in no event. */
  readonly learned: JsonObject;
  /** How many events there are in the log. */
  events: number;
  /** How many of them no snapshot covers. */
  behindSnapshot = 0;
  /** Queued inputs, oldest first, by the ids of their messages. */
  readonly #queue: Map<string, UserMessage>;

  /**
   * @throws {@link index.TurnloopError | TurnloopError} `broken_snapshot`: the events of the whole log say all that it was to
   * say; `unsupported_version`.
   * @throws {@link sessions.SessionError | SessionError} `broken_log`.
   */
  constructor({ snapshot, events }: Pick<SessionContent, 'snapshot' | 'events'>) {
    this.turns = snapshot?.turns ?? 0;
    this.steps = snapshot?.steps ?? 0;
    this.usage = snapshot?.usage ?? NO_USAGE;
    this.agent = snapshot?.agent;
    this.learned = snapshot?.state ?? {};
    this.events = snapshot?.events ?? 0;
    this.#queue = new Map((snapshot?.queue ?? []).map((message) => [message.id, message]));
    this.transcript = createTranscript([], { keepEvents: false, ...(snapshot !== undefined && { snapshot: snapshot.transcript }) });
    if (snapshot !== undefined) assertWhole(snapshot, this.transcript);
    for (const event of events) this.#recordKept(event);
  }

  /** Takes an event that comes from a store. */
  #recordKept(event: SessionEvent): void {
    try {
      this.record(event);
    } catch (error) {
      if (isTurnloopError(error)) throw error;
      throw new SessionError('broken_log', `In the log of the session event ${this.events} of type ${event.type} cannot be read: ${messageOf(error)}. Nothing was changed.`, { cause: error });
    }
  }

  /** Inputs that wait for their turn, oldest first. */
  get queue(): readonly UserMessage[] {
    return [...this.#queue.values()];
  }

  /** Takes an event that is durable. */
  record(event: SessionEvent): void {
    this.events += 1;
    this.behindSnapshot += 1;
    switch (event.type) {
      case 'input.queued':
        this.#queue.set(event.message.id, event.message);
        return;
      case 'input.removed':
        this.#queue.delete(event.messageId);
        return;
      case 'handoff':
        this.agent = event.to;
        return;
      case 'turn.begin':
        this.turns += 1;
        break;
      case 'step.begin':
        this.steps += 1;
        this.stepAgent = this.agent;
        break;
      case 'usage':
        this.usage = addUsage(this.usage, event.usage);
        break;
      case 'message':
        // Delivered: by its own turn, or by steering.
        this.#queue.delete(event.message.id);
        break;
      default:
    }
    this.transcript.record(event);
  }

  /** What a later process may begin from; undefined while a turn is open. */
  snapshot({ sessionId, at, learned }: SnapshotOptions): SessionSnapshot | undefined {
    const transcript = this.transcript.snapshot();
    if (transcript === undefined) return undefined;
    const { events, turns, steps, usage, agent, queue } = this;
    return {
      version: SESSION_VERSION,
      sessionId,
      at,
      events,
      transcript,
      turns,
      steps,
      usage,
      queue,
      ...(agent !== undefined && { agent }),
      state: learned,
    };
  }

  /** What was learned under a name, if it is an object. */
  learnedOf(name: string): JsonObject | undefined {
    const learned = Object.hasOwn(this.learned, name) ? this.learned[name] : undefined;
    return isRecord(learned) ? (learned) : undefined;
  }
}
