/**
 * Runs the whole suite again and again while the machine is busy with something else: `npm run test:soak [-- --runs N] [--project NAME]… [FILE]…`.
 * A test that depends on how fast anything is fails sooner or later here.
 *
 * Ends stdout with `N passed, N failed`, counting runs, and exits by it.
 */

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { ROOT } from './doors.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '20' }, project: { type: 'string', multiple: true, default: [] } },
});
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1) throw new TypeError(`--runs takes a whole number of at least 1, and not "${values.runs}".`);
const passedOn = [...values.project.flatMap((project) => ['--project', project]), ...positionals];

/** Keeps a processor busy for most of the time: bursts, so that what is tested is slow in uneven ways. */
const BUSY = `
  const burst = () => {
    const end = performance.now() + 5 + Math.random() * 60;
    while (performance.now() < end);
    setTimeout(burst, Math.random() * 20);
  };
  burst();
`;
const workers = Array.from({ length: availableParallelism() }, () => new Worker(BUSY, { eval: true }));

/** @returns {Promise<number>} How it ended. */
function runOnce() {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['scripts/test.js', ...passedOn], { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}

let failed = 0;
for (let run = 1; run <= runs; run += 1) {
  const start = Date.now();
  const code = await runOnce();
  if (code !== 0) failed += 1;
  process.stdout.write(`run ${run} of ${runs}: ${code === 0 ? 'passed' : 'FAILED'} in ${Math.round((Date.now() - start) / 1000)} s\n`);
}
await Promise.all(workers.map((worker) => worker.terminate()));
process.stdout.write(`${runs - failed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 ? 1 : 0;
