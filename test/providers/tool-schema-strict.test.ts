/** Which response schemas a server can be told to hold to, word by word. */
import * as z from 'zod';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonSchema } from 'turnloop';
import { isStrictSchema } from '../../src/providers/shared/tool-schema-strict.ts';
import { frozen } from './tool-schema-support.ts';

const text = { type: 'string' };

/** A closed object that requires all it has. */
function closed(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function isStrict(schema: JsonSchema): boolean {
  return isStrictSchema(frozen(schema));
}

describe('isStrictSchema', () => {
  interface Tree {
    readonly name: string;
    readonly kids: readonly Tree[];
  }
  const Tree: z.ZodType<Tree> = z.object({ name: z.string(), get kids() { return z.array(Tree); } });

  it.each([
    ['nested objects', z.object({ a: z.object({ b: z.string() }), c: z.array(z.object({ d: z.boolean() })) })],
    ['null for what may be missing', z.object({ a: z.string().nullable(), b: z.object({ c: z.null() }).nullable() })],
    ['unions and literals', z.object({ a: z.union([z.string(), z.number()]), k: z.literal('x'), e: z.enum(['p', 'q']) })],
    ['limits and formats', z.object({ n: z.int().min(1).max(9), d: z.iso.date(), l: z.array(z.string()).min(1).max(3) })],
    ['recursion', Tree],
    ['recursion inside', z.object({ tree: Tree })],
  ])('BR-047: is true for %s, as zod writes it', (_name, sample) => {
    expect(isStrict(z.toJSONSchema(sample) as JsonSchema)).toBe(true);
  });

  it.each([
    ['an optional property', { ...closed({ a: text, b: text }), required: ['a'] }],
    ['a required property that is not there', { ...closed({ a: text }), required: ['a', 'b'] }],
    ['an open object', { type: 'object', properties: { a: text }, required: ['a'] }],
    ['an open object inside', closed({ a: { type: 'object', properties: {}, required: [] } })],
    ['a free map', closed({ a: { type: 'object', properties: {}, required: [], additionalProperties: text } })],
    ['a root of branches', { anyOf: [closed({ a: text }), closed({ b: text })] }],
    ['a root that is an array', { type: 'array', items: text }],
    ['an array of anything', closed({ a: { type: 'array' } })],
    ['an untyped property', closed({ a: { description: 'any' } })],
    ['an untyped value', closed({ a: { const: 'x' } })],
    ['a default', closed({ a: { type: 'string', default: 'x' } })],
    ['oneOf', closed({ a: { oneOf: [text, { type: 'null' }] } })],
    ['allOf', closed({ a: { allOf: [text] } })],
    ['not', closed({ a: { type: 'string', not: { const: 'x' } } })],
    ['a length', closed({ a: { type: 'string', minLength: 1 } })],
    ['a limit of another type', closed({ a: { type: 'string', minimum: 1 } })],
    ['a format of the host', closed({ a: { type: 'string', format: 'iban' } })],
    ['a tuple', closed({ a: { type: 'array', prefixItems: [text], items: text } })],
    ['a value of another type', closed({ a: { type: 'string', enum: ['x', 1] } })],
    ['no values', closed({ a: { type: 'string', enum: [] } })],
    ['a reference with neighbours', { ...closed({ a: { $ref: '#/$defs/A', description: 'd' } }), $defs: { A: text } }],
    ['a reference to nothing', closed({ a: { $ref: '#/$defs/toString' } })],
    ['a reference out of the document', closed({ a: { $ref: 'https://example.com/a.json' } })],
    ['a definition that is open', { ...closed({ a: { $ref: '#/$defs/A' } }), $defs: { A: { type: 'object' } } }],
    ['a definition that stands for itself', { ...closed({ a: { $ref: '#/$defs/A' } }), $defs: { A: { $ref: '#/$defs/A' } } }],
    ['an unknown keyword', closed({ a: { type: 'string', 'x-order': 1 } })],
    ['an unknown type', closed({ a: { type: 'text' } })],
    ['a property that is no schema', closed({ a: true })],
    ['types beside branches', closed({ a: { type: 'string', anyOf: [text] } })],
  ] as readonly (readonly [string, JsonSchema])[])('BR-047: is false for %s', (_name, schema) => {
    expect(isStrict(schema)).toBe(false);
  });

  it('BR-047: is false for what is too much', () => {
    const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);
    const nested = (levels: number): JsonObject => (levels === 1 ? closed({}) : closed({ a: nested(levels - 1) }));
    const withValues = (count: number, length: number): JsonObject => closed({ a: { type: 'string', enum: names(count).map((name) => name.padEnd(length, 'x')) } });
    const withProperties = (count: number): JsonObject => closed(Object.fromEntries(names(count).map((name) => [name, text])));

    expect([nested(9), nested(20)].map(isStrict)).toStrictEqual([true, false]);
    expect([withProperties(5000), withProperties(5001)].map(isStrict)).toStrictEqual([true, false]);
    expect([withValues(1000, 5), withValues(1001, 5)].map(isStrict)).toStrictEqual([true, false]);
    expect([withValues(251, 50), withValues(251, 70), withValues(250, 70)].map(isStrict)).toStrictEqual([true, false, true]);
    expect(isStrict(closed({ ['n'.repeat(120_001)]: text }))).toBe(false);
  });
});
