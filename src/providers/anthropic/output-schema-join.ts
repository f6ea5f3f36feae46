/**
 * Joining: what several schemas say of one object, as one schema.
 *
 * Of `allOf` the branches are put together with what stands beside them; of `anyOf` and `oneOf` what stands beside them is
 * put into each branch. Only where two or more of these describe an object: anything else can stay as it is.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isAssertion, isList, isObject, typesOf } from '../shared/tool-schema-keywords.ts';
import { isEqual } from '../shared/tool-schema-merge.ts';
import type { References } from '../shared/tool-schema-refs.ts';

/** Joins the schemas of one document. */
export interface Joiner {
  /** The schema, joined as far as it needs to be; undefined where that cannot be done. */
  join(schema: JsonObject): JsonObject | undefined;
}

/** What is part of itself is joined without end. */
const MAX_JOINS = 300;

/** Whether a schema describes an object, by its own words. */
export function describesObject({ type, properties }: JsonObject): boolean {
  return typesOf(type).includes('object') || isObject(properties);
}

/** Makes a joiner. @param references - Of the document. */
export function createJoiner(references: References): Joiner {
  /** The schemas that are being joined, each within the one before. */
  const open = new Set<JsonObject>();
  let joins = 0;

  function join(schema: JsonObject): JsonObject | undefined {
    if (open.has(schema) || joins > MAX_JOINS) return undefined;
    open.add(schema);
    const all = joinAll(schema);
    const any = all === undefined ? undefined : joinChoice(all, 'anyOf');
    const one = any === undefined ? undefined : joinChoice(any, 'oneOf');
    open.delete(schema);
    if (one !== schema) joins += 1;
    return one;
  }

  function joinAll(schema: JsonObject): JsonObject | undefined {
    const { allOf, ...base } = schema;
    if (!isList(allOf)) return schema;
    const branches = allOf.map(openedBranch);
    const objects = [base, ...branches].filter((each) => each === undefined || describesObject(each)).length;
    if (objects < 2) return schema;
    let whole: JsonObject | undefined = base;
    for (const branch of branches) whole = whole === undefined || branch === undefined ? undefined : merge(whole, branch);
    return whole;
  }

  /** @param keyword - `anyOf` or `oneOf`. */
  function joinChoice(schema: JsonObject, keyword: string): JsonObject | undefined {
    const { [keyword]: choice, ...base } = schema;
    if (!isList(choice) || !describesObject(base)) return schema;
    const branches = choice.map(openedBranch);
    if (!branches.some((branch) => branch === undefined || describesObject(branch))) return schema;
    const [assertions, annotations] = [true, false].map((wanted) => Object.fromEntries(Object.entries(base).filter(([name]) => isAssertion(name) === wanted)));
    const merged = branches.map((branch) => (branch === undefined || assertions === undefined ? undefined : merge(branch, assertions)));
    const each = merged.filter((branch) => branch !== undefined);
    return each.length < merged.length ? undefined : { ...annotations, [keyword]: each };
  }

  /** A branch, joined in itself, with what its reference leads to in its place. */
  function openedBranch(branch: JsonValue): JsonObject | undefined {
    if (!isObject(branch)) return undefined;
    const target = references.of(branch)?.target;
    if (!isObject(target)) return join(branch);
    const { $ref: _reference, ...rest } = branch;
    const [own, referred] = [join(rest), join(target)];
    return own === undefined || referred === undefined ? undefined : merge(own, referred);
  }

  return { join };
}

/** What fits both; undefined where no one schema says that. Of annotations those of the first stay. */
function merge(first: JsonObject, second: JsonObject): JsonObject | undefined {
  if (first['$ref'] !== undefined || second['$ref'] !== undefined) return undefined;
  const whole: Record<string, JsonValue> = { ...second, ...first };
  for (const [keyword, value] of Object.entries(second)) {
    const before = first[keyword];
    if (before === undefined || isEqual(before, value) || !isAssertion(keyword)) continue;
    const joined = mergeKeyword(keyword, before, value);
    if (joined === undefined) return undefined;
    whole[keyword] = joined;
  }
  return withoutForbidden(whole, [first, second]);
}

function mergeKeyword(keyword: string, first: JsonValue, second: JsonValue): JsonValue | undefined {
  switch (keyword) {
    case 'type': {
      const types = typesOf(first).filter((type) => typesOf(second).includes(type));
      return types.length > 1 ? types : types[0];
    }
    case 'required':
      return isList(first) && isList(second) ? [...new Set([...first, ...second])] : undefined;
    case 'properties':
      return isObject(first) && isObject(second) ? mergeProperties(first, second) : undefined;
    case 'additionalProperties':
      // Either may be what closes the object, or takes anything.
      return first === false || second === false ? false : first === true ? second : second === true ? first : undefined;
    default:
      return undefined;
  }
}

function mergeProperties(first: JsonObject, second: JsonObject): JsonObject {
  const both = Object.entries(second).map(([name, schema]): readonly [string, JsonValue] => {
    const before = Object.hasOwn(first, name) ? first[name] : undefined;
    return [name, before === undefined || isEqual(before, schema) ? schema : { allOf: [before, schema] }];
  });
  return Object.fromEntries([...Object.entries(first), ...both]);
}

/** Without the names that one of the parts is closed to; undefined where one of these is required. */
function withoutForbidden(whole: JsonObject, parts: readonly JsonObject[]): JsonObject | undefined {
  const { properties, required } = whole;
  const closed = parts.filter(({ additionalProperties }) => additionalProperties === false).map(({ properties: own }) => (isObject(own) ? own : {}));
  if (closed.length === 0 || !isObject(properties)) return whole;
  const kept = Object.entries(properties).filter(([name]) => closed.every((own) => Object.hasOwn(own, name)));
  const isPossible = !isList(required) || required.every((name) => kept.some(([known]) => known === name));
  return isPossible ? { ...whole, properties: Object.fromEntries(kept) } : undefined;
}
