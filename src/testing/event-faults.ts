/**
 * Event faults: listeners and recorders that fail at a chosen event, and listeners that abort there.
 *
 * A listener observes and must not be able to change a turn; a recorder is awaited, and its failure ends the turn.
 * Events are counted from 1, each fault by itself.
 */
import type { LoopEvent, RecordedEvent } from '../core/events.ts';
import type { LoopEventType } from './record-events.ts';

/** Which event a fault waits for: the n-th it sees (1-based), the first of a type, or the first that a function likes. */
export type EventMoment = number | LoopEventType | ((event: LoopEvent) => boolean);

/** How something goes wrong: by a synchronous throw, by a rejection, or by never coming back. */
export type FaultMode = 'throws' | 'rejects' | 'hangs';

/** A listener that also keeps what it saw. */
export interface TestListener {
  (event: LoopEvent): Promise<void> | void;
  /** Every event it was called with. */
  readonly events: readonly LoopEvent[];
}

/** Options of {@link faultyListener}. */
export interface FaultyListenerOptions {
  /** The only event that it fails on. @defaultValue every event */
  readonly at?: EventMoment | undefined;
  /** What it throws or rejects with. @defaultValue an error saying `listener failed` */
  readonly error?: unknown;
}

/** A listener that fails, to prove that nothing changes. Hand it over as `emit`. */
export function faultyListener(mode: FaultMode, options: FaultyListenerOptions = {}): TestListener {
  const events: LoopEvent[] = [];
  const isTime = options.at === undefined ? () => true : momentOf(options.at);
  const listener = (event: LoopEvent): Promise<void> | void => {
    events.push(event);
    return isTime(event) ? fail(mode, options.error ?? new Error('listener failed')) : undefined;
  };
  return Object.assign(listener, { events });
}

/** Anything that can be aborted: an `AbortController` or a turn control. */
export interface Abortable {
  /** Aborts with a reason. */
  abort(reason?: unknown): void;
}

/**
 * A listener that aborts at a chosen event.
 *
 * @param target - What to abort.
 * @param at - When; the abort happens before the listener returns.
 * @param reason - @defaultValue none, which a controller makes an `AbortError`
 */
export function abortAt(target: Abortable, at: EventMoment, reason?: unknown): TestListener {
  const events: LoopEvent[] = [];
  const isTime = momentOf(at);
  const listener = (event: LoopEvent): void => {
    events.push(event);
    if (isTime(event)) target.abort(reason);
  };
  return Object.assign(listener, { events });
}

/** A recorder that keeps events and also says how many it was handed. */
export interface TestRecorder {
  (event: RecordedEvent): Promise<void> | void;
  /** What is durable, in order. */
  readonly events: readonly RecordedEvent[];
  /** How many events it was handed, lost ones included. */
  readonly seenCount: number;
}

/** Options of the faulty recorders. */
export interface RecorderOptions {
  /** The event at which it goes wrong; every later one goes wrong too. */
  readonly at: EventMoment;
  /** Where good events go beside `events`, such as `transcript.record`. */
  readonly record?: ((event: RecordedEvent) => Promise<void> | void) | undefined;
}

/** Options of {@link failingRecorder}. */
export interface FailingRecorderOptions extends RecorderOptions {
  /** @defaultValue `'rejects'` */
  readonly mode?: Exclude<FaultMode, 'hangs'> | undefined;
  /** Fails at this event alone, and keeps later ones. @defaultValue false */
  readonly once?: boolean | undefined;
  /** @defaultValue an error saying `recorder failed` */
  readonly error?: unknown;
}

/** A recorder that fails from a chosen event on: the disk is full. The event it fails at is not kept. */
export function failingRecorder(options: FailingRecorderOptions): TestRecorder {
  const error = options.error ?? new Error('recorder failed');
  return createRecorder(options, () => fail(options.mode ?? 'rejects', error));
}

/** A recorder that never comes back from a chosen event on. That event is not kept. */
export function hangingRecorder(options: RecorderOptions): TestRecorder {
  return createRecorder(options, () => fail('hangs', undefined));
}

/** A recorder whose process dies. Made by {@link crashingRecorder}. */
export interface CrashingRecorder extends TestRecorder {
  /** Resolves at the crash. */
  readonly crashed: Promise<void>;
}

/** Options of {@link crashingRecorder}. */
export interface CrashingRecorderOptions extends RecorderOptions {
  /**
   * What the crash looks like from inside. `freezes`: no record call comes back, so nothing that waits for one goes on,
   * as in a process that died; wait for `crashed` and resume from `events`. `loses`: the turn runs on to its end, and
   * its events are lost, as with a disk that lies.
   *
   * @defaultValue `'freezes'`
   */
  readonly mode?: 'freezes' | 'loses' | undefined;
}

/** A recorder whose process dies right after a chosen event became durable: that event is kept, later ones are lost. */
export function crashingRecorder(options: CrashingRecorderOptions): CrashingRecorder {
  let onCrash = (): void => undefined;
  const crashed = new Promise<void>((resolve) => {
    onCrash = resolve;
  });
  let isAlive = true;
  const recorder = createRecorder(options, async (event, keep) => {
    const isLast = isAlive;
    isAlive = false;
    if (isLast) {
      await keep(event);
      onCrash();
    }
    if (options.mode !== 'loses') await fail('hangs', undefined);
  });
  return Object.assign(recorder, { crashed });
}

type Keep = (event: RecordedEvent) => Promise<void> | void;

function createRecorder(
  options: RecorderOptions & { readonly once?: boolean | undefined },
  goWrong: (event: RecordedEvent, keep: Keep) => Promise<void> | void,
): TestRecorder {
  const events: RecordedEvent[] = [];
  const isTime = momentOf(options.at);
  let seenCount = 0;
  let broken = false;
  const keep: Keep = (event) => {
    events.push(event);
    return options.record?.(event);
  };
  const recorder = (event: RecordedEvent): Promise<void> | void => {
    seenCount += 1;
    const now = isTime(event);
    if (now || broken) {
      broken = options.once !== true;
      return goWrong(event, keep);
    }
    return keep(event);
  };
  return Object.defineProperties(recorder, {
    events: { value: events, enumerable: true },
    seenCount: { get: () => seenCount, enumerable: true },
  }) as TestRecorder; // `defineProperties` has no type for what it adds.
}

/** True once: at the event that is meant. */
function momentOf(at: EventMoment): (event: LoopEvent) => boolean {
  let count = 0;
  let over = false;
  return (event) => {
    count += 1;
    const isTime = typeof at === 'number' ? count === at : typeof at === 'string' ? event.type === at : at(event);
    if (over || !isTime) return false;
    over = true;
    return true;
  };
}

function fail(mode: FaultMode, error: unknown): Promise<void> {
  switch (mode) {
    case 'throws':
      throw error;
    case 'rejects':
      return Promise.reject(error);
    case 'hangs':
      return new Promise(() => undefined);
  }
}
