/**
 * Output schema: a JSON Schema as this protocol takes it for answers.
 *
 * - Every object has to be closed. What is not is closed here, so that answers fit the given schema as well.
 * - What several schemas say of one object is put in one before (`output-schema-join.ts`): each closed for itself, nothing
 *   would fit them all.
 * - An object whose names only the model knows cannot be closed, and is an error: it would be empty in every answer.
 * - Everything else is the schema's own business, and the server's to judge.
 */
import { LLMError } from '../../core/errors.ts';
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { isList, isObject } from '../shared/tool-schema-keywords.ts';
import { findReferences } from '../shared/tool-schema-refs.ts';
import { cleanJson } from '../shared/wire-text.ts';
import { createJoiner, describesObject, type Joiner } from './output-schema-join.ts';

/** Keywords whose value is a schema by name, each. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
/** Keywords whose value is a schema, or a list of some. Conditions are not among them: narrowed, they may widen the whole. */
const SCHEMAS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'items', 'prefixItems', 'additionalItems']);
const SAYS_SOMETHING = ['type', 'properties', '$ref', 'anyOf', 'allOf', 'oneOf', 'enum', 'const'];
/** What may say which names an object has. */
const NAMING = ['properties', '$ref', 'anyOf', 'allOf', 'oneOf', 'enum', 'const'];

/** Of a path that is shown. */
const MAX_PATH_LENGTH = 200;

const outputSchemas = new WeakMap<JsonSchema, JsonSchema>();

/**
 * The schema with its objects closed; the same one each time.
 *
 * @throws {@link index.LLMError | LLMError} of kind `invalid_request`: code `schema_required` for a schema that takes
 * anything, since the protocol has no way to ask for just any JSON; `schema_open` for one with an object that cannot be
 * closed.
 */
export function toOutputSchema(schema: JsonSchema): JsonSchema {
  if (!SAYS_SOMETHING.some((keyword) => Object.hasOwn(schema, keyword))) {
    throw refusal('schema_required', "takes anything, which this protocol cannot ask for: say what you want, as in { type: 'object', properties: { … } }.");
  }
  const known = outputSchemas.get(schema);
  if (known !== undefined) return known;
  const clean = cleanJson(schema);
  const output = closed(clean, { joiner: createJoiner(findReferences(clean)), path: '' });
  outputSchemas.set(schema, output);
  return output;
}

interface Place {
  readonly joiner: Joiner;
  /** JSON pointer in the given schema. */
  readonly path: string;
}

function closed(schema: JsonObject, place: Place): JsonObject {
  const whole = place.joiner.join(schema);
  if (whole === undefined) {
    throw refusal('schema_open', `${at(place.path)} says of one object in several places what cannot be put in one, and this protocol wants each object closed: write it as a single object with \`properties\`.`);
  }
  assertNamed(whole, place.path);
  const entries = Object.entries(whole).map(([keyword, value]): readonly [string, JsonValue] => [keyword, closedKeyword(keyword, value, place)]);
  const copy: JsonObject = Object.fromEntries(entries);
  return describesObject(whole) ? { ...copy, additionalProperties: false } : copy;
}

function closedKeyword(keyword: string, value: JsonValue, place: Place): JsonValue {
  const path = `${place.path}/${keyword}`;
  if (NAMED_SCHEMAS.has(keyword) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closedValue(each, { ...place, path: `${path}/${escaped(name)}` })]));
  }
  if (!SCHEMAS.has(keyword)) return value;
  return isList(value) ? value.map((each, index) => closedValue(each, { ...place, path: `${path}/${index}` })) : closedValue(value, { ...place, path });
}

function closedValue(value: JsonValue, place: Place): JsonValue {
  return isObject(value) ? closed(value, place) : value;
}

/** Makes sure that an object has names: a map would be closed to nothing. */
function assertNamed(schema: JsonObject, path: string): void {
  if (!describesObject(schema)) return;
  const { additionalProperties: others, patternProperties: patterns } = schema;
  const isNamed = NAMING.some((keyword) => Object.hasOwn(schema, keyword)) || others === false;
  if (isNamed && patterns === undefined && !(isObject(others) && Object.keys(others).length > 0)) return;
  throw refusal(
    'schema_open',
    `${at(path)} is an object whose names only the model knows, and this protocol takes none but those that are listed: list them under \`properties\`, or ask for a list of { name, value } objects.`,
  );
}

function at(path: string): string {
  return path === '' ? 'itself' : `at \`${path.slice(0, MAX_PATH_LENGTH)}\``;
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function refusal(code: string, what: string): LLMError {
  return new LLMError({ kind: 'invalid_request', code, message: `The response schema ${what}` });
}
