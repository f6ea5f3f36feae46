/**
 * Reply stream: cuts a reply into the fragments an adapter would deliver, and tells what had arrived after some of
 * them. Knows nothing of time.
 */
import { partialReply, type PartialReplyPart } from '../core/errors.ts';
import type { LLMDelta, ReplyPart } from '../core/llm.ts';
import type { AssistantPart } from '../core/message.ts';
import type { ChunkSize } from './reply.ts';

/** A fragment and the part of the reply that it belongs to. */
export interface Fragment {
  readonly delta: LLMDelta;
  /** Position of the part in the reply, 0-based. */
  readonly partIndex: number;
}

/**
 * Cuts parts into fragments. Media and provider parts have none, and neither has empty text; a call without arguments
 * has one.
 *
 * @param chunk - Characters per fragment. Characters outside the basic plane stay whole, as they do in a decoded stream.
 */
export function fragmentsOf(parts: readonly ReplyPart[], chunk: ChunkSize): readonly Fragment[] {
  const fragments: Fragment[] = [];
  let callIndex = 0;
  for (const [partIndex, part] of parts.entries()) {
    const deltas = part.type === 'tool_call' ? callDeltas(part, callIndex++, chunk) : textDeltas(part, chunk);
    for (const delta of deltas) fragments.push({ delta, partIndex });
  }
  return fragments;
}

/** What had arrived of a reply after its first `count` fragments, as an adapter hands it out: no calls. */
export function arrivedParts(
  parts: readonly ReplyPart[],
  fragments: readonly Fragment[],
  count: number,
): readonly PartialReplyPart[] {
  const sent = fragments.slice(0, count);
  // The part that the stream is in: everything before it is whole, everything behind it has not begun.
  const open = fragments[count]?.partIndex ?? parts.length;
  const arrived: AssistantPart[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.type === 'tool_call') continue;
    if (index < open) arrived.push(part);
    else if (index === open && part.type === 'text') arrived.push({ ...part, text: textOfFragments(sent, index) });
  }
  return partialReply(arrived);
}

function textOfFragments(fragments: readonly Fragment[], partIndex: number): string {
  let text = '';
  for (const fragment of fragments) {
    if (fragment.partIndex === partIndex && fragment.delta.type === 'text') text += fragment.delta.text;
  }
  return text;
}

function textDeltas(part: Exclude<ReplyPart, { type: 'tool_call' }>, chunk: ChunkSize): readonly LLMDelta[] {
  if (part.type !== 'text' && part.type !== 'thinking') return [];
  const { type } = part;
  return pieces(part.text, chunk).map((text) => ({ type, text }));
}

function callDeltas(
  call: Extract<ReplyPart, { type: 'tool_call' }>,
  callIndex: number,
  chunk: ChunkSize,
): readonly LLMDelta[] {
  const [first = '', ...rest] = pieces(call.inputText, chunk);
  return [
    {
      type: 'tool_call',
      callIndex,
      name: call.name,
      ...(call.providerId !== undefined && { providerId: call.providerId }),
      inputText: first,
    },
    ...rest.map((inputText): LLMDelta => ({ type: 'tool_call', callIndex, inputText })),
  ];
}

function pieces(text: string, chunk: ChunkSize): readonly string[] {
  const sizes = typeof chunk === 'number' ? [chunk] : chunk;
  const result: string[] = [];
  let start = 0;
  while (start < text.length) {
    const size = sizes[Math.min(result.length, sizes.length - 1)] ?? Infinity;
    let end = Math.min(text.length, start + Math.max(1, size));
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    result.push(text.slice(start, end));
    start = end;
  }
  return result;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
