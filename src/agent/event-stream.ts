/**
 * Event stream: the events of one turn, for whoever iterates over them.
 *
 * - Recorded events are never missed: who comes late gets first what was recorded so far, then everything.
 * - Live events are best effort: they go to those who iterate at that moment. Nobody slows the turn down.
 * - Nothing is kept once the turn is over and the last reader has read it.
 */

/** Events of a turn on their way to their readers. */
export class EventStream<Event> {
  readonly #isRecorded: (event: Event) => boolean;
  readonly #recorded: Event[] = [];
  readonly #readers = new Set<Reader<Event>>();
  #end: { readonly error?: unknown } | undefined;

  /** @param isRecorded - Which events a late reader still gets. */
  constructor(isRecorded: (event: Event) => boolean) {
    this.#isRecorded = isRecorded;
  }

  /** Hands an event to every reader. */
  push(event: Event): void {
    if (this.#end !== undefined) return;
    if (this.#isRecorded(event)) this.#recorded.push(event);
    for (const reader of this.#readers) reader.push(event);
  }

  /** The turn is over. @param failure - What readers are to throw, if it ended by misuse. */
  end(failure?: { readonly error: unknown }): void {
    this.#end ??= failure ?? {};
    for (const reader of this.#readers) reader.end(this.#end);
    this.#readers.clear();
  }

  /** Begins to read. Leaving the loop early only ends the reading. */
  read(): AsyncIterableIterator<Event> {
    const reader = new Reader<Event>([...this.#recorded], () => this.#readers.delete(reader));
    if (this.#end === undefined) this.#readers.add(reader);
    else reader.end(this.#end);
    return reader;
  }
}

class Reader<Event> implements AsyncIterableIterator<Event> {
  #events: Event[];
  #position = 0;
  readonly #leave: () => void;
  #end: { readonly error?: unknown } | undefined;
  /** Calls of `next` that wait for an event. */
  readonly #waiting: { readonly resolve: (result: IteratorResult<Event>) => void; readonly reject: (error: unknown) => void }[] = [];

  constructor(events: Event[], leave: () => void) {
    this.#events = events;
    this.#leave = leave;
  }

  push(event: Event): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#events.push(event);
    else waiting.resolve({ done: false, value: event });
  }

  end(end: { readonly error?: unknown }): void {
    this.#end = end;
    for (const waiting of this.#waiting.splice(0)) {
      this.#finish().then(waiting.resolve, waiting.reject);
    }
  }

  next(): Promise<IteratorResult<Event>> {
    const event = this.#events[this.#position];
    if (event !== undefined) {
      this.#position += 1;
      this.#forget();
      return Promise.resolve({ done: false, value: event });
    }
    if (this.#end !== undefined) return this.#finish();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  return(): Promise<IteratorResult<Event>> {
    this.#leave();
    this.#events = [];
    this.#position = 0;
    this.end({});
    return this.#finish();
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Event> {
    return this;
  }

  /** The end, or what went wrong: thrown once. */
  async #finish(): Promise<IteratorResult<Event>> {
    const { error } = this.#end ?? {};
    this.#end = {};
    if (error !== undefined) throw error as Error;
    return { done: true, value: undefined };
  }

  /** Lets go of what was read: now and then, since each time costs as much as what is left. */
  #forget(): void {
    if (this.#position < 1024 || this.#position * 2 < this.#events.length) return;
    this.#events = this.#events.slice(this.#position);
    this.#position = 0;
  }
}
