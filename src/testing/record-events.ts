/** Records events: a listener that keeps what it sees, and answers what a test asks about it. */
import { isRecordedEvent } from '../core/event-dispatcher.ts';
import type { DispatchEvent, LiveEvent, LoopEvent, RecordedEvent } from '../core/events.ts';

/** The type word of any event. */
export type LoopEventType = LoopEvent['type'];

/** An event of one type. */
export type LoopEventOf<Type extends LoopEventType> = Extract<RecordedEvent | LiveEvent, Record<'type', Type>>;

/** What a listener or recorder saw. Made by {@link recordEvents}. */
export interface EventRecording {
  /** Takes every event: the `dispatchEvent` of a turn, where nothing else listens. */
  readonly dispatchEvent: DispatchEvent;
  /** Takes every event, for `createEventDispatcher({ emit })`. */
  readonly emit: (event: LoopEvent) => void;
  /** Takes recorded events, for `createEventDispatcher({ record })`. */
  readonly record: (event: RecordedEvent) => void;
  /** What `dispatchEvent` and `emit` saw, in order. */
  readonly events: readonly LoopEvent[];
  /** What `dispatchEvent` and `record` saw of recorded events, in order: a transcript. */
  readonly recorded: readonly RecordedEvent[];
  /** The types of `events`, in order. */
  types(): readonly LoopEventType[];
  /** The events of one type, in order; those of sub-agents too. */
  of<Type extends LoopEventType>(type: Type): readonly LoopEventOf<Type>[];
  /** Forgets everything seen so far. */
  clear(): void;
}

/** Makes a listener that keeps what it sees. */
export function recordEvents(): EventRecording {
  const events: LoopEvent[] = [];
  const recorded: RecordedEvent[] = [];
  return {
    dispatchEvent: (event: LoopEvent) => {
      events.push(event);
      if (isRecordedEvent(event)) recorded.push(event);
    },
    emit: (event) => {
      events.push(event);
    },
    record: (event) => {
      recorded.push(event);
    },
    events,
    recorded,
    types: () => events.map((event) => event.type),
    of: (type) => events.filter((event) => isOfType(event, type)),
    clear: () => {
      events.length = 0;
      recorded.length = 0;
    },
  };
}

/** True for events of one type. */
function isOfType<Type extends LoopEventType>(event: LoopEvent, type: Type): event is LoopEvent & LoopEventOf<Type> {
  return event.type === type;
}
