/**
 * Tool-call reader: the parts of a stream that make tool calls, put together.
 *
 * - The `tool-call` part is the call; what came before it is its arguments arriving. A call without that part is not
 *   whole and never runs.
 * - A call takes its place among the reply's calls when it first shows.
 */
import { isRecord } from '../../core/json.ts';
import type { LLMDelta } from '../../core/llm.ts';
import { word } from '../shared/json-values.ts';
import { type Metadata, mergeMetadata } from './provider-data.ts';

/** A call as far as it has come. */
export interface PartialCall {
  readonly type: 'call';
  /** The provider's id; empty if it gave none. */
  readonly id: string;
  /** The tool's name on the wire. */
  name: string;
  /** The argument text so far. */
  inputText: string;
  metadata: Metadata | undefined;
  /** Whether the `tool-call` part came. */
  isWhole: boolean;
}

interface OpenCall extends PartialCall {
  readonly callIndex: number;
  /** Whether its fragments are pieces of the argument text. */
  readonly isLive: boolean;
}

/** What a reader tells of. */
export interface ToolCallOutlet {
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
  /** A call takes its place in the reply. */
  readonly onCall: (call: PartialCall) => void;
  /** A fragment goes live. */
  readonly onDelta: (delta: LLMDelta) => void;
}

type Part = Readonly<Record<string, unknown>>;

/** Reads the calls of one reply. */
export interface ToolCallReader {
  /** Reads a `tool-input-start`. */
  start(part: Part): void;
  /** Reads a `tool-input-delta`; one of a tool that the provider runs is nobody's. */
  delta(part: Part): void;
  /** Reads a `tool-call`. */
  whole(part: Part): void;
}

/** Makes a reader for one reply. */
export function createToolCallReader({ toolName, onCall, onDelta }: ToolCallOutlet): ToolCallReader {
  /** The latest call of an id. */
  const byId = new Map<string, OpenCall>();
  let count = 0;

  function open(id: string, name: string, isLive: boolean): OpenCall {
    const call: OpenCall = { type: 'call', id, name, inputText: '', metadata: undefined, isWhole: false, callIndex: count, isLive };
    count += 1;
    byId.set(id, call);
    onCall(call);
    onDelta({ type: 'tool_call', callIndex: call.callIndex, name: toolName(name), inputText: '', ...(id !== '' && { providerId: id }) });
    return call;
  }

  function append({ callIndex }: OpenCall, inputText: string): void {
    if (inputText !== '') onDelta({ type: 'tool_call', callIndex, inputText });
  }

  function find(id: string): OpenCall | undefined {
    const call = byId.get(id);
    return call?.isWhole === true ? undefined : call;
  }

  return {
    start({ id, toolName: name, inputEncoding, providerMetadata }) {
      const call = open(word(id) ?? '', word(name) ?? '', inputEncoding !== 'text');
      call.metadata = mergeMetadata(call.metadata, providerMetadata);
    },
    delta({ id, delta: text, providerMetadata }) {
      const call = find(word(id) ?? '');
      if (call === undefined || typeof text !== 'string') return;
      call.metadata = mergeMetadata(call.metadata, providerMetadata);
      if (!call.isLive) return;
      call.inputText += text;
      append(call, text);
    },
    whole({ toolCallId, toolName: name, input, providerMetadata }) {
      const id = word(toolCallId) ?? '';
      const call = find(id) ?? open(id, word(name) ?? '', true);
      const text = toText(input);
      // What was rewritten under way cannot be taken back.
      if (text.startsWith(call.inputText)) append(call, text.slice(call.inputText.length));
      call.name = word(name) ?? call.name;
      call.inputText = text;
      call.metadata = mergeMetadata(call.metadata, providerMetadata);
      call.isWhole = true;
    },
  };
}

/** Arguments are JSON text; some providers give the object. */
function toText(input: unknown): string {
  if (typeof input === 'string') return input;
  return isRecord(input) || Array.isArray(input) ? JSON.stringify(input) : '';
}
