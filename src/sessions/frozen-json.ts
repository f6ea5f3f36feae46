/** Frozen JSON: copies that nobody can change. Texts are shared with the original, so that a copy costs the same whatever their length. */
import type { JsonObject, JsonValue } from '../core/json.ts';

/**
 * A frozen copy of a value, as JSON would have it: members that are undefined are left out.
 *
 * @throws TypeError for what is no JSON: a cycle, a BigInt, a value nested too deep.
 */
export function frozenJson<Value extends object>(value: Value): Value {
  try {
    // A copy of a value has the type of the value.
    return copyOf(value) as Value;
  } catch (error) {
    if (error instanceof RangeError) throw new TypeError('This is no JSON: it holds itself, or is nested too deep.', { cause: error });
    throw error;
  }
}

function copyOf(value: unknown): JsonValue | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return Object.freeze(value.map((item) => copyOf(item) ?? null));
  if (isPlain(value)) return copyOfObject(value);
  // Whatever else it is, such as a Date, becomes what JSON makes of it.
  const text: string | undefined = JSON.stringify(value);
  return text === undefined ? undefined : copyOf(JSON.parse(text));
}

function copyOfObject(value: Readonly<Record<string, unknown>>): JsonObject {
  const copy: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    const member = copyOf(value[key]);
    if (member === undefined) continue;
    // Assigned, this key would set the prototype of the copy.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: member, enumerable: true });
    else copy[key] = member;
  }
  return Object.freeze(copy);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
