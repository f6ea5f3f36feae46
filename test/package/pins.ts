/** What users depend on, written down apart from package.json so that a change of either shows. */

/** Every door, and the optional peer its import needs. */
export const PINNED_DOORS: Readonly<Record<string, string | undefined>> = {
  '.': undefined,
  './testing': undefined,
  './testing/conformance': undefined,
  './testing/cassette': undefined,
  './testing/simulation': undefined,
  './testing/vitest': undefined,
  './policies': undefined,
  './policies/concurrency': 'p-limit',
  './context': undefined,
  './memory': undefined,
  './memory/sqlite': undefined,
  './sessions': undefined,
  './sessions/sqlite': undefined,
  './agent': undefined,
  './agent/files': undefined,
  './providers/openai-chat': undefined,
  './providers/openai-responses': undefined,
  './providers/anthropic': undefined,
  './providers/google': undefined,
  './providers/ai-sdk': undefined,
  './zod': 'zod',
  './emitter': 'eventemitter3',
};

/** Optional peers that a door needs for its types only. */
export const PINNED_TYPE_PEERS: Readonly<Record<string, string | undefined>> = {
  './testing/vitest': 'vitest',
};

/** Doors that need Node; the others run anywhere. */
export const PINNED_NODE_DOORS: ReadonlySet<string> = new Set(['./memory', './sessions', './sessions/sqlite', './agent/files', './testing/cassette']);

/** Every optional peer, and the versions it may have. */
export const PINNED_PEERS: Readonly<Record<string, string>> = {
  eventemitter3: '^5.0.0',
  'p-limit': '>=5 <8',
  vitest: '>=3.2 <6',
  zod: '^3.25.0 || ^4.2.0',
};
