// A watched controller counts what listens to its signal: listeners that are removed, fire once, or end with a signal.
import { watchedController } from 'turnloop/testing';
import { expect, it } from 'vitest';

it('counts each listener until it is removed', () => {
  const controller = watchedController();
  const [first, second] = [() => {}, () => {}];

  controller.signal.addEventListener('abort', first);
  controller.signal.addEventListener('abort', first);
  controller.signal.addEventListener('abort', second);
  const before = controller.listenerCount;
  controller.signal.removeEventListener('abort', first);

  expect([before, controller.listenerCount]).toStrictEqual([2, 1]);
});

it('counts a listener that fires once no longer after the abort', () => {
  const controller = watchedController();
  const fired: string[] = [];
  controller.signal.addEventListener('abort', () => fired.push('once'), { once: true });
  controller.signal.addEventListener('abort', () => fired.push('always'));

  controller.abort('reason');

  expect(fired).toStrictEqual(['once', 'always']);
  expect(controller.listenerCount).toBe(1);
  expect(controller.signal.reason).toBe('reason');
});

it('counts a listener no longer once its own signal aborts', () => {
  const controller = watchedController();
  const own = new AbortController();
  controller.signal.addEventListener('abort', () => {}, { signal: own.signal });

  own.abort();

  expect(controller.listenerCount).toBe(0);
});
