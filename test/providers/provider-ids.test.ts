/** Every id that the provider layer answers for stands in the name of a test, of adapters, policies or tools. */
import { expect, it } from 'vitest';
import { namedIds } from '../support/named-ids.ts';

function numbered(prefix: string, last: number): readonly string[] {
  return Array.from({ length: last }, (_, index) => `${prefix}${index + 1}`);
}

/** Behaviours of adapters. */
const CONFORMANCE_IDS = [
  ...numbered('GN', 12),
  ...numbered('KS', 5),
  ...numbered('EE', 9),
  'FR1',
  ...numbered('AN', 9),
  ...numbered('OC', 6),
  ...numbered('OR', 7),
  ...numbered('GG', 7),
  ...numbered('KM', 5),
  ...numbered('XC', 4),
  ...numbered('AD', 5),
];

/** Faults of comparable projects that adapters must not have. Those of context and budgets have tests of their own later. */
const BUG_CASE_IDS = [
  ...['037', '059', '073'],
  ...['008', '014', '028', '034', '088', '119', '136', '137', '154'],
  ...['023', '068', '100', '125'],
  ...['127'],
  ...['010', '040', '043', '094', '095'],
  ...['029', '031', '047', '158'],
  ...['046', '103'],
  ...['056', '082', '130'],
  ...['002', '058'],
  ...['025', '089'],
  ...['049', '140'],
  ...['091', '115'],
  ...['053', '076', '110'],
  ...['001', '124'],
].map((number) => `BR-${number}`);

it.each([
  ['conformance', CONFORMANCE_IDS],
  ['bug case', BUG_CASE_IDS],
])('tests name every %s id', (_kind, ids) => {
  const named = namedIds('test');

  expect(ids.filter((id) => !named.has(id))).toStrictEqual([]);
});
