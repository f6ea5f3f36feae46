#!/usr/bin/env node
/**
 * The command `turnloop`: `turnloop simulate FILE` plays the scenarios of a file.
 *
 * Ends 0 if all is well, 1 if something is wrong with what it was to look at, 2 for a command that it does not know.
 */
import { simulateCommand, SIMULATE_HELP } from './simulate.ts';
import { UsageError } from './usage-error.ts';

const HELP = `Usage: turnloop <command>

Commands:
  simulate FILE   plays the scenarios of a file with faults, from seeds
  help            shows this

${SIMULATE_HELP}`;

async function main([command, ...rest]: readonly string[]): Promise<number> {
  switch (command) {
    case 'simulate':
      return simulateCommand(rest);
    case 'help':
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return 0;
    default:
      throw new UsageError(command === undefined ? 'Say what to do.' : `There is no command "${command}".`);
  }
}

/** Ends once all is written, whatever a file that was loaded left running. */
function end(code: number): void {
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}

try {
  end(await main(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${HELP}`);
  end(2);
}
