/** Every id that the loop answers for stands in the name of a test. Reads the files of the tests, as text. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { BUG_CASE_IDS, CONFORMANCE_IDS, FEATURE_IDS, POLICY_IDS } from './required-ids.ts';

const TEST_FILE = /\.(test|test-d)\.ts$/;
/** What tests are named by: the first string of `it` or of a table, and the first string of each row. */
const NAME = /(?:\b(?:it|describe)(?:\.\w+)?\(|\]\)\(|\)\(|^\s*(?:\[\s*)?)(['"`])((?:\\.|(?!\1).)*)\1/gm;

/** The ids in the names of the tests of a folder. */
function namedIds(folder: string): ReadonlySet<string> {
  const directory = new URL(folder, import.meta.url);
  const files = readdirSync(directory).filter((name) => TEST_FILE.test(name));
  const names = files.flatMap((name) => Array.from(readFileSync(new URL(name, directory), 'utf8').matchAll(NAME), (match) => match[2] ?? ''));
  return new Set(names.flatMap((name) => name.match(/\b(?:BR-\d+|[A-Z]{1,2}\d+)\b/g) ?? []));
}

describe('the tests of core', () => {
  const core = namedIds('./');

  it.each([
    ['conformance', CONFORMANCE_IDS.filter((id) => !POLICY_IDS.includes(id))],
    ['bug case', BUG_CASE_IDS],
    ['feature', FEATURE_IDS],
  ])('name every %s id', (_kind, ids) => {
    expect(ids.filter((id) => !core.has(id))).toStrictEqual([]);
  });

  it('leave to the tests of policies what policies promise', () => {
    const policies = namedIds('../policies/');

    expect(POLICY_IDS.filter((id) => !policies.has(id))).toStrictEqual([]);
  });

  it('are searched by name: an id that no test has is missed', () => {
    expect(['LC12', 'TC17', 'TC18', 'HK15', 'BR-999'].filter((id) => core.has(id))).toStrictEqual([]);
  });
});
