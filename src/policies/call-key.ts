/**
 * Call key: when two calls are the same call.
 *
 * - The order of keys says nothing, at any depth; nor do white space, escapes or how a number is written.
 * - Arguments that are no JSON are the same only if their texts are: nobody knows what they mean.
 * - A key is compared, kept in a map or handed to a store. It is never a file name nor a key of a plain object.
 */
import { isRecord, parseJson, type JsonValue } from '../core/json.ts';

/** A call and what it would run with: a hook's call, or one that waits for a decision. */
export interface KeyedCall {
  /** Name of the tool. */
  readonly name: string;
  /** The arguments. */
  readonly input?: JsonValue | undefined;
}

/**
 * Names a call by its tool and its arguments: two calls have the same key if they would run the same.
 *
 * @param call - Such as a hook's call, or one of `TurnResult.pending`.
 * @returns Text of any length, the same in every process.
 * @example
 * ```ts
 * callKey({ name: 'read', input: { path: 'a', limit: 3 } }) === callKey({ name: 'read', input: { limit: 3, path: 'a' } }); // true
 * ```
 */
export function callKey({ name, input }: KeyedCall): string {
  return `${JSON.stringify(name)} ${input === undefined ? '' : canonicalJson(input)}`;
}

/** A call as the model wrote it. */
export interface WrittenCall {
  /** Name of the tool. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
}

/** What a model wrote as arguments; undefined if that is no JSON. No text at all stands for no arguments, as for the loop. */
export function writtenInput({ inputText }: WrittenCall): JsonValue | undefined {
  if (inputText.trim() === '') return {};
  const json = parseJson(inputText);
  // What JSON.parse gives is JSON.
  return json.ok ? (json.value as JsonValue) : undefined;
}

/** The key of a call as the model wrote it, whatever hooks make of its arguments later. */
export function writtenCallKey(call: WrittenCall, input: JsonValue | undefined = writtenInput(call)): string {
  // Behind the name stands JSON, or nothing: a text that is no JSON needs a mark that JSON cannot begin with.
  return input === undefined ? `${JSON.stringify(call.name)} ?${call.inputText}` : callKey({ name: call.name, input });
}

/** JSON text of a value, with the keys of objects in one order and without white space. */
function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${fields.join(',')}}`;
}
