/**
 * Prints what each door costs a user: its bundle minified, and gzipped, with the optional peers left outside.
 * `--json` prints one line of JSON a figure instead.
 */

import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { DOORS, PEERS, ROOT } from './doors.js';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });

if (!values.json) console.log(`${'door'.padEnd(36)} ${'min'.padStart(9)} ${'gzip'.padStart(9)}`);
for (const door of DOORS) {
  const { outputFiles } = await build({
    entryPoints: [`${ROOT}/${door.source}`],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    external: [...PEERS, 'node:*'],
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error(`esbuild wrote nothing for ${door.specifier}`);
  const figures = { min: output.contents.byteLength, gzip: gzipSync(output.contents, { level: 9 }).byteLength };

  if (values.json) {
    const name = door.subpath === '.' ? 'root' : door.subpath.slice(2);
    for (const [metric, value] of Object.entries(figures)) {
      console.log(JSON.stringify({ case: `size/${name}`, metric, value, unit: 'B' }));
    }
  } else {
    console.log(`${door.specifier.padEnd(36)} ${formatBytes(figures.min)} ${formatBytes(figures.gzip)}`);
  }
}

/** @param {number} bytes */
function formatBytes(bytes) {
  return `${(bytes / 1000).toFixed(2)} kB`.padStart(9);
}
