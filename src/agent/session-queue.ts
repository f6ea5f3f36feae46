/**
 * Session queue: inputs that wait for their turn.
 *
 * - What is queued is in the log: it is still queued after a crash, until a turn has it or it is taken back.
 * - First in, first out; each is delivered once, by a turn of its own or by steering, or taken back.
 * - Nothing is started here: the session asks for what is next.
 */
import type { UserMessage } from '../core/message.ts';
import type { Turn } from './turn.ts';

/** An input that waits for its turn. */
export interface QueuedInput<Output = undefined> {
  /** The input; its id names it. */
  readonly message: UserMessage;
  /**
   * The turn that has it, once that begins; with `followUps: 'all'` the same for all that waited. Undefined if it was taken
   * back, went into a running turn as steering, or the session was closed before.
   */
  readonly turn: Promise<Turn<Output> | undefined>;
  /** Takes it back. @returns False if it is not queued any more. Resolves once that is durable. */
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
  /** Being taken back, or on its way into a running turn. */
  isLeaving: boolean;
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

  /** Puts an input at the end. It is durable already. */
  add(message: UserMessage): QueuedInput<Output> {
    let settle: Entry<Output>['settle'] = () => undefined;
    const turn = new Promise<Turn<Output> | undefined>((resolve) => {
      settle = resolve;
    });
    const input: QueuedInput<Output> = { message, turn, cancel: () => this.#cancel(message.id) };
    this.#entries.set(message.id, { input, settle, isLeaving: false });
    return input;
  }

  /** Puts back what a turn that could not be recorded was to have. @param messages - All that the log knows as queued, in order. */
  restore(messages: readonly UserMessage[]): void {
    const known = new Map(this.#entries);
    this.#entries.clear();
    for (const message of messages) {
      const entry = known.get(message.id);
      if (entry === undefined) this.add(message);
      else this.#entries.set(message.id, entry);
      known.delete(message.id);
    }
    // Those that are delivered or taken back this moment have yet to be told.
    for (const [id, entry] of known) this.#entries.set(id, entry);
  }

  /** The messages that go first. @param most - At most so many. */
  next(most: number): readonly UserMessage[] {
    return [...this.#waiting()].slice(0, most).map(({ input }) => input.message);
  }

  /** A turn has them. */
  started(messages: readonly UserMessage[], turn: Turn<Output>): void {
    for (const { id } of messages) this.#leave(id, turn);
  }

  /** Puts each of them into a running turn, in order; what it did not take stays. @returns How many it took. */
  async steerInto(steer: (message: UserMessage) => Promise<'delivered' | 'undelivered'>): Promise<number> {
    const entries = [...this.#waiting()];
    for (const entry of entries) entry.isLeaving = true;
    const outcomes = await Promise.all(entries.map(({ input }) => steer(input.message)));
    entries.forEach((entry, index) => {
      entry.isLeaving = false;
      if (outcomes[index] === 'delivered') this.#leave(entry.input.message.id, undefined);
    });
    return outcomes.filter((outcome) => outcome === 'delivered').length;
  }

  /** Nothing of it is started any more. */
  close(): void {
    for (const id of this.#entries.keys()) this.#leave(id, undefined);
  }

  async #cancel(id: string): Promise<boolean> {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.isLeaving) return false;
    entry.isLeaving = true;
    try {
      await this.#host.remove(id);
    } catch (error) {
      entry.isLeaving = false;
      throw error;
    }
    this.#leave(id, undefined);
    return true;
  }

  #leave(id: string, turn: Turn<Output> | undefined): void {
    this.#entries.get(id)?.settle(turn);
    this.#entries.delete(id);
  }

  *#waiting(): Iterable<Entry<Output>> {
    for (const entry of this.#entries.values()) if (!entry.isLeaving) yield entry;
  }
}
