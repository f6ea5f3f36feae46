/**
 * Reply block: one content block of a reply, from its start to the part that it becomes.
 *
 * A block of a type that is not known, or of a tool that the provider runs, is kept as it came. Nothing is parsed before
 * a block's end, and a fragment costs what is in it.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { ReplyPart } from '../../core/llm.ts';
import { parseJson, word } from '../shared/json-values.ts';
import { isBlank } from '../shared/wire-text.ts';
import { UNSIGNED } from './thinking-block.ts';

/** A block as far as it has come. */
export type ReplyBlock = TextBlock | ThinkingBlock | CallBlock | ServerBlock;

interface Block {
  /** Whether the server said that nothing more of it comes. */
  isClosed: boolean;
}

/** Fields of a block that are not read here, to be sent back with it. */
interface OwnBlock extends Block {
  readonly extra: JsonObject;
}

/** Text, maybe with what it cites. */
export interface TextBlock extends OwnBlock {
  readonly kind: 'text';
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
  readonly citations: JsonValue[];
}

/** Thinking, readable or not. */
export interface ThinkingBlock extends OwnBlock {
  readonly kind: 'thinking';
  text: string;
  signature: string;
  readonly redactedData: string | undefined;
}

/** A call of one of the host's tools. */
export interface CallBlock extends OwnBlock {
  readonly kind: 'call';
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** Position among the reply's calls. */
  readonly callIndex: number;
  /** The argument text so far. */
  inputText: string;
  /** Argument text that came with the start; it counts if none follows. */
  readonly startInput: string;
}

/** What only the provider understands. */
export interface ServerBlock extends Block {
  readonly kind: 'server';
  readonly data: Record<string, JsonValue>;
  /** Fragments of its `input`. */
  inputText: string;
}

/** What a part is made with. */
export interface PartContext {
  /** The `LLM.provider`. */
  readonly provider: string;
  /** The model that was asked. */
  readonly model: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

const TEXT_FIELDS = ['type', 'text', 'citations'];
const THINKING_FIELDS = ['type', 'thinking', 'signature'];
const REDACTED_FIELDS = ['type', 'data'];
const CALL_FIELDS = ['type', 'id', 'name', 'input'];

/**
 * Opens a block.
 *
 * @param raw - Its start, or all of it if it was not streamed.
 * @param callIndex - The position that it gets if it is a call.
 */
export function openBlock(raw: Readonly<Record<string, unknown>>, callIndex: number, isWhole: boolean): ReplyBlock {
  switch (raw['type']) {
    case 'text': {
      const text = textOf(raw['text']);
      const citations = Array.isArray(raw['citations']) ? (raw['citations'] as JsonValue[]) : [];
      return { kind: 'text', text, isBlank: isBlank(text), citations: [...citations], extra: extraOf(raw, TEXT_FIELDS), isClosed: false };
    }
    case 'thinking':
      return thinkingBlock(textOf(raw['thinking']), textOf(raw['signature']), extraOf(raw, THINKING_FIELDS));
    case 'redacted_thinking':
      return { ...thinkingBlock('', '', extraOf(raw, REDACTED_FIELDS)), redactedData: textOf(raw['data']) };
    case 'tool_use': {
      const startInput = inputTextOf(raw['input'], isWhole);
      return { kind: 'call', id: word(raw['id']), name: word(raw['name']), callIndex, inputText: '', startInput, extra: extraOf(raw, CALL_FIELDS), isClosed: false };
    }
    default:
      // It came out of JSON; a copy, since fragments are added.
      return { kind: 'server', data: { ...(raw as Record<string, JsonValue>) }, inputText: '', isClosed: false };
  }
}

/** Adds a fragment of a kind of its own to a block of the provider's: texts grow, everything else is replaced. */
export function addServerDelta({ data }: ServerBlock, delta: Readonly<Record<string, unknown>>): void {
  for (const [field, value] of Object.entries(delta)) {
    if (field === 'type' || field === '__proto__' || value === undefined) continue;
    const before = data[field];
    // It came out of JSON.
    data[field] = typeof before === 'string' && typeof value === 'string' ? before + value : (value as JsonValue);
  }
}

/** The part of a block; undefined for one that says nothing, or that the provider left unfinished. */
export function toPart(block: ReplyBlock, { provider, model, toolName }: PartContext): ReplyPart | undefined {
  switch (block.kind) {
    case 'text': {
      const extra = block.citations.length === 0 ? block.extra : { ...block.extra, citations: block.citations };
      if (block.text === '') return undefined;
      return { type: 'text', text: block.text, ...(hasFields(extra) && { providerData: { model, extra } }) };
    }
    case 'thinking': {
      const { text, signature, redactedData, extra } = block;
      const isUnsigned = signature === '' && redactedData === undefined;
      return {
        type: 'thinking',
        text,
        ...(signature !== '' && { signature }),
        ...(redactedData !== undefined && { redactedData }),
        providerData: { model, ...(isUnsigned && { [UNSIGNED]: true }), ...(hasFields(extra) && { extra }) },
      };
    }
    case 'call':
      return {
        type: 'tool_call',
        name: toolName(block.name ?? ''),
        inputText: block.inputText,
        ...(block.id !== undefined && { providerId: block.id }),
        ...(hasFields(block.extra) && { providerData: { model, extra: block.extra } }),
      };
    case 'server': {
      const data = serverData(block);
      return data === undefined ? undefined : { type: 'provider', provider, data };
    }
  }
}

function serverData({ data, inputText, isClosed }: ServerBlock): JsonObject | undefined {
  if (inputText === '') return data;
  const input = parseJson(inputText);
  if (input !== undefined) return { ...data, input: input as JsonValue };
  // Cut: it did not run, and would be refused.
  return isClosed ? data : undefined;
}

function thinkingBlock(text: string, signature: string, extra: JsonObject): ThinkingBlock {
  return { kind: 'thinking', text, signature, redactedData: undefined, extra, isClosed: false };
}

/** Arguments that came whole: an object, or text. A stream starts with an empty object, and then sends them. */
function inputTextOf(input: unknown, isWhole: boolean): string {
  if (typeof input === 'string') return input;
  if (input === undefined || (!isWhole && (input === null || (isRecord(input) && !hasFields(input))))) return '';
  return JSON.stringify(input);
}

/** Fields beside those that are read, as far as they say anything. */
function extraOf(raw: Readonly<Record<string, unknown>>, read: readonly string[]): JsonObject {
  const extra = Object.entries(raw).filter(([field, value]) => !read.includes(field) && value !== null && value !== undefined);
  // It came out of JSON.
  return Object.fromEntries(extra) as JsonObject;
}

function hasFields(object: object): boolean {
  return Object.keys(object).length > 0;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
