/**
 * Event dispatcher: the one path of events out of the loop.
 *
 * - A recorded event is awaited by the recorder, then published live. A failure of the recorder is the loop's business.
 * - A listener, fast or slow, that throws or rejects changes nothing.
 */
import type { DispatchEvent, LoopEvent, RecordedEvent } from './events.ts';

/** Options of {@link createEventDispatcher}. */
export interface EventDispatcherOptions {
  /** Makes a recorded event durable; awaited. A rejection ends the turn. @defaultValue nothing is recorded */
  readonly record?: ((event: RecordedEvent) => Promise<void> | void) | undefined;
  /** Shows an event to whoever watches; never awaited. @defaultValue nobody watches */
  readonly emit?: ((event: LoopEvent) => unknown) | undefined;
  /** Told of each failure of `emit`, with the event; may fail itself without consequence. @defaultValue failures are dropped */
  readonly onListenerError?: ((error: unknown, event: LoopEvent) => void) | undefined;
}

/**
 * Makes the `dispatchEvent` of a turn.
 *
 * A recorded event goes to `record` and, once that is done, to `emit`. A live event goes to `emit` only, and so does an
 * event of a sub-agent, which is recorded in the sub-agent's own transcript.
 */
export function createEventDispatcher(options: EventDispatcherOptions): DispatchEvent {
  assertOptions(options);
  const { record, emit, onListenerError } = options;

  const fail = (error: unknown, event: LoopEvent): void => {
    try {
      onListenerError?.(error, event);
    } catch {
      // A diagnostics callback that fails has nobody left to tell.
    }
  };
  const publish = (event: LoopEvent): void => {
    if (emit === undefined) return;
    try {
      const returned = emit(event);
      if (isThenable(returned)) {
        returned.then(undefined, (error: unknown) => {
          fail(error, event);
        });
      }
    } catch (error) {
      fail(error, event);
    }
  };

  return (event: LoopEvent): Promise<void> | void => {
    if (record === undefined || !isRecordedEvent(event)) {
      publish(event);
      return;
    }
    const recorded = record(event);
    if (!isThenable(recorded)) {
      publish(event);
      return;
    }
    return recorded.then(() => {
      publish(event);
    });
  };
}

function assertOptions(options: unknown): void {
  const isGiven = typeof options === 'object' && options !== null;
  const members: Record<string, unknown> = isGiven ? { ...options } : {};
  const isValid = ['record', 'emit', 'onListenerError'].every((name) => members[name] === undefined || typeof members[name] === 'function');
  if (isGiven && isValid) return;
  throw new TypeError('createEventDispatcher takes functions: createEventDispatcher({ record: transcript.record, emit: (event) => … }).');
}

const LIVE_TYPES: ReadonlySet<string> = new Set<LoopEvent['type']>([
  'text.delta',
  'thinking.delta',
  'tool.call.delta',
  'tool.progress',
  'step.retrying',
  'turn.interrupted',
  'notice',
]);

/** True for events that are to be recorded: not the live ones, and nothing that belongs to a sub-agent. */
export function isRecordedEvent(event: LoopEvent): event is RecordedEvent {
  return !LIVE_TYPES.has(event.type) && !('agentPath' in event && event.agentPath !== undefined);
}

/** True for anything that can be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> & Promise<void> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
