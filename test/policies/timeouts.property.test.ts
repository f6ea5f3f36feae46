/** Laws of withTimeouts: the first silence that is too long ends a request, at its very end, and nothing else does; also if the clock is set back. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { type LLM, type LLMResponse, NO_USAGE, sleep } from 'turnloop';
import { withTimeouts } from 'turnloop/policies';
import { virtualRuntime } from 'turnloop/testing';
import { law } from '../properties/law.ts';
import { startRequest } from './decorated.ts';

// Fragments come at odd milliseconds and limits end at even ones: nothing depends on which of two timers fires first.
const even = (max: number): fc.Arbitrary<number> => fc.integer({ min: 1, max: max / 2 }).map((half) => 2 * half);
const scenario = fc.record({
  firstTokenMs: fc.oneof(even(80), fc.constant(Infinity)),
  betweenTokensMs: fc.oneof(even(80).map((ms) => ms - 1), fc.constant(Infinity)),
  totalMs: fc.oneof(even(300), fc.constant(Infinity)),
  /** Waits before each delta, and before the end. */
  gaps: fc.tuple(even(90), fc.array(even(90), { maxLength: 11 })).map(([first, others]) => [first - 1, ...others]),
  isDeaf: fc.boolean(),
});

/** When a request of these silences is out of time; undefined if it never is. */
function timesOutAt({ firstTokenMs, betweenTokensMs, totalMs, gaps }: { readonly firstTokenMs: number; readonly betweenTokensMs: number; readonly totalMs: number; readonly gaps: readonly number[] }): number | undefined {
  let now = 0;
  for (const [index, gap] of gaps.entries()) {
    const end = Math.min(now + (index === 0 ? firstTokenMs : betweenTokensMs), totalMs);
    if (now + gap > end) return end;
    now += gap;
  }
  return undefined;
}

interface Ended {
  readonly outcome: unknown;
  readonly settledAt: number | undefined;
  readonly listenerCount: number;
  readonly pendingTimers: number;
}

/** Asks a model that is silent so. @param setBack - When the clock is set back: by a minute each time. */
async function play(given: typeof scenario extends fc.Arbitrary<infer Scenario> ? Scenario : never, setBack: readonly number[] = []): Promise<Ended> {
  const { gaps, isDeaf, firstTokenMs, betweenTokensMs, totalMs } = given;
  const runtime = virtualRuntime({ start: 0 });
  let behind = 0;
  for (const at of setBack) {
    runtime.setTimer(at, () => {
      behind += 60_000;
    });
  }
  const llm: LLM = {
    provider: 'p',
    modelId: 'm',
    systemPrompt: '',
    chat: async ({ onDelta, signal }): Promise<LLMResponse> => {
      for (const [index, gap] of gaps.entries()) {
        await sleep(gap, { runtime, signal: isDeaf ? undefined : signal });
        if (index < gaps.length - 1) onDelta?.({ type: 'text', text: 'x' });
      }
      return { content: [{ type: 'text', text: 'done' }], stopReason: 'end_turn', usage: NO_USAGE };
    },
  };
  const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime: { ...runtime, now: () => runtime.now() - behind }, notify: () => undefined };
  const asking = startRequest(withTimeouts(llm, { firstTokenMs, betweenTokensMs, totalMs }), runtime, { scope });
  let settledAt: number | undefined;
  const settle = (): void => {
    settledAt = runtime.now();
  };
  asking.response.then(settle, settle);

  await runtime.runUntilIdle();

  const { outcome, controller } = asking;
  return { outcome, settledAt, listenerCount: controller.listenerCount, pendingTimers: runtime.pendingTimers };
}

law('B8 ends a request at the end of the first silence that is too long, and no other', scenario, async (given) => {
  const { outcome, settledAt, listenerCount, pendingTimers } = await play(given);

  const expected = timesOutAt(given);
  if (expected === undefined) expect(outcome).toBe('done');
  else expect([settledAt, outcome]).toMatchObject([expected, { kind: 'timeout' }]);
  expect([listenerCount, pendingTimers]).toStrictEqual([0, 0]);
});

const setBack = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 6 });

law('B8 ends it no sooner, and no later than a silence that began anew, however often the clock is set back', fc.tuple(scenario, setBack), async ([given, times]) => {
  const { outcome, settledAt, listenerCount, pendingTimers } = await play(given, times);

  const soonest = timesOutAt(given) ?? Infinity;
  const latest = timesOutAt({ ...given, betweenTokensMs: 2 * given.betweenTokensMs }) ?? Infinity;
  const isTimeout = outcome !== 'done';
  if (isTimeout) expect(outcome).toMatchObject({ kind: 'timeout' });
  if (isTimeout) expect(settledAt).toBeGreaterThanOrEqual(soonest);
  if (soonest === Infinity) expect(outcome).toBe('done');
  if (latest < Infinity) expect([isTimeout, Number(settledAt) <= latest]).toStrictEqual([true, true]);
  expect([listenerCount, pendingTimers]).toStrictEqual([0, 0]);
});
