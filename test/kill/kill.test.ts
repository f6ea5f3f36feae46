/**
 * Kill test: a session of 60 steps whose processes are killed with SIGKILL goes on in the next process, comes to the history
 * of an undisturbed one, and does nothing twice. What is checked of each stands in `check.ts`.
 *
 * `npm run test:kill -- --full` kills at every event.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problemsOf } from './check.ts';
import { play, type Play } from './play.ts';
import { playAll } from './play-all.ts';
import { buildChild, type ChildProgram } from './processes.ts';
import { randomDeaths } from './sample.ts';
import { STEPS } from './script.ts';

const KILLS = 40;
const SEED = 20_251;

describe('a session whose process is killed', () => {
  let program: ChildProgram;
  let undisturbed: Play;
  beforeAll(async () => {
    program = await buildChild();
    undisturbed = await play(program, []);
  });
  afterAll(() => program.remove());

  it('is a session of 60 steps with sub-agents, steering and a queue when it is not', () => {
    expect(problemsOf(undisturbed, undisturbed)).toStrictEqual([]);
    const { events, agents, report } = undisturbed;
    expect(events.filter(({ type }) => type === 'step.begin')).toHaveLength(STEPS);
    expect(agents.size).toBe(14);
    expect(report.messages.flatMap((message) => (message.role === 'user' ? [message.id] : [])).slice(1)).toStrictEqual([
      'remark-s3', 'steer-s7', 'input-s12a', 'steer-s22', 'input-s12b', 'remark-s33', 'input-s42a', 'steer-s52',
    ]);
    expect(report.counts.events).toBeGreaterThan(1_000);
  });

  it('law 9 E9 E10 E11 E13 is gone on with as if nothing had been, after 40 kills at instants, events, writes and calls of the disk', async () => {
    const sessions = randomDeaths(KILLS, SEED, undisturbed.report.counts);
    const { kills, unknown, problems } = await playAll({ program, undisturbed, sessions });

    expect(problems.join('\n')).toBe('');
    expect(kills).toBe(KILLS);
    // The sample is one that has them.
    expect(unknown).toBeGreaterThan(0);
  });
});
