/** Wire names of tools whose names hash alike. The hash of texts that differ is made the same here: finding two takes long. */
import { expect, it, vi } from 'vitest';
import type { ToolDefinition } from 'turnloop';
import { nameTools } from '../../src/providers/shared/tool-names.ts';

vi.mock('../../src/providers/shared/hash.ts', () => ({ shortHash: (text: string) => (/\d$/.test(text) ? `0000000${text.at(-1)}` : '00000000') }));

function tools(...names: readonly string[]): ToolDefinition[] {
  return names.map((name) => ({ name, description: '', inputSchema: {} }));
}

it('keeps tools with the same hash apart, and calls of them as well', () => {
  const names = ['a.b', 'a/b', 'a b', 'plain'];
  const { toWire, fromWire } = nameTools(tools(...names));
  const wireNames = names.map((name) => toWire(name));

  expect(new Set(wireNames).size).toBe(names.length);
  expect(wireNames.map((wireName) => fromWire(wireName))).toStrictEqual(names);
  expect(toWire('a.b')).toBe(nameTools([]).toWire('a.b'));
});
