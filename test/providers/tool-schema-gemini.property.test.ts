/** Schemas in Gemini's words take what the given ones take, and only words that Gemini knows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonSchema, JsonValue } from 'turnloop';
import { toGeminiSchema } from '../../src/providers/shared/tool-schema-gemini.ts';
import { anyArguments, anySchema, fits, frozen, geminiRefusals } from './tool-schema-support.ts';

/** What was written, in the words of JSON Schema again. */
function asJsonSchema(schema: JsonValue): JsonSchema {
  const { type, nullable, description: _description, properties, items, anyOf, enum: values, ...rest } = schema as JsonObject;
  return {
    ...rest,
    ...(type !== undefined && { type: nullable === true ? [(type as string).toLowerCase(), 'null'] : (type as string).toLowerCase() }),
    ...(values !== undefined && { enum: nullable === true ? [...(values as JsonValue[]), null] : values }),
    ...(properties !== undefined && { properties: Object.fromEntries(Object.entries(properties as JsonObject).map(([name, each]) => [name, asJsonSchema(each)])) }),
    ...(items !== undefined && { items: asJsonSchema(items) }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map(asJsonSchema) }),
  };
}

/** The same schema, with all values where it takes any: of arrays Gemini is told nothing there. */
function withAnyValue(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return (schema as readonly JsonValue[]).map(withAnyValue);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf } = schema as JsonObject;
  const types = Array.isArray(anyOf) ? (anyOf as readonly JsonObject[]).map((branch) => [branch['type']].flat()[0]) : [];
  if (['string', 'number', 'boolean', 'object'].every((type) => types.includes(type))) return {};
  return Object.fromEntries(Object.entries(schema).map(([key, each]) => [key, withAnyValue(each)]));
}

/** Schemas whose objects have branches: of those, one that is silent about a property does not keep another from it. */
function hasBranchedObjects(schema: JsonSchema): boolean {
  return JSON.stringify(schema).includes('"allOf"');
}

describe('any schema', () => {
  it('B10: has a form that a server knows, and that takes whatever the tool takes', () => {
    let taken = 0;
    fc.assert(
      fc.property(anySchema, fc.array(anyArguments, { minLength: 20, maxLength: 20 }), (schema, values) => {
        const before = JSON.stringify(schema);
        const written = toGeminiSchema(frozen(schema));

        expect(written === undefined ? [] : geminiRefusals(written)).toStrictEqual([]);
        expect(JSON.stringify(schema)).toBe(before);
        if (hasBranchedObjects(schema)) return;
        for (const value of values.filter((each) => fits(schema, each))) {
          taken += 1;
          expect(fits(written === undefined ? {} : (withAnyValue(asJsonSchema(written)) as JsonSchema), value), JSON.stringify({ schema, value, written })).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
    expect(taken).toBeGreaterThan(1000);
  });
});
