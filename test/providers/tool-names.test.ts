/** Wire names of tools: legal, one for each tool, the same for a name always, and led back to it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ToolDefinition } from 'turnloop';
import { IDENTIFIER_NAMES, nameTools, toWireName } from '../../src/providers/shared/tool-names.ts';

const COMMON_NAMES = /^[a-zA-Z0-9_-]{1,64}$/;

function tools(names: readonly string[]): ToolDefinition[] {
  return names.map((name) => ({ name, description: '', inputSchema: {} }));
}

describe('wire names', () => {
  it('B10: leaves legal names as they are', () => {
    const names = ['get_weather', 'mcp__server__read-file', '1password', '-x', 'constructor', 'a'.repeat(64)];

    expect(names.map((name) => toWireName(name))).toStrictEqual(names);
  });

  it('B10: what Gemini takes starts with a letter or an underscore, and is the common name where that does', () => {
    const names = ['get_weather', '_private', '1password', '-x', 'a.b', '日本', '', '9'.repeat(80)];
    const wireNames = names.map((name) => toWireName(name, IDENTIFIER_NAMES));

    expect(wireNames.filter((name) => !/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(name))).toStrictEqual([]);
    expect(wireNames.slice(0, 2)).toStrictEqual(['get_weather', '_private']);
    expect(wireNames[2]).toMatch(/^_1password_0x[a-z0-9]{8}$/);
    expect(wireNames[4]).toBe(toWireName('a.b'));
  });

  it('keeps tools with the same hash apart, and calls of them as well', () => {
    // Texts whose hashes were found to agree in all characters that a name has of them.
    const names = ['a?...#...', 'a..+ +!./', 'a b', 'plain'];
    expect(toWireName('a?...#...')).toBe(toWireName('a..+ +!./'));

    const { toWire, fromWire } = nameTools(tools(names));
    const wireNames = names.map((name) => toWire(name));

    expect(new Set(wireNames).size).toBe(names.length);
    expect(wireNames.map((wireName) => fromWire(wireName))).toStrictEqual(names);
    expect(toWire('a b')).toBe(nameTools([]).toWire('a b'));
  });

  it('gives a name that looks like a wire name another one', () => {
    const wireName = toWireName('a.b');

    expect(toWireName(wireName)).toMatch(/^a_b_0x[a-z0-9]{8}_0x[a-z0-9]{8}$/);
    expect(nameTools(tools([wireName, 'a.b'])).toWire('a.b')).toBe(wireName);
  });

  it('leaves a name alone that a model made up', () => {
    const { fromWire } = nameTools(tools(['a.b']));

    expect(['a.b', 'toString', '__proto__', ''].map((name) => fromWire(name))).toStrictEqual(['a.b', 'toString', '__proto__', '']);
  });

  it.each([
    ['the common ones', undefined, COMMON_NAMES],
    ['those of Gemini', IDENTIFIER_NAMES, IDENTIFIER_NAMES],
  ] as const)('law 12: any names become legal ones, each its own, and come back: %s', (_name, rule, legal) => {
    const anyName = fc.oneof(fc.string(), fc.string({ minLength: 60, maxLength: 90 }), fc.stringMatching(/^[a-z0-9_.-]{1,6}$/), fc.constantFrom('a.b', 'a/b', '__proto__'));
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { maxLength: 12 }), fc.boolean(), (given, withForms) => {
        // A tool may be named like the wire name of another.
        const names = withForms ? [...new Set([...given, ...given.map((name) => toWireName(name, rule))])] : given;
        const { toWire, fromWire } = nameTools(tools(names), rule);
        const wireNames = names.map((name) => toWire(name));

        expect(wireNames.filter((name) => !legal.test(name))).toStrictEqual([]);
        expect(wireNames.map((name) => fromWire(name))).toStrictEqual(names);
      }),
    );
  });
});
