import { defineConfig } from 'vitest/config';
import { DOORS, ROOT } from './scripts/doors.js';

const MINUTE_MS = 60_000;

export default defineConfig({
  resolve: {
    // Tests and examples import the library by its own name and get the source: only what is a door resolves.
    alias: DOORS.map((door) => ({
      find: new RegExp(`^${door.specifier.replaceAll('.', '\\.')}$`),
      replacement: `${ROOT}/${door.source}`,
    })),
  },
  test: {
    restoreMocks: true,
    coverage: {
      include: ['src/**/*.ts'],
      reporter: ['text', 'lcov'],
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/{properties,package,server,kill,mutations,fixtures}/**', '**/*.property.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'properties',
          include: ['test/properties/**/*.test.ts', 'test/**/*.property.test.ts'],
          testTimeout: 10 * MINUTE_MS,
        },
      },
      {
        extends: true,
        test: {
          name: 'types',
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: ['test/**/*.test-d.ts'],
            tsconfig: './tsconfig.json',
            // Errors outside the type tests are what `npm run check` reports.
            ignoreSourceErrors: true,
            spawnTimeout: 2 * MINUTE_MS,
          },
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          globalSetup: ['test/package/build-and-pack.ts'],
          testTimeout: 2 * MINUTE_MS,
          hookTimeout: 2 * MINUTE_MS,
        },
      },
      {
        extends: true,
        test: {
          name: 'kill',
          include: ['test/kill/**/*.test.ts'],
          testTimeout: 10 * MINUTE_MS,
          hookTimeout: MINUTE_MS,
        },
      },
      {
        extends: true,
        test: {
          name: 'examples',
          include: ['examples/**/*.test.ts'],
          testTimeout: 2 * MINUTE_MS,
        },
      },
      {
        extends: true,
        test: {
          name: 'server',
          include: ['test/server/**/*.test.ts'],
          testTimeout: 5 * MINUTE_MS,
          hookTimeout: 5 * MINUTE_MS,
        },
      },
    ],
  },
});
