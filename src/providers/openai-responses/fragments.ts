/** Fragments: the events that bring a piece of an item, or once more the whole of it, and where their text goes. */
import type { ItemReader } from './item-reader.ts';
import type { InputKind, TextKind, ThinkingKind, WireEvent } from './wire-event.ts';

/** What an event of one type brings. */
export interface Fragment {
  /** The field that holds its text. */
  readonly field: string;
  /** Whether an object may stand there, in the place of its JSON. */
  readonly mayBeObject: boolean;
  /** Hands the text on. */
  readonly read: (reader: ItemReader, event: WireEvent, text: string) => void;
}

/** By the type of the event. */
export const FRAGMENTS: ReadonlyMap<string, Fragment> = new Map([
  ['response.output_text.delta', text('delta', { isWhole: false, isRefusal: false })],
  ['response.output_text.done', text('text', { isWhole: true, isRefusal: false })],
  ['response.refusal.delta', text('delta', { isWhole: false, isRefusal: true })],
  ['response.refusal.done', text('refusal', { isWhole: true, isRefusal: true })],
  ['response.reasoning_summary_text.delta', thinking('delta', { isWhole: false, isRaw: false })],
  ['response.reasoning_summary_text.done', thinking('text', { isWhole: true, isRaw: false })],
  ['response.reasoning_text.delta', thinking('delta', { isWhole: false, isRaw: true })],
  ['response.reasoning_text.done', thinking('text', { isWhole: true, isRaw: true })],
  ['response.function_call_arguments.delta', input('delta', { isWhole: false, type: 'function_call' })],
  ['response.function_call_arguments.done', input('arguments', { isWhole: true, type: 'function_call' })],
  ['response.custom_tool_call_input.delta', input('delta', { isWhole: false, type: 'custom_tool_call' })],
  ['response.custom_tool_call_input.done', input('input', { isWhole: true, type: 'custom_tool_call' })],
]);

function text(field: string, kind: TextKind): Fragment {
  return { field, mayBeObject: false, read: (reader, event, given) => reader.addText(event, given, kind) };
}

function thinking(field: string, kind: ThinkingKind): Fragment {
  return { field, mayBeObject: false, read: (reader, event, given) => reader.addThinking(event, given, kind) };
}

function input(field: string, kind: InputKind): Fragment {
  return { field, mayBeObject: kind.isWhole, read: (reader, event, given) => reader.addInput(event, given, kind) };
}
