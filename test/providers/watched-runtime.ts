/** What a request must not leave behind, counted. */
import type { Runtime } from 'turnloop';

/** A signal and a runtime, and how many listeners and timers are left on them. */
export function watched(inner: Runtime): { controller: AbortController; runtime: Runtime; left: () => number } {
  const controller = new AbortController();
  let left = 0;
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  const listeners = new Set<unknown>();
  signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
    listeners.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (type: string, listener: EventListener) => {
    listeners.delete(listener);
    remove(type, listener);
  };
  const runtime: Runtime = {
    ...inner,
    setTimer(delayMs, callback) {
      left += 1;
      let isOpen = true;
      const close = (): void => {
        if (isOpen) left -= 1;
        isOpen = false;
      };
      const cancel = inner.setTimer(delayMs, () => {
        close();
        callback();
      });
      return () => {
        close();
        cancel();
      };
    },
  };
  return { controller, runtime, left: () => left + listeners.size };
}

/** The scope of a request made on this runtime. */
export function scope(runtime: Runtime): { turnId: string; step: number; stepId: string; runtime: Runtime; notify: () => void } {
  return { turnId: 't', step: 1, stepId: 's', runtime, notify: () => {} };
}
