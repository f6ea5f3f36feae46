/** Play all: many sessions, some at once, each checked against the undisturbed one. */
import { problemsOf, unknownLabels } from './check.ts';
import { deathText, type Death } from './death.ts';
import { play, type Play } from './play.ts';
import type { ChildProgram } from './processes.ts';

/** Sessions at once: most of their time they wait. */
const PLAYED_AT_ONCE = 3;

/** What came of sessions that were killed. */
export interface Outcome {
  readonly sessions: number;
  readonly kills: number;
  /** Outcomes of calls that nobody knew, each of which the model was told. */
  readonly unknown: number;
  /** Lines that were torn when the session was opened for the last time. */
  readonly tornLines: number;
  /** Sessions with which something is wrong. */
  readonly failedSessions: number;
  /** What is wrong, session by session, with the deaths of each. */
  readonly problems: readonly string[];
}

export interface PlayAllOptions {
  readonly program: ChildProgram;
  readonly undisturbed: Play;
  readonly sessions: readonly (readonly Death[])[];
  /** Told of each session that was played: how many there are, and what was wrong with this one. */
  readonly onPlayed?: (played: number, problems: readonly string[]) => void;
}

/** Plays all of them. */
export async function playAll({ program, undisturbed, sessions, onPlayed }: PlayAllOptions): Promise<Outcome> {
  let [played, kills, unknown, tornLines, failedSessions] = [0, 0, 0, 0, 0];
  const problems: string[] = [];
  const waiting = [...sessions];

  async function playOne(deaths: readonly Death[]): Promise<readonly string[]> {
    const where = `killed ${deaths.map(deathText).join(', ')}: `;
    try {
      const one = await play(program, deaths);
      kills += one.deaths.length;
      unknown += unknownLabels(one).size;
      tornLines += one.report.repairs.filter(({ kind }) => kind === 'torn_line').length;
      return problemsOf(one, undisturbed).map((problem) => where + problem);
    } catch (error) {
      return [where + String(error)];
    }
  }

  async function playSome(): Promise<void> {
    for (let deaths = waiting.shift(); deaths !== undefined; deaths = waiting.shift()) {
      const found = await playOne(deaths);
      played += 1;
      problems.push(...found);
      if (found.length > 0) failedSessions += 1;
      onPlayed?.(played, found);
    }
  }

  await Promise.all(Array.from({ length: PLAYED_AT_ONCE }, playSome));
  return { sessions: played, kills, unknown, tornLines, failedSessions, problems };
}
