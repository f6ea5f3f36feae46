/** Whatever the places where its processes die, each seat is booked once. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

it.each([1, 2, 3])('books each seat once, whatever dies (seed %i)', (seed) => {
  const output = execFileSync(process.execPath, ['--import', 'tsx', MAIN, '--seed', String(seed)], { encoding: 'utf8' });

  expect(output.match(/died/g)).toHaveLength(3);
  expect(output).toMatch(/end_turn: All 5 seats are booked\.\nseat 1\nseat 2\nseat 3\nseat 4\nseat 5\n$/);
});
