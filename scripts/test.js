/**
 * Runs the tests: `node scripts/test.js [--project NAME]… [--json] [--coverage] [-t NAME] [FILE]…`.
 *
 * Ends stdout with `N passed, N failed[, N skipped]` and exits by it; no test at all is a failure too. With `--json`
 * stdout holds JSON lines only, one a test and the counts last. TEST_REPORT names a file that gets the same lines.
 */

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';
import { CountReporter, formatCounts } from './count-reporter.js';

/** What `npm test` runs: all but `server`, which needs a real model server. */
const DEFAULT_PROJECTS = ['unit', 'properties', 'types', 'kill', 'package', 'examples'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    project: { type: 'string', multiple: true, default: DEFAULT_PROJECTS },
    json: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    testNamePattern: { type: 'string', short: 't' },
  },
});

const reportFile = process.env['TEST_REPORT'];
if (reportFile !== undefined) rmSync(reportFile, { force: true });
const reporter = new CountReporter({ json: values.json, reportFile });

const vitest = await startVitest(
  'test',
  positionals,
  {
    run: true,
    project: values.project,
    reporters: [reporter],
    coverage: { enabled: values.coverage },
    ...(values.testNamePattern !== undefined && { testNamePattern: values.testNamePattern }),
  },
  {},
  { stdout: values.json ? process.stderr : process.stdout },
);
await vitest.close();

const { passed, failed } = reporter.counts;
if (passed + failed === 0) process.stderr.write('No test ran.\n');
if (!values.json) process.stdout.write(`${formatCounts(reporter.counts)}\n`);
process.exit(failed > 0 || passed === 0 || Number(process.exitCode ?? 0) !== 0 ? 1 : 0);
