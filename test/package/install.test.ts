/** The packed package as its user gets it: installed into an empty folder, imported under Node, type-checked. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { DOORS, PEERS, ROOT } from '../../scripts/doors.js';
import { installPeers, packed, runInConsumer, runModule } from './packed.ts';
import { PINNED_DOORS } from './pins.ts';

const doorsWithPeer = DOORS.filter((door) => PINNED_DOORS[door.subpath] !== undefined);

const namesOf = (specifier: string) =>
  `const door = await import('${specifier}'); console.log(Object.keys(door).length > 0 ? 'has names' : 'is empty');`;

afterEach(() => installPeers([]));

describe('the installed package', () => {
  it.each(DOORS)('imports $specifier with only its own peer present', async ({ subpath, specifier }) => {
    const peer = PINNED_DOORS[subpath];
    await installPeers(peer === undefined ? [] : [peer]);

    const outcome = await runModule(namesOf(specifier));

    expect(outcome).toStrictEqual({ code: 0, output: 'has names\n' });
  });

  it.each(doorsWithPeer)('says which package $specifier misses when its peer is absent', async ({ subpath, specifier }) => {
    const outcome = await runModule(`await import('${specifier}')`);

    expect(outcome.code).toBe(1);
    expect(outcome.output).toContain(`Cannot find package '${PINNED_DOORS[subpath] ?? ''}'`);
  });

  it('brings no other package along', async () => {
    const outcome = await runInConsumer('npm', ['ls', '--all', '--parseable', '--offline']);

    const { consumer } = packed();
    expect(outcome.output.trim().split('\n')).toStrictEqual([consumer, join(consumer, 'node_modules/turnloop')]);
  });

  it('can be required from CommonJS', async () => {
    const outcome = await runInConsumer(process.execPath, [
      '--no-warnings',
      '--eval',
      'console.log(typeof require("turnloop").runTurn)',
    ]);

    expect(outcome).toStrictEqual({ code: 0, output: 'function\n' });
  });

  it('refuses imports of what is not a door', async () => {
    const outcome = await runModule(`await import('turnloop/dist/index.js')`);

    expect(outcome.output).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it.each(['nodenext', 'bundler'])('type-checks for a consumer with %s resolution and library checks on', async (resolution) => {
    const { consumer } = packed();
    await installPeers(PEERS);
    const imports = DOORS.map(({ specifier }, index) => `import * as door${index} from '${specifier}';`);
    const uses = DOORS.map((_, index) => `console.log(Object.keys(door${index}));`);
    await writeFile(join(consumer, 'main.ts'), [...imports, ...uses].join('\n'));
    const compilerOptions = {
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      target: 'es2022',
      lib: ['es2023', 'dom'],
      types: [],
      module: resolution === 'bundler' ? 'esnext' : 'nodenext',
      moduleResolution: resolution,
    };
    await writeFile(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));

    const outcome = await runInConsumer(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')]);

    expect(outcome).toStrictEqual({ code: 0, output: '' });
  });
});
