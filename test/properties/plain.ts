/** Plain values: what JSON is made of, told from functions and objects of classes. */

/** True for objects that are no arrays and of no class. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
