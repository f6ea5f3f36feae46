/**
 * Call reader: the calls of one reply. A call comes whole, or, where the request asked for it, value by value.
 */
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { LLMDelta, ReplyToolCall } from '../../core/llm.ts';
import { word } from '../shared/json-values.ts';
import { fieldOf } from './fields.ts';
import { createPartialArgs, type PartialArgs } from './partial-args.ts';

/** A call, as far as it has come. */
export interface PartialCall {
  readonly name: string;
  readonly id: string | undefined;
  signature: string | undefined;
  inputText: string;
  /** Values so far, as long as more may come. */
  streamed: PartialArgs | undefined;
  /** Position among the reply's calls. */
  readonly callIndex: number;
}

/** What a reader tells of. */
export interface CallReaderOptions {
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
  /** A call takes its place in the reply. */
  readonly onCall: (call: PartialCall) => void;
  /** A fragment can go live. */
  readonly onDelta: ((delta: LLMDelta) => void) | undefined;
}

/** Reads the calls of one reply. */
export interface CallReader {
  /** Reads a `functionCall` and the signature of its part. */
  read(value: unknown, signature: string | undefined): void;
  /** What is wrong with the calls when the reply is over; undefined if nothing is. */
  fault(): 'nameless_call' | 'unfinished_call' | undefined;
}

/** Makes a reader for one reply. */
export function createCallReader({ toolName, onCall, onDelta }: CallReaderOptions): CallReader {
  let count = 0;
  let open: PartialCall | undefined;
  let isNameless = false;

  function read(value: unknown, signature: string | undefined): void {
    if (!isRecord(value)) return;
    const name = word(value['name']);
    if (name !== undefined) start(value, name, signature);
    else if (open !== undefined) goOn(open, value, signature);
    else isNameless ||= value['args'] !== undefined || fieldOf(value, 'partialArgs') !== undefined;
  }

  function start(value: Record<string, unknown>, name: string, signature: string | undefined): void {
    if (open !== undefined) close(open);
    const { args } = value;
    const id = word(value['id']);
    const goesOn = fieldOf(value, 'willContinue') === true || fieldOf(value, 'partialArgs') !== undefined;
    const streamed = args === undefined && goesOn ? createPartialArgs() : undefined;
    const inputText = streamed === undefined ? toInputText(args) : '';
    const call: PartialCall = { name, id, signature, inputText, streamed, callIndex: count };
    count += 1;
    onCall(call);
    onDelta?.({ type: 'tool_call', callIndex: call.callIndex, name: toolName(name), providerId: id, inputText });
    if (streamed === undefined) return;
    open = call;
    goOn(call, value, undefined);
  }

  function goOn(call: PartialCall, value: Record<string, unknown>, signature: string | undefined): void {
    call.signature ??= signature;
    call.streamed?.read(fieldOf(value, 'partialArgs'));
    if (fieldOf(value, 'willContinue') !== true) close(call);
  }

  function close(call: PartialCall): void {
    if (call.streamed !== undefined) {
      call.inputText = call.streamed.toText();
      onDelta?.({ type: 'tool_call', callIndex: call.callIndex, inputText: call.inputText });
    }
    call.streamed = undefined;
    open = undefined;
  }

  return {
    read,
    fault: () => (isNameless ? 'nameless_call' : open === undefined ? undefined : 'unfinished_call'),
  };
}

/** The call as the loop takes it. @param model - The model that was asked. */
export function toReplyCall({ name, id, inputText, signature }: PartialCall, model: string, toolName: (wireName: string) => string): ReplyToolCall {
  const providerData: JsonObject | undefined = signature === undefined ? undefined : { model, thoughtSignature: signature };
  return {
    type: 'tool_call',
    name: toolName(name),
    inputText,
    ...(id !== undefined && { providerId: id }),
    ...(providerData !== undefined && { providerData }),
  };
}

/**
 * Arguments come as an object, and from some proxies as its text.
 *
 * A value has no text to keep: a server's own arguments are a `Struct` of protocol buffers, whose numbers are doubles. An
 * integer beyond them comes out rounded here. The loop refuses such and asks the model for a text, but for one of 22 digits
 * or more, which comes out as a fraction times a power of ten.
 */
function toInputText(args: unknown): string {
  if (typeof args === 'string') return args;
  return args === undefined || args === null ? '{}' : JSON.stringify(args);
}
