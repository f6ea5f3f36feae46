/**
 * Tool input: from the argument text of a model to what a tool takes, or to words the model can mend it by.
 *
 * - Malformed text is never run and never repaired; empty text is `{}`.
 * - Types are not coerced: the message names the path. A schema library's own coercion is the way.
 * - A tool is found in a map, its schema checked when the turn starts, not when the model calls it.
 */
import { messageOf } from './errors.ts';
import { isThenable } from './event-dispatcher.ts';
import { cloneJson, isRecord, parseJson, toJson, type JsonObject, type JsonSchema, type JsonValue } from './json.ts';
import type { AnyTool } from './tool.ts';

/** Tools by name. */
export type ToolTable = ReadonlyMap<string, AnyTool>;

/** The arguments of a call, or what is wrong with them. */
export type ToolInputResult =
  | {
      readonly ok: true;
      /** The arguments as JSON. */
      readonly input: JsonValue;
      /** What `execute` takes. */
      readonly parsed: unknown;
    }
  | {
      readonly ok: false;
      /** For the model. */
      readonly message: string;
      /** The arguments as JSON, where the text was a JSON object. */
      readonly input?: JsonValue | undefined;
    };

/** A checked list of tools: neither the list nor the table changes when the host changes the array it gave. */
export interface ToolSet {
  /** Those that requests offer, in the host's order: the list without the deferred. The same list as long as the tools are the same. */
  readonly offered: readonly AnyTool[];
  /** All, in the host's order. The same list as long as the tools are the same. */
  readonly list: readonly AnyTool[];
  /** By name. */
  readonly table: ToolTable;
}

const sets = new WeakMap<readonly AnyTool[], ToolSet>();

/**
 * A list of tools, checked, and by name. The same set as long as the array holds the same tools.
 *
 * @throws TypeError naming the tool, if a name is missing or used twice, `execute` is missing, or a schema is broken.
 */
export function toolSet(tools: readonly AnyTool[]): ToolSet {
  if (!isList(tools)) throw new TypeError('"tools" is not a list. Use tools: [echo] or a function that gives a list.');
  const known = sets.get(tools);
  if (known !== undefined && known.list.length === tools.length && known.list.every((tool, index) => tool === tools[index])) {
    return known;
  }
  const table = new Map<string, AnyTool>();
  tools.forEach((tool, index) => {
    assertTool(tool, index);
    if (table.has(tool.name)) {
      throw new TypeError(`Two tools are named "${tool.name}". A model could not tell them apart: rename one.`);
    }
    table.set(tool.name, tool);
  });
  const list = [...tools];
  const offered = list.some(({ deferred }) => deferred === true) ? list.filter(({ deferred }) => deferred !== true) : list;
  const set: ToolSet = { list, offered, table };
  sets.set(tools, set);
  return set;
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

function assertTool(tool: unknown, index: number): void {
  if (!isRecord(tool) || typeof tool['name'] !== 'string' || tool['name'] === '') {
    throw new TypeError(`tools[${index}] has no name. A tool looks like { name, description, inputSchema, execute }.`);
  }
  const label = `Tool "${tool['name']}"`;
  if (typeof tool['execute'] !== 'function') throw new TypeError(`${label} has no execute function.`);
  if (typeof tool['description'] !== 'string') throw new TypeError(`${label} has no description: the model needs one, if only "".`);
  const { timeoutMs } = tool;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
    throw new TypeError(`${label} has a timeoutMs of ${JSON.stringify(timeoutMs) ?? 'nothing'}: it is a number of milliseconds, or left out.`);
  }
  const problem = schemaProblem(tool['inputSchema']);
  if (problem !== undefined) {
    throw new TypeError(`${label} has a broken inputSchema: ${problem}. Use e.g. { type: 'object', properties: {} }.`);
  }
}

function schemaProblem(schema: unknown): string | undefined {
  if (!isRecord(schema)) return 'it is not an object';
  const { type, properties, required } = schema;
  if (type !== 'object' && type !== undefined) return `its type is ${JSON.stringify(type)}, not "object"`;
  if (type === undefined && !['properties', 'anyOf', 'oneOf', 'allOf', '$ref'].some((key) => Object.hasOwn(schema, key))) {
    return 'it does not describe an object: its type is missing';
  }
  if (properties !== undefined && !isRecord(properties)) return '"properties" is not an object';
  for (const [name, property] of Object.entries(properties ?? {})) {
    if (!isRecord(property) && typeof property !== 'boolean') return `property "${name}" is not a schema`;
  }
  if (required !== undefined && !(Array.isArray(required) && required.every((name) => typeof name === 'string'))) {
    return '"required" is not a list of names';
  }
  try {
    JSON.stringify(schema);
  } catch (error) {
    return `it is not plain JSON (${messageOf(error)})`;
  }
  return undefined;
}

/** What is said to a model that called a tool which does not exist. */
export function unknownToolMessage(name: string, tools: ToolTable): string {
  if (tools.size === 0) return `There is no tool named ${quote(name)}: no tools are available. Answer without one.`;
  const names = [...tools.keys()];
  const close = names.filter((known) => isClose(name, known)).slice(0, 5);
  const hint = close.length > 0 ? ` Did you mean ${close.map(quote).join(' or ')}?` : '';
  const shown = names.slice(0, MAX_NAMES).join(', ');
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `There is no tool named ${quote(name)}, so nothing was run.${hint} The tools are: ${shown}${more}.`;
}

const MAX_NAMES = 50;
const MAX_QUOTED = 200;
/** How much of a broken argument text goes back to the model. */
const MAX_ECHO = 1000;

function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED ? `${name.slice(0, MAX_QUOTED)}…` : name);
}

function isClose(name: string, known: string): boolean {
  const [left, right] = [name.toLowerCase().replace(/[^a-z0-9]/g, ''), known.toLowerCase().replace(/[^a-z0-9]/g, '')];
  if (left === '' || right === '') return false;
  if (left.includes(right) || right.includes(left)) return true;
  return Math.abs(left.length - right.length) <= 2 && left.length <= 64 && editDistance(left, right) <= 2;
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(left).entries()) {
    const next = [index + 1];
    for (let column = 1; column <= right.length; column += 1) {
      const replace = (row[column - 1] ?? 0) + (letter === right[column - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}

/** Reads the argument text of a call to `tool` and checks it. */
export function parseToolInput(tool: AnyTool, inputText: string): Promise<ToolInputResult> | ToolInputResult {
  const text = inputText.trim() === '' ? '{}' : inputText;
  const json = parseJson(text);
  if (!json.ok) {
    return {
      ok: false,
      message:
        `The arguments of ${quote(tool.name)} are not valid JSON: ${json.message}. Nothing was run. ` +
        `Send one JSON object of the form ${describeSchema(tool.inputSchema)}. ${echo(inputText)}`,
    };
  }
  // What JSON.parse gives is JSON.
  return checkToolInput(tool, json.value as JsonValue);
}

/** The arguments of a call that no tool reads, because there is none or it will not run: JSON where the text is an object. */
export function unreadInput(inputText: string): JsonObject | undefined {
  const json = parseJson(inputText);
  return json.ok && isRecord(json.value) ? (json.value as JsonObject) : undefined;
}

/** Checks arguments that a hook rewrote or a person edited. */
export function checkGivenInput(tool: AnyTool, given: unknown): Promise<ToolInputResult> | ToolInputResult {
  const input = toJson(given);
  if (input !== undefined) return checkToolInput(tool, input);
  return { ok: false, message: `The arguments that ${quote(tool.name)} was given instead are not JSON. Nothing was run.` };
}

/** Checks arguments that are JSON already. */
export function checkToolInput(tool: AnyTool, input: JsonValue): Promise<ToolInputResult> | ToolInputResult {
  const refuse = (problems: string): ToolInputResult => ({
    ok: false,
    ...(isRecord(input) && { input }),
    message: `Invalid arguments for ${quote(tool.name)}: ${problems}. Nothing was run. The form is ${describeSchema(tool.inputSchema)}.`,
  });
  if (tool.parseInput === undefined) {
    const problems = shallowProblems(tool.inputSchema, input);
    return problems.length > 0 ? refuse(problems.join('; ')) : { ok: true, input, parsed: cloneJson(input) };
  }
  try {
    const parsed = tool.parseInput(cloneJson(input));
    if (!isThenable(parsed)) return { ok: true, input, parsed };
    return Promise.resolve(parsed as PromiseLike<unknown>).then(
      (value): ToolInputResult => ({ ok: true, input, parsed: value }),
      (error: unknown) => refuse(messageOf(error)),
    );
  } catch (error) {
    return refuse(messageOf(error));
  }
}

/** What is told of an argument text that could not be read: the text itself, up to a length. */
function echo(inputText: string): string {
  const cut = inputText.length > MAX_ECHO ? `${inputText.slice(0, MAX_ECHO)}… (${inputText.length} characters in all)` : inputText;
  return `The arguments were: ${cut}`;
}

function shallowProblems(schema: JsonSchema, input: unknown): string[] {
  if (!isRecord(input)) return [`they must be an object, not ${typeName(input)}`];
  const problems: string[] = [];
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  for (const name of required) {
    if (typeof name === 'string' && !Object.hasOwn(input, name)) problems.push(`"${name}" is missing`);
  }
  const properties: JsonObject = isRecord(schema['properties']) ? (schema['properties']) : {};
  for (const [name, property] of Object.entries(properties)) {
    if (!Object.hasOwn(input, name) || !isRecord(property)) continue;
    const types = typesOf(property['type']);
    if (types.length > 0 && !types.some((type) => hasType(input[name], type))) {
      problems.push(`"${name}" must be ${types.join(' or ')}, not ${typeName(input[name])}`);
    }
  }
  return problems;
}

/** A property's type in short: its values where they are listed, else its types. */
function shortType(property: Record<string, unknown>): string {
  const values: readonly unknown[] = Array.isArray(property['enum']) ? property['enum'] : 'const' in property ? [property['const']] : [];
  return values.length > 0 ? values.map((value) => JSON.stringify(value)).join(' | ') : typesOf(property['type']).join(' | ');
}

function typesOf(type: unknown): readonly string[] {
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  return types.filter((one) => typeof one === 'string');
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return typeof value === 'number';
  return typeName(value) === type || !KNOWN_TYPES.has(type);
}

const KNOWN_TYPES: ReadonlySet<string> = new Set(['string', 'boolean', 'object', 'array', 'null']);

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

const descriptions = new WeakMap<JsonSchema, string>();

/** A schema in short, such as `{ path: string, limit?: integer }`. */
function describeSchema(schema: JsonSchema): string {
  const known = descriptions.get(schema);
  if (known !== undefined) return known;
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : [];
  const fields = properties.slice(0, MAX_NAMES).map(([name, property]) => {
    const types = isRecord(property) ? shortType(property) : '';
    return `${name}${required.has(name) ? '' : '?'}: ${types === '' ? 'any' : types}`;
  });
  const description = fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
  descriptions.set(schema, description);
  return description;
}
