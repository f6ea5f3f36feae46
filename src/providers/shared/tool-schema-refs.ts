/**
 * References: what a `$ref` points to, within the document. Nothing is ever fetched.
 *
 * Known are pointers (`#/$defs/A`, `#/properties/b`, escaped and percent-encoded), the root (`#`), anchors, and the `$id`
 * of a schema inside the document, word for word. Inside a schema with an `$id` of its own a pointer starts there, and at
 * the root where it leads nowhere.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { DEFINITIONS, isList, isObject, subschemasOf } from './tool-schema-keywords.ts';

/** What a schema refers to. */
export interface Reference {
  readonly target: JsonObject | boolean;
  /** The last word of the reference, in characters that need no escaping in a pointer. */
  readonly name: string;
}

/** The references of one document. */
export interface References {
  /** What a schema refers to; `undefined` if that is nothing, or nothing of this document. */
  readonly of: (schema: JsonObject) => Reference | undefined;
}

/** The keywords that refer to a schema. The dynamic ones are taken for what they point to in the document at hand. */
const REFERENCE_KEYWORDS: readonly string[] = ['$ref', '$dynamicRef', '$recursiveRef'];

/** Looks through a document once. */
export function findReferences(root: JsonObject): References {
  const names = new Map<string, JsonObject>();
  const homes = new Map<JsonObject, JsonObject>();
  const seen = new Set<JsonObject>();
  const open: (readonly [schema: JsonObject, home: JsonObject])[] = [[root, root]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [schema, outerHome] = next;
    if (seen.has(schema)) continue;
    seen.add(schema);
    for (const name of namesOf(schema)) if (!names.has(name)) names.set(name, schema);
    const home = hasOwnId(schema) ? schema : outerHome;
    homes.set(schema, home);
    for (const [child] of subschemasOf(schema)) open.push([child, home]);
    for (const child of definitionsOf(schema)) open.push([child, home]);
  }

  function resolve(reference: string, home: JsonObject): JsonValue | undefined {
    const hash = reference.indexOf('#');
    const address = hash < 0 ? reference : reference.slice(0, hash);
    const fragment = hash < 0 ? '' : reference.slice(hash + 1);
    const documents = address === '' || address === root['$id'] ? [home, root] : [names.get(address)];
    for (const document of documents) {
      const found = document === undefined ? undefined : follow(document, fragment);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function follow(document: JsonObject, fragment: string): JsonValue | undefined {
    if (fragment === '') return document;
    return fragment.startsWith('/') ? valueAt(document, fragment) : names.get(`#${decode(fragment)}`);
  }

  return {
    of(schema) {
      const reference = REFERENCE_KEYWORDS.map((keyword) => schema[keyword]).find((value) => typeof value === 'string');
      if (typeof reference !== 'string') return undefined;
      const target = resolve(reference, homes.get(schema) ?? root);
      return typeof target === 'boolean' || isObject(target) ? { target, name: nameIn(reference) } : undefined;
    },
  };
}

function nameIn(reference: string): string {
  const name = decode(reference.slice(Math.max(reference.lastIndexOf('/'), reference.lastIndexOf('#')) + 1));
  return name.replace(/[^a-zA-Z0-9_.-]+/g, '_') || 'schema';
}

/** The names that a schema gives itself: `#name` for an anchor, an address without its empty fragment for an `$id`. */
function namesOf(schema: JsonObject): readonly string[] {
  const { $id: id, $anchor: anchor, $dynamicAnchor: dynamicAnchor } = schema;
  return [
    ...(typeof id === 'string' ? [id.replace(/#$/, '')] : []),
    ...[anchor, dynamicAnchor].filter((name) => typeof name === 'string').map((name) => `#${name}`),
  ];
}

/** In draft 7 an `$id` that is only a fragment is an anchor. */
function hasOwnId({ $id: id }: JsonObject): boolean {
  return typeof id === 'string' && !id.startsWith('#');
}

function definitionsOf(schema: JsonObject): readonly JsonObject[] {
  return DEFINITIONS.flatMap((keyword) => {
    const definitions = schema[keyword];
    return isObject(definitions) ? Object.values(definitions).filter(isObject) : [];
  });
}

/** What stands at a JSON pointer such as `/$defs/Input`. */
function valueAt(document: JsonObject, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = document;
  for (const step of pointer.split('/').slice(1)) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (isList(value)) value = /^\d+$/.test(key) ? value[Number(key)] : undefined;
    else value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign: whoever wrote it encoded nothing.
    return text;
  }
}
