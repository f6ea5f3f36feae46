/** What a tool's schema looks like in `functionDeclarations[].parameters` of Gemini. */
import * as z from 'zod';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonSchema } from 'turnloop';
import { toGeminiSchema } from '../../src/providers/shared/tool-schema-gemini.ts';
import { frozen, geminiRefusals } from './tool-schema-support.ts';

function property(schema: unknown, more: JsonObject = {}): unknown {
  const written = toGeminiSchema(frozen({ type: 'object', properties: { p: schema }, ...more } as JsonSchema));
  return (written?.['properties'] as JsonObject | undefined)?.['p'];
}

const TEXT = { type: 'STRING' };

describe('toGeminiSchema', () => {
  it('B10: leaves the field out for a tool that takes nothing', () => {
    expect(toGeminiSchema({ type: 'object', properties: {} })).toBeUndefined();
    expect(toGeminiSchema({ type: 'object', additionalProperties: false })).toBeUndefined();
  });

  it('is made once for a schema, which stays as it is', () => {
    const schema = frozen({ type: 'object', properties: { a: { type: 'string' } } });

    expect(toGeminiSchema(schema)).toBe(toGeminiSchema(schema));
    expect(toGeminiSchema(schema)).toStrictEqual({ type: 'OBJECT', properties: { a: TEXT } });
  });

  it.each([
    ['a limit', { type: 'integer', exclusiveMinimum: 0, maximum: 9, multipleOf: 3 }, { type: 'INTEGER', minimum: 1, maximum: 9 }],
    ['a limit between numbers', { type: 'number', exclusiveMaximum: 1.5 }, { type: 'NUMBER', maximum: 1.5 }],
    ['the limits of exact integers', { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }, { type: 'INTEGER' }],
    ['lengths', { type: 'string', minLength: 1, maxLength: 2, pattern: '^(?!a)' }, { type: 'STRING', minLength: 1, maxLength: 2 }],
    ['a format that is taken', { type: 'string', format: 'date-time' }, { type: 'STRING', format: 'date-time' }],
    ['a format that is not', { type: 'string', format: 'email' }, TEXT],
    ['a format of numbers', { type: 'integer', format: 'int64' }, { type: 'INTEGER', format: 'int64' }],
    ['a constant', { const: 'a' }, { type: 'STRING', enum: ['a'] }],
    ['an empty text among others', { enum: ['', 'a'] }, { type: 'STRING', enum: ['a'] }],
    ['listed numbers', { enum: [1, 2], description: 'd' }, { type: 'INTEGER', description: 'd\nOne of: 1, 2.' }],
    ['null beside a type', { type: ['string', 'null'], enum: ['a', null] }, { type: 'STRING', nullable: true, enum: ['a'] }],
    ['null beside branches', { anyOf: [{ type: 'string' }, { type: 'null' }], description: 'd' }, { type: 'STRING', description: 'd', nullable: true }],
    ['null alone', { type: 'null' }, { type: 'STRING', nullable: true }],
    ['several types', { type: ['string', 'integer', 'null'], description: 'd' }, { anyOf: [{ type: 'STRING', description: 'd', nullable: true }, { type: 'INTEGER' }] }],
    ['anything', { description: 'd' }, { anyOf: [{ type: 'STRING', description: 'd' }, { type: 'NUMBER' }, { type: 'BOOLEAN' }, { type: 'OBJECT' }] }],
    ['oneOf', { oneOf: [{ type: 'string', description: 'b' }, { type: 'boolean' }], description: 'd' }, { anyOf: [{ type: 'STRING', description: 'd\nb' }, { type: 'BOOLEAN' }] }],
    ['branches of branches', { anyOf: [{ anyOf: [{ type: 'string' }, { type: 'boolean' }] }, { type: 'string' }] }, { anyOf: [TEXT, { type: 'BOOLEAN' }] }],
    ['branches of one type', { type: 'string', anyOf: [{ const: 'a' }, { minLength: 3 }] }, { anyOf: [{ type: 'STRING', enum: ['a'] }, { type: 'STRING', minLength: 3 }] }],
    ['branches of integers', { type: 'integer', anyOf: [{ minimum: 5 }, { maximum: -5 }] }, { anyOf: [{ type: 'INTEGER', minimum: 5 }, { type: 'INTEGER', maximum: -5 }] }],
    ['branches beside limits', { type: 'string', minLength: 3, anyOf: [{ pattern: 'a' }, { pattern: 'b' }] }, { type: 'STRING', minLength: 3 }],
    ['parts of a text', { allOf: [{ type: 'string', description: 'part' }, { minLength: 2 }], description: 'd' }, { type: 'STRING', description: 'd', minLength: 2 }],
    ['an array of anything', { type: 'array', minItems: 1 }, { type: 'ARRAY', minItems: 1, items: { anyOf: [TEXT, { type: 'NUMBER' }, { type: 'BOOLEAN' }, { type: 'OBJECT' }] } }],
    ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false }, { type: 'ARRAY', maxItems: 2, items: { anyOf: [TEXT, { type: 'NUMBER' }] } }],
    ['a short tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'string' }], items: false, maxItems: 1 }, { type: 'ARRAY', maxItems: 1, items: TEXT }],
    ['a map', { type: 'object', additionalProperties: { type: 'number' }, maxProperties: 3 }, { type: 'OBJECT', maxProperties: 3 }],
    ['a closed object', { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b'], additionalProperties: false }, { type: 'OBJECT', properties: { a: TEXT }, required: ['a'] }],
    ['a property that may not be there', { type: 'object', properties: { a: { type: 'string' }, b: false }, required: ['b'] }, { type: 'OBJECT', properties: { a: TEXT } }],
    [
      'alternatives of what is required',
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      { type: 'OBJECT', properties: { a: TEXT, b: TEXT } },
    ],
    [
      'parts of an object',
      { allOf: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, { properties: { b: { type: 'string' } } }] },
      { type: 'OBJECT', properties: { a: TEXT, b: TEXT }, required: ['a'] },
    ],
    [
      'what a condition lists',
      { type: 'object', properties: { a: { type: 'string' } }, if: { required: ['a'] }, then: { properties: { b: { enum: ['x'] } } } },
      { type: 'OBJECT', properties: { a: TEXT, b: { type: 'STRING', enum: ['x'] } } },
    ],
  ])('B10: has a form for %s', (_name, schema, expected) => {
    expect(property(schema)).toStrictEqual(expected);
    expect(geminiRefusals(expected)).toStrictEqual([]);
  });

  it('B10: opens a recursive schema once inside itself, and tells only its types further in', () => {
    const Node = { type: 'object', description: 'a node', properties: { name: { type: 'string' }, kids: { type: 'array', items: { $ref: '#/$defs/Node' } } }, required: ['kids'] };
    const node = (items: JsonObject): JsonObject => ({ type: 'OBJECT', description: 'a node', properties: { name: TEXT, kids: { type: 'ARRAY', items } }, required: ['kids'] });

    expect(property({ $ref: '#/$defs/Node' }, { $defs: { Node } })).toStrictEqual(node(node({ type: 'OBJECT', description: 'a node' })));
    expect(toGeminiSchema({ $ref: '#/$defs/Node', $defs: { Node } })).toStrictEqual(node(node(node({ type: 'OBJECT', description: 'a node' }))));
    expect(property({ $ref: '#' })).toStrictEqual({ type: 'OBJECT', properties: { p: { type: 'OBJECT' } } });
  });

  it('tells all types of a recursive union where it ends', () => {
    const Value = { anyOf: [{ type: 'number' }, { type: 'object', properties: { of: { $ref: '#/$defs/Value' } } }, { type: 'array', items: { $ref: '#/$defs/Value' } }] };
    const written = JSON.stringify(property({ $ref: '#/$defs/Value' }, { $defs: { Value } }));

    expect(written).toContain('"of":{"anyOf":[{"type":"NUMBER"},{"type":"OBJECT"},{"type":"ARRAY","items":{"type":"OBJECT"}}]}');
  });

  it('stays small where everything refers to everything', () => {
    const names = Array.from({ length: 20 }, (_, index) => `N${index}`);
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/${name}` }]));
    const schema: JsonSchema = { type: 'object', properties, $defs: Object.fromEntries(names.map((name) => [name, { type: 'object', properties }])) };

    expect(JSON.stringify(toGeminiSchema(schema)).length).toBeLessThan(200_000);
  });

  it('B10: takes what zod writes of a discriminated union, at the root and inside', () => {
    const union = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a'), x: z.int() }), z.object({ kind: z.literal('b'), y: z.email() })]);
    const a = { type: 'OBJECT', properties: { kind: { type: 'STRING', enum: ['a'] }, x: { type: 'INTEGER' } }, required: ['kind', 'x'] };
    const b = { type: 'OBJECT', properties: { kind: { type: 'STRING', enum: ['b'] }, y: TEXT }, required: ['kind', 'y'] };

    expect(property(z.toJSONSchema(union))).toStrictEqual({ anyOf: [a, b] });
    expect(toGeminiSchema(z.toJSONSchema(union) as JsonSchema)).toStrictEqual({
      type: 'OBJECT',
      properties: { kind: { type: 'STRING', enum: ['a', 'b'] }, x: { type: 'INTEGER' }, y: TEXT },
      required: ['kind'],
    });
  });
});
