/**
 * withThinkTags on any text in any pieces: the fragments, the parts and what an error tells of agree with a reading of
 * the whole text, and nothing is held back that cannot become a tag.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type LLM, LLMError, type LLMDelta, type ReplyPart } from 'turnloop';
import { type ThinkTagsOptions, withThinkTags } from 'turnloop/policies';
import { llmRequest } from 'turnloop/testing';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

interface Split {
  readonly thinking: string;
  readonly text: string;
}

const OPTIONS: readonly ThinkTagsOptions[] = [
  {},
  { startsInside: true },
  { tags: [{ open: '<think>', close: '</think>' }, { open: '<thinking>', close: '</thinking>' }] },
  { startsInside: true, tags: [{ open: '<think>', close: '</think>' }, { open: '[T]', close: '[/T]' }] },
];

/** The right reading of a whole text, by regular expressions. */
function readWhole(text: string, { startsInside = false, tags = [{ open: '<think>', close: '</think>' }] }: ThinkTagsOptions): Split {
  const quote = (tag: string): string => tag.replaceAll(/[[\]/]/g, '\\$&');
  for (const { open, close } of tags) {
    const opened = new RegExp(`^\\s*${quote(open)}([^]*)$`, 'i').exec(text);
    if (opened !== null) return closeWhole(opened[1]!, quote(close));
  }
  return startsInside ? closeWhole(text, tags.map(({ close }) => quote(close)).join('|')) : { thinking: '', text };
}

function closeWhole(text: string, closing: string): Split {
  const [, thinking, rest] = new RegExp(`^([^]*?)(?:${closing})([^]*)$`, 'i').exec(text) ?? ['', text, ''];
  return { thinking: thinking, text: rest };
}

/** What is right to have been streamed of a text that may go on: all that no continuation could take for a tag. */
function readOpen(text: string, options: ThinkTagsOptions): Split {
  const { tags = [{ open: '<think>', close: '</think>' }] } = options;
  const isBeginning = (rest: string, tag: string): boolean => rest.length < tag.length && tag.toLowerCase().startsWith(rest.toLowerCase());
  const start = text.trimStart();
  if (tags.some(({ open }) => isBeginning(start, open))) return { thinking: '', text: '' };
  const whole = readWhole(text, options);
  if (whole.text !== '' || isClosed(text, options)) return whole;
  const opened = tags.find(({ open }) => start.toLowerCase().startsWith(open.toLowerCase()));
  const closings = opened === undefined ? tags.map(({ close }) => close) : [opened.close];
  for (let at = 0; at < whole.thinking.length; at += 1) {
    if (closings.some((close) => isBeginning(whole.thinking.slice(at), close))) return { thinking: whole.thinking.slice(0, at), text: '' };
  }
  return whole;
}

/** True if text that follows is answer. */
function isClosed(text: string, options: ThinkTagsOptions): boolean {
  return readWhole(`${text}.`, options).text !== '';
}

const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('<think>', '</think>', '<THINK>', '</Think>', '<thinking>', '</thinking>', '[T]', '[/T]') },
  { weight: 3, arbitrary: fc.constantFrom('<', '</', '<thi', 'nk>', '</thi', 'think', '>', '[', '/') },
  { weight: 3, arbitrary: fc.constantFrom(' ', '\n', '\t', '\u00a0') },
  { weight: 2, arbitrary: fc.constantFrom('a', 'Yes.', '`', 'İ', 'ſ', '\u212a', '🌟') },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
);
const reply = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.tuple(fc.constantFrom('', ' \n'), fc.constantFrom('<think>', '<thinking>', '[T]'), fc.array(piece, { maxLength: 12 })).map(([blank, tag, pieces]) => blank + tag + pieces.join('')),
);
const cuts = fc.oneof(fc.constant('each' as const), fc.array(fc.nat(60), { maxLength: 8 }));
const anyOptions = fc.constantFrom(...OPTIONS);

function cut(text: string, places: 'each' | readonly number[]): readonly string[] {
  const at = places === 'each' ? Array.from(text, (_, index) => index) : [...new Set(places)].sort((a, b) => a - b);
  return [0, ...at].map((start, index) => text.slice(start, at[index] ?? text.length));
}

function streamed(deltas: readonly LLMDelta[]): Split {
  const join = (type: string): string => deltas.map((delta) => (delta.type === type && delta.type !== 'tool_call' ? delta.text : '')).join('');
  return { thinking: join('thinking'), text: join('text') };
}

function split(parts: readonly ReplyPart[]): Split {
  const join = (type: string): string => parts.map((part) => (part.type === type && (part.type === 'text' || part.type === 'thinking') ? part.text : '')).join('');
  return { thinking: join('thinking'), text: join('text') };
}

/** Streams pieces, each watched, then ends with a reply, or with the error that is made of the parts. */
function model(pieces: readonly string[], parts: readonly ReplyPart[], options: { onPiece?: (index: number) => void; fails?: boolean }): LLM {
  return {
    provider: 'pieces',
    modelId: 'pieces-model',
    systemPrompt: '',
    chat: async ({ onDelta }) => {
      for (const [index, text] of pieces.entries()) {
        onDelta?.({ type: 'text', text });
        options.onPiece?.(index);
      }
      if (options.fails === true) throw new LLMError({ kind: 'network', message: 'Cut.', partial: parts as LLMError['partial'] });
      const usage = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 };
      // A reply that is cut may be empty, so that every text has an answer.
      return { content: parts, stopReason: 'max_tokens', usage };
    },
  };
}

it('B5 gives the thinking and the answer of the whole text, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(reply, cuts, anyOptions, async (text, places, options) => {
      const deltas: LLMDelta[] = [];
      const llm = withThinkTags(model(cut(text, places), [{ type: 'text', text }], {}), options);

      const response = await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));

      expect(split(response.content)).toStrictEqual(readWhole(text, options));
      expect(streamed(deltas)).toStrictEqual(readWhole(text, options));
    }),
    { numRuns: RUNS },
  );
});

it('B5 gives the same for a text in several parts, with a picture between them', async () => {
  await fc.assert(
    fc.asyncProperty(reply, cuts, anyOptions, async (text, places, options) => {
      const deltas: LLMDelta[] = [];
      const pieces = cut(text, places);
      const picture: ReplyPart = { type: 'media', mediaType: 'image/png', data: 'AAAA' };
      const parts = pieces.flatMap((part): ReplyPart[] => [{ type: 'text', text: part }, picture]);
      const llm = withThinkTags(model(pieces, parts, {}), options);

      const response = await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));

      expect(split(response.content)).toStrictEqual(readWhole(text, options));
      expect(streamed(deltas)).toStrictEqual(readWhole(text, options));
      expect(response.content.filter(({ type }) => type === 'media')).toHaveLength(pieces.length);
    }),
    { numRuns: RUNS },
  );
});

it('B5 holds nothing back that cannot become a tag', async () => {
  await fc.assert(
    fc.asyncProperty(reply, cuts, anyOptions, async (text, places, options) => {
      const deltas: LLMDelta[] = [];
      const pieces = cut(text, places);
      const seen: Split[] = [];
      const onPiece = (): void => void seen.push(streamed(deltas));
      const llm = withThinkTags(model(pieces, [{ type: 'text', text }], { onPiece }), options);

      await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));

      expect(seen).toStrictEqual(pieces.map((_, index) => readOpen(pieces.slice(0, index + 1).join(''), options)));
    }),
    { numRuns: RUNS },
  );
});

it('B5 tells of a reply that broke off the text that was streamed, and no open thinking', async () => {
  await fc.assert(
    fc.asyncProperty(reply, cuts, anyOptions, async (text, places, options) => {
      const deltas: LLMDelta[] = [];
      const llm = withThinkTags(model(cut(text, places), [{ type: 'text', text }], { fails: true }), options);

      const error: unknown = await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) })).catch((thrown: unknown) => thrown);

      const kept = split((error as LLMError).partial ?? []);
      const whole = readWhole(text, options);
      expect(kept.text).toBe(streamed(deltas).text);
      expect(kept.thinking).toBe(isClosed(text, options) ? whole.thinking : '');
    }),
    { numRuns: RUNS },
  );
});

/** What stands between texts. */
const other = fc.constantFrom<ReplyPart>(
  { type: 'thinking', text: 'told apart' },
  { type: 'thinking', text: '', redactedData: 'secret' },
  { type: 'tool_call', name: 'f', inputText: '{}' },
  { type: 'media', mediaType: 'image/png', data: 'AAAA' },
  { type: 'provider', provider: 'pieces', data: null },
);
const mixedReply = fc.array(fc.oneof({ weight: 3, arbitrary: reply.map((text): ReplyPart => ({ type: 'text', text })) }, { weight: 2, arbitrary: other }), { maxLength: 6 });

/** Streams parts one after the other, each cut, then ends with them. */
function mixedModel(parts: readonly ReplyPart[], places: 'each' | readonly number[]): LLM {
  return {
    provider: 'pieces',
    modelId: 'pieces-model',
    systemPrompt: '',
    chat: async ({ onDelta }) => {
      let callIndex = 0;
      for (const part of parts) {
        if (part.type === 'tool_call') onDelta?.({ type: 'tool_call', callIndex: callIndex++, name: part.name, inputText: part.inputText });
        else if (part.type === 'text' || part.type === 'thinking') for (const text of cut(part.text, places)) if (text !== '') onDelta?.({ type: part.type, text });
      }
      const usage = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 };
      return { content: parts, stopReason: 'max_tokens', usage };
    },
  };
}

/** Texts of one kind that follow one another as one; what is not streamed left out. */
function sequence(pieces: readonly (LLMDelta | ReplyPart)[]): readonly (readonly [string, string])[] {
  const joined: [string, string][] = [];
  for (const each of pieces) {
    if (each.type === 'tool_call') joined.push(['tool_call', '']);
    if ((each.type !== 'text' && each.type !== 'thinking') || each.text === '') continue;
    const last = joined.at(-1);
    if (last?.[0] === each.type) last[1] += each.text;
    else joined.push([each.type, each.text]);
  }
  return joined;
}

it('B5 tells of everything live in the order in which it stands in the reply', async () => {
  await fc.assert(
    fc.asyncProperty(mixedReply, cuts, anyOptions, async (parts, places, options) => {
      const deltas: LLMDelta[] = [];

      const { content } = await withThinkTags(mixedModel(parts, places), options).chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));

      expect(sequence(deltas)).toStrictEqual(sequence(content));
    }),
    { numRuns: RUNS },
  );
});
