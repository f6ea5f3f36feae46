/**
 * Typed events of turns for any number of listeners. Needs the package `eventemitter3`.
 *
 * @module
 */
import { EventEmitter } from 'eventemitter3';
import { isThenable } from '../core/event-dispatcher.ts';
import type { LoopEvent } from '../core/events.ts';

/** Name under which a listener gets every event. No event has it as its type. */
export type AnyEventType = 'event';

/** Anything that listeners can tell by its type. */
export interface TypedEvent {
  /** What it is, such as `text.delta`; never `event`. */
  readonly type: string;
}

/** The event that a listener of a type gets: every event of that type, or all for `'event'`. */
export type EventOf<Event extends TypedEvent, Type extends string> = Type extends AnyEventType
  ? Event
  : Extract<Event, Record<'type', Type>>;

/**
 * Observes events. Called once per event, synchronously, in order of the events; may be async. What it returns or throws
 * changes nothing for the turn or for other listeners.
 */
export type EventListener<Event> = (event: Event) => unknown;

/** Options of {@link createEmitter}. */
export interface EmitterOptions<Event> {
  /**
   * Told of each failure of a listener, thrown or rejected, with the event; may fail itself without consequence.
   *
   * @defaultValue failures are dropped
   */
  readonly onListenerError?: ((error: unknown, event: Event) => void) | undefined;
}

/** Hands events to listeners by type. */
export interface Emitter<Event extends TypedEvent = LoopEvent> {
  /**
   * Hands an event to the listeners of its type, then to those of `'event'`. Never throws. Needs no `this`: pass it to
   * `createEventDispatcher` as it is.
   */
  emit(event: Event): void;
  /**
   * Adds a listener. A listener added twice is called twice. Events of sub-agents come to the same listeners, with their
   * `agentPath`.
   *
   * @param type - Type of the events, or `'event'` for all.
   * @param listener - Called for each.
   * @returns Removes it: it is not called again, not even for the event that is being handed out. May be called twice.
   */
  on<Type extends Event['type'] | AnyEventType>(type: Type, listener: EventListener<EventOf<Event, Type>>): () => void;
  /** As {@link Emitter.on}, for the next such event only. */
  once<Type extends Event['type'] | AnyEventType>(type: Type, listener: EventListener<EventOf<Event, Type>>): () => void;
}

/**
 * Makes an emitter of turn events, or of any union with a `type`: a host may send its own events through the same one.
 *
 * @example
 * ```ts
 * const emitter = createEmitter();
 * emitter.on('text.delta', ({ text }) => process.stdout.write(text));
 * const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: emitter.emit });
 * ```
 */
export function createEmitter<Event extends TypedEvent = LoopEvent>(
  // What events there are is said by the caller, never guessed from a callback.
  options: EmitterOptions<NoInfer<Event>> = {},
): Emitter<Event> {
  const listeners = new EventEmitter<string>();

  const fail = (error: unknown, event: Event): void => {
    try {
      options.onListenerError?.(error, event);
    } catch {
      // A diagnostics callback that fails has nobody left to tell.
    }
  };

  const add = (type: string, listener: EventListener<Event>, isOnce: boolean): (() => void) => {
    let isActive = true;
    const remove = (): void => {
      isActive = false;
      listeners.off(type, call);
    };
    // eventemitter3 stops at a listener that throws, and goes on calling one that was removed meanwhile.
    const call = (event: Event): void => {
      if (!isActive) return;
      if (isOnce) remove();
      try {
        const returned = listener(event);
        if (isThenable(returned)) {
          returned.then(undefined, (error: unknown) => {
            fail(error, event);
          });
        }
      } catch (error) {
        fail(error, event);
      }
    };
    listeners.on(type, call);
    return remove;
  };

  return {
    emit: (event) => {
      listeners.emit(event.type, event);
      listeners.emit(ANY, event);
    },
    // A listener of a type is called with events of that type only: that is what `emit` sees to.
    on: (type, listener) => add(type, listener as EventListener<Event>, false),
    once: (type, listener) => add(type, listener as EventListener<Event>, true),
  };
}

const ANY: AnyEventType = 'event';
