/** defineTool of `turnloop/zod` as a black box: the JSON Schema it shows, what it validates, what it refuses. */
import { describe, expect, it } from 'vitest';
import { defineTool as defineCoreTool, type StandardSchema, type ToolContext } from 'turnloop';
import { defineTool, jsonSchemaOf } from 'turnloop/zod';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';
import { z as z4 } from 'zod/v4';

const execute = (): string => 'ok';
const weather = { name: 'weather', description: 'Current weather of a city.', execute };

/** What the model is told when the arguments are wrong. */
async function complaint(schema: StandardSchema, input: unknown): Promise<string> {
  const tool = defineTool({ ...weather, input: schema });
  try {
    await tool.parseInput?.(input);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return '';
}

describe('defineTool', () => {
  describe('BR-029 the schema shown to the model', () => {
    const expected = {
      type: 'object',
      properties: {
        city: { type: 'string', description: 'City' },
        units: { type: 'string', enum: ['c', 'f'], default: 'c' },
      },
      required: ['city'],
    };

    it.each([
      ['zod', z],
      ['zod/v4', z4],
    ])('BR-029 is whole for a schema of %s, with defaults optional', (_name, { object, string, enum: oneOf }) => {
      const input = object({ city: string().describe('City'), units: oneOf(['c', 'f']).default('c') });

      expect(defineTool({ ...weather, input }).inputSchema).toStrictEqual(expected);
    });

    it('BR-029 is whole for a schema of zod/mini', () => {
      const input = mini.object({ city: mini.string(), units: mini._default(mini.enum(['c', 'f']), 'c') });

      expect(defineTool({ ...weather, input }).inputSchema).toStrictEqual({
        ...expected,
        properties: { ...expected.properties, city: { type: 'string' } },
      });
    });

    it('BR-029 is the one given beside a v3 schema, which still validates', async () => {
      const input = z3.object({ city: z3.string(), units: z3.enum(['c', 'f']).default('c') });

      const tool = defineTool({ ...weather, input, inputSchema: expected });

      expect(tool.inputSchema).toBe(expected);
      expect(await tool.parseInput?.({ city: 'Oslo' })).toStrictEqual({ city: 'Oslo', units: 'c' });
    });

    it('BR-029 is a plain JSON Schema as it is, in the defineTool of turnloop', () => {
      expect(defineCoreTool({ ...weather, input: expected }).inputSchema).toBe(expected);
    });

    it('BR-029 is never empty: a v3 schema alone is refused, with the way out', () => {
      const define = (): unknown => defineTool({ ...weather, input: z3.object({ city: z3.string() }) });

      expect(define).toThrow(TypeError);
      expect(define).toThrow(/tool "weather".*the v3 API of zod.*'zod\/v4'.*inputSchema: \{ type: 'object'/);
    });

    it('BR-029 is never empty: a Standard Schema without JSON Schema is refused, here and in core', () => {
      const input: StandardSchema<string> = {
        '~standard': { version: 1, vendor: 'homemade', validate: () => ({ value: 'x' }) },
      };

      expect(() => defineTool({ ...weather, input })).toThrow(/tool "weather" is not of zod 4.*inputSchema/);
      expect(() => defineCoreTool({ ...weather, input })).toThrow(/tool "weather" \(homemade\).*inputSchema/);
    });

    it.each([
      ['a string', z.string()],
      ['anything', z.any()],
      ['a preprocessed value of unknown shape', z.preprocess((value) => value, z.unknown())],
    ])('BR-029 is never empty: %s is refused, with the way out', (_name, input) => {
      const define = (): unknown => defineTool({ ...weather, input });

      expect(define).toThrow(TypeError);
      expect(define).toThrow(/tool "weather" is not of an object.*z\.object/);
    });

    it.each<[string, unknown[], RegExp]>([
      ['no tool', [], /^defineTool of turnloop\/zod needs the tool: defineTool\(\{ name/],
      ['no schema', [weather], /`input` of tool "weather" is missing/],
      ['no name and no schema', [{}], /`input` of the tool is missing/],
      ['a JSON Schema', [{ ...weather, input: { type: 'object', properties: {} } }], /tool "weather" is not a zod schema\. A JSON Schema goes to the defineTool of 'turnloop'/],
      ['the fields of a schema', [{ ...weather, input: { city: z.string() } }], /tool "weather" is the fields of a zod schema: put z\.object\( … \) around/],
      ['a text', [{ ...weather, input: 'city' }], /tool "weather" is not a zod schema, but a value of type string/],
    ])('BR-029 refuses %s, says why and shows a correct call', (_name, given, message) => {
      const define = (): unknown => Reflect.apply(defineTool, undefined, given);

      expect(define).toThrow(TypeError);
      expect(define).toThrow(message);
      expect(define).toThrow(/defineTool\(\{ name: 'weather', .*input: z\.object/);
    });

    it('allows types without a JSON Schema and tells nothing about them', () => {
      const input = z.object({ since: z.date().optional(), city: z.string().transform((city) => city.length) });

      expect(defineTool({ ...weather, input }).inputSchema).toStrictEqual({
        type: 'object',
        properties: { since: {}, city: { type: 'string' } },
        required: ['city'],
      });
    });

    it('allows unions of objects and recursive objects', () => {
      const union = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]);
      const tree = z.object({
        name: z.string(),
        get children() {
          return z.array(tree);
        },
      });

      expect(defineTool({ ...weather, input: union }).inputSchema).toMatchObject({ oneOf: [{ type: 'object' }, { type: 'object' }] });
      expect(defineTool({ ...weather, input: tree }).inputSchema).toMatchObject({
        type: 'object',
        properties: { children: { type: 'array', items: { $ref: '#' } } },
      });
    });

    it('is plain JSON, and the same object on every look', () => {
      const tool = defineTool({ ...weather, input: z.object({ city: z.string() }) });

      expect(structuredClone(tool.inputSchema)).toStrictEqual(tool.inputSchema);
      expect(tool.inputSchema).toBe(tool.inputSchema);
    });

    it('is the one given beside a zod 4 schema too', () => {
      const inputSchema = { type: 'object', properties: { city: { type: 'string' } } };

      expect(defineTool({ ...weather, input: z.object({ city: z.string() }), inputSchema }).inputSchema).toBe(inputSchema);
    });
  });

  describe('what execute gets', () => {
    it('fills in defaults and applies transforms, also asynchronous ones', async () => {
      const input = z.object({
        city: z.string().transform(async (city) => city.toUpperCase()),
        units: z.enum(['c', 'f']).default('c'),
      });

      expect(await defineTool({ ...weather, input }).parseInput?.({ city: 'Oslo' })).toStrictEqual({ city: 'OSLO', units: 'c' });
    });

    it('KS5 refuses unknown properties where the schema shown says that there are none', async () => {
      const input = z.strictObject({ city: z.string() });

      expect(defineTool({ ...weather, input }).inputSchema['additionalProperties']).toBe(false);
      expect(await complaint(input, { city: 'Oslo', untis: 'c' })).toBe('Unrecognized key: "untis"');
    });

    it('KS5 drops unknown properties where the schema shown lets them through', async () => {
      const input = z.object({ city: z.string() });
      const tool = defineTool({ ...weather, input });

      expect('additionalProperties' in tool.inputSchema).toBe(false);
      expect(await tool.parseInput?.({ city: 'Oslo', untis: 'c' })).toStrictEqual({ city: 'Oslo' });
    });

    it('passes on the other members of the tool', () => {
      const context = {} as ToolContext;
      const tool = defineTool({
        ...weather,
        input: z.object({ city: z.string() }),
        readOnly: true,
        timeoutMs: 1000,
        describe: ({ city }) => `weather of ${city}`,
        execute: ({ city }) => `18 °C in ${city}`,
      });

      expect(tool).toMatchObject({ name: 'weather', description: 'Current weather of a city.', readOnly: true, timeoutMs: 1000 });
      expect(tool.describe?.({ city: 'Oslo' })).toBe('weather of Oslo');
      expect(tool.execute({ city: 'Oslo' }, context)).toBe('18 °C in Oslo');
    });
  });

  describe('what the model is told', () => {
    it('names the path of everything that is wrong', async () => {
      const schema = z.object({ city: z.string(), days: z.array(z.object({ at: z.number() })) });

      expect(await complaint(schema, { days: [{ at: 1 }, { at: 'two' }] })).toBe(
        'city: Invalid input: expected string, received undefined; days.1.at: Invalid input: expected number, received string',
      );
    });

    it('explains a failed union by what each option misses', async () => {
      const schema = z.object({
        where: z.union([z.string(), z.object({ at: z.object({ lat: z.number(), lon: z.number() }) })]),
      });

      expect(await complaint(schema, { where: { at: { lat: '1' } } })).toBe(
        'where: Invalid input: either Invalid input: expected string, received object, ' +
          'or at at.lat: Invalid input: expected number, received string and at at.lon: Invalid input: expected number, received undefined',
      );
    });

    it('explains a union inside of a union', async () => {
      const schema = z.object({ value: z.union([z.boolean(), z.object({ of: z.union([z.number(), z.null()]) })]) });

      expect(await complaint(schema, { value: { of: 'x' } })).toContain(
        'or at of: Invalid input: either Invalid input: expected number, received string, or Invalid input: expected null, received string',
      );
    });

    it('leaves the words of a discriminated union alone', async () => {
      const schema = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]);

      expect(await complaint(schema, { kind: 'c' })).toMatch(/^kind: Invalid discriminator value\. Expected 'a' \| 'b'$/);
    });
  });
});

describe('jsonSchemaOf', () => {
  it('gives the schema of what a model has to write', () => {
    const schema = z.strictObject({ city: z.string(), units: z.enum(['c', 'f']).default('c') });

    expect(jsonSchemaOf(schema)).toStrictEqual({
      type: 'object',
      properties: { city: { type: 'string' }, units: { type: 'string', enum: ['c', 'f'], default: 'c' } },
      required: ['city'],
      additionalProperties: false,
    });
  });

  it('takes answers that are no objects', () => {
    expect(jsonSchemaOf(z.array(z.number()))).toStrictEqual({ type: 'array', items: { type: 'number' } });
  });

  it.each([undefined, 7, { type: 'object' }])('refuses %j', (schema) => {
    expect(() => jsonSchemaOf(schema as never)).toThrow('jsonSchemaOf takes a schema of zod 4');
  });
});
