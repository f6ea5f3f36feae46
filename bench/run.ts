/**
 * `npm run bench -- [CASE…] [--json] [--repetitions N]`: what the loop costs beside a model, each figure with its ratio to
 * a limit. Without a case all of them, in about four minutes.
 *
 * - What is measured is built as the package is: library and bench together, by esbuild, to the target of the package, into
 *   one file. So the library and what it is held against are treated alike, and neither pays for a loader that
 *   transpiles on the fly (tsx wraps every function that it names, which costs more than some of what is measured).
 * - Each measurement is a process of its own. Repetitions go round over the measurements of a case, in rotated order.
 *   Shown is the median with the least and the most. A ratio is taken within a repetition, so that what slows the machine
 *   for a while slows both of its sides.
 * - Times are processor time of the measured process, collector and compiler included, after a warm-up that is measured in
 *   processor time too: what else the machine does makes figures noisy, but not many times larger, and not those of the
 *   longer work more than those of the shorter. Only `concurrency` is about waiting, and takes the time on the wall.
 * - A measurement checks that the work was done; one that fails ends the run with exit code 1.
 * - With `--json` stdout holds one line for each metric, `{"case","metric","value","unit"}`, and nothing else.
 *
 * What each figure is and why its limit is fair stands at the head of its case.
 */
import { parseArgs } from 'node:util';
import { CASES } from './cases/index.ts';
import type { BenchCase, Numbers } from './lib/bench-case.ts';
import { buildMeasuredProgram, type MeasuredProgram } from './lib/child-process.ts';
import { figuresOf, jsonLines, machineLine, type MeasuredFigure, type Repetition, table } from './lib/report.ts';

const USAGE = `npm run bench -- [CASE…] [--json] [--repetitions N]. The cases: ${CASES.map(({ name }) => name).join(', ')}.`;

interface Command {
  readonly cases: readonly BenchCase[];
  readonly isJson: boolean;
  readonly repetitions: number | undefined;
}

function readCommand(): Command {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, repetitions: { type: 'string' } },
  });
  const unknown = positionals.find((name) => !CASES.some((one) => one.name === name));
  if (unknown !== undefined) throw new TypeError(`There is no case "${unknown}".`);
  const repetitions = values.repetitions === undefined ? undefined : Number(values.repetitions);
  if (repetitions !== undefined && !(Number.isInteger(repetitions) && repetitions > 0)) {
    throw new TypeError('--repetitions takes a whole number of at least 1.');
  }
  const cases = positionals.length === 0 ? CASES : CASES.filter(({ name }) => positionals.includes(name));
  return { cases, isJson: values.json, repetitions };
}

async function measure(program: MeasuredProgram, one: BenchCase, count: number): Promise<readonly MeasuredFigure[]> {
  const { name, measurements } = one;
  const repetitions: Repetition[] = [];
  for (let repetition = 0; repetition < count; repetition += 1) {
    const numbers = new Map<string, Numbers>();
    const first = repetition % measurements.length;
    for (const measurement of [...measurements.slice(first), ...measurements.slice(0, first)]) {
      showProgress(`${name} ${repetition + 1}/${count} ${measurement.name}`);
      numbers.set(measurement.name, await program.run(name, measurement));
    }
    repetitions.push(numbers);
  }
  showProgress('');
  return figuresOf(one, repetitions);
}

/** One line on a terminal, overwritten by the next. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

async function run({ cases, isJson, repetitions }: Command): Promise<void> {
  const program = await buildMeasuredProgram();
  try {
    const figures: MeasuredFigure[] = [];
    for (const one of cases) {
      const found = await measure(program, one, repetitions ?? one.repetitions);
      figures.push(...found);
      if (isJson) for (const line of jsonLines(found)) console.log(line);
    }
    if (!isJson) console.log(`${machineLine()}\n\n${table(figures)}`);
  } finally {
    await program.remove();
  }
}

try {
  const command = readCommand();
  await run(command);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  if (error instanceof TypeError) process.stderr.write(`${USAGE}\n`);
  process.exitCode = error instanceof TypeError ? 2 : 1;
}
