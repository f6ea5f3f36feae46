/** The store in the process does what agents expect of a session store. */
import { describe, it } from 'vitest';
import { inProcessSessionStore } from 'turnloop/sessions';
import { storeConformance } from 'turnloop/testing/conformance';

describe.concurrent('E9 E10 E11 BR-007 BR-148 the store in the process', () => {
  const ends = 'it ends with its process';
  const cases = storeConformance(() => ({ store: inProcessSessionStore() }), {
    skip: { reopen: ends, lost: ends, failure: 'it writes nowhere', outside: 'it is in memory' },
  });

  for (const { name, run } of cases) it(name, run);
});
