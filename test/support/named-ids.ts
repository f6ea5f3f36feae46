/** Named ids: the ids that stand in the names of tests. Reads the files of the tests, as text. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../scripts/doors.js';

const TEST_FILE = /\.(test|test-d)\.ts$/;
/** What tests are named by: the first string of `it` or of a table, and the first string of each row. */
const NAME = /(?:\b(?:it|describe|test)(?:\.\w+)?\(|\]\)\(|\)\(|^\s*(?:\[\s*)?)(['"`])((?:\\.|(?!\1).)*)\1/gm;

/** The ids in the names of the tests of a folder, those below it included. @param folder - From the root. */
export function namedIds(folder: string): ReadonlySet<string> {
  const directory = path.join(ROOT, folder);
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => TEST_FILE.test(name));
  const names = files.flatMap((name) => Array.from(readFileSync(path.join(directory, name), 'utf8').matchAll(NAME), (match) => match[2] ?? ''));
  return new Set(names.flatMap((name) => name.match(/\b(?:BR-\d+|[A-Z]{1,2}\d+)\b/g) ?? []));
}
