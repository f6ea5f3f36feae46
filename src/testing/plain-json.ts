/** Plain JSON: finds what would not survive being written to a file and read back. */
import { isRecord } from '../core/json.ts';

/**
 * Finds the first thing in a value that is not plain JSON: undefined, functions, symbols, big integers, numbers that are
 * not finite, objects of a class, cycles.
 *
 * @param value - Anything.
 * @param path - How to name the value itself.
 * @returns Where it is and what it is, in words; undefined if all is plain.
 */
export function findNonJson(value: unknown, path: string): string | undefined {
  return search(value, path, new Set());
}

function search(value: unknown, path: string, open: Set<object>): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : `${path} is ${value}`;
    case 'undefined':
      return `${path} is undefined`;
    case 'bigint':
    case 'symbol':
    case 'function':
      return `${path} is a ${typeof value}`;
    case 'object':
      return value === null ? undefined : searchObject(value, path, open);
  }
}

function searchObject(value: object, path: string, open: Set<object>): string | undefined {
  if (open.has(value)) return `${path} is a cycle`;
  if (!isPlain(value)) return `${path} is an object of class ${value.constructor.name}`;
  open.add(value);
  for (const [key, child] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const found = search(child, `${path}.${String(key)}`, open);
    if (found !== undefined) return found;
  }
  open.delete(value);
  return undefined;
}

function isPlain(value: object): boolean {
  if (!isRecord(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of another realm have another `Object.prototype`, which has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
