/**
 * withRateLimit under any traffic: no minute has more than its limit, those who wait go in order and no later than they
 * may, pauses hold, and nothing is left behind.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decorateLLM, type LLMErrorKind, type LLMRequest, sleep, toUsage } from 'turnloop';
import { createRateLimit, withRateLimit } from 'turnloop/policies';
import { scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { type Asking, failure, startRequest } from './decorated.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 300);
const MINUTE = 60_000;

interface Traffic {
  readonly afterMs: number;
  /** Tokens by the estimate. */
  readonly estimate: number;
  /** Tokens as they are told; undefined if they are not. */
  readonly real: number | undefined;
  readonly takesMs: number;
  readonly failure: LLMErrorKind | undefined;
  readonly retryAfterMs: number | undefined;
  readonly abortAfterMs: number | undefined;
}

const times = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 3 * MINUTE }), fc.constantFrom(MINUTE - 1, MINUTE, MINUTE + 1));
const sizes = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 1500 }));
const traffic: fc.Arbitrary<Traffic> = fc.record({
  afterMs: times,
  estimate: sizes,
  real: fc.option(sizes, { nil: undefined }),
  takesMs: times,
  failure: fc.option(fc.constantFrom<LLMErrorKind>('server', 'rate_limit', 'refused'), { nil: undefined, freq: 2 }),
  retryAfterMs: fc.option(times, { nil: undefined }),
  abortAfterMs: fc.option(times, { nil: undefined, freq: 3 }),
});

/** What became of a request. */
interface Sent extends Traffic {
  readonly index: number;
  readonly arrivedAt: number;
  startedAt?: number;
  /** When its real tokens, or that it was not sent, became known. */
  settledAt?: number;
  /** When it left, started or aborted. */
  leftAt?: number;
}

interface Limits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

async function play(limits: Limits, list: readonly Traffic[]) {
  const runtime = virtualRuntime();
  const sent: Sent[] = [];
  const asked: Asking[] = [];
  const order: Sent[] = [];
  const pauses: (readonly [from: number, until: number])[] = [];
  const one = (request: LLMRequest): Sent => sent[Number(request.systemPrompt)]!;
  const llm = decorateLLM(scriptedLLM([]), async (request) => {
    const now = one(request);
    now.startedAt = now.leftAt = runtime.now();
    order.push(now);
    await sleep(now.takesMs, { runtime, signal: request.signal });
    now.settledAt = runtime.now();
    const usage = toUsage({ inputTokens: now.real ?? 0 });
    if (now.failure === undefined) return { content: [{ type: 'text', text: 'ok' }], stopReason: 'end_turn', usage };
    if (now.failure === 'rate_limit' && now.retryAfterMs !== undefined) {
      pauses.push([runtime.now(), runtime.now() + Math.min(now.retryAfterMs, MINUTE)]);
    }
    throw failure(now.failure, { usage, retryAfterMs: now.retryAfterMs });
  });
  const estimator = { estimateRequest: (request: { readonly systemPrompt: string }) => sent[Number(request.systemPrompt)]!.estimate, observe: () => undefined };
  const limit = createRateLimit({ ...limits, estimator });
  const limited = withRateLimit(llm, limit);
  for (const entry of list) {
    await runtime.advance(entry.afterMs / 4);
    const now: Sent = { ...entry, index: sent.length, arrivedAt: runtime.now() };
    sent.push(now);
    const asking = startRequest(limited, runtime, { systemPrompt: String(now.index) });
    asked.push(asking);
    if (entry.abortAfterMs !== undefined) {
      runtime.setTimer(entry.abortAfterMs, () => {
        now.leftAt ??= runtime.now();
        asking.controller.abort();
      });
    }
  }
  await runtime.runUntilIdle();
  return { runtime, limit, sent, asked, order, pauses };
}

/** What a request counts for at a time, at least and at most: in the moment in which it settles either is right. */
function chargeAt({ estimate, real, failure: failed, settledAt = Infinity }: Sent, time: number): readonly [least: number, most: number] {
  const known = failed === 'refused' ? 0 : real === undefined || real === 0 ? estimate : real;
  if (settledAt < time) return [known, known];
  if (settledAt > time) return [estimate, estimate];
  return [Math.min(known, estimate), Math.max(known, estimate)];
}

const counts = (other: Sent, time: number): boolean => !(other.failure === 'refused' && (other.settledAt ?? Infinity) <= time);

it('C10 law: no 60 seconds have more requests or known tokens than the limit, in order, no later than need be, through any traffic', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ requestsPerMinute: fc.integer({ min: 1, max: 5 }), tokensPerMinute: fc.integer({ min: 1, max: 2000 }) }),
      fc.array(traffic, { maxLength: 25 }),
      async (limits, list) => {
        const { runtime, limit, sent, asked, order, pauses } = await play(limits, list);

        // Nothing is left behind, and nobody is forgotten.
        expect(limit.waiting).toBe(0);
        expect(runtime.pendingTimers).toBe(0);
        expect(asked.every(({ outcome, controller }) => outcome !== undefined && controller.listenerCount === 0)).toBe(true);

        // First come, first served.
        expect(order.map(({ index }) => index)).toStrictEqual(order.map(({ index }) => index).toSorted((left, right) => left - right));

        for (const [place, start] of order.entries()) {
          const time = start.startedAt!;
          const inWindow = (at: number): readonly Sent[] => order.slice(0, place).filter((other) => other.startedAt! > at - MINUTE);
          const before = inWindow(time);

          expect(before.filter((other) => counts(other, time)).length).toBeLessThan(limits.requestsPerMinute);
          const least = before.reduce((sum, other) => sum + chargeAt(other, time)[0], 0);
          expect(least === 0 || least + start.estimate <= limits.tokensPerMinute).toBe(true);
          expect(pauses.some(([from, until]) => from < time && time < until)).toBe(false);

          // Whoever waited could not have gone a millisecond earlier.
          const earlier = time - 1;
          const leftBefore = sent.slice(0, start.index).map(({ leftAt }) => leftAt ?? Infinity);
          if (Math.max(start.arrivedAt, ...leftBefore) > earlier) continue;
          const then = inWindow(earlier);
          const most = then.reduce((sum, other) => sum + chargeAt(other, earlier)[1], 0);
          const isBlocked =
            order.slice(0, place).filter((other) => other.startedAt! > earlier - MINUTE && !(other.failure === 'refused' && (other.settledAt ?? Infinity) < earlier)).length >= limits.requestsPerMinute ||
            (most > 0 && most + start.estimate > limits.tokensPerMinute) ||
            pauses.some(([from, until]) => from <= earlier && earlier < until);
          expect(isBlocked).toBe(true);
        }
      },
    ),
    { numRuns: RUNS },
  );
});
