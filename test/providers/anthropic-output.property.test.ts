/** Schemas of structured answers, as properties: closing them forbids no answer that is meant, and allows no other. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isLLMError, type JsonObject, type JsonSchema, type JsonValue } from 'turnloop';
import { messagesOn, OK } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';
import { fits, frozen } from './tool-schema-support.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

const NAMES = ['a', 'b', 'c', '__proto__'];
const $defs = { one: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, two: { properties: { d: { type: 'number' } } } };

/** Objects that are described in one place or in several, with texts, numbers and objects in them. */
const { schema } = fc.letrec<{ schema: JsonObject; plain: JsonObject; joined: JsonObject }>((tie) => {
  const leaf = fc.constantFrom<JsonObject>({ type: 'string' }, { type: 'number' }, { type: 'string', minLength: 1 });
  const property = fc.tuple(fc.constantFrom(...NAMES), fc.oneof({ weight: 3, arbitrary: leaf }, { weight: 1, arbitrary: tie('schema') }));
  const part = fc.oneof(tie('plain'), fc.constantFrom<JsonObject>({ $ref: '#/$defs/one' }, { $ref: '#/$defs/two' }, { required: ['a'] }), tie('joined'));
  return {
    plain: fc.record({ properties: fc.uniqueArray(property, { selector: ([name]) => name, maxLength: 3 }), required: fc.subarray(NAMES), closed: fc.nat(5) }).map(
      ({ properties, required, closed }): JsonObject => ({
        type: 'object',
        properties: Object.fromEntries(properties),
        required: required.filter((name) => properties.some(([known]) => known === name)),
        ...(closed === 0 && { additionalProperties: false }),
      }),
    ),
    joined: fc
      .tuple(fc.constantFrom('allOf', 'anyOf'), fc.array(part, { minLength: 1, maxLength: 3 }), fc.option(tie('plain')))
      .map(([keyword, branches, base]): JsonObject => ({ ...base, [keyword]: branches })),
    schema: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('plain'), tie('joined')),
  };
});

const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonValue>('x', 1, ''),
    fc.uniqueArray(fc.tuple(fc.constantFrom(...NAMES, 'd', 'z'), tie('value')), { selector: ([name]) => name }).map((list): JsonValue => Object.fromEntries(list)),
  ),
}));

/** The schema that a request has; undefined if there is no request. */
async function sentSchema(responseSchema: JsonSchema): Promise<JsonSchema | undefined> {
  const fake = fakeServer(OK);
  try {
    await messagesOn(fake).chat(request(undefined, { responseSchema }));
  } catch (error) {
    if (isLLMError(error) && error.code === 'schema_open') return undefined;
    throw error;
  }
  return (fake.sent[0]!.body['output_config'] as { format: { schema: JsonSchema } }).format.schema;
}

it('AN9: what fits the schema that is sent fits the one that was given', async () => {
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(schema, fc.array(value, { minLength: 20, maxLength: 20 }), async (root, values) => {
      const given = frozen({ ...root, $defs });
      const sent = await sentSchema(given);
      for (const each of sent === undefined ? [] : values.filter((one) => fits(sent, one))) {
        compared += 1;
        expect(fits(given, each)).toBe(true);
      }
    }),
    { numRuns: RUNS / 2 },
  );
  expect(compared).toBeGreaterThan(RUNS / 20);
});

it('AN9: an answer with all that the branches want fits the schema that is sent, and one with more does not', async () => {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(names, { minLength: 1, maxLength: 4 }), fc.boolean(), async (lists, isReferred) => {
      const branches = lists.map((list) => ({ type: 'object', properties: Object.fromEntries(list.map((name) => [name, { type: 'string' }])), required: list }));
      const referred = branches.map((_branch, at) => ({ $ref: `#/$defs/d${at}` }));
      const answer = Object.fromEntries(lists.flat().map((name) => [name, 'x']));
      const sent = await sentSchema({ allOf: isReferred ? referred : branches, $defs: Object.fromEntries(branches.map((branch, at) => [`d${at}`, branch])) });

      expect(fits(sent!, answer)).toBe(true);
      expect(fits(sent!, { ...answer, z: 'x' })).toBe(false);
    }),
    { numRuns: RUNS / 2 },
  );
});
