// What nothing uses: files, exports, dependencies. Doors and the programs people run are the ways in.
import { DOORS } from './scripts/doors.js';

/** @type {import('knip').KnipConfig} */
export default {
  entry: [...DOORS.map((door) => door.source), 'examples/**/*.ts', 'scripts/*.{js,ts}'],
  project: ['src/**/*.ts', 'scripts/**/*.{js,ts}', 'test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts'],
  ignoreExportsUsedInFile: { interface: true, type: true },
  // test/package runs its program by path.
  ignoreDependencies: ['@arethetypeswrong/cli'],
};
