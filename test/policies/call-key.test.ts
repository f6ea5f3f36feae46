/** Call keys: which calls are the same call. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from 'turnloop';
import { callKey } from 'turnloop/policies';

/** The same JSON with the keys of every object the other way round. */
function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, child]): [string, JsonValue] => [key, reversed(child)]));
}

/** JSON as `JSON.parse` gives it: without `-0`. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);

describe('callKey', () => {
  it('DG5 does not look at the order of keys, at any depth', () => {
    fc.assert(
      fc.property(json, (input) => {
        expect(callKey({ name: 'a', input: reversed(input) })).toBe(callKey({ name: 'a', input }));
      }),
    );
  });

  it('DG5 tells different arguments and different tools apart', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.tuple(json, json), (left, right, [one, other]) => {
        const isSame = left === right && JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

        expect(callKey({ name: left, input: one }) === callKey({ name: right, input: other })).toBe(isSame);
      }),
    );
  });

  it('DG5 keeps the order of lists, which says something', () => {
    expect(callKey({ name: 'a', input: { list: [1, 2] } })).not.toBe(callKey({ name: 'a', input: { list: [2, 1] } }));
  });

  it('tells a name from the arguments behind it', () => {
    expect(callKey({ name: 'a" {}', input: {} })).not.toBe(callKey({ name: 'a', input: {} }));
  });

  it('names a call without arguments', () => {
    expect(callKey({ name: 'a' })).not.toBe(callKey({ name: 'a', input: {} }));
  });

  it('is plain text that another process makes too', () => {
    expect(callKey({ name: 'read', input: { path: 'a', limit: 3, deep: { z: null, a: [true, 'x'] } } })).toBe(
      '"read" {"deep":{"a":[true,"x"],"z":null},"limit":3,"path":"a"}',
    );
  });
});

/** Another way to one order of keys: entries as sorted pairs. */
function sorted(value: JsonValue): unknown {
  if (Array.isArray(value)) return ['list', value.map(sorted)];
  if (typeof value !== 'object' || value === null) return ['value', value];
  return ['object', Object.entries(value).map(([key, child]) => [key, sorted(child)]).sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))];
}
