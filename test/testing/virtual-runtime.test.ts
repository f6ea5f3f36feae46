// The virtual clock moves only when told, fires timers in order of time with everything else done in between, and never
// waits for real. Ids count, randomness follows its seed.
import { sleep } from 'turnloop';
import { seededRandom, virtualRuntime } from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

describe('clock and timers', () => {
  it('starts where it is told and stands still', async () => {
    const runtime = virtualRuntime({ start: 1000 });

    await runtime.flush();

    expect(runtime.now()).toBe(1000);
  });

  it('fires timers in order of time, then of setting', async () => {
    const runtime = virtualRuntime();
    const fired: string[] = [];
    for (const [name, delay] of [['c', 20], ['a', 10], ['d', 20], ['b', 10]] as const) {
      runtime.setTimer(delay, () => fired.push(`${name}@${runtime.now()}`));
    }

    await runtime.advance(20);

    expect(fired).toStrictEqual(['a@10', 'b@10', 'c@20', 'd@20']);
  });

  it('fires only what is due and shows the time asked for', async () => {
    const runtime = virtualRuntime();
    const fired: number[] = [];
    runtime.setTimer(10, () => fired.push(10));
    runtime.setTimer(30, () => fired.push(30));

    await runtime.advance(25);

    expect(fired).toStrictEqual([10]);
    expect([runtime.now(), runtime.pendingTimers, runtime.nextTimerAt]).toStrictEqual([25, 1, 30]);
  });

  it('lets promises run between two timers', async () => {
    const runtime = virtualRuntime();
    const seen: string[] = [];
    const chain = async (name: string): Promise<void> => {
      await sleep(10, { runtime });
      for (let hop = 0; hop < 100; hop += 1) await Promise.resolve();
      seen.push(name);
    };
    void chain('first');
    void chain('second');
    runtime.setTimer(10, () => seen.push('timer'));

    await runtime.advance(10);

    expect(seen).toStrictEqual(['first', 'second', 'timer']);
  });

  it('fires timers that a timer sets', async () => {
    const runtime = virtualRuntime();
    const times: number[] = [];
    const tick = (): void => {
      times.push(runtime.now());
      runtime.setTimer(10, tick);
    };
    runtime.setTimer(10, tick);

    await runtime.advance(35);

    expect(times).toStrictEqual([10, 20, 30]);
  });

  it('never fires a cancelled timer or one of infinite delay', async () => {
    const runtime = virtualRuntime();
    const cancels = [5, 5, 5].map((delay) => runtime.setTimer(delay, () => expect.unreachable()));
    runtime.setTimer(Infinity, () => expect.unreachable());

    for (const cancel of cancels.toReversed()) cancel();
    cancels[0]!();
    await runtime.advance(100);

    expect(runtime.pendingTimers).toBe(0);
    expect(runtime.nextTimerAt).toBeUndefined();
  });

  it('cancels the very timer among those due at the same time', async () => {
    const runtime = virtualRuntime();
    const fired: number[] = [];
    const cancels = [0, 1, 2].map((number) => runtime.setTimer(5, () => fired.push(number)));

    cancels[1]!();
    await runtime.runUntilIdle();

    expect(fired).toStrictEqual([0, 2]);
  });

  it('hands on what a timer throws', async () => {
    const runtime = virtualRuntime();
    runtime.setTimer(1, () => {
      throw new Error('in a timer');
    });

    await expect(runtime.advance(1)).rejects.toThrow('in a timer');
  });

  it.each([Infinity, NaN, -1, '5'])('do not go on by %j', async (ms) => {
    await expect(virtualRuntime().advance(ms as number)).rejects.toThrow(/advance: `ms` must be a number of at least 0, not/);
  });

  it('say so when timers keep coming', async () => {
    const runtime = virtualRuntime();
    const again = (): void => void runtime.setTimer(0, again);
    again();

    await expect(runtime.advance(1)).rejects.toThrow('advance: timers keep coming after 100000 of them.');
    await expect(runtime.runUntilIdle()).rejects.toThrow('runUntilIdle: timers keep coming');
  });

  it.each([
    [{ start: 'x' }, /virtualRuntime: `start` must be a number/],
    [{ seeds: 1 }, /virtualRuntime has no option `seeds`; it takes start, seed, idPrefix/],
  ])('are not made with %j', (options, message) => {
    expect(() => virtualRuntime(options as never)).toThrow(message);
  });

  it('counts a negative delay as none', async () => {
    const runtime = virtualRuntime();
    await runtime.advance(10);
    let firedAt = -1;
    runtime.setTimer(-5, () => (firedAt = runtime.now()));

    await runtime.advance(0);

    expect(firedAt).toBe(10);
  });
});

describe('settle and runUntilIdle', () => {
  it('moves the clock until the promise settles, and no further', async () => {
    const runtime = virtualRuntime();
    runtime.setTimer(9000, () => undefined);

    const value = await runtime.settle(sleep(500, { runtime }).then(() => 'slept'));

    expect(value).toBe('slept');
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([500, 1]);
  });

  it('rejects as the promise does', async () => {
    const runtime = virtualRuntime();
    const failure = sleep(5, { runtime }).then(() => Promise.reject(new Error('no')));

    await expect(runtime.settle(failure)).rejects.toThrow('no');
  });

  it('does not move the clock while promises can still settle it', async () => {
    const runtime = virtualRuntime();
    runtime.setTimer(5, () => undefined);
    const long = (async () => {
      for (let hop = 0; hop < 5000; hop += 1) await Promise.resolve();
    })();

    await runtime.settle(long);

    expect(runtime.now()).toBe(0);
  });

  it('says so when the promise cannot settle', async () => {
    const runtime = virtualRuntime();

    await expect(runtime.settle(new Promise(() => {}))).rejects.toThrow('cannot settle');
  });

  it('runs until no timer is left', async () => {
    const runtime = virtualRuntime();
    runtime.setTimer(5, () => runtime.setTimer(7, () => undefined));

    await runtime.runUntilIdle();

    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([12, 0]);
  });

  it('keeps time for two drivers at once', async () => {
    const runtime = virtualRuntime();
    const both = Promise.all([runtime.settle(sleep(30, { runtime })), runtime.advance(10)]);

    await both;

    expect(runtime.now()).toBe(30);
  });
});

describe('ids and randomness', () => {
  it('counts ids by kind', () => {
    const runtime = virtualRuntime();

    const ids = [runtime.createId('call'), runtime.createId('step'), runtime.createId('call')];

    expect(ids).toStrictEqual(['call_1', 'step_1', 'call_2']);
  });

  it('sets ids of a second process apart', () => {
    expect(virtualRuntime({ idPrefix: 'b' }).createId('call')).toBe('call_b1');
  });

  it('repeats its numbers for the same seed', () => {
    const draw = (seed?: number) => {
      const runtime = virtualRuntime({ seed });
      return [runtime.random(), runtime.random(), runtime.random()];
    };

    expect(draw(7)).toStrictEqual(draw(7));
    expect(draw(7)).not.toStrictEqual(draw(8));
    expect(draw()).toStrictEqual(draw(1));
  });

  it('draws numbers from 0 up to but not including 1, evenly', () => {
    const random = seededRandom(42);
    const numbers = Array.from({ length: 10_000 }, random);

    const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    expect(mean).toBeCloseTo(0.5, 1);
  });

  it('refuses what is no time, no promise and no prefix', async () => {
    await expect(virtualRuntime().advance(undefined as never)).rejects.toThrow(/`ms` must be a number/);
    await expect(virtualRuntime().settle(5 as never)).rejects.toThrow(/settle takes a promise, such as that of a turn/);
    expect(() => virtualRuntime({ idPrefix: 5 as never })).toThrow(/`idPrefix` must be a text, not number/);
  });

  it('gives up on a promise that never settles while timers keep coming', { timeout: 60_000 }, async () => {
    const runtime = virtualRuntime();
    const again = (): void => void runtime.setTimer(1, again);
    again();
    await expect(runtime.settle(new Promise(() => undefined))).rejects.toThrow('settle: timers keep coming after 1000000 of them, and the promise does not settle.');
  });
});
