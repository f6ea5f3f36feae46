/** The store of files does what agents expect of a session store, however little the disk does. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { fileSessionStore } from 'turnloop/sessions';
import { storeConformance, type StoreUnderTest } from 'turnloop/testing/conformance';
import { abandon, faultyDisk, storeFolder } from './support/disk.ts';

/** Cases with hundreds of sessions take seconds where others run beside them. */
const LIMITS = { settleWithinMs: 25_000 };
const TIMEOUT = { timeout: 30_000 };

function createStore(flush: 'process' | 'power'): StoreUnderTest {
  const { above, folder, remove } = storeFolder();
  let isFull = false;
  const files = faultyDisk(({ call, bytes }) => (isFull && call === 'file.write' ? { code: 'ENOSPC', afterBytes: bytes >> 1 } : undefined));
  return {
    store: fileSessionStore(folder, { files, flush }),
    reopen: () => fileSessionStore(folder, { flush }),
    // The id needs no escapes.
    abandon: (sessionId) => abandon(join(folder, sessionId)),
    breakWrites: () => {
      isFull = true;
      return () => {
        isFull = false;
      };
    },
    outside: () => readdirSync(above),
    close: remove,
  };
}

describe.concurrent('E9 E10 E11 BR-007 BR-148 the store of files', () => {
  for (const { name, run } of storeConformance(() => createStore('process'), LIMITS)) it(name, TIMEOUT, run);
});

describe.concurrent('E9 E10 the store of files that waits for the disk', () => {
  for (const { name, run } of storeConformance(() => createStore('power'), LIMITS)) it(name, TIMEOUT, run);
});
