/**
 * The doors of the package, read from `exports` in package.json: the one list that the build, the tests' aliases,
 * the docs and the size table derive from.
 */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The repository's root folder, without a slash at its end. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/**
 * @typedef {object} Door
 * @property {string} subpath As in `exports`: `.` or `./testing`.
 * @property {string} specifier What a user imports: `turnloop/testing`.
 * @property {string} entry Path in `dist` without extension: `testing/index`.
 * @property {string} source Path of its source file, from the root: `src/testing/index.ts`.
 */

/** @type {{ name: string, exports: Record<string, { types: string, default: string }>, peerDependencies: Record<string, string> }} */
const manifest = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));

/**
 * Every door, in the order of package.json.
 *
 * @type {readonly Door[]}
 */
export const DOORS = Object.entries(manifest.exports).map(([subpath, target]) => {
  const entry = target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, '');
  return { subpath, specifier: manifest.name + subpath.slice(1), entry, source: `src/${entry}.ts` };
});

/** The command that the package installs. */
export const COMMAND = { entry: 'cli/main', source: 'src/cli/main.ts' };

/** Outside libraries a door may need: the optional peers. */
export const PEERS = Object.keys(manifest.peerDependencies);
