/**
 * Outages: thousands of turns against providers with bursts of 429, 529, resets, stalls and truncated streams, behind
 * decorators in several orders. Whatever happens, every turn ends with its reason, and nothing is sent, shown, counted or
 * left behind that must not be.
 *
 * `TURNLOOP_RUNS` is how many turns there are, `TURNLOOP_SEED` the first seed:
 * `TURNLOOP_RUNS=100000 npx vitest run --project unit test/policies/outages.test.ts`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { ORDERS } from './outages/orders.ts';
import { type Outage, playOutage } from './outages/world.ts';

const TURNS = Number(process.env['TURNLOOP_RUNS'] ?? 10_000);
const FIRST_SEED = Number(process.env['TURNLOOP_SEED'] ?? 20_260_401);
const TURNS_AT_ONCE = 25;
const OUTAGES = Math.ceil(TURNS / ORDERS.length / TURNS_AT_ONCE);
const TIMEOUT_MS = 600_000;

describe('outages', () => {
  const figures: string[] = [];
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => {
    unhandled.push(reason);
  };
  process.on('unhandledRejection', onUnhandled);

  afterAll(() => {
    process.off('unhandledRejection', onUnhandled);
    console.info(figures.join('\n'));
  });

  it.each(ORDERS)(
    'C1 C2 C3 B8 BR-010 BR-043 BR-070 BR-094 end every turn with its reason, and leave nothing behind: $name',
    async (order) => {
      const outages: Outage[] = [];
      for (let count = 0; count < OUTAGES; count += 1) {
        const seed = FIRST_SEED + count;
        const outage = await playOutage(order, { seed, turns: TURNS_AT_ONCE });
        expect(outage.problems, `seed ${seed}`).toStrictEqual([]);
        outages.push(outage);
      }

      expect(unhandled).toStrictEqual([]);
      const sum = (of: (outage: Outage) => number): number => outages.reduce((total, outage) => total + of(outage), 0);
      const reasons = new Map<string, number>();
      for (const reason of outages.flatMap((outage) => outage.reasons)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      const ends = [...reasons].sort(([, left], [, right]) => right - left).map(([reason, count]) => `${reason} ${count}`);
      figures.push(
        `${order.name}: ${sum(({ reasons: all }) => all.length)} turns: ${ends.join(', ')}; ${sum(({ requests }) => requests)} requests, ` +
          `${sum(({ failures }) => failures)} failed, breaker opened ${sum(({ opened }) => opened)} times, ` +
          `${sum(({ probes }) => probes)} probes, text taken back ${sum(({ retracted }) => retracted)} times`,
      );
      // Else the outages were none, and nothing is shown.
      expect(sum(({ opened }) => opened)).toBeGreaterThan(0);
      expect(sum(({ failures }) => failures)).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});
