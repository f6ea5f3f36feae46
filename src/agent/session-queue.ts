/**
 * Session queue: inputs that wait for their turn.
 *
 * - What is queued is in the log: it is still queued after a crash, until a turn has it or it is taken back.
 * - First in, first out; each is delivered once, by a turn of its own or by steering, or taken back.
 * - It is delivered once its message is recorded: a turn that ended before that leaves it queued.
 * - Nothing is started here: the session asks for what is next.
 */
import type { UserMessage } from '../core/message.ts';
import type { Turn } from './turn.ts';

/** An input that waits for its turn. */
export interface QueuedInput<Output = unknown> {
  /** The input; its id names it. */
  readonly message: UserMessage;
  /**
   * The turn that has it, once that begins; with `followUps: 'all'` the same for all that waited. Undefined if it was taken
   * back, went into a running turn as steering, or the session was closed before. Does not settle while the queue rests: behind a
   * turn that failed, was aborted, stopped or suspended it waits for the next `run`, `runQueued` or `followUp`.
   */
  readonly turn: Promise<Turn<Output> | undefined>;
  /** Takes it back. @returns False if it is not queued any more, or on its way into a turn. Resolves once that is durable. */
  cancel(): Promise<boolean>;
}

/** What a queue has to ask of its session. */
export interface QueueHost {
  /** Makes durable that an input is taken back. */
  remove(messageId: string): Promise<void>;
}

interface Entry<Output> {
  readonly input: QueuedInput<Output>;
  readonly settle: (turn: Turn<Output> | undefined) => void;
  /** Where it is going: taken back, into the running turn, or into the turn that was started with it. */
  leaves: 'back' | 'steered' | 'started' | undefined;
  /** Settles once it is durable that it was taken back, or is not. */
  takenBack?: Promise<void>;
}

/** The inputs that wait. */
export class SessionQueue<Output> {
  readonly #entries = new Map<string, Entry<Output>>();
  readonly #host: QueueHost;

  constructor(host: QueueHost) {
    this.#host = host;
  }

  /** All that wait, oldest first. */
  get inputs(): readonly QueuedInput<Output>[] {
    return [...this.#waiting()].map(({ input }) => input);
  }

  /** The input of this id, if it is queued. */
  get(messageId: string): QueuedInput<Output> | undefined {
    return this.#entries.get(messageId)?.input;
  }

  /** Resolves once no input of this id is on its way back. */
  async settled(messageId: string): Promise<void> {
    const entry = this.#entries.get(messageId);
    if (entry?.leaves === 'back') await entry.takenBack?.catch(() => undefined);
  }

  /** Puts an input at the end, unless it is queued already. It is durable. */
  add(message: UserMessage): QueuedInput<Output> {
    const known = this.get(message.id);
    if (known !== undefined) return known;
    let settle: Entry<Output>['settle'] = () => undefined;
    const turn = new Promise<Turn<Output> | undefined>((resolve) => {
      settle = resolve;
    });
    const input: QueuedInput<Output> = { message, turn, cancel: () => this.#cancel(message.id) };
    this.#entries.set(message.id, { input, settle, leaves: undefined });
    return input;
  }

  /** The messages that go first. @param most - At most so many. */
  next(most: number): readonly UserMessage[] {
    return [...this.#waiting()].slice(0, most).map(({ input }) => input.message);
  }

  /** A turn was started with them. */
  started(messages: readonly UserMessage[], turn: Turn<Output>): void {
    for (const { id } of messages) {
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      entry.leaves = 'started';
      entry.settle(turn);
    }
  }

  /** A message is recorded: whoever gave it to a turn, it waits no more. */
  delivered(messageId: string): void {
    this.#leave(messageId);
  }

  /** The turn is over: what it was started with and did not take waits again. */
  putBack(): void {
    for (const entry of this.#entries.values()) if (entry.leaves === 'started') entry.leaves = undefined;
  }

  /** Puts each of them into a running turn, in order; what it did not take stays. @returns How many it took. */
  async steerInto(steer: (message: UserMessage) => Promise<'delivered' | 'undelivered'>): Promise<number> {
    const entries = [...this.#waiting()];
    for (const entry of entries) entry.leaves = 'steered';
    const outcomes = await Promise.all(
      entries.map(async (entry) => {
        try {
          return await steer(entry.input.message);
        } finally {
          entry.leaves = undefined;
        }
      }),
    );
    return outcomes.filter((outcome) => outcome === 'delivered').length;
  }

  /** Nothing of it is started any more. */
  close(): void {
    for (const id of this.#entries.keys()) this.#leave(id);
  }

  async #cancel(id: string): Promise<boolean> {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.leaves !== undefined) return false;
    entry.leaves = 'back';
    entry.takenBack = this.#host.remove(id);
    try {
      await entry.takenBack;
    } catch (error) {
      entry.leaves = undefined;
      throw error;
    }
    this.#leave(id);
    return true;
  }

  #leave(id: string): void {
    this.#entries.get(id)?.settle(undefined);
    this.#entries.delete(id);
  }

  *#waiting(): Iterable<Entry<Output>> {
    for (const entry of this.#entries.values()) if (entry.leaves === undefined) yield entry;
  }
}
