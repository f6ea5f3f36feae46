// What nothing uses: files, exports, dependencies. Doors and the programs people run are the ways in.
import { DOORS } from './scripts/doors.js';

/** @type {import('knip').KnipConfig} */
export default {
  entry: [...DOORS.map((door) => door.source), 'test/simulation/scenarios.ts', 'examples/*/{index,main}.ts', 'examples/readme/*.ts'],
  project: [
    '{src,scripts,test,bench,examples}/**/*.{js,ts}',
    '!examples/coding-agent/demo/workspace/**',
    '!test/fixtures/**',
  ],
  ignoreExportsUsedInFile: { interface: true, type: true },
  // test/package runs its program by path.
  ignoreDependencies: ['@arethetypeswrong/cli'],
};
