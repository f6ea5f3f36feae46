/**
 * Salvage JSON: as much of a value as JSON can hold. What providers attach to replies is theirs: a history has to be plain
 * JSON all the same, and one value that is not must not take the rest along.
 */
import { type JsonObject, type JsonValue, toJson } from '../../core/json.ts';

/** Nothing that is meant to be sent back is as deep. */
const MAX_DEPTH = 100;

/** The value as JSON, without what in it is none; undefined if nothing is left. */
export function salvageJson(value: unknown, around: readonly object[] = []): JsonValue | undefined {
  const json = toJson(value);
  if (json !== undefined || typeof value !== 'object' || value === null) return json;
  if (around.includes(value) || around.length === MAX_DEPTH) return undefined;
  const path = [...around, value];
  // A hole would move what follows it.
  if (Array.isArray(value)) return Array.from(value as readonly unknown[], (item) => salvageJson(item, path) ?? null);
  const fields: [string, JsonValue][] = [];
  for (const name of Object.keys(value)) {
    const field = name === '__proto__' ? undefined : salvageJson(read(value, name), path);
    if (field !== undefined) fields.push([name, field]);
  }
  return Object.fromEntries<JsonValue>(fields) satisfies JsonObject;
}

function read(object: object, name: string): unknown {
  try {
    return Reflect.get(object, name);
  } catch {
    // A field that cannot be read has no value.
    return undefined;
  }
}
