/**
 * strictHistory: the recovery alone, as a black box; the repairs themselves are tests of the projection. What a turn makes
 * of it is in `recoveries-in-a-turn.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { assistantMessage, LLMError, type LLMRequest, type Message, type RecoveryContext, toolMessage, userMessage } from 'turnloop';
import { strictHistory } from 'turnloop/policies';
import { scriptedLLM, virtualRuntime } from 'turnloop/testing';

/** The recovery of one turn: gives what it makes of a request. */
function inTurn() {
  const state = new Map<string, unknown>();
  const recovery = strictHistory();
  return (messages: readonly Message[]): LLMRequest | undefined => {
    const context: RecoveryContext = {
      turnId: 'turn_1',
      step: 1,
      error: new LLMError({ kind: 'invalid_history', message: 'tool_call_id not found' }),
      llm: scriptedLLM([]),
      signal: new AbortController().signal,
      runtime: virtualRuntime(),
      state,
      record: async () => undefined,
      messages: async () => [],
      notify: () => undefined,
    };
    const request = { systemPrompt: 'Be brief.', messages, tools: [], signal: context.signal, maxOutputTokens: 100 };
    return recovery.apply(request, context) as LLMRequest | undefined;
  };
}

const hello = userMessage('Hello', { id: 'message_1' });
const half = assistantMessage('Let me', { id: 'step_1' });
const rest = assistantMessage(
  [
    { type: 'text', text: 'look.' },
    { type: 'tool_call', id: 'call_1', name: 'look', inputText: '{}', input: {} },
  ],
  { id: 'step_2' },
);
const seen = toolMessage('A cat.', { id: 'result_call_1', toolCallId: 'call_1', name: 'look' });

describe('strictHistory', () => {
  it('knows something against invalid histories only', () => {
    const { name, kinds } = strictHistory();

    expect({ name, kinds }).toStrictEqual({ name: 'strictHistory', kinds: ['invalid_history'] });
  });

  it('FB1 repairs by the strictest rules and leaves the rest of the request alone', () => {
    const apply = inTurn();

    const changed = apply([half, hello, half, rest, seen]);

    expect(changed).toStrictEqual({
      systemPrompt: 'Be brief.',
      messages: [hello, { ...half, content: [...half.content, ...rest.content] }, seen],
      tools: [],
      signal: expect.any(AbortSignal),
      maxOutputTokens: 100,
    });
  });

  it('FB5 has nothing to give for a history that the strictest rules allow', () => {
    expect(inTurn()([hello, rest, seen])).toBeUndefined();
  });

  it('law-11 gives the same objects for an equal prefix on a later step', () => {
    const apply = inTurn();

    const first = apply([half, hello, half, rest, seen]);
    const second = apply([half, hello, half, rest, seen, userMessage('Go on.', { id: 'message_2' })]);

    expect(first?.messages).toHaveLength(3);
    expect(first?.messages.every((message, index) => message === second?.messages[index])).toBe(true);
  });

  it('law-11 keeps a message that stands in for a missing result', () => {
    const apply = inTurn();

    const first = apply([hello, rest]);
    const second = apply([hello, rest, userMessage('Go on.', { id: 'message_2' })]);

    expect(first?.messages[2]).toMatchObject({ role: 'tool', toolCallId: 'call_1' });
    expect(second?.messages[2]).toBe(first?.messages[2]);
  });

  it('gives the new object where a message says something else', () => {
    const apply = inTurn();

    apply([half, hello, half, rest, seen]);
    const other = assistantMessage('Wait', { id: 'step_1' });
    const second = apply([half, hello, other, rest, seen]);

    expect(second?.messages[1]?.content[0]).toStrictEqual({ type: 'text', text: 'Wait' });
  });
});
