/** Every id that the loop answers for stands in the name of a test. Reads the files of the tests, as text. */
import { describe, expect, it } from 'vitest';
import { namedIds } from '../support/named-ids.ts';
import { BUG_CASE_IDS, CONFORMANCE_IDS, FEATURE_IDS, POLICY_IDS } from './required-ids.ts';

describe('the tests of core', () => {
  const core = namedIds('test/core');

  it.each([
    ['conformance', CONFORMANCE_IDS.filter((id) => !POLICY_IDS.includes(id))],
    ['bug case', BUG_CASE_IDS],
    ['feature', FEATURE_IDS],
  ])('name every %s id', (_kind, ids) => {
    expect(ids.filter((id) => !core.has(id))).toStrictEqual([]);
  });

  it('leave to the tests of policies what policies promise', () => {
    const policies = new Set([...namedIds('test/policies'), ...namedIds('test/context')]);

    expect(POLICY_IDS.filter((id) => !policies.has(id))).toStrictEqual([]);
  });

  it('are searched by name: an id that no test has is missed', () => {
    expect(['LC12', 'TC17', 'TC18', 'HK15', 'BR-999'].filter((id) => core.has(id))).toStrictEqual([]);
  });
});
