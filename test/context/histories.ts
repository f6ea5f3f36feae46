/** Histories for the layers: conversations with texts of all sizes, and what has to hold of them after any layer. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { createTranscript, type Message, projectMessages, type RecordedEvent, type UserMessage } from 'turnloop';
import type { LayerResult } from 'turnloop/context';
import { brokenRules } from '../properties/protocol-rules.ts';
import { conversations, type ConversationTarget } from '../support/conversations.ts';

const TARGET: ConversationTarget = {
  provider: 'ours',
  modelId: 'model',
  thinkingData: [{ seal: 1 }],
  textData: [{ phase: 'commentary' }],
  callData: [{ signature: 'x' }],
  providerRuns: [[{ search: 1 }, { found: 1 }]],
};

/** How often each text of a message is said, message by message in turn. */
const sizes = fc.array(fc.constantFrom(1, 1, 10, 100, 300), { minLength: 1, maxLength: 8 });
/** Which messages are pinned, in turn. */
const pins = fc.array(fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0), { minLength: 1, maxLength: 12 });

/** Valid histories with short and long texts of every kind, arguments included, and messages of every origin, some pinned. */
export const histories: fc.Arbitrary<readonly Message[]> = fc
  .tuple(conversations(TARGET), sizes, pins)
  .map(([messages, times, pinned]) =>
    projectMessages(
      messages.map((message, index) => {
        const longer = lengthen(message, times[index % times.length] ?? 1);
        return longer.role === 'user' && pinned[index % pinned.length] === true ? { ...longer, pinned: true } : longer;
      }),
    ).messages,
  );

function lengthen(message: Message, times: number): Message {
  const longer = (text: string): string => `${text} and so on 😀\n`.repeat(times);
  switch (message.role) {
    case 'user':
    case 'tool':
      return { ...message, content: message.content.map((part) => (part.type === 'text' ? { ...part, text: longer(part.text) } : part)) };
    case 'assistant':
      return {
        ...message,
        content: message.content.map((part) => {
          if (part.type === 'text' || part.type === 'thinking') return { ...part, text: longer(part.text) };
          if (part.type !== 'tool_call' || part.inputText !== '{"a":1}') return part;
          return { ...part, inputText: `{"a": 1.50, "text": ${JSON.stringify(longer('x'))}}` };
        }),
      };
  }
}

function isTransient(message: Message): boolean {
  return message.role === 'user' && message.transient === true;
}

const STAMP = { turnId: 'turn_0', at: 0 };

/** Events of a turn after which these messages are the history. */
export function eventsOf(messages: readonly Message[]): readonly RecordedEvent[] {
  const seed: UserMessage = { role: 'user', id: 'seed', origin: 'user', content: [{ type: 'text', text: 'x' }] };
  return [
    { type: 'turn.begin', ...STAMP, version: 1, inputCount: 1 },
    { type: 'message', ...STAMP, message: seed },
    { type: 'compaction', ...STAMP, layer: 'seed', edits: [{ from: 'seed', to: 'seed', messages }], tokensBefore: 0, tokensAfter: 0 },
    { type: 'turn.end', ...STAMP, stopReason: 'stopped', steps: 0 },
  ];
}

/** What a transcript with these messages comes to after a compaction, and what the fold had to repair. */
export function recorded(messages: readonly Message[], result: LayerResult): { readonly messages: readonly Message[]; readonly findings: readonly unknown[] } {
  const { edits, tokensBefore, tokensAfter } = result;
  const transcript = createTranscript([
    ...eventsOf(messages),
    { type: 'compaction', ...STAMP, layer: 'tested', edits, tokensBefore, tokensAfter },
  ]);
  return { messages: transcript.buildMessages(), findings: transcript.findings() };
}

/** What holds after every layer: what it promises of its result, whole pairs, valid for all protocols, nothing lost that must stay. */
export function expectSound(history: readonly Message[], layer: (messages: readonly Message[]) => LayerResult): LayerResult {
  const before = JSON.stringify(history);
  const result = layer(history);
  const { messages, edits, tokensBefore, tokensAfter } = result;

  expect(JSON.stringify(history)).toBe(before);
  expect(layer(history)).toStrictEqual(result);

  // Nothing new, nothing done.
  if (edits.length === 0) expect(messages).toBe(history);
  else expect(tokensAfter).toBeLessThan(tokensBefore);
  expect(layer(messages).edits).toStrictEqual([]);

  const own = (list: readonly Message[]): readonly Message[] => list.filter((message) => !isTransient(message));
  const fold = recorded(own(history), result);
  expect(fold).toStrictEqual({ messages: own(messages), findings: [] });
  if (brokenRules(history).length === 0) expect(brokenRules(messages)).toStrictEqual([]);

  // What is in no edit is the same object.
  const edited = new Set(edits.flatMap(({ from, to }) => idsBetween(history, from, to)));
  for (const message of history) expect(messages.includes(message)).toBe(!edited.has(message.id));

  const people = own(history).filter((message) => message.role === 'user' && (message.origin === 'user' || message.origin === 'steering'));
  expect(messages).toContain(people.at(-1));
  expect(messages.map(({ id }) => id)).toContain(people[0]?.id);
  for (const message of history) if (message.role === 'user' && mustStay(message)) expect(messages).toContain(message);
  return result;
}

function mustStay({ pinned, transient, origin }: UserMessage): boolean {
  return pinned === true || transient === true || origin === 'memory' || origin === 'summary';
}

function idsBetween(messages: readonly Message[], from: string, to: string): readonly string[] {
  const ids = messages.map(({ id }) => id);
  return ids.slice(ids.indexOf(from), ids.indexOf(to) + 1);
}
