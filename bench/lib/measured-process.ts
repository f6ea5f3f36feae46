/** Measured process: the program of every child process. Makes one measurement and sends its numbers to the parent. */
import { CASES } from '../cases/index.ts';
import { SERVER_ROLE, serveReplays } from './replay-server.ts';

const [caseName, measurementName] = process.argv.slice(2);

if (caseName === SERVER_ROLE) {
  serveReplays();
} else {
  process.once('disconnect', () => process.exit(1));
  const measurement = CASES.find((one) => one.name === caseName)?.measurements.find((one) => one.name === measurementName);
  if (measurement === undefined) throw new Error(`There is no measurement ${String(caseName)}/${String(measurementName)}.`);
  const numbers = await measurement.measure();
  process.send?.(numbers, () => process.exit(0));
}
