/** Messages requests: how the model is told to think, and what goes back of what it thought. Black-box. */
import { describe, expect, it } from 'vitest';
import { assistantMessage, type AssistantPart, type Message, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { call, callBlock, messagesOf, messagesOn, MODEL, OK, own, reply, result, send, sentBack, SOURCE, textBlock, thinkingBlock, tool, wire } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';

describe('thinking', () => {
  const NAMES = ['claude-opus-4-6', 'claude-sonnet-4-6', 'claude-opus-4-7', 'claude-opus-4-8', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-opus-4-11', 'claude-fable-6', 'claude-mythos-preview', 'anthropic.claude-opus-5-v1:0'];

  async function fields(options: Partial<AnthropicOptions>, more: Parameters<typeof send>[1] = {}, messages: readonly Message[] = [userMessage('x')]): Promise<Record<string, unknown>> {
    const { body } = await send(messages, more, options);
    const { thinking, output_config, temperature } = body;
    return JSON.parse(JSON.stringify({ thinking, output_config, temperature })) as Record<string, unknown>;
  }

  it.each(NAMES)('AN4: leaves it to %s how much it thinks, with the effort word for word', async (model) => {
    expect(await fields({ model, thinkingEffort: 'xhigh' })).toStrictEqual({ thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } });
  });

  it.each(['claude-sonnet-4-5', 'claude-3-7-sonnet-20250219', 'anthropic/claude-opus-4.5', 'claude-haiku-4-5-20251001', 'kimi-k2-thinking', 'glm-4.6'])(
    'AN4: gives %s a budget',
    async (model) => {
      expect(await fields({ model, thinkingEffort: 'low' })).toStrictEqual({ thinking: { type: 'enabled', budget_tokens: 2048 } });
      expect(await fields({ model, thinkingBudget: 5000 })).toStrictEqual({ thinking: { type: 'enabled', budget_tokens: 5000 } });
    },
  );

  it('AN4: does as it is told where the name says otherwise', async () => {
    expect(await fields({ model: 'claude-opus-4-7', thinkingMode: 'budget', thinkingBudget: 4096 })).toStrictEqual({ thinking: { type: 'enabled', budget_tokens: 4096 } });
    expect(await fields({ model: 'my-deployment', thinkingMode: 'adaptive', thinkingEffort: 'max' })).toStrictEqual({ thinking: { type: 'adaptive' }, output_config: { effort: 'max' } });
    expect(await fields({ model: 'claude-opus-4-5', thinkingBudget: 4096, thinkingEffort: 'medium' })).toStrictEqual({
      thinking: { type: 'enabled', budget_tokens: 4096 },
      output_config: { effort: 'medium' },
    });
    expect(await fields({ model: 'claude-opus-4-7', thinkingDisplay: 'summarized' })).toStrictEqual({ thinking: { type: 'adaptive', display: 'summarized' } });
  });

  it.each([
    ['claude-sonnet-4-5', {}],
    ['claude-opus-4-8', { thinking: { type: 'disabled' } }],
    ['claude-opus-5', { thinking: { type: 'disabled' } }],
    ['claude-haiku-5-5', { thinking: { type: 'disabled' } }],
    ['kimi-k2', { thinking: { type: 'disabled' } }],
    ['claude-sonnet-5-5', { thinking: { type: 'between_tools' } }],
    ['claude-opus-5-5', { output_config: { effort: 'low' } }],
    ['claude-fable-5', { output_config: { effort: 'low' } }],
  ])('AN4: is off for %s, whatever else was set', async (model, expected) => {
    expect(await fields({ model, thinkingMode: 'off', thinkingBudget: 5000, thinkingDisplay: 'omitted' })).toStrictEqual(expected);
  });

  it('AN4: says nothing unless told to', async () => {
    expect(await fields({ model: 'claude-opus-5-5' })).toStrictEqual({});
    expect(await fields({ model: 'claude-sonnet-4-5', temperature: 0.5 })).toStrictEqual({ temperature: 0.5 });
  });

  it('XC1: does not depend on what another adapter of the same options does', async () => {
    const options = { model: 'claude-opus-4-6', body: { metadata: { user_id: 'u' } } };
    const before = JSON.stringify(options);
    const [first, second] = await Promise.all([fields({ ...options, thinkingEffort: 'low' }), fields({ ...options, thinkingMode: 'off' })]);

    expect([first, second]).toStrictEqual([{ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }, { thinking: { type: 'disabled' } }]);
    expect(JSON.stringify(options)).toBe(before);
  });

  it.each([
    [100_000, 16_384],
    [16_385, 16_384],
    [16_384, 8192],
    [2048, 1024],
  ])('stays below a limit of %d tokens, with room for an answer', async (maxOutputTokens, budget) => {
    expect(await fields({ model: 'claude-3-7-sonnet', thinkingEffort: 'high' }, { maxOutputTokens })).toStrictEqual({ thinking: { type: 'enabled', budget_tokens: budget } });
  });

  it('is left out where there is no room for it, where a call is forced, and behind a reply in work without any', async () => {
    const options = { model: 'claude-sonnet-4-5', thinkingBudget: 4000, temperature: 0.2 };
    const forced = { tools: [tool('f')], toolChoice: 'required' } as const;
    const inWork = [userMessage('x'), own([call('c1')]), result('c1')];

    for (const sent of [await fields(options, { maxOutputTokens: 2047 }), await fields(options, forced), await fields(options, {}, inWork)]) {
      expect(sent).toStrictEqual({ temperature: 0.2 });
    }
    expect(await fields({ ...options, model: 'kimi-k2' }, {}, inWork)).toHaveProperty('thinking.type', 'enabled');
    expect(await fields({ model: 'claude-opus-4-6', thinkingEffort: 'max' }, forced)).toStrictEqual({ thinking: { type: 'disabled' } });
    expect(await fields(options, {}, [userMessage('x'), own([call('c1')]), result('c1'), own([{ type: 'text', text: 'done' }]), userMessage('y')])).toHaveProperty('thinking');
  });

  it('goes without a temperature, which newer models refuse altogether', async () => {
    expect(await fields({ model: 'claude-sonnet-4-5', thinkingBudget: 4000, temperature: 0 })).not.toHaveProperty('temperature');
    expect(await fields({ model: 'claude-opus-4-7', temperature: 0 })).toStrictEqual({});
    expect(await fields({ model: 'kimi-k2', thinkingMode: 'off', temperature: 0 })).toHaveProperty('temperature', 0);
  });

  it('AN3: asks older models by a header to think between calls', async () => {
    const header = async (options: Partial<AnthropicOptions>): Promise<string | null> => (await send([userMessage('x')], {}, options)).headers.get('anthropic-beta');

    expect(await header({ model: 'claude-sonnet-4-5', thinkingEffort: 'high' })).toBe('interleaved-thinking-2025-05-14');
    expect(await header({ model: 'claude-opus-4-20250514', thinkingBudget: 2048 })).toBe('interleaved-thinking-2025-05-14');
    for (const options of [{ model: 'claude-3-7-sonnet', thinkingBudget: 2048 }, { model: 'claude-opus-4-6', thinkingEffort: 'low' }, { model: 'kimi-k2', thinkingEffort: 'low' }, { model: 'claude-sonnet-4-5' }]) {
      expect(await header(options)).toBeNull();
    }
  });
});

describe('thinking of the history', () => {
  const SIGNED: AssistantPart = { type: 'thinking', text: 'plan', signature: 'SIG' };
  const UNSIGNED: AssistantPart = { type: 'thinking', text: 'guess' };

  async function thoughts(options: Partial<AnthropicOptions>, parts: readonly AssistantPart[], source = { ...SOURCE, modelId: options.model ?? MODEL }): Promise<unknown> {
    const sent = await send([userMessage('a'), assistantMessage([...parts, call('c')], { source }), result('c')], {}, options);
    return wire(sent)[1]?.[1].filter(({ type }) => type !== 'tool_use');
  }

  it('AN2, BR-137: goes back signed, also if it is empty, and redacted', async () => {
    expect(await thoughts({}, [SIGNED, { type: 'thinking', text: '', signature: 'S' }, { type: 'thinking', text: '', redactedData: 'R' }])).toStrictEqual([
      { type: 'thinking', thinking: 'plan', signature: 'SIG' },
      { type: 'thinking', thinking: '', signature: 'S' },
      { type: 'redacted_thinking', data: 'R' },
    ]);
  });

  it('AN2: goes back unsigned to servers compatible with the protocol, not to Claude', async () => {
    expect(await thoughts({}, [UNSIGNED])).toStrictEqual([]);
    expect(await thoughts({ model: 'anthropic/claude-sonnet-4.5' }, [UNSIGNED])).toStrictEqual([]);
    expect(await thoughts({ model: 'kimi-k2' }, [UNSIGNED])).toStrictEqual([{ type: 'thinking', thinking: 'guess', signature: '' }]);
  });

  it('AN2: is kept, only signed, or dropped, as told', async () => {
    expect(await thoughts({ thinkingHistory: 'keep' }, [SIGNED, UNSIGNED])).toHaveLength(2);
    expect(await thoughts({ thinkingHistory: 'signed', model: 'kimi-k2' }, [SIGNED, UNSIGNED])).toHaveLength(1);
    expect(await thoughts({ thinkingHistory: 'drop', model: 'kimi-k2' }, [SIGNED, UNSIGNED])).toHaveLength(0);
    expect(await thoughts({ thinkingHistory: 'keep' }, [])).toStrictEqual([]);
  });

  it('AN2: leaves no empty message behind', async () => {
    expect(wire(await send([userMessage('a'), own([UNSIGNED]), userMessage('b')]))).toHaveLength(1);
  });

  it('XC2: goes to nobody else, and neither do blocks of the provider', async () => {
    const block: AssistantPart = { type: 'provider', provider: 'anthropic', data: { type: 'container_upload', file_id: 'f' } };

    expect(await thoughts({}, [SIGNED, block], { provider: 'other', modelId: MODEL })).toStrictEqual([block.data]);
    expect(await thoughts({}, [SIGNED, block], { provider: 'anthropic', modelId: 'claude-older' })).toStrictEqual([block.data]);
    expect(await thoughts({ provider: 'gateway' }, [SIGNED, block])).toStrictEqual([]);
  });

  it('BR-028, BR-008: goes back byte for byte and in its place, after a save and a load', async () => {
    const body = reply([thinkingBlock(0, 'plan', 'SI', 'G'), textBlock(1, 'a'), callBlock(2, 'tu_1', '', '{}'), thinkingBlock(3, 'more', 'S1'), callBlock(4, 'tu_2', '{"x": 1}')], 'tool_use');
    const fake = await sentBack(body, (parts) => [userMessage('Hello'), own(parts), result('own_2'), result('own_4')]);

    expect(wire(fake.sent[1]!).slice(1)).toMatchObject([
      [
        'assistant',
        [
          { type: 'thinking', thinking: 'plan', signature: 'SIG' },
          { type: 'text', text: 'a' },
          { type: 'tool_use', id: 'tu_1', name: 'f', input: {} },
          { type: 'thinking', thinking: 'more', signature: 'S1' },
          { type: 'tool_use', id: 'tu_2', name: 'f', input: { x: 1 } },
        ],
      ],
      ['user', [{ tool_use_id: 'tu_1' }, { tool_use_id: 'tu_2' }]],
    ]);
    expect(fake.sent[1]!.text).toContain('"input":{"x": 1}');
  });

  it('BR-154: stays two blocks where it was two', async () => {
    const body = reply([thinkingBlock(0, 'a', 'S0'), thinkingBlock(1, 'b', 'S1'), callBlock(2, 'tu', '{}')], 'tool_use');
    const fake = await sentBack(body, (parts) => [userMessage('Hello'), own(parts), result('own_2')]);

    expect(wire(fake.sent[1]!)[1]?.[1].slice(0, 2)).toStrictEqual([
      { type: 'thinking', thinking: 'a', signature: 'S0' },
      { type: 'thinking', thinking: 'b', signature: 'S1' },
    ]);
  });

  it('BR-119: is not touched in a reply that is being gone on with, nor later', async () => {
    const body = reply([thinkingBlock(0, '', 'S'), textBlock(1, 'x'), thinkingBlock(2, 'y'), callBlock(3, 't1', '{}')], 'tool_use');
    const received = [
      { type: 'thinking', thinking: '', signature: 'S' },
      { type: 'text', text: 'x' },
      { type: 'thinking', thinking: 'y', signature: '' },
      { type: 'tool_use', id: 't1', name: 'f', input: {} },
    ];
    const first = await sentBack(body, (parts) => [userMessage('Hello'), own(parts), result('own_3')]);
    const second = await sentBack(body, (parts) => [userMessage('Hello'), own(parts), result('own_3'), assistantMessage('done'), userMessage('next')]);

    for (const fake of [first, second]) expect(wire(fake.sent[1]!)[1]?.[1]).toStrictEqual(received);
  });

  it('BR-088: stays in a running tool loop and in later turns, byte for byte', async () => {
    const step = (text: string, id: string): Message[] => [own([{ type: 'thinking', text, signature: `S${id}` }, call(id)]), result(id)];
    const loop = [userMessage('go'), ...step('r1', 'c1'), ...step('r2', 'c2')];
    const fake = fakeServer(OK);
    const llm = messagesOn(fake, { promptCache: 'off' });
    await llm.chat(request(loop));
    await llm.chat(request([...loop, assistantMessage('done'), userMessage('next')]));

    expect(messagesOf(fake.sent[0]!).map(({ content }) => content[0]?.['thinking'])).toStrictEqual([undefined, 'r1', undefined, 'r2', undefined]);
    expect(fake.sent[1]!.text.startsWith(fake.sent[0]!.text.slice(0, fake.sent[0]!.text.lastIndexOf(']}]')))).toBe(true);
  });
});
