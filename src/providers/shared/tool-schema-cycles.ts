/**
 * Cycles: which references of a schema can be replaced by what they point to.
 *
 * All can that are not recursive, unless that would make a schema too large: definitions that each use the one before
 * twice double with every step. Then all references stay, which is as valid and much shorter.
 */
import type { JsonObject } from '../../core/json.ts';
import { subschemasOf } from './tool-schema-keywords.ts';
import type { References } from './tool-schema-refs.ts';

/** Schemas nested deeper than this count as too deep; hand-written ones stay below ten. */
export const MAX_DEPTH = 100;
/** How many schemas an inlined one may consist of: some hundred kilobytes, which is more than a model should read. */
const MAX_INLINED = 2000;
/** How many different schemas may be referred to. */
const MAX_TARGETS = 1000;

/** What to do with the references of one document. */
export interface InliningPlan {
  /** Whether references to this schema stay references. */
  readonly keeps: (target: JsonObject) => boolean;
  /**
   * Whether references lead from one schema to another for the same value. A reference inside a schema from which they
   * lead back to it says nothing, and would never end.
   */
  readonly leadsTo: (from: JsonObject, to: JsonObject) => boolean;
}

interface Links {
  /** The schemas referred to for another value, such as a property. */
  readonly inside: ReadonlySet<JsonObject>;
  /** Those referred to for the very same value. */
  readonly sameValue: ReadonlySet<JsonObject>;
}

/** Looks through everything that the root leads to. */
export function planInlining(root: JsonObject, references: References): InliningPlan {
  const links = new Map<JsonObject, Links>();
  const open = [root];
  for (let schema = open.pop(); schema !== undefined && links.size <= MAX_TARGETS; schema = open.pop()) {
    if (links.has(schema)) continue;
    const found = linksOf(schema, references);
    links.set(schema, found);
    open.push(...found.inside, ...found.sameValue);
  }
  const leadsTo = (from: JsonObject, to: JsonObject): boolean => from === to || isReached(to, from, (schema) => links.get(schema)?.sameValue ?? []);
  const hasTooMany = links.size > MAX_TARGETS;
  const steps = new Map(hasTooMany ? [] : Array.from(links, ([schema, { inside, sameValue }]) => [schema, [...inside, ...[...sameValue].filter((target) => !leadsTo(target, schema))]]));
  const recursive = new Set([...steps.keys()].filter((schema) => isReached(schema, schema, (from) => steps.get(from) ?? [])));
  const targetIn = (schema: JsonObject, within: JsonObject | undefined): JsonObject | undefined => {
    const target = references.of(schema)?.target;
    return typeof target !== 'object' || recursive.has(target) || (within !== undefined && leadsTo(target, within)) ? undefined : target;
  };
  const keepsAll = hasTooMany || isTooLarge(new Set([root, ...recursive]), targetIn);
  return { keeps: (target) => keepsAll || recursive.has(target), leadsTo };
}

/** Whether one schema is reached from another by at least one step. */
function isReached(goal: JsonObject, start: JsonObject, stepsFrom: (schema: JsonObject) => Iterable<JsonObject>): boolean {
  const seen = new Set<JsonObject>();
  const open = [...stepsFrom(start)];
  for (let schema = open.pop(); schema !== undefined; schema = open.pop()) {
    if (schema === goal) return true;
    if (seen.has(schema)) continue;
    seen.add(schema);
    open.push(...stepsFrom(schema));
  }
  return false;
}

function linksOf(root: JsonObject, references: References): Links {
  const inside = new Set<JsonObject>();
  const sameValue = new Set<JsonObject>();
  const seen = new Set<JsonObject>();
  const open: (readonly [schema: JsonObject, same: boolean])[] = [[root, true]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [schema, same] = next;
    if (seen.has(schema)) continue;
    seen.add(schema);
    const target = references.of(schema)?.target;
    if (typeof target === 'object') (same ? sameValue : inside).add(target);
    for (const [child, place] of subschemasOf(schema)) open.push([child, same && place.sameValue]);
  }
  return { inside, sameValue };
}

interface Size {
  readonly schemas: number;
  readonly depth: number;
}

const ENDLESS: Size = { schemas: Infinity, depth: Infinity };

/**
 * Whether these schemas, with other references inlined, are too many or too deep.
 *
 * @param targetIn - What would be inlined in a schema that is a part of another, for the same value.
 */
function isTooLarge(roots: ReadonlySet<JsonObject>, targetIn: (schema: JsonObject, within: JsonObject | undefined) => JsonObject | undefined): boolean {
  const sizes = new Map<JsonObject, Size>();

  function measure(schema: JsonObject, at: { readonly depth: number; readonly within: JsonObject | undefined }): Size {
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    if (at.depth > MAX_DEPTH) return ENDLESS;
    // An object that contains itself is no JSON; whoever comes back to it while it is open finds it endless.
    sizes.set(schema, ENDLESS);
    let [schemas, depth] = [1, 0];
    for (const [child, { sameValue }] of subschemasOf(schema)) {
      const size = measure(child, { depth: at.depth + 1, within: sameValue ? at.within : undefined });
      schemas += size.schemas;
      depth = Math.max(depth, size.depth + 1);
    }
    const target = targetIn(schema, at.within);
    if (target !== undefined) {
      const size = measure(target, { depth: at.depth, within: target });
      schemas += size.schemas;
      depth = Math.max(depth, size.depth);
    }
    sizes.set(schema, { schemas, depth });
    return { schemas, depth };
  }

  const total = Array.from(roots, (root) => measure(root, { depth: 0, within: root }));
  return total.reduce((sum, { schemas }) => sum + schemas, 0) > MAX_INLINED || total.some(({ depth }) => depth > MAX_DEPTH);
}
