/**
 * Watched controller: an abort controller that knows how many listeners its signal has, to prove that nothing was left
 * behind on it. Signals that follow it through `AbortSignal.any` are no listeners, and are not counted.
 */

/** An abort controller that counts the listeners of its signal. Made by {@link watchedController}. */
export interface WatchedController extends AbortController {
  /** How many `abort` listeners are on the signal now. */
  readonly listenerCount: number;
}

/** Makes an abort controller that counts the listeners of its signal. */
export function watchedController(): WatchedController {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Map<unknown, { readonly once: boolean }>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);

  // First of all listeners, so that those that fire once are off the list before any of them runs.
  add('abort', () => {
    for (const [listener, { once }] of listeners) if (once) listeners.delete(listener);
  });
  signal.addEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | AddEventListenerOptions,
  ): void => {
    const { once = false, signal: until } = typeof options === 'object' ? options : {};
    if (!listeners.has(listener)) listeners.set(listener, { once });
    until?.addEventListener('abort', () => listeners.delete(listener), { once: true });
    add(type, listener, options);
  };
  signal.removeEventListener = (
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | EventListenerOptions,
  ): void => {
    listeners.delete(listener);
    remove(type, listener, options);
  };
  return Object.defineProperty(controller, 'listenerCount', { get: () => listeners.size }) as WatchedController; // has no type for it
}
