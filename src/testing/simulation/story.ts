/** Story: a failing run as text that a person reads: how to repeat it, what is wrong, and what happened until then. */
import { formatFault } from './fault.ts';
import type { FailedRun } from './shrink.ts';
import type { StoryLine, Violation } from './world.ts';

/** Most lines of a story: its end is what matters. */
const MOST_LINES = 200;

/** What a repetition has to be given as well. */
export interface StoryLimits {
  readonly graceMs?: number | undefined;
  readonly patienceMs?: number | undefined;
}

/** Tells a failing run. */
export function tellStory(scenario: string, { seed, faults, isCalm, played }: FailedRun, limits: StoryLimits = {}): string {
  const list = faults.length === 0 ? '' : `, faults: [${faults.map((fault) => `'${formatFault(fault)}'`).join(', ')}]`;
  return [
    `Scenario "${scenario}" fails with seed ${seed}${faults.length === 0 ? '' : ` and ${faults.map(formatFault).join(', ')}`}:`,
    ...played.violations.map((violation) => `  ${violationText(violation)}`),
    '',
    `To repeat it in a test: simulate(scenario, { seeds: [${seed}]${list}${isCalm ? ', calm: true' : ''}${limitsText(limits)} })`,
    '',
    ...storyLines(played.story),
  ].join('\n');
}

function limitsText({ graceMs, patienceMs }: StoryLimits): string {
  return `${graceMs === undefined ? '' : `, graceMs: ${graceMs}`}${patienceMs === undefined ? '' : `, patienceMs: ${patienceMs}`}`;
}

function violationText({ law, message }: Violation): string {
  return law === undefined ? message : `law ${law}: ${message}`;
}

function storyLines(story: readonly StoryLine[]): readonly string[] {
  const last = story.slice(-MOST_LINES);
  const lines = last.map(({ at, who, text }) => `${String(at).padStart(7)} ms  ${who.padEnd(8)}  ${text}`);
  return last.length < story.length ? [`  (${story.length - last.length} lines before)`, ...lines] : lines;
}
