/** Reduced tool schemas mean what the given ones mean, whatever refers to what. */
import fc from 'fast-check';
import * as z from 'zod';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonSchema } from 'turnloop';
import { toToolSchema } from '../../src/providers/shared/tool-schema.ts';
import { anyArguments, anySchema, fits, frozen, inOlderWords, referencesIn } from './tool-schema-support.ts';

const manyArguments = fc.array(anyArguments, { minLength: 20, maxLength: 20 });

/** Whether the references of a definition lead back to it. */
function isRecursive(name: string, definitions: JsonObject): boolean {
  const seen = new Set<string>();
  const open = [...referencesIn(definitions[name])];
  for (let reference = open.pop(); reference !== undefined; reference = open.pop()) {
    const next = reference.replace('#/$defs/', '');
    if (next === name || next === '#') return true;
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...referencesIn(definitions[next]));
  }
  return false;
}

describe('a reduced schema', () => {
  it('KM5 fits the same values as the given one, which stays as it is', () => {
    const seen = { fitting: 0, others: 0 };
    fc.assert(
      fc.property(anySchema, manyArguments, (schema, values) => {
        const before = JSON.stringify(schema);
        const result = toToolSchema(frozen(schema));

        for (const value of values) {
          const isFitting = fits(schema, value);
          seen[isFitting ? 'fitting' : 'others'] += 1;
          expect(fits(result, value), JSON.stringify({ schema, value, result })).toBe(isFitting);
        }
        expect(JSON.stringify(schema)).toBe(before);
      }),
      { numRuns: 2000 },
    );
    expect(Math.min(seen.fitting, seen.others)).toBeGreaterThan(5000);
  });

  it('KM5 has references to what is recursive only, and no other definitions', () => {
    fc.assert(
      fc.property(anySchema, (schema) => {
        const { $defs = {}, ...root } = toToolSchema(schema);
        const definitions = $defs as JsonObject;
        const references = new Set(referencesIn({ root, $defs }));

        expect([...references].filter((reference) => reference !== '#' && !isRecursive(reference.replace('#/$defs/', ''), definitions))).toStrictEqual([]);
        expect([...references].filter((reference) => reference !== '#').sort()).toStrictEqual(Object.keys(definitions).map((name) => `#/$defs/${name}`).sort());
      }),
      { numRuns: 2000 },
    );
  });

  it('law 11: is reduced as far as it goes, and has the same text each time', () => {
    fc.assert(
      fc.property(anySchema, (schema) => {
        const text = JSON.stringify(toToolSchema(schema));

        expect(JSON.stringify(toToolSchema(JSON.parse(text) as JsonSchema))).toBe(text);
        expect(JSON.stringify(toToolSchema(structuredClone(schema)))).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('B10 is the same for older words', () => {
    fc.assert(
      fc.property(anySchema, (schema) => {
        expect(toToolSchema(inOlderWords(schema) as JsonSchema)).toEqual(toToolSchema(schema));
      }),
      { numRuns: 1000 },
    );
  });

  it('BR-031 takes what a root of closed branches takes, and what a root of parts takes', () => {
    const asRoot = (parts: readonly JsonSchema[], keyword: string): JsonSchema => ({
      [keyword]: parts.map(({ $defs: _unused, ...part }) => ({ ...part, ...(keyword === 'allOf' ? { additionalProperties: true } : { additionalProperties: false }) })),
      $defs: parts[0]!['$defs']!,
    });
    let taken = 0;
    fc.assert(
      fc.property(fc.array(anySchema, { minLength: 1, maxLength: 3 }), fc.constantFrom('anyOf', 'oneOf', 'allOf'), manyArguments, (parts, keyword, values) => {
        // In a part, `#` is now a union, of which the reduced root is only an outline.
        fc.pre(!referencesIn(parts).includes('#'));
        const schema = asRoot(parts, keyword);
        const result = toToolSchema(frozen(schema));

        expect(Object.keys(result).filter((key) => ['anyOf', 'oneOf', 'allOf', '$ref'].includes(key))).toStrictEqual([]);
        for (const value of values.filter((each) => fits(schema, each))) {
          taken += 1;
          expect(fits(result, value), JSON.stringify({ schema, value, result })).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
    expect(taken).toBeGreaterThan(1000);
  });
});

describe('schemas that zod writes', () => {
  interface Tree {
    readonly a: string;
    readonly b: readonly Tree[];
  }
  const Tree: z.ZodType<Tree> = z.object({ a: z.string(), get b() { return z.array(Tree); } });
  const Named = z.object({ a: z.string().min(1) }).meta({ id: 'Named' });
  const samples = {
    nested: z.object({ a: z.object({ b: z.array(z.number()).optional() }), b: z.string().nullable().optional() }),
    recursive: Tree,
    'recursive inside': z.object({ a: Tree.optional(), c: Named.optional() }),
    union: z.object({ a: z.union([z.string(), z.number().positive(), Named]) }),
    intersection: z.object({ a: z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() })), b: Named.optional() }),
    'shared definitions': z.object({ a: Named, b: Named.describe('again').optional(), c: z.array(Named).optional() }),
    tuple: z.object({ a: z.tuple([z.string(), z.number()]), b: z.tuple([z.boolean()]).rest(z.null()).optional() }),
    literals: z.object({ a: z.literal([1, 'x', null]), b: z.enum(['x', 'xx']).optional(), c: z.literal(true).optional() }),
    closed: z.strictObject({ a: z.strictObject({ b: z.number() }).optional() }),
    map: z.object({ a: z.record(z.string(), z.number()) }),
  } as const;

  const cases = Object.entries(samples).flatMap(([name, sample]) =>
    (['draft-2020-12', 'draft-7', 'draft-4', 'openapi-3.0'] as const).flatMap((target) => (['inline', 'ref'] as const).map((reused) => [name, target, reused, sample] as const)),
  );

  it.each(cases)('B10: %s, in %s, shared schemas %s', (_name, target, reused, sample) => {
    const schema = z.toJSONSchema(sample, { target, reused, io: 'input' }) as JsonSchema;
    const result = toToolSchema(frozen(schema));

    expect(result['type']).toBe('object');
    expect(referencesIn(result).filter((reference) => !/^#(\/\$defs\/.*)?$/.test(reference))).toStrictEqual([]);
    fc.assert(
      fc.property(anyArguments, (value) => {
        // OpenAPI 3.0 has no tuples: zod says less there.
        const isToldWhole = target !== 'openapi-3.0';
        const isFitting = sample.safeParse(value).success;
        if (isFitting || isToldWhole) expect(fits(result, value), JSON.stringify({ schema, value, result })).toBe(isFitting);
      }),
      { numRuns: 300 },
    );
  });
});
