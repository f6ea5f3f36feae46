/**
 * `npm run test:kill`: runs the tests of this folder. With `-- --full` it kills a session at 200 random instants, before and
 * behind every recorded event, and at every other call of the disk, in about half an hour; it prints what is wrong as it
 * finds it, and counts at the end. `-- --full --seed N` takes other instants.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Death } from './death.ts';
import { play } from './play.ts';
import { type Outcome, playAll } from './play-all.ts';
import { buildChild } from './processes.ts';
import { everyDiskCall, everyEvent, randomInstants } from './sample.ts';

const INSTANTS = 200;
/** How often it says how far it is, in sessions. */
const PROGRESS = 20;

async function killEverywhere(seed: number): Promise<boolean> {
  const program = await buildChild();
  try {
    const undisturbed = await play(program, []);
    const { counts } = undisturbed.report;
    console.log(`The undisturbed session: ${counts.events} events, ${counts.writes} writes, ${counts.calls} other calls of the disk. Seed ${seed}.`);
    const parts: readonly (readonly [name: string, sessions: readonly (readonly Death[])[]])[] = [
      ['random instants', randomInstants(INSTANTS, seed, counts)],
      ['before every event', everyEvent('before', counts)],
      ['behind every event', everyEvent('after', counts)],
      ['at every call of the disk', everyDiskCall(counts)],
    ];
    const outcomes: Outcome[] = [];
    for (const [name, sessions] of parts) {
      const onPlayed = (played: number, problems: readonly string[]): void => {
        for (const problem of problems) console.log(problem);
        if (played % PROGRESS === 0) process.stderr.write(`${name}: ${played} of ${sessions.length} sessions\n`);
      };
      const outcome = await playAll({ program, undisturbed, sessions, onPlayed });
      outcomes.push(outcome);
      const { kills, unknown, tornLines, problems } = outcome;
      console.log(`${name}: ${kills} kills in ${outcome.sessions} sessions, ${unknown} outcomes told to be unknown, ${tornLines} torn lines, ${problems.length} problems`);
    }
    const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((total, outcome) => total + of(outcome), 0);
    const failed = sum(({ failedSessions }) => failedSessions);
    console.log(`${sum(({ kills }) => kills)} kills in ${sum(({ sessions }) => sessions)} sessions`);
    console.log(`${sum(({ sessions }) => sessions) - failed} passed, ${failed} failed`);
    return failed === 0;
  } finally {
    program.remove();
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false }, seed: { type: 'string', default: '1' } },
});
if (values.full) {
  process.exitCode = (await killEverywhere(Number(values.seed))) ? 0 : 1;
} else {
  const script = fileURLToPath(new URL('../../scripts/test.js', import.meta.url));
  process.exitCode = spawnSync(process.execPath, [script, '--project', 'kill', ...positionals], { stdio: 'inherit' }).status ?? 1;
}
