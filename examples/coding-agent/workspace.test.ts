/**
 * The workspace keeps file tools inside one folder, by words and through links, and refuses what is not text.
 * Black-box, on temporary folders.
 */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder } from './test-support.ts';
import { openWorkspace } from './workspace.ts';

async function filesOf(folder: string, path: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const file of openWorkspace(folder).files(path)) files.push(file);
  return files;
}

describe('openWorkspace', () => {
  it('reads files by relative, roundabout and absolute paths', async () => {
    const folder = makeFolder({ 'src/a.txt': 'alpha' });
    const workspace = openWorkspace(folder);

    const texts = await Promise.all(['src/a.txt', './src/../src/a.txt', join(folder, 'src/a.txt')].map((path) => workspace.readText(path)));

    expect(texts).toStrictEqual(['alpha', 'alpha', 'alpha']);
  });

  it.each(['../secret.txt', 'src/../../secret.txt', '/etc/passwd', '..'])('refuses %s, which is outside', async (path) => {
    const outer = makeFolder({ 'secret.txt': 'secret', 'inside/src/a.txt': 'alpha' });
    const workspace = openWorkspace(join(outer, 'inside'));

    await expect(workspace.readText(path)).rejects.toThrow(`${path} is outside the workspace`);
    await expect(workspace.writeText(path, 'x')).rejects.toThrow(`${path} is outside the workspace`);
    await expect(workspace.list(path)).rejects.toThrow(`${path} is outside the workspace`);
  });

  it('refuses links that lead out, to files and to folders', async () => {
    const outer = makeFolder({ 'secret.txt': 'secret', 'inside/a.txt': 'alpha' });
    symlinkSync(join(outer, 'secret.txt'), join(outer, 'inside/file-link'));
    symlinkSync(outer, join(outer, 'inside/folder-link'));
    const workspace = openWorkspace(join(outer, 'inside'));

    await expect(workspace.readText('file-link')).rejects.toThrow('file-link is outside the workspace');
    await expect(workspace.writeText('file-link', 'x')).rejects.toThrow('file-link is outside the workspace');
    await expect(workspace.readText('folder-link/secret.txt')).rejects.toThrow('folder-link/secret.txt is outside the workspace');
    await expect(workspace.list('folder-link')).rejects.toThrow('folder-link is outside the workspace');
    expect(await filesOf(workspace.root, '.')).toStrictEqual(['a.txt']);
  });

  it('follows links that stay inside, and calls their target by one name', async () => {
    const folder = makeFolder({ 'src/a.txt': 'alpha' });
    symlinkSync('src/a.txt', join(folder, 'link'));
    const workspace = openWorkspace(folder);

    expect(await workspace.readText('link')).toBe('alpha');
    expect(['link', './src//a.txt', '.', 'missing', '../x'].map((path) => workspace.nameOf(path))).toStrictEqual([
      'src/a.txt',
      'src/a.txt',
      '.',
      'missing',
      '../x',
    ]);
  });

  it('opens a folder that is itself behind a link', async () => {
    const outer = makeFolder({ 'real/a.txt': 'alpha' });
    symlinkSync(join(outer, 'real'), join(outer, 'link'));

    expect(await openWorkspace(join(outer, 'link')).readText('a.txt')).toBe('alpha');
  });

  it('says what is wrong with a path in words', async () => {
    const folder = makeFolder({ 'a.txt': 'alpha', 'nul.bin': 'a\0b', 'latin1.txt': Uint8Array.of(0x66, 0xfc, 0x72), 'src/b.txt': '' });
    const workspace = openWorkspace(folder);

    await expect(workspace.readText('missing.txt')).rejects.toThrow('no such file: missing.txt');
    await expect(workspace.readText('src')).rejects.toThrow('src is a directory');
    await expect(workspace.list('a.txt')).rejects.toThrow('a.txt is not a folder');
    await expect(workspace.readText('nul.bin')).rejects.toThrow('nul.bin is not a text file');
    await expect(workspace.readText('latin1.txt')).rejects.toThrow('latin1.txt is not a text file');
    await expect(workspace.readText('a\0b')).rejects.toThrow('a\0b');
    expect(() => openWorkspace(join(folder, 'missing'))).toThrow('ENOENT');
  });

  it('lists and walks in order, without node_modules and .git', async () => {
    const folder = makeFolder({ 'b.txt': '', 'src/a.txt': '', 'src/core/c.txt': '', 'node_modules/x/i.js': '', '.git/HEAD': '', '.env': '' });

    expect(await openWorkspace(folder).list('.')).toStrictEqual(['.env', 'b.txt', 'src/']);
    expect(await filesOf(folder, '.')).toStrictEqual(['.env', 'b.txt', 'src/a.txt', 'src/core/c.txt']);
    expect(await filesOf(folder, 'src/core')).toStrictEqual(['src/core/c.txt']);
    expect(await filesOf(folder, './b.txt')).toStrictEqual(['b.txt']);
  });
});
