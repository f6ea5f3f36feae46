/** Image: a value of any kind as JSON, for comparing what was before with what is after. */

/** A value as JSON that shares nothing with it. Two values of which anything differs that can be read have different images. */
export function imageOf(value: unknown, open: ReadonlySet<unknown> = new Set()): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'bigint' || typeof value === 'symbol') return `${typeof value} ${String(value)}`;
  if (typeof value !== 'object') return typeof value;
  if (open.has(value)) return 'cycle';
  const within = new Set([...open, value]);
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (Array.isArray(value)) return value.map((child) => imageOf(child, within));
  if (value instanceof Map) return { map: Array.from(value as Map<unknown, unknown>, (entry) => imageOf(entry, within)) };
  if (value instanceof Set) return { set: Array.from(value as Set<unknown>, (child) => imageOf(child, within)) };
  if (value instanceof URL || value instanceof RegExp) return String(value);
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, imageOf(child, within)]));
}
