/** What a tool's schema looks like to Chat Completions, Responses and Messages. */
import * as z from 'zod';
import * as z3 from 'zod/v3';
import { describe, expect, it } from 'vitest';
import { defineTool, type JsonObject, type JsonSchema } from 'turnloop';
import { defineTool as defineZodTool } from 'turnloop/zod';
import { toToolSchema } from '../../src/providers/shared/tool-schema.ts';
import { frozen } from './tool-schema-support.ts';

/** The reduced form, of a schema that must not change. */
function reduced(schema: JsonSchema): JsonSchema {
  return toToolSchema(frozen(schema));
}

/** The reduced form of a property. */
function property(schema: unknown, more: JsonObject = {}): unknown {
  const { properties } = reduced({ type: 'object', properties: { p: schema }, ...more } as JsonSchema);
  return (properties as JsonObject)['p'];
}

const text = { type: 'string' };
const number = { type: 'number' };

describe('a schema that servers take', () => {
  const schemas: readonly JsonSchema[] = [
    { type: 'object', properties: {} },
    { type: 'object', properties: { a: text, c: { type: 'object', properties: { d: text } } }, required: ['a'] },
    { description: 'd', required: ['b'], properties: { b: { description: 'any' } }, additionalProperties: false, type: 'object' },
    { type: 'object', properties: { a: { anyOf: [text, { type: 'null' }] }, b: { type: 'array', items: { type: 'object', oneOf: [{ required: ['x'] }, { required: ['y'] }] } } } },
    { type: 'object', properties: { m: { type: 'object', additionalProperties: { type: ['string', 'null'] }, propertyNames: { pattern: '^x' } } } },
    { type: 'object', properties: { when: { type: 'string', format: 'date-time', default: { $ref: '#/no' }, 'x-order': 1 } } },
  ];

  it.each(schemas.map((schema) => [schema] as const))('BR-047: keeps its text: %j', (schema) => {
    expect(JSON.stringify(reduced(schema))).toBe(JSON.stringify(schema));
  });

  it('KM5: is not touched, and gets the same answer each time', () => {
    const schema = frozen({ type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: text } });

    expect(toToolSchema(schema)).toBe(toToolSchema(schema));
    expect(JSON.stringify(toToolSchema(schema))).toBe(JSON.stringify(toToolSchema(structuredClone(schema))));
  });
});

describe('the root', () => {
  it.each([
    ['nothing', {}, {}],
    ['a list of types', { type: ['object', 'null'], properties: { a: text } }, { a: text }],
    ['nullable', { type: 'object', nullable: true, properties: { a: text } }, { a: text }],
    ['what is no list of properties', { type: 'object', properties: null }, {}],
    ['a condition', { type: 'object', properties: { a: text }, not: { required: ['b'] } }, { a: text }],
    ['a listed value', { type: 'object', properties: { a: text }, enum: [{ a: 'x' }] }, { a: text }],
  ] as readonly (readonly [string, JsonSchema, JsonObject])[])('BR-031: is an object with properties: %s', (_name, schema, properties) => {
    expect(reduced(schema)).toStrictEqual({ type: 'object', properties });
  });

  it('BR-031: requires what all branches require, and nothing that only some do', () => {
    const branch = (...required: string[]): JsonObject => ({ properties: { a: text, b: number }, required });

    expect(reduced({ oneOf: [branch('a', 'b'), branch('b')] })['required']).toStrictEqual(['b']);
    expect(reduced({ anyOf: [branch('a'), branch('b')] })).not.toHaveProperty('required');
    expect(reduced({ required: ['a'], allOf: [branch('b'), branch('a')] })['required']).toStrictEqual(['a', 'b']);
    expect(reduced({ anyOf: [branch('a'), { type: 'null' }] })['required']).toStrictEqual(['a']);
  });

  it('BR-031: tells all values of a property that tells the branches apart', () => {
    const schema = z.toJSONSchema(
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('file'), path: z.string() }),
        z.object({ kind: z.literal('url'), url: z.string(), depth: z.number().optional() }),
      ]),
    ) as JsonSchema;

    expect(reduced(schema)).toStrictEqual({
      type: 'object',
      properties: { kind: { type: 'string', enum: ['file', 'url'] }, path: text, url: text, depth: number },
      required: ['kind'],
    });
  });

  it('BR-031: tells values of several types apart', () => {
    expect(reduced({ oneOf: [{ properties: { kind: { const: 'a' } } }, { properties: { kind: { const: 1 } } }] })['properties']).toStrictEqual({
      kind: { anyOf: [{ const: 'a', type: 'string' }, { const: 1, type: 'integer' }] },
    });
  });

  it('says of a property what one of the branches says, if they differ', () => {
    const properties = { a: { description: 'outer' }, c: text };
    const branches = [{ properties: { a: text, b: text } }, { properties: { a: number, b: {} } }];

    expect(reduced({ properties, anyOf: branches })['properties']).toStrictEqual({
      a: { anyOf: [text, number], description: 'outer' },
      c: text,
      b: {},
    });
  });

  it('describes a property in the words of the whole, and drops definitions that only left parts needed', () => {
    const Node = { properties: { kid: { $ref: '#/$defs/Node' } } };
    const schema = { properties: { a: { description: 'outer' } }, allOf: [{ properties: { a: { ...text, description: 'inner' } } }], not: { $ref: '#/$defs/Node' }, $defs: { Node } };

    expect(reduced(schema)).toStrictEqual({ type: 'object', properties: { a: { ...text, description: 'outer' } } });
  });

  it('does not narrow a property to what a branch says of it, if another branch is silent', () => {
    const schema = { properties: { mode: text }, anyOf: [{ properties: { mode: { const: 'fast' }, speed: number } }, { required: ['slow'] }] };

    expect(reduced(schema)['properties']).toStrictEqual({ mode: text, speed: number });
    const later = { anyOf: [{ properties: { mode: { const: 'fast' } } }, { required: ['slow'] }], oneOf: [{ properties: { mode: text } }] };
    expect(reduced(later)['properties']).toStrictEqual({ mode: text });
  });

  it('tells what conditions are about', () => {
    const schema = { properties: { kind: text }, if: { properties: { kind: { const: 'x' } } }, then: { properties: { kind: { const: 'x' }, size: { minimum: 0 } }, required: ['size'] }, else: { properties: { other: text } } };

    expect(reduced(schema)).toStrictEqual({ type: 'object', properties: { kind: text, size: { minimum: 0, type: 'number' }, other: text } });
  });

  it('requires nothing that a condition requires', () => {
    const then = { properties: { size: number }, required: ['size'] };

    expect(reduced({ if: { required: ['a'] }, then })).toStrictEqual({ type: 'object', properties: { size: number } });
    expect(reduced({ then, else: then, properties: { size: text } })).toStrictEqual({ type: 'object', properties: { size: text } });
  });

  it('finds properties behind references, also recursive ones', () => {
    const $defs = { Node: { properties: { kids: { items: { $ref: '#/$defs/Node' } } } }, Named: { properties: { name: text }, required: ['name'] } };
    const kids = { items: { $ref: '#/$defs/Node' }, type: 'array' };
    const Node = { properties: { kids }, type: 'object' };

    expect(reduced({ allOf: [{ $ref: '#/$defs/Named' }, { $ref: '#/$defs/Node' }], $defs })).toStrictEqual({
      type: 'object',
      properties: { name: text, kids },
      required: ['name'],
      $defs: { Node },
    });
    expect(reduced({ $ref: '#/$defs/Node', description: 'd', $defs })).toStrictEqual({ type: 'object', description: 'd', properties: { kids }, $defs: { Node } });
  });
});

describe('references', () => {
  const definitions = { A: text, 'x/y z~': number, B: { $ref: '#/$defs/A', description: 'b' } };

  it.each([
    ['#/$defs/A', { $defs: definitions }, text],
    ['#/definitions/A', { definitions }, text],
    ['#/$defs/B', { $defs: definitions }, { ...text, description: 'b' }],
    ['#/$defs/x~1y%20z~0', { $defs: definitions }, number],
    ['#/properties/q/anyOf/1', { properties: { q: { anyOf: [text, number] } } }, number],
    ['#/components/schemas/A', { components: { schemas: definitions } }, text],
    ['#named', { $defs: { N: { $anchor: 'named', ...text } } }, text],
    ['#named', { definitions: { N: { $id: '#named', ...text } } }, text],
    ['https://example.com/inner.json', { $defs: { N: { $id: 'https://example.com/inner.json', ...text } } }, text],
    ['https://example.com/inner.json#/$defs/Deep', { $defs: { N: { $id: 'https://example.com/inner.json', $defs: { Deep: number } } } }, number],
    ['https://example.com/outer.json#/$defs/A', { $id: 'https://example.com/outer.json', $defs: definitions }, text],
    ['#/$defs/N/properties/v', { $defs: { X: text, N: { $id: 'inner', $defs: { X: number }, properties: { v: { $ref: '#/$defs/X' } } } } }, number],
    ['#/$defs/N/properties/v', { $defs: { X: text, N: { $id: 'inner', properties: { v: { $ref: '#/$defs/X' } } } } }, text],
    ['#/$defs/Yes', { $defs: { Yes: true } }, {}],
    ['#/$defs/No', { $defs: { No: false } }, { not: {} }],
  ] as readonly (readonly [string, JsonObject, unknown])[])('B10 KM5: %s in %j is inlined', (reference, more, expected) => {
    const { properties, ...rest } = more;
    const schema = reduced({ type: 'object', properties: { ...(properties as JsonObject | undefined), p: { $ref: reference } }, ...rest });

    expect((schema['properties'] as JsonObject)['p']).toStrictEqual(expected);
    expect(schema).not.toHaveProperty('$defs');
    expect(schema).not.toHaveProperty('definitions');
  });

  it('B10: are inlined wherever they stand, and never taken for one where data or names stand', () => {
    const ref = { $ref: '#/$defs/A' };
    const places = { items: ref, prefixItems: [ref], additionalProperties: ref, patternProperties: { '^x': ref }, not: ref, if: ref, then: ref, contains: ref, propertyNames: ref, dependentSchemas: { a: ref }, allOf: [ref], unevaluatedProperties: ref };
    const data = { default: ref, enum: [ref], examples: [ref], 'x-own': ref };

    const { allOf, then, not } = property(places, { $defs: { A: text } }) as JsonObject;
    expect(JSON.stringify(property(places, { $defs: { A: text } }))).not.toContain('$ref');
    expect([allOf, then, not]).toStrictEqual([[text], text, text]);
    expect(property({ type: 'object', ...data }, { $defs: { A: text } })).toStrictEqual({ type: 'object', ...data });
    expect(property({ type: 'object', properties: { $ref: text, items: text } })).toStrictEqual({ type: 'object', properties: { $ref: text, items: text } });
  });

  it.each([
    [{ description: 'use', default: 1 }, { type: 'integer', minimum: 0, title: 'T', description: 'use', default: 1 }],
    [{ maximum: 9 }, { type: 'integer', minimum: 0, title: 'T', description: 'def', maximum: 9 }],
    [{ minimum: 5 }, { minimum: 5, allOf: [{ type: 'integer', minimum: 0, title: 'T', description: 'def' }], type: 'integer' }],
    [{ exclusiveMinimum: 5, description: 'use' }, { exclusiveMinimum: 5, description: 'use', allOf: [{ type: 'integer', minimum: 0, title: 'T', description: 'def' }], type: 'integer' }],
  ])('KM5: keywords beside a reference are kept and hold as well: %j', (siblings, expected) => {
    const A = { type: 'integer', minimum: 0, title: 'T', description: 'def' };

    expect(property({ $ref: '#/$defs/A', ...siblings }, { $defs: { A } })).toStrictEqual(expected);
  });

  it('KM5: properties beside a reference do not open a closed object', () => {
    const Base = { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false };

    expect(property({ $ref: '#/$defs/Base', properties: { b: text } }, { $defs: { Base } })).toStrictEqual({ properties: { b: text }, allOf: [Base], type: 'object' });
    expect(property({ $ref: '#/$defs/Base', required: ['b'] }, { $defs: { Base } })).toStrictEqual({ ...Base, required: ['a', 'b'] });
    const Sealed = { type: 'object', unevaluatedProperties: false };
    const anyOf = [{ properties: { a: text } }];
    expect(property({ $ref: '#/$defs/Sealed', anyOf }, { $defs: { Sealed } })).toStrictEqual({ anyOf, type: 'object', allOf: [Sealed] });
  });

  it('lead nowhere out of the document: nothing is fetched, and what stands beside stays', () => {
    for (const reference of ['https://example.com/x.json', 'file:///etc/passwd', '#/$defs/Missing', '#missing', '#/description', '#/$defs/%ZZ', '']) {
      const schema = { description: 'about', type: 'object', properties: { p: { $ref: reference, description: 'd', ...text } } };
      const expected = reference === '' ? { $ref: '#', description: 'd', ...text } : { description: 'd', ...text };
      expect((reduced(schema)['properties'] as JsonObject)['p']).toStrictEqual(expected);
    }
  });
});

describe('recursion', () => {
  it('KM5: keeps a cycle as a reference to a definition, and drops the definitions that nothing needs', () => {
    const schema = {
      type: 'object',
      properties: { tree: { $ref: '#/definitions/Node', description: 'whole' }, name: { $ref: '#/definitions/Name' } },
      definitions: { Node: { type: 'object', properties: { name: { $ref: '#/definitions/Name' }, kids: { type: 'array', items: { $ref: '#/definitions/Node' } } } }, Name: text, Unused: { $ref: '#/definitions/Node' } },
    };

    expect(reduced(schema)).toStrictEqual({
      type: 'object',
      properties: { tree: { $ref: '#/$defs/Node', description: 'whole' }, name: text },
      $defs: { Node: { type: 'object', properties: { name: text, kids: { type: 'array', items: { $ref: '#/$defs/Node' } } } } },
    });
  });

  it.each([
    ['the root', { type: 'object', properties: { kid: { $ref: '#' } } }, { type: 'object', properties: { kid: { $ref: '#' } } }],
    ['the root by its name', { $id: 'T0', type: 'object', properties: { kid: { $ref: 'T0' } } }, { type: 'object', properties: { kid: { $ref: '#' } } }],
    ['a dynamic root', { $dynamicAnchor: 'node', type: 'object', properties: { kid: { $dynamicRef: '#node' } } }, { type: 'object', properties: { kid: { $ref: '#' } } }],
    ['the root of draft 2019-09', { $recursiveAnchor: true, type: 'object', properties: { kid: { $recursiveRef: '#' } } }, { type: 'object', properties: { kid: { $ref: '#' } } }],
    [
      'a property',
      { type: 'object', properties: { t: { type: 'object', properties: { kid: { $ref: '#/properties/t' } } } } },
      { type: 'object', properties: { t: { type: 'object', properties: { kid: { $ref: '#/$defs/t' } } } }, $defs: { t: { type: 'object', properties: { kid: { $ref: '#/$defs/t' } } } } },
    ],
    [
      'two definitions by turns',
      { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { type: 'object', properties: { b: { $ref: '#/$defs/B' } } }, B: { type: 'array', items: { $ref: '#/$defs/A' } } } },
      { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { type: 'object', properties: { b: { $ref: '#/$defs/B' } } }, B: { type: 'array', items: { $ref: '#/$defs/A' } } } },
    ],
  ] as readonly (readonly [string, JsonSchema, JsonSchema])[])('KM5: is told in references within the document: %s', (_name, schema, expected) => {
    expect(reduced(schema)).toStrictEqual(expected);
    expect(toToolSchema(structuredClone(expected))).toStrictEqual(expected);
  });

  it('two definitions that would have the same name get one each', () => {
    const list = (reference: string): JsonObject => ({ type: 'array', items: { $ref: reference } });
    const schema = { type: 'object', properties: { A: list('#/properties/A'), other: { $ref: '#/$defs/A' } }, $defs: { A: { type: 'object', properties: { again: { $ref: '#/$defs/A' } } } } };

    expect(reduced(schema)['$defs']).toStrictEqual({ A: list('#/$defs/A'), A_2: { type: 'object', properties: { again: { $ref: '#/$defs/A_2' } } } });
  });

  it.each([
    [{ A: { $ref: '#/$defs/A', description: 'd' } }, { description: 'd' }],
    [{ A: { $ref: '#/$defs/B', ...text }, B: { $ref: '#/$defs/A' } }, text],
    [{ A: { allOf: [{ $ref: '#/$defs/A' }, text] } }, { allOf: [{}, text] }],
  ])('a reference that leads back to itself without a value in between says nothing: %j', ($defs, expected) => {
    const { properties, ...rest } = reduced({ type: 'object', properties: { p: { $ref: '#/$defs/A' } }, $defs });

    expect(properties).toStrictEqual({ p: expected });
    expect(rest).toStrictEqual({ type: 'object' });
  });
});

describe('older drafts', () => {
  it.each([
    ['a tuple', { type: 'array', items: [text, number], additionalItems: false }, { type: 'array', prefixItems: [text, number], items: false }],
    ['a tuple with a rest', { items: [text], additionalItems: number }, { prefixItems: [text], items: number, type: 'array' }],
    ['a tuple of nothing', { items: [] }, { type: 'array', items: {} }],
    ['a sealed tuple', { type: 'array', items: [text], unevaluatedItems: false }, { type: 'array', prefixItems: [text], unevaluatedItems: false }],
    ['items beyond no tuple', { type: 'array', items: text, additionalItems: false }, { type: 'array', items: text }],
    ['an exclusive limit', { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false }, { type: 'integer', exclusiveMinimum: 1, maximum: 9 }],
    ['an exclusive limit without one', { type: 'integer', exclusiveMaximum: true }, { type: 'integer' }],
    ['dependencies', { type: 'object', dependencies: { a: ['b'], c: { required: ['d'] } } }, { type: 'object', dependentRequired: { a: ['b'] }, dependentSchemas: { c: { required: ['d'] } } }],
    ['a required flag', { type: 'string', required: true }, text],
    ['names of its own', { $schema: 'http://json-schema.org/draft-07/schema#', $id: 'x', ...text }, text],
    ['nothing for null', { type: 'array', items: null, description: null, required: null, enum: null }, { type: 'array', items: {} }],
    ['a property that is no schema', { type: 'object', properties: { a: null, b: ['x'], c: text } }, { type: 'object', properties: { a: {}, b: {}, c: text } }],
    ['a choice of nothing', { type: 'string', anyOf: [], oneOf: [], allOf: {} }, text],
    ['keywords without a value', { description: 'd', items: undefined, minimum: undefined, const: undefined }, { description: 'd' }],
    ['true', true, {}],
    ['false', false, { not: {} }],
    ['booleans inside', { type: 'object', properties: { a: true }, additionalProperties: false, patternProperties: { x: false } }, { type: 'object', properties: { a: {} }, additionalProperties: false, patternProperties: { x: { not: {} } } }],
    ['types in capitals', { type: 'STRING' }, text],
    ['types that do not exist', { type: ['str', 'string', 'string'], minLength: 1 }, { type: ['string'], minLength: 1 }],
  ])('B10: become draft 2020-12: %s', (_name, schema, expected) => {
    expect(property(schema)).toStrictEqual(expected);
  });

  it.each([
    [{ type: 'string', nullable: true, description: 'd' }, { type: ['string', 'null'], description: 'd' }],
    [{ type: 'string', nullable: false }, text],
    [{ type: 'string', enum: ['a'], nullable: true }, { type: ['string', 'null'], enum: ['a', null] }],
    [{ enum: ['a', null], nullable: true }, { enum: ['a', null], type: ['string', 'null'] }],
    [{ anyOf: [text, number], nullable: true, description: 'd' }, { anyOf: [text, number, { type: 'null' }], description: 'd' }],
    [{ $ref: '#/$defs/A', nullable: true }, { type: ['string', 'null'], minLength: 1 }],
    [{ anyOf: [text, { type: 'null' }], nullable: true }, { anyOf: [text, { type: 'null' }] }],
    [{ const: 'a', type: 'string', nullable: true, title: 't' }, { title: 't', anyOf: [{ const: 'a', type: 'string' }, { type: 'null' }] }],
    [{ nullable: true }, {}],
  ])('B10: %j admits null where it says so', (schema, expected) => {
    expect(property(schema, { $defs: { A: { type: 'string', minLength: 1 } } })).toStrictEqual(expected);
  });
});

describe('types', () => {
  it.each([
    [{ enum: ['a', 'b'] }, 'string'],
    [{ enum: [1, 2] }, 'integer'],
    [{ enum: [1, 2.5] }, 'number'],
    [{ enum: ['a', null] }, ['string', 'null']],
    [{ const: true }, 'boolean'],
    [{ const: null }, 'null'],
    [{ enum: [[1]] }, 'array'],
    [{ properties: { a: text } }, 'object'],
    [{ required: ['a'] }, 'object'],
    [{ additionalProperties: text }, 'object'],
    [{ items: text }, 'array'],
    [{ minLength: 1 }, 'string'],
    [{ multipleOf: 2 }, 'number'],
  ])('KM5: are found in values and structure: %j', (schema, type) => {
    expect(property(schema)).toMatchObject({ ...schema, type });
  });

  it.each([
    { description: 'anything' },
    { minLength: 1, minimum: 1 },
    { format: 'uuid' },
    { properties: { a: text }, anyOf: [text, { type: 'object' }] },
    { not: { required: ['a'] } },
    { not: { properties: { a: { minLength: 1 } } } },
    { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
  ])('KM5: are not made up where none is clear: %j', (schema) => {
    expect(property(schema)).toStrictEqual(schema);
  });

  it('KM5: are not made up beside a recursive reference', () => {
    const Rec = { anyOf: [text, { type: 'array', items: { $ref: '#/$defs/Rec' } }] };

    expect(property({ $ref: '#/$defs/Rec', minItems: 1 }, { $defs: { Rec } })).toStrictEqual({ $ref: '#/$defs/Rec', minItems: 1 });
  });

  it('KM5: are found inside branches of any type, but not for a branch of a type', () => {
    expect(property({ anyOf: [{ minLength: 1 }, { properties: { a: { enum: [1] } } }] })).toStrictEqual({
      anyOf: [{ minLength: 1, type: 'string' }, { properties: { a: { enum: [1], type: 'integer' } }, type: 'object' }],
    });
  });

  it.each([
    ['values of another type', { type: 'string', enum: [1, 2] }, { type: 'integer', enum: [1, 2] }],
    ['an object of texts', { type: 'object', enum: ['a'] }, { type: 'string', enum: ['a'] }],
    ['a value of another type', { type: 'string', const: false }, { type: 'boolean', const: false }],
    ['a value too many', { type: 'string', enum: ['a', 1, null] }, { type: 'string', enum: ['a'] }],
    ['a number that is no integer', { type: 'integer', enum: [1, 2.5] }, { type: 'integer', enum: [1] }],
    ['an array of nothing', { type: 'array' }, { type: 'array', items: {} }],
    ['a text or an array of nothing', { type: ['string', 'array'] }, { type: ['string', 'array'], items: {} }],
  ])('KM5: that do not fit are repaired: %s', (_name, schema, expected) => {
    expect(property(schema)).toStrictEqual(expected);
  });

  it('KM5: a list of values of several types, which some servers refuse, has a branch for each', () => {
    const schema = z.toJSONSchema(z.object({ p: z.literal([1, 'a', null, 'b']).describe('d') })) as JsonSchema;

    expect((reduced(schema)['properties'] as JsonObject)['p']).toStrictEqual({
      description: 'd',
      anyOf: [{ type: 'integer', enum: [1] }, { type: 'string', enum: ['a', 'b'] }, { type: 'null' }],
    });
    expect(property({ type: ['string', 'integer'], enum: ['a', 1] })).toStrictEqual({ type: ['string', 'integer'], enum: ['a', 1] });
    const anyOf = [{ minLength: 1 }, { minimum: 1 }];
    expect(property({ enum: ['a', 1], anyOf })).toStrictEqual({ enum: ['a', 1], anyOf, type: ['string', 'integer'] });
  });
});

describe('hostile schemas', () => {
  it('law 12: names that prototypes have are names', () => {
    const schema = JSON.parse(
      '{"properties":{"__proto__":{"$ref":"#/$defs/__proto__"},"constructor":{"$ref":"#/$defs/constructor"},"toString":{"$ref":"#/$defs/toString"}},"$defs":{"__proto__":{"type":"string"},"constructor":{"type":"array","items":{"$ref":"#/$defs/constructor"}}}}',
    ) as JsonSchema;

    expect(JSON.stringify(reduced(schema))).toBe(
      '{"properties":{"__proto__":{"type":"string"},"constructor":{"$ref":"#/$defs/constructor"},"toString":{}},"type":"object","$defs":{"constructor":{"type":"array","items":{"$ref":"#/$defs/constructor"}}}}',
    );
  });

  it.each(['allOf', 'anyOf', 'oneOf'])('looks into definitions once, however many ways lead to them (%s)', (keyword) => {
    const levels = 60;
    const both = (at: number): JsonSchema => ({ [keyword]: [{ $ref: `#/$defs/d${at}` }, { $ref: `#/$defs/d${at}` }] });
    const $defs = Object.fromEntries(Array.from({ length: levels }, (_, at) => [`d${at}`, at === levels - 1 ? { type: 'object', properties: { a: { type: 'string' } } } : both(at + 1)]));
    const cyclic = { ...$defs, [`d${levels - 1}`]: both(0) };

    // 2^60 ways would outlast any time limit.
    expect(reduced({ type: 'object', allOf: [{ $ref: '#/$defs/d0' }], $defs })).toMatchObject({ properties: { a: { type: 'string' } } });
    expect(reduced({ type: 'object', allOf: [{ $ref: '#/$defs/d0' }], $defs: cyclic })).toMatchObject({ type: 'object' });
  });

  it('keeps the references of definitions that would double with each step', () => {
    const names = Array.from({ length: 60 }, (_, index) => `d${index}`);
    const $defs = Object.fromEntries(names.map((name, index) => [name, index === 59 ? text : { type: 'object', properties: { a: { $ref: `#/$defs/d${index + 1}` }, b: { $ref: `#/$defs/d${index + 1}` } } }]));
    const bomb: JsonSchema = { type: 'object', properties: { x: { $ref: '#/$defs/d0' } }, $defs };

    expect(reduced(bomb)).toStrictEqual(bomb);
  });

  it('keeps the references of a chain that would be nested too deep, and of very many definitions', () => {
    const chain = (length: number, link: (next: JsonObject) => JsonObject): JsonSchema => {
      const $defs = Object.fromEntries(Array.from({ length }, (_, index) => [`d${index}`, index + 1 === length ? text : link({ $ref: `#/$defs/d${index + 1}` })]));
      return { type: 'object', properties: { x: { $ref: '#/$defs/d0' } }, $defs };
    };
    const deep = chain(150, (next) => ({ type: 'array', items: next }));
    const many = chain(3000, (next) => next);

    expect(reduced(deep)).toStrictEqual(deep);
    // Also where its end was seen before.
    const properties = { end: { $ref: '#/$defs/d80' }, x: { $ref: '#/$defs/d0' } };
    expect(reduced({ ...deep, properties })).toStrictEqual({ ...deep, properties });
    expect(Object.keys(reduced(many)['$defs'] as JsonObject)).toHaveLength(3000);
    expect(reduced(chain(900, (next) => next))).toStrictEqual({ type: 'object', properties: { x: text } });
  });

  it('cuts what is nested without end, and objects that contain themselves', () => {
    let deep: JsonObject = text;
    for (let level = 0; level < 20_000; level += 1) deep = { type: 'object', properties: { d: deep } };
    const properties: Record<string, unknown> = {};
    const endless = { type: 'object', properties };
    Object.assign(properties, { a: endless, b: endless, c: { $ref: '#/properties/a' } });

    expect(JSON.stringify(toToolSchema(deep)).length).toBeLessThan(10_000);
    expect(JSON.stringify(toToolSchema(endless as unknown as JsonSchema)).length).toBeLessThan(1_000_000);
  });
});

describe('schemas of libraries', () => {
  const expected = {
    type: 'object',
    properties: { city: { type: 'string', description: 'City' }, units: { type: 'string', enum: ['c', 'f'], default: 'c' } },
    required: ['city'],
  };
  const execute = (): string => '';
  const head = { name: 'weather', description: 'd', execute };
  const v4 = z.object({ city: z.string().describe('City'), units: z.enum(['c', 'f']).default('c') });
  const v3 = z3.object({ city: z3.string().describe('City'), units: z3.enum(['c', 'f']).default('c') });
  const asJsonSchema = { ...expected, $schema: 'http://json-schema.org/draft-07/schema#' };

  it.each([
    ['zod 4', () => defineTool({ ...head, input: v4 }).inputSchema],
    ['zod 4, by the door for it', () => defineZodTool({ ...head, input: v4 }).inputSchema],
    ['a JSON Schema', () => defineTool({ ...head, input: asJsonSchema }).inputSchema],
  ])('BR-029: tell the model the same: %s', (_name, schema) => {
    expect(reduced(schema())).toStrictEqual(expected);
  });

  it('BR-029: a schema that gives no JSON Schema never becomes an empty one', () => {
    expect(() => defineTool({ ...head, input: v3 })).toThrow(TypeError);
    expect(() => defineZodTool({ ...head, input: v3 })).toThrow(TypeError);
  });

  it('KS5: a closed object stays closed', () => {
    const schema = z.toJSONSchema(z.strictObject({ a: z.strictObject({ b: z.string() }) }), { io: 'input' }) as JsonSchema;

    expect(reduced(schema)).toMatchObject({ additionalProperties: false, properties: { a: { additionalProperties: false } } });
  });

  it('BR-158: an id that may be a text or an integer stays one', () => {
    expect(property({ anyOf: [text, { type: 'integer' }] })).toStrictEqual({ anyOf: [text, { type: 'integer' }] });
    expect(property({ type: ['string', 'integer'] })).toStrictEqual({ type: ['string', 'integer'] });
  });

  it('an MCP server of another language: nullable by anyOf, shared and nested definitions, titles', () => {
    const schema = {
      $defs: {
        Option: { properties: { label: { title: 'Label', type: 'string' } }, required: ['label'], title: 'Option', type: 'object' },
        Question: { properties: { options: { items: { $ref: '#/$defs/Option' }, title: 'Options', type: 'array' } }, required: ['options'], title: 'Question', type: 'object' },
      },
      properties: { question: { $ref: '#/$defs/Question' }, fallback: { anyOf: [{ $ref: '#/$defs/Option' }, { type: 'null' }], default: null } },
      required: ['question'],
      title: 'askArguments',
      type: 'object',
    };
    const { Option } = schema.$defs;

    expect(reduced(schema)).toStrictEqual({
      properties: {
        question: { properties: { options: { items: Option, title: 'Options', type: 'array' } }, required: ['options'], title: 'Question', type: 'object' },
        fallback: { anyOf: [Option, { type: 'null' }], default: null },
      },
      required: ['question'],
      title: 'askArguments',
      type: 'object',
    });
  });
});
