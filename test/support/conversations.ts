/**
 * Conversations: histories as wild as they come, for whichever model an adapter speaks to. Calls and results are paired
 * and a user speaks first, as the projection makes it; everything else may be anything.
 *
 * Knows nothing of the adapters: what an adapter attaches to parts is handed in as samples.
 */
import fc from 'fast-check';
import {
  assistantMessage,
  type AssistantPart,
  createTranscript,
  type JsonValue,
  type MediaPart,
  type Message,
  type MessageSource,
  type ProviderPart,
  type TextPart,
  type ThinkingPart,
  toolMessage,
  type ToolResultPart,
  userMessage,
  type UserMessageOrigin,
} from 'turnloop';
import { play } from '../properties/play.ts';
import type { Scenario } from '../properties/scenario.ts';

/** What stands for something that a provider sent; made of a number where no two of its kind may be the same. */
export type Sample<Value> = Value | ((count: number) => Value);

/** Whom the history is going to be sent to, and what that provider is known to attach. */
export interface ConversationTarget {
  /** The adapter's `provider`. */
  readonly provider: string;
  /** The adapter's `modelId`. */
  readonly modelId: string;
  /** Samples of `providerData` on thinking. @defaultValue none */
  readonly thinkingData?: readonly Sample<JsonValue>[];
  /** Samples of `providerData` on text. @defaultValue none */
  readonly textData?: readonly Sample<JsonValue>[];
  /** Samples of `providerData` on calls. @defaultValue none */
  readonly callData?: readonly Sample<JsonValue>[];
  /**
   * Runs of provider parts that stand together (a search and what it found), each as it came from the provider. Only an
   * interrupted reply holds less than a whole run. @defaultValue none
   */
  readonly providerRuns?: readonly Sample<readonly JsonValue[]>[];
  /** Whether parts also carry what another adapter of that provider attached. @defaultValue true */
  readonly hasStrangeData?: boolean;
}

/** Text that is anything: blank, with lone halves of pairs, with control characters. */
const wildText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom('', ' \n', 'a\ud83d', '\ude00', '\u0000', 'a\u0000b', 'plain words', 'ends in a space '),
);

const media: fc.Arbitrary<ToolResultPart> = fc.constantFrom<ToolResultPart>(
  { type: 'media', mediaType: 'image/png', data: 'AAAA' },
  { type: 'media', mediaType: 'IMAGE/JPEG', data: 'AAAA' },
  { type: 'media', mediaType: 'image/webp', url: 'https://h.example/i.webp' },
  { type: 'media', mediaType: 'image/svg+xml', data: 'AAAA' },
  { type: 'media', mediaType: 'audio/wav', data: 'AAAA' },
  { type: 'media', mediaType: 'audio/mpeg', url: 'https://h.example/a.mp3' },
  { type: 'media', mediaType: 'application/pdf', data: 'AAAA' },
  { type: 'media', mediaType: 'application/pdf', url: 'https://h.example/d.pdf' },
  { type: 'media', mediaType: 'text/csv', data: 'YSxi' },
  { type: 'media', mediaType: 'video/mp4', data: 'AAAA' },
  { type: 'media', mediaType: 'video/mp4', url: 'https://h.example/v' },
);

const textOrMedia: fc.Arbitrary<ToolResultPart> = fc.oneof(
  { weight: 2, arbitrary: wildText.map((text): ToolResultPart => ({ type: 'text', text })) },
  { weight: 1, arbitrary: media },
);

/** What stands in `providerData` if another adapter wrote it. */
const STRANGE_DATA: readonly JsonValue[] = [null, 'x', 7, [1], { other: 1 }, { type: 'reasoning', id: 'rs_strange' }];

interface Call {
  readonly name: string;
  readonly inputText: string;
  readonly providerId?: string;
  readonly providerData?: Sample<JsonValue> | undefined;
  readonly result: readonly ToolResultPart[];
  readonly isError: boolean;
}

/** A part whose data is still to be made. */
type Draft = (Omit<TextPart, 'providerData'> | Omit<ThinkingPart, 'providerData'>) & { readonly providerData?: Sample<JsonValue> | undefined };

/** A piece of a reply; a call brings its result along, a run is made of several parts. */
type Piece = { readonly part: Draft | MediaPart | ProviderPart } | { readonly call: Call } | { readonly run: Sample<readonly JsonValue[]> };

interface Reply {
  readonly pieces: readonly Piece[];
  readonly origin: 'own' | 'older' | 'other' | 'none';
  readonly hasResponseId: boolean;
  readonly isInterrupted: boolean;
}

type Turn = { readonly input: readonly Message[]; readonly replies: readonly Reply[] };

/** Conversations with a model. The first message that is not transient is a user's and says something. */
export function conversations(target: ConversationTarget): fc.Arbitrary<readonly Message[]> {
  return fc
    .record({
      head: fc.array(userMessages(true), { maxLength: 1 }),
      turns: fc.array(fc.record<Turn>({ input: fc.array(userMessages(false), { maxLength: 2 }), replies: fc.array(repliesOf(target), { maxLength: 4 }) }), {
        minLength: 1,
        maxLength: 4,
      }),
      tail: fc.array(userMessages(true), { maxLength: 2 }),
    })
    .map(({ head, turns, tail }) => {
      const body = turns.flatMap(({ input, replies }) => [...input, ...replies]);
      return withIds([...head, userMessage('first'), ...toMessages(body, target), ...tail]);
    });
}

/** After how many messages each request of a conversation was made: before every reply, and at the end. */
export function requestSizes(messages: readonly Message[]): readonly number[] {
  return messages.flatMap((message, at) => (message.role === 'assistant' ? [at] : [])).concat(messages.length);
}

/**
 * Plays a scenario of law 2 (`scenarios()` generates them) and gives every history that a prefix of its transcript
 * folds to, shortest first. Its replies are the target's; every third one another provider's, if `mixed`.
 */
export async function transcriptHistories(
  scenario: Scenario,
  target: ConversationTarget,
  { mixed = false }: { readonly mixed?: boolean } = {},
): Promise<readonly (readonly Message[])[]> {
  const { transcript } = await play(scenario);
  const resourced = new Map<Message, Message>();
  const live = createTranscript();
  const histories: (readonly Message[])[] = [];
  let last: readonly Message[] | undefined;
  for (const event of transcript.events) {
    live.record(event);
    const messages = live.buildMessages();
    if (messages !== last && messages.length > 0) histories.push(messages.map(resource));
    last = messages;
  }
  return histories;

  /** The same message for the same message: adapters go by identity. */
  function resource(message: Message): Message {
    if (message.role !== 'assistant') return message;
    const known = resourced.get(message);
    if (known !== undefined) return known;
    const isForeign = mixed && resourced.size % 3 === 2;
    const content = message.content.map((part) => (part.type === 'provider' ? { ...part, provider: OTHER.provider } : part));
    const source = isForeign ? OTHER : { ...message.source, provider: target.provider, modelId: target.modelId };
    const made: Message = { ...message, content, source };
    resourced.set(message, made);
    return made;
  }
}

const OTHER: MessageSource = { provider: 'someone-else', modelId: 'their-model', responseId: 'their-response' };

function userMessages(transient: boolean): fc.Arbitrary<Message> {
  return fc
    .record({
      parts: fc.array(textOrMedia, { maxLength: 3 }),
      origin: fc.constantFrom<UserMessageOrigin>('user', 'user', 'steering', 'reminder', 'memory', 'summary', 'host'),
    })
    .map(({ parts, origin }) => userMessage(parts, { origin, transient }));
}

function repliesOf(target: ConversationTarget): fc.Arbitrary<Reply> {
  return fc.record({
    pieces: fc
      .tuple(fc.array(contentPieces(target), { maxLength: 4 }), fc.array(callPieces(target), { maxLength: 3 }), fc.array(contentPieces(target), { maxLength: 1 }))
      .map((lists) => lists.flat()),
    origin: fc.constantFrom<Reply['origin']>('own', 'own', 'own', 'older', 'other', 'none'),
    hasResponseId: fc.boolean(),
    isInterrupted: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
  });
}

function contentPieces(target: ConversationTarget): fc.Arbitrary<Piece> {
  const thinking = fc.record({
    type: fc.constant('thinking' as const),
    text: wildText,
    signature: fc.constantFrom(undefined, undefined, 'c2lnbmF0dXJl', ''),
    redactedData: fc.constantFrom(undefined, undefined, undefined, 'ZW5jcnlwdGVk', ''),
    providerData: data(target, target.thinkingData),
  });
  const text = fc.record({ type: fc.constant('text' as const), text: wildText, providerData: data(target, target.textData) });
  const foreign = fc.constant<ProviderPart>({ type: 'provider', provider: OTHER.provider, data: { type: 'their_block' } });
  const single = fc.oneof<fc.MaybeWeightedArbitrary<Draft | MediaPart | ProviderPart>[]>(
    { weight: 4, arbitrary: thinking },
    { weight: 4, arbitrary: text },
    { weight: 1, arbitrary: media },
    { weight: 1, arbitrary: foreign },
  );
  const pieces = single.map((part): Piece => ({ part }));
  const { providerRuns: runs = [] } = target;
  if (runs.length === 0) return pieces;
  const run = fc.constantFrom(...runs).map((blocks): Piece => ({ run: blocks }));
  return fc.oneof({ weight: 8, arbitrary: pieces }, { weight: 1, arbitrary: run });
}

function callPieces(target: ConversationTarget): fc.Arbitrary<Piece> {
  const call = fc.record<Call>({
    name: fc.oneof(fc.constantFrom('read', 'a.b', 'a/b', 'toString', '', '__proto__', '1st', 'x'.repeat(70)), wildText),
    inputText: fc.oneof(fc.constantFrom('', '{}', '{"a":1}', '[1]', 'null', '"text"', '{"a":', '{"a":"\ud83d"}', '{"__proto__":1}', '{"a":"\\ud83d \\u0000"}'), wildText),
    providerId: fc.oneof(
      fc.constantFrom(undefined, 'call_0', 'toolu_0', 'functions.x:0', '', 'EscTeQY62', 'call_A|fc_B', '__proto__', 'call_own1'),
      wildText,
      fc.string({ minLength: 41, maxLength: 70 }),
      fc.integer({ min: 41, max: 70 }).map((length) => 'a'.repeat(length)),
    ),
    providerData: data(target, target.callData),
    result: fc.array(textOrMedia, { maxLength: 3 }),
    isError: fc.boolean(),
  });
  return call.map((one): Piece => ({ call: one }));
}

/** Nothing, a sample, or what another adapter wrote. */
function data({ hasStrangeData = true }: ConversationTarget, samples: readonly Sample<JsonValue>[] = []): fc.Arbitrary<Sample<JsonValue> | undefined> {
  const choices: (readonly [number, readonly (Sample<JsonValue> | undefined)[]])[] = [[4, [undefined]], [4, samples], [1, hasStrangeData ? STRANGE_DATA : []]];
  return fc.oneof(...choices.filter(([, values]) => values.length > 0).map(([weight, values]) => ({ weight, arbitrary: fc.constantFrom(...values) })));
}

function toMessages(body: readonly (Message | Reply)[], target: ConversationTarget): Message[] {
  let callCount = 0;
  let replyCount = 0;
  let sampleCount = 0;
  const make = <Value>(sample: Sample<Value>): Value => (sample instanceof Function ? sample((sampleCount += 1)) : sample);
  return body.flatMap((entry): Message[] => {
    if (!('pieces' in entry)) return [entry];
    replyCount += 1;
    const { pieces, origin, hasResponseId, isInterrupted } = entry;
    const parts: AssistantPart[] = [];
    const results: Message[] = [];
    for (const piece of pieces) {
      if ('part' in piece) {
        const { part } = piece;
        parts.push(part.type === 'text' || part.type === 'thinking' ? { ...part, providerData: make(part.providerData) } : part);
      } else if ('run' in piece) {
        const blocks = make(piece.run);
        parts.push(...(isInterrupted ? blocks.slice(0, 1) : blocks).map((block): ProviderPart => ({ type: 'provider', provider: target.provider, data: block })));
      } else {
        const { result, isError, providerData, ...call } = piece.call;
        const id = `call_own${(callCount += 1)}`;
        parts.push({ type: 'tool_call', id, ...call, providerData: make(providerData) });
        results.push(toolMessage(result, { toolCallId: id, name: call.name, isError }));
      }
    }
    const source = sourceOf(origin, target, hasResponseId ? `resp_${replyCount}` : undefined);
    return [assistantMessage(parts, { source, ...(isInterrupted && { status: 'interrupted' }) }), ...results];
  });
}

function sourceOf(origin: Reply['origin'], target: ConversationTarget, responseId: string | undefined): MessageSource | undefined {
  if (origin === 'none') return undefined;
  if (origin === 'other') return OTHER;
  const modelId = origin === 'older' ? `${target.modelId}-older` : target.modelId;
  return { provider: target.provider, modelId, responseId };
}

function withIds(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, at) => ({ ...message, id: `message_${at}` }));
}
