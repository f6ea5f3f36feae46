/** What is in the packed package: its files, its import graph, and what publint and attw say of it. */

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { DOORS, ROOT } from '../../scripts/doors.js';
import { packed, runInConsumer } from './packed.ts';
import { PINNED_DOORS, PINNED_NODE_DOORS, PINNED_TYPE_PEERS } from './pins.ts';

const installed = () => join(packed().consumer, 'node_modules/turnloop');

/** `zod/v4/core` → `zod`; `node:fs` stays. */
const packageOf = (specifier: string) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;

/** The packages a built module imports, through all files it reaches. */
async function outsideImports(file: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    packages: 'external',
    external: ['node:*'],
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  return [...new Set(imports.filter((one) => one.external).map((one) => packageOf(one.path)))];
}

/** The same for a declaration file. */
function outsideTypeImports(file: string): string[] {
  const files = new Set([file]);
  const outside = new Set<string>();
  for (const one of files) {
    const { importedFiles, referencedFiles, typeReferenceDirectives } = ts.preProcessFile(readFileSync(one, 'utf8'));
    for (const { fileName } of [...importedFiles, ...referencedFiles, ...typeReferenceDirectives]) {
      if (fileName.startsWith('.')) files.add(resolve(dirname(one), fileName.replace(/\.js$/, '.d.ts')));
      else outside.add(packageOf(fileName));
    }
  }
  return [...outside];
}

describe('the packed package', () => {
  it('holds the manifest, the licence, the readme and dist, and nothing else', () => {
    expect(readdirSync(installed()).sort()).toStrictEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
  });

  it('holds no test, example or TypeScript source', () => {
    const files = readdirSync(installed(), { recursive: true, encoding: 'utf8' });

    expect(files.filter((file) => /test\.|example|(?<!\.d)\.ts$/.test(file))).toStrictEqual([]);
  });

  it('has everything that `files` names', () => {
    const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };

    expect(readdirSync(installed())).toStrictEqual(expect.arrayContaining(files));
  });

  it.each(DOORS)('imports from $specifier nothing outside but its own peer, and modules of Node only where it needs Node', async ({ subpath, entry }) => {
    const peer = PINNED_DOORS[subpath];

    const imports = await outsideImports(join(installed(), 'dist', `${entry}.js`));

    const isAllowed = (one: string): boolean => PINNED_NODE_DOORS.has(subpath) && one.startsWith('node:');

    expect(imports.filter((one) => !isAllowed(one))).toStrictEqual(peer === undefined ? [] : [peer]);
  });

  it.each(DOORS)('declares $specifier with no types from outside but of its own peer', ({ subpath, entry }) => {
    const peer = PINNED_DOORS[subpath] ?? PINNED_TYPE_PEERS[subpath];

    const imports = outsideTypeImports(join(installed(), 'dist', `${entry}.d.ts`));

    expect(imports.filter((one) => one !== peer)).toStrictEqual([]);
  });

  it('passes publint in strict mode', async () => {
    const { messages, pkg } = await publint({ pkgDir: installed(), strict: true, pack: false });

    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toStrictEqual([]);
  });

  it('resolves to the right types for every consumer of ES modules', async () => {
    const attw = join(ROOT, 'node_modules/@arethetypeswrong/cli/dist/index.js');

    const outcome = await runInConsumer(process.execPath, [attw, packed().tarball, '--profile', 'esm-only', '--format', 'ascii']);

    expect(outcome).toMatchObject({ code: 0 });
    for (const { specifier } of DOORS) expect(outcome.output).toContain(`"${specifier}"`);
  });
});
