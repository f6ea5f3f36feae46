/**
 * `npm run streams -- DIR… [--json]`: replays every recorded answer under the folders through the adapters, over HTTP
 * and in three chunkings, and says which are read right.
 *
 * The folders have the format of test/fixtures/streams. Answers of protocols without an adapter are skipped.
 */
import { startReplayServer } from '../test/support/replay-server.ts';
import { CHUNKINGS, checkStreamCase, isReadable, loadStreamCases, type StreamCase } from '../test/support/stream-cases.ts';

const DEFAULT_DIRECTORY = 'test/fixtures/streams';

interface Report {
  readonly case: string;
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly differences: readonly string[];
}

const words = process.argv.slice(2);
const isJson = words.includes('--json');
const directories = words.filter((word) => word !== '--json');
const cases = (directories.length === 0 ? [DEFAULT_DIRECTORY] : directories).flatMap((directory) => loadStreamCases(directory));
const server = await startReplayServer();
const counts = { passed: 0, failed: 0, skipped: 0 };

for (const streamCase of cases) {
  const report = await run(streamCase);
  counts[report.result] += 1;
  print(report);
}
await server.close();
if (isJson) console.log(JSON.stringify(counts));
else console.log(`${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`);
// Nothing read right is no success, either.
process.exitCode = counts.failed > 0 || cases.length === 0 ? 1 : 0;

async function run(streamCase: StreamCase): Promise<Report> {
  if (!isReadable(streamCase)) return { case: streamCase.name, result: 'skipped', differences: [] };
  const differences: string[] = [];
  for (const chunking of CHUNKINGS) {
    for (const difference of await checkStreamCase(streamCase, chunking, server)) differences.push(`${chunking}: ${difference}`);
  }
  return { case: streamCase.name, result: differences.length === 0 ? 'passed' : 'failed', differences };
}

function print(report: Report): void {
  if (isJson) {
    console.log(JSON.stringify(report));
    return;
  }
  console.log(`${report.result.padEnd(7)} ${report.case}`);
  for (const difference of report.differences) console.log(`        ${difference}`);
}
