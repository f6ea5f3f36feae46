/**
 * Tool-call reader: puts the fragments of tool calls together, whatever a server does with their indexes, ids and names.
 *
 * - A fragment belongs to the call with its index; without one to the call with its id; without both to the latest.
 * - Calls may share an index: then a fragment with the id of one of them belongs to that one. Calls may share an id: a
 *   name under a new index opens a call, whatever its id.
 * - A second name opens a second call, unless it is the same call's name again; so does a second whole input.
 * - Arguments are joined and never parsed here. A call is announced, and takes its place in the reply, when its name is
 *   known.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import { EXTRA_FIELDS } from './extra-fields.ts';
import type { LLMDelta } from '../../core/llm.ts';

/** A call as far as it has come. */
export interface PartialCall {
  /** The provider's id; empty if it gave none. */
  id: string;
  /** The tool's name; empty until it comes. */
  name: string;
  /** The argument text so far. */
  inputText: string;
  /** What the provider attached to the call, to be sent back with it. */
  extra: JsonObject | undefined;
  /** Position among the reply's calls; -1 until it is announced. */
  callIndex: number;
  /** Whether the server gave it an index. */
  readonly isIndexed: boolean;
}

interface Fragment {
  readonly index: number | string | undefined;
  readonly id: string;
  readonly name: string;
  readonly inputText: string;
}

/** What a reader tells of. */
export interface ToolCallReaderOptions {
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
  /** A call's name is known: it takes its place in the reply. */
  readonly onCall: (call: PartialCall) => void;
  /** A fragment can go live. */
  readonly onDelta: ((delta: LLMDelta) => void) | undefined;
  /** A fragment brought a name or arguments, whether it can go live or not. */
  readonly onProgress: () => void;
}

/** Reads the calls of one reply. */
export interface ToolCallReader {
  /** Reads a `tool_calls` list; of a body that was not streamed each entry is a call. */
  read(list: unknown, isWhole: boolean): void;
  /** True if a call got arguments but never a name. */
  readonly hasNameless: boolean;
}

/** Makes a reader for one reply. */
export function createToolCallReader({ toolName, onCall, onDelta, onProgress }: ToolCallReaderOptions): ToolCallReader {
  const calls: PartialCall[] = [];
  const byIndex = new Map<number | string, PartialCall>();
  const byId = new Map<string, PartialCall>();
  let announced = 0;

  function read(list: unknown, isWhole: boolean): void {
    if (!Array.isArray(list)) return;
    for (const entry of list as readonly unknown[]) {
      if (!isRecord(entry)) continue;
      const fragment = readFragment(entry);
      if (fragment === undefined) continue;
      const call = (isWhole ? undefined : findCall(fragment)) ?? openCall(fragment);
      append(call, fragment);
      keepExtra(call, entry);
    }
  }

  function findCall(fragment: Fragment): PartialCall | undefined {
    const { index, id, name } = fragment;
    const indexed = index === undefined ? undefined : byIndex.get(index);
    const known = byId.get(id);
    if (indexed !== undefined && (known === undefined || indexed.id === '' || indexed.id === id)) {
      return continues(indexed, fragment) ? indexed : undefined;
    }
    const isNewIndex = index !== undefined && indexed === undefined;
    if (isNewIndex && name !== '' && known?.isIndexed === true) return undefined;
    if (known !== undefined) return continues(known, fragment) ? known : undefined;
    const latest = calls.at(-1);
    return index === undefined && latest !== undefined && continues(latest, fragment) ? latest : undefined;
  }

  function openCall({ index }: Fragment): PartialCall {
    const call: PartialCall = { id: '', name: '', inputText: '', extra: undefined, callIndex: -1, isIndexed: index !== undefined };
    calls.push(call);
    // A second call under the same index takes the index over: what follows without a name is meant for it. A call
    // without an index may still be gone on with by its place.
    const place = calls.length - 1;
    if (index !== undefined) byIndex.set(index, call);
    else if (!byIndex.has(place)) byIndex.set(place, call);
    return call;
  }

  function append(call: PartialCall, { id, name, inputText }: Fragment): void {
    if (call.id === '' && id !== '') {
      call.id = id;
      byId.set(id, call);
    }
    if (isWholeAgain(call, name, inputText)) return;
    call.inputText += inputText;
    // Some servers repeat the name in each fragment, so a name counts once.
    if (inputText !== '' || (name !== '' && call.name === '')) onProgress();
    if (call.callIndex >= 0) {
      if (inputText !== '') onDelta?.({ type: 'tool_call', callIndex: call.callIndex, inputText });
      return;
    }
    if (name === '') return;
    call.name = name;
    call.callIndex = announced;
    announced += 1;
    onCall(call);
    const providerId = call.id === '' ? undefined : call.id;
    onDelta?.({
      type: 'tool_call',
      callIndex: call.callIndex,
      name: toolName(name),
      providerId,
      inputText: call.inputText,
    });
  }

  return {
    read,
    get hasNameless() {
      return calls.some((call) => call.callIndex < 0 && call.inputText !== '');
    },
  };
}

/** Whether a fragment that points at a call really goes on with it, and does not start another. */
function continues(call: PartialCall, { index, id, name, inputText }: Fragment): boolean {
  if (name === '') return index !== undefined || id === '' || call.id === '' || id === call.id;
  if (call.name === '') return id === '' || call.id === '' || id === call.id;
  const hasIds = id !== '' && call.id !== '';
  if (name !== call.name || (hasIds && id !== call.id)) return false;
  const isSecondInput = inputText.startsWith('{') && isWholeObject(call.inputText);
  return !isSecondInput || (hasIds && isWholeAgain(call, name, inputText));
}

/** Some servers send a call once more, in full, at its end. */
function isWholeAgain(call: PartialCall, name: string, inputText: string): boolean {
  return name !== '' && name === call.name && inputText.length > 1 && inputText === call.inputText && isWholeObject(inputText);
}

function isWholeObject(text: string): boolean {
  if (!text.trimEnd().endsWith('}')) return false;
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

function readFragment(entry: Record<string, unknown>): Fragment | undefined {
  const { index, id, function: called } = entry;
  if (!isRecord(called)) return undefined;
  const { name, arguments: input } = called;
  return {
    index: typeof index === 'number' || typeof index === 'string' ? index : undefined,
    id: typeof id === 'string' ? id : '',
    name: typeof name === 'string' ? name : '',
    inputText: typeof input === 'string' ? input : isObjectOrList(input) ? JSON.stringify(input) : '',
  };
}

function isObjectOrList(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function keepExtra(call: PartialCall, entry: Record<string, unknown>): void {
  for (const field of EXTRA_FIELDS) {
    const value = entry[field];
    // It came out of JSON.
    if (value !== undefined && value !== null && value !== '') call.extra = { ...call.extra, [field]: value as JsonValue };
  }
}
