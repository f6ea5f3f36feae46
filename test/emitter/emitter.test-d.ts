/** Types of createEmitter: what a listener of each type gets, and what does not compile. */
import { describe, expectTypeOf, it } from 'vitest';
import type { EventDispatcherOptions, LoopEvent } from 'turnloop';
import { createEmitter, type Emitter } from 'turnloop/emitter';

describe('createEmitter', () => {
  const emitter = createEmitter();

  it('types the event by the name listened to', () => {
    emitter.on('text.delta', (event) => {
      expectTypeOf(event.text).toEqualTypeOf<string>();
      expectTypeOf(event.attempt).toEqualTypeOf<number>();
    });
    emitter.once('tool.result', (event) => {
      expectTypeOf(event.result.content).toExtend<readonly unknown[]>();
    });
  });

  it("gives every event to a listener of 'event'", () => {
    emitter.on('event', (event) => {
      expectTypeOf(event).toEqualTypeOf<LoopEvent>();
    });
  });

  it('types the events by the type argument alone, whatever the callback takes', () => {
    const onListenerError = (_error: unknown, _event: { readonly type: string }): void => undefined;

    expectTypeOf(createEmitter({ onListenerError })).toEqualTypeOf<Emitter>();
  });

  it('fits a dispatcher as it is', () => {
    expectTypeOf(emitter.emit).toExtend<NonNullable<EventDispatcherOptions['emit']>>();
  });

  it('refuses a name that no event has', () => {
    // @ts-expect-error There is no such event.
    emitter.on('text.delat', () => undefined);
  });

  it('refuses to emit what is no event', () => {
    // @ts-expect-error A text delta has a text.
    emitter.emit({ type: 'text.delta', turnId: 't', at: 0, step: 1, stepId: 's', attempt: 1 });
  });
});
