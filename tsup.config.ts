import { defineConfig } from 'tsup';
import { COMMAND, DOORS } from './scripts/doors.js';

export default defineConfig({
  entry: Object.fromEntries([...DOORS, COMMAND].map(({ entry, source }) => [entry, source])),
  format: ['esm'],
  target: 'es2022',
  platform: 'node',
  removeNodeProtocol: false,
  tsconfig: 'tsconfig.build.json',
  dts: true,
  sourcemap: true,
  // Doors share one copy of core, so that classes and tags are the same whichever door they came through.
  splitting: true,
  clean: true,
  silent: true,
});
