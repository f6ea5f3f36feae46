/**
 * What all property tests share: how often they run, from which seed, and how a law is stated.
 *
 * `TURNLOOP_RUNS` asks for more runs, `TURNLOOP_SEED` for others: `TURNLOOP_RUNS=20000 TURNLOOP_SEED=7 npx vitest run test/properties`.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkTranscript, type CheckTranscriptOptions } from 'turnloop/testing';
import type { RecordedEvent } from 'turnloop';

/** Runs of each property. */
const RUNS: number = Number(process.env['TURNLOOP_RUNS'] ?? 1000);

const SEED = Number(process.env['TURNLOOP_SEED'] ?? 20_260_401);

/** Whether a counter-example is made small: most of the time of a failing test. `TURNLOOP_SHRINK=0` for none of it. */
const SHRINKS = process.env['TURNLOOP_SHRINK'] !== '0';

/** States a property as a test: `check` holds for whatever `arbitrary` generates. */
export function law<Value>(
  name: string,
  arbitrary: fc.Arbitrary<Value>,
  check: (value: Value) => Promise<void> | void,
  options: fc.Parameters<[Value]> = {},
): void {
  it(name, async () => {
    const property = fc.asyncProperty(arbitrary, async (value) => {
      await check(value);
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: !SHRINKS, ...options });
  });
}

/** Expects that no recorded event breaks one of these laws. */
export function expectLaws(laws: readonly number[], events: readonly RecordedEvent[], options: CheckTranscriptOptions = {}): void {
  const broken = checkTranscript(events, options).filter((violation) => laws.includes(violation.law));

  expect(broken).toStrictEqual([]);
}
