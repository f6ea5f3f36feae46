/** What package.json and the lock file promise. Reads files only. */

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DOORS, ROOT } from '../../scripts/doors.js';
import { PINNED_DOORS, PINNED_PEERS } from './pins.ts';

interface Manifest {
  readonly [key: string]: unknown;
  readonly exports: Record<string, unknown>;
  readonly peerDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, unknown>;
  readonly devDependencies: Record<string, string>;
  readonly scripts: Record<string, string>;
}

const manifest = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as Manifest;
const lock = JSON.parse(readFileSync(`${ROOT}/package-lock.json`, 'utf8')) as {
  packages: Record<string, { resolved?: string; integrity?: string }>;
};

describe('package.json', () => {
  it('exports exactly the pinned doors', () => {
    expect(Object.keys(manifest.exports).sort()).toStrictEqual(Object.keys(PINNED_DOORS).sort());
  });

  it.each(DOORS)('exports $subpath as types and default of one source file', ({ subpath, entry, source }) => {
    expect(manifest.exports[subpath]).toStrictEqual({ types: `./dist/${entry}.d.ts`, default: `./dist/${entry}.js` });
    expect(existsSync(`${ROOT}/${source}`)).toBe(true);
  });

  it('exports every specifier that the readme, the docs and the examples name', () => {
    const files = [
      'README.md',
      ...['src', 'examples'].flatMap((folder) =>
        readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
      ),
    ].filter((file) => /\.(?:ts|md)$/.test(file));
    const named = files.flatMap((file) =>
      [...readFileSync(`${ROOT}/${file}`, 'utf8').matchAll(/from ['"](turnloop(?:\/[^'"]*)?)['"]/g)].map((match) => match[1]),
    );

    const doors = DOORS.map((door) => door.specifier);
    expect(named).not.toHaveLength(0);
    expect([...new Set(named)].filter((specifier) => !doors.includes(specifier ?? ''))).toStrictEqual([]);
  });

  it('installs nothing but itself', () => {
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).not.toHaveProperty('optionalDependencies');
    expect(manifest).not.toHaveProperty('bundleDependencies');
    expect(manifest.scripts).not.toHaveProperty('postinstall');
  });

  it('names each outside library as an optional peer', () => {
    const optional = Object.keys(PINNED_PEERS).map((peer) => [peer, { optional: true }]);

    expect(manifest.peerDependencies).toStrictEqual(PINNED_PEERS);
    expect(manifest.peerDependenciesMeta).toStrictEqual(Object.fromEntries(optional));
  });

  it('pins each development dependency to one version', () => {
    const loose = Object.entries(manifest.devDependencies).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version));

    expect(loose).toStrictEqual([]);
  });

  it('is an ES module package without side effects for Node 20.19 and later', () => {
    expect(manifest).toMatchObject({
      name: 'turnloop',
      license: 'MIT',
      type: 'module',
      sideEffects: false,
      engines: { node: '>=20.19' },
    });
  });
});

describe('package-lock.json', () => {
  it('records a checksum and no download address for every package', () => {
    const installed = Object.entries(lock.packages).filter(([path]) => path !== '');

    expect(installed.filter(([, entry]) => entry.resolved !== undefined)).toStrictEqual([]);
    expect(installed.filter(([, entry]) => entry.integrity === undefined)).toStrictEqual([]);
  });
});
