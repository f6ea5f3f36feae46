/** Every id that policies and context answer for stands in the name of a test, theirs or that of whoever keeps the promise. */
import { expect, it } from 'vitest';
import { namedIds } from '../support/named-ids.ts';

function numbered(prefix: string, last: number): readonly string[] {
  return Array.from({ length: last }, (_, index) => `${prefix}${index + 1}`);
}

/** Behaviours of a turn under policies, of the guard against repeats, of compaction and of token counts. */
const CONFORMANCE_IDS = [
  ...[1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 18, 19, 20, 21].map((number) => `TD${number}`),
  ...numbered('DG', 7),
  ...numbered('CP', 13),
  ...numbered('MC', 3),
  ...numbered('TK', 2),
];

/** Faults of comparable projects: retries, stalls, overflow, compaction, token counts, loops, large outputs, images. */
const BUG_CASE_IDS = [
  ...['010', '040', '043', '094', '095'],
  ...['091', '115'],
  ...['127', '134', '160'],
  ...['013', '085', '101', '113'],
  ...['004', '038'],
  ...['011', '128'],
  ...['118', '146'],
  ...['002', '058'],
].map((number) => `BR-${number}`);

/** Features of the two rooms. */
const FEATURE_IDS = [...numbered('C', 11), ...numbered('D', 9)];

it.each([
  ['conformance', CONFORMANCE_IDS],
  ['bug case', BUG_CASE_IDS],
  ['feature', FEATURE_IDS],
])('tests name every %s id', (_kind, ids) => {
  const named = namedIds('test');

  expect(ids.filter((id) => !named.has(id))).toStrictEqual([]);
});
