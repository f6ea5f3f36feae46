/**
 * Output schema: a JSON Schema as this protocol takes it for answers.
 *
 * Every object has to be closed: what is not is closed here, so that answers fit the given schema as well. Everything
 * else is the schema's own business, and the server's to judge.
 */
import { LLMError } from '../../core/errors.ts';
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { isJsonObject } from '../shared/own-data.ts';
import { cleanJson } from '../shared/wire-text.ts';

/** Keywords whose value is a schema by name, each. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
/** Keywords whose value is data, whatever it looks like. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required']);

/**
 * The schema with its objects closed.
 *
 * @throws {@link index.LLMError | LLMError} of kind `invalid_request` for a schema that takes anything: the protocol has
 * no way to ask for just any JSON.
 */
export function toOutputSchema(schema: JsonSchema): JsonSchema {
  if (!['type', 'properties', '$ref', 'anyOf', 'allOf', 'oneOf', 'enum', 'const'].some((keyword) => Object.hasOwn(schema, keyword))) {
    throw new LLMError({
      kind: 'invalid_request',
      code: 'schema_required',
      message: "The response schema takes anything, which this protocol cannot ask for: say what you want, as in { type: 'object', properties: { … } }.",
    });
  }
  return closed(cleanJson(schema));
}

function closed(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).map(([keyword, value]): readonly [string, JsonValue] => {
    if (DATA.has(keyword)) return [keyword, value];
    if (NAMED_SCHEMAS.has(keyword) && isJsonObject(value)) return [keyword, mapValues(value)];
    return [keyword, closedValue(value)];
  });
  const copy: JsonObject = Object.fromEntries(entries);
  return isObjectSchema(schema) ? { ...copy, additionalProperties: false } : copy;
}

function mapValues(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closedValue(schema)]));
}

function closedValue(value: JsonValue): JsonValue {
  if (isList(value)) return value.map(closedValue);
  return isJsonObject(value) ? closed(value) : value;
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === 'object' || (isList(type) && type.includes('object')) || isJsonObject(properties);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
