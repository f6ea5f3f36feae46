/** What Gemini refuses in a schema of its own kind, a subset of OpenAPI's. */
import { checkFields, checkWord, isObject, type Say, type Wire } from './rule-check.ts';

const FIELDS =
  'type | format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern ' +
  'example anyOf propertyOrdering default items minimum maximum';
const TYPES = ['STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL'];
const STRING_FORMATS = ['enum', 'date-time'];

/** The rules of a schema and of those within it. */
export function checkGeminiSchema(schema: unknown, path: string, say: Say): void {
  const sayHere: Say = (rule) => say(`${path}: ${rule}`);
  if (!isObject(schema)) {
    sayHere('no object');
    return;
  }
  const isUnion = schema['anyOf'] !== undefined;
  checkFields(schema, isUnion ? FIELDS.replace('type |', '| type') : FIELDS, sayHere);
  const type = typeof schema['type'] === 'string' ? schema['type'].toUpperCase() : schema['type'];
  if (type !== undefined) for (const rule of checkWord(type, TYPES, 'unknown type')) sayHere(rule);
  checkWords(schema, type, sayHere);
  if (type === 'OBJECT') checkProperties(schema, path, say);
  if (type === 'ARRAY') {
    if (schema['items'] === undefined) sayHere('an array without items');
    else checkGeminiSchema(schema['items'], `${path}.items`, say);
  }
  if (!isUnion) return;
  if (!Array.isArray(schema['anyOf']) || schema['anyOf'].length === 0) sayHere('anyOf: not a list of schemas');
  else for (const [at, each] of (schema['anyOf'] as readonly unknown[]).entries()) checkGeminiSchema(each, `${path}.anyOf[${at}]`, say);
}

function checkWords({ enum: words, format }: Wire, type: unknown, say: Say): void {
  if (words !== undefined) {
    if (type !== 'STRING') say('an enum of another type than STRING');
    if (!Array.isArray(words) || !words.every((word) => typeof word === 'string' && word !== '')) say('enum: not a list of texts');
  }
  if (type === 'STRING' && format !== undefined) for (const rule of checkWord(format, STRING_FORMATS, 'a format of text that is not taken')) say(rule);
}

function checkProperties({ properties, required }: Wire, path: string, say: Say): void {
  if (!isObject(properties) || Object.keys(properties).length === 0) {
    say(`${path}: an object without properties`);
    return;
  }
  for (const [name, each] of Object.entries(properties)) checkGeminiSchema(each, `${path}.${name}`, say);
  if (required === undefined) return;
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string' && Object.hasOwn(properties, name))) say(`${path}: a required property that is not there`);
}
