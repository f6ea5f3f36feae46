/**
 * Runs the tests on planted faults: `npm run mutations [-- NAME…] [--json]`.
 *
 * Each `test/mutations/ROOM-what.patch` plants one fault in a copy of the project; its first line says what is wrong, a line
 * `Tests: FILE…` which tests are to catch it. A `law-N-what.patch` is caught by the property tests of that law. It passes if a
 * test that passes without it fails with it, and fails if none does or if it no longer applies. NAME is a part of a patch's name.
 *
 * Ends stdout with `N passed, N failed` and exits by it. With `--json` stdout holds JSON lines only, one a patch and the
 * counts last.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { formatCounts } from '../../scripts/count-reporter.js';
import { copyProject, type ProjectCopy } from './project-copy.ts';

const FOLDER = import.meta.dirname;

/** A planted fault. */
interface Mutation {
  /** `law-N-what`, or `ROOM-what`. */
  readonly name: string;
  /** Files of the tests that are to catch it. */
  readonly tests: readonly string[];
  /** What is wrong, in words: the first line of the patch. */
  readonly what: string;
  readonly patch: string;
}

/** What became of it. */
interface Verdict {
  readonly name: string;
  readonly what: string;
  readonly status: 'passed' | 'failed';
  /** The tests that caught it, or why there is none. */
  readonly caughtBy: readonly string[];
  readonly reason?: string;
  readonly ms: number;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean', default: false } } });

function mutations(): readonly Mutation[] {
  const all = readdirSync(FOLDER)
    .filter((file) => file.endsWith('.patch'))
    .map((file): Mutation => {
      const patch = readFileSync(`${FOLDER}/${file}`, 'utf8');
      return { name: file.replace(/\.patch$/, ''), tests: testsOf(file, patch), what: patch.split('\n', 1)[0] ?? '', patch };
    });
  const wanted = positionals.length === 0 ? all : all.filter(({ name }) => positionals.some((part) => name.includes(part)));
  return wanted.sort((left, right) => left.name.localeCompare(right.name, 'en', { numeric: true }));
}

function testsOf(file: string, patch: string): readonly string[] {
  const [, law] = /^law-(\d+)-/.exec(file) ?? [];
  if (law !== undefined) return [`test/properties/law-${law}.test.ts`];
  const [, tests] = /^Tests: (.+)$/m.exec(patch) ?? [];
  if (tests === undefined) throw new TypeError(`${file} is not named law-N-what.patch, and has no line "Tests: FILE…".`);
  return tests.split(' ');
}

/** Tests that fail without any fault: they cannot catch one. */
async function failingAnyway(project: ProjectCopy, tests: readonly string[], known: Map<string, readonly string[]>): Promise<readonly string[]> {
  const key = tests.join(' ');
  const failing = known.get(key) ?? (await project.failingTests(tests));
  known.set(key, failing);
  return failing;
}

async function judge(mutation: Mutation, project: ProjectCopy, known: Map<string, readonly string[]>): Promise<Verdict> {
  const { name, what, tests, patch } = mutation;
  const before = await failingAnyway(project, tests, known);
  const start = Date.now();
  const verdict = (caughtBy: readonly string[], reason?: string): Verdict => ({
    name,
    what,
    status: caughtBy.length > 0 ? 'passed' : 'failed',
    caughtBy,
    ...(reason !== undefined && { reason }),
    ms: Date.now() - start,
  });
  const problem = project.apply(patch);
  if (problem !== undefined) return verdict([], `the patch no longer applies: ${problem}`);
  try {
    const caughtBy = (await project.failingTests(tests)).filter((test) => !before.includes(test));
    return caughtBy.length > 0 ? verdict(caughtBy) : verdict([], `no test of ${tests.join(' ')} fails`);
  } finally {
    project.restore();
  }
}

function show(verdict: Verdict): string {
  const { status, name, what, caughtBy, reason, ms } = verdict;
  const [first, ...others] = caughtBy;
  const by = first === undefined ? (reason ?? '') : `caught by "${first}"${others.length > 0 ? ` and ${others.length} more` : ''}`;
  return `${status}  ${name} (${what}): ${by} in ${(ms / 1000).toFixed(1)} s`;
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const project = copyProject();
try {
  const known = new Map<string, readonly string[]>();
  for (const mutation of mutations()) {
    const verdict = await judge(mutation, project, known);
    counts[verdict.status] += 1;
    process.stdout.write(`${values.json ? JSON.stringify(verdict) : show(verdict)}\n`);
  }
} finally {
  project.remove();
}
process.stdout.write(`${values.json ? JSON.stringify(counts) : formatCounts(counts)}\n`);
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
