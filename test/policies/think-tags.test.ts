/** withThinkTags as a black box: what of a reply is thinking, as fragments, as parts, in errors, and in a turn. */
import { describe, expect, it } from 'vitest';
import { type LLM, LLMError, type LLMDelta, type LLMResponse, type ReplyPart, textOf } from 'turnloop';
import { type ThinkTagsOptions, withRetry, withThinkTags } from 'turnloop/policies';
import {
  cutStream,
  echoTool,
  llmRequest,
  type Reply,
  type ReplyContent,
  runScripted,
  scriptedLLM,
  type ScriptedReply,
  thinking,
  toolCall,
} from 'turnloop/testing';

const THOUGHT: ThinkTagsOptions = { tags: [{ open: '<thought>', close: '</thought>' }] };
const INSIDE: ThinkTagsOptions = { startsInside: true };

const text = (words: string): ReplyPart => ({ type: 'text', text: words });
const media: ReplyPart = { type: 'media', mediaType: 'image/png', data: 'AAAA' };

interface Reading {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

async function ask(reply: Reply, options?: ThinkTagsOptions): Promise<Reading> {
  const deltas: LLMDelta[] = [];
  const llm = withThinkTags(scriptedLLM([reply]), options);
  const response = await llm.chat(llmRequest({ onDelta: (delta) => deltas.push(delta) }));
  return { response, deltas };
}

/** The parts of a reply; fragments, which come in pieces of two characters, must add up to the same. */
async function read(content: string | ReplyContent, options?: ThinkTagsOptions): Promise<readonly ReplyPart[]> {
  const { response, deltas } = await ask({ content, chunk: 2 }, options);
  for (const type of ['text', 'thinking'] as const) {
    const streamed = deltas.map((delta) => (delta.type === type ? delta.text : '')).join('');
    expect(streamed).toBe(response.content.map((part) => (part.type === type ? part.text : '')).join(''));
  }
  return response.content;
}

async function failureOf(reply: Reply, options?: ThinkTagsOptions): Promise<unknown> {
  return ask(reply, options).then(
    () => expect.unreachable('it answered'),
    (error: unknown) => error,
  );
}

/** A model that streams these fragments and then does as it is told, which need not be what a good adapter does. */
function rawLLM(deltas: readonly unknown[], end: () => unknown): LLM {
  return {
    provider: 'raw',
    modelId: 'raw-model',
    systemPrompt: '',
    chat: async ({ onDelta }) => {
      for (const delta of deltas) onDelta?.(delta as LLMDelta);
      return end() as LLMResponse;
    },
  };
}

describe('withThinkTags', () => {
  it('B5 makes thinking of what stands between the tags, and trims nothing', async () => {
    expect(await read('<think>\nHmm.\n</think>\n\nYes.')).toStrictEqual([thinking('\nHmm.\n'), text('\n\nYes.')]);
  });

  it('B5 streams thinking and answer as such, a cut tag apart as they come', async () => {
    const { deltas } = await ask({ content: '<think>Hm, 1 < 2.</think>Yes.', chunk: [3, 6, 4, 4, 3, 2, 6, 3] });

    expect(deltas).toStrictEqual([
      { type: 'thinking', text: 'Hm' },
      { type: 'thinking', text: ', 1 ' },
      { type: 'thinking', text: '< 2.' },
      { type: 'text', text: 'Yes' },
      { type: 'text', text: '.' },
    ]);
  });

  it.each([
    ['inline code', 'Use `<think>` tags.</think>'],
    ['a fenced block', '```\n<think>a</think>\n```'],
    ['prose', 'The <think> tag opens, and </think> closes.'],
    ['the end', 'So I said: <think>'],
    ['a beginning that is cut off', '<thin'],
    ['another word in angle brackets', '<thinker>a</thinker>'],
    ['a tag with an attribute', '<think a="b">c</think>'],
    ['only a closing tag', 'internal</think>answer'],
    ['white space alone in front', '\n\nYes.'],
  ])('BR-136 B: leaves a reply as it is: %s', async (_what, reply) => {
    const { response } = await ask(reply);

    expect(await read(reply)).toStrictEqual([text(reply)]);
    expect(response.content).toStrictEqual([text(reply)]);
  });

  it('BR-136 A: splits a reply that begins inside of thinking, if told so', async () => {
    const { response, deltas } = await ask({ content: 'internal</think>answer', chunk: [12, 3, 7] }, INSIDE);

    expect(response.content).toStrictEqual([thinking('internal'), text('answer')]);
    expect(deltas).toStrictEqual([
      { type: 'thinking', text: 'internal' },
      { type: 'text', text: 'answer' },
    ]);
  });

  it.each([
    ['with the opening tag all the same', '\n<think>internal</think>answer', [thinking('internal'), text('answer')]],
    ['with white space in front', '\ninternal</think>answer', [thinking('\ninternal'), text('answer')]],
    ['with the closing tag first', '</think>answer', [text('answer')]],
    ['with a second closing tag', 'a</think>b</think>c', [thinking('a'), text('b</think>c')]],
    ['with what looks like the opening tag', '<thin ice</think>answer', [thinking('<thin ice'), text('answer')]],
  ])('BR-136 A: begins inside of thinking, %s', async (_how, reply, parts) => {
    expect(await read(reply, INSIDE)).toStrictEqual(parts);
  });

  it('leaves out white space in front of the tag', async () => {
    expect(await read(' \n\t<think>Hm.</think>Yes.')).toStrictEqual([thinking('Hm.'), text('Yes.')]);
  });

  it('ends thinking at the first closing tag, and opens it once', async () => {
    expect(await read('<think>a<think>b</think><think>c</think>d')).toStrictEqual([
      thinking('a<think>b'),
      text('<think>c</think>d'),
    ]);
  });

  it('GN2 makes no part of thinking without text', async () => {
    expect(await read('<think></think>Yes.')).toStrictEqual([text('Yes.')]);
    expect(await read('<think>\n\n</think>\n\nYes.')).toStrictEqual([thinking('\n\n'), text('\n\nYes.')]);
  });

  it('knows the tag in either case', async () => {
    expect(await read('<Think>Hm.</THINK>Yes.')).toStrictEqual([thinking('Hm.'), text('Yes.')]);
  });

  it('keeps characters that grow in lower case where they are', async () => {
    expect(await read('<think>İİİ</think>İ')).toStrictEqual([thinking('İİİ'), text('İ')]);
  });

  it('knows other tags when they are named, and then no others', async () => {
    const mistral = { tags: [{ open: '[THINK]', close: '[/THINK]' }, { open: '◁think▷', close: '◁/think▷' }] };

    expect(await read('<thought>Hm.</thought>Yes.', THOUGHT)).toStrictEqual([thinking('Hm.'), text('Yes.')]);
    expect(await read('<think>Hm.</think>Yes.', THOUGHT)).toStrictEqual([text('<think>Hm.</think>Yes.')]);
    expect(await read('[THINK]a◁/think▷b[/THINK]Yes.', mistral)).toStrictEqual([thinking('a◁/think▷b'), text('Yes.')]);
    expect(await read('◁think▷a◁/think▷Yes.', mistral)).toStrictEqual([thinking('a'), text('Yes.')]);
  });

  it('ends thinking that no tag opened at whichever closing tag comes first', async () => {
    const options = { startsInside: true, tags: [{ open: '<a>', close: '</think>' }, { open: '<b>', close: '</t' }] };

    expect(await read('internal</think>answer', options)).toStrictEqual([thinking('internal'), text('hink>answer')]);
  });

  it('takes of two tags that begin alike the one that is complete first', async () => {
    const options = { tags: [{ open: '<think>', close: '</think>' }, { open: '<t', close: 't>' }] };

    expect(await read('<think>at>b', options)).toStrictEqual([thinking('hink>a'), text('b')]);
  });

  describe('with other parts', () => {
    it('keeps calls behind the thinking and their fragments in place', async () => {
      const call = toolCall('look', { at: 'a' });
      const { response, deltas } = await ask(['<think>Hm.</think>', call]);

      expect(response.content).toStrictEqual([thinking('Hm.'), call]);
      expect(response.stopReason).toBe('tool_use');
      expect(deltas.map(({ type }) => type)).toStrictEqual(['thinking', 'tool_call']);
    });

    it('goes on thinking behind a call that was made in the middle of it', async () => {
      const call = toolCall('look');

      expect(await read(['<think>Hm.', call, ' So.</think>Yes.'])).toStrictEqual([thinking('Hm.'), call, thinking(' So.'), text('Yes.')]);
    });

    it('opens no thinking behind a call', async () => {
      const call = toolCall('look');

      expect(await read(['<thi', call, 'nk>a</think>b'])).toStrictEqual([text('<thi'), call, text('nk>a</think>b')]);
      expect(await read([call, 'a</think>b'], INSIDE)).toStrictEqual([call, thinking('a'), text('b')]);
    });

    it('streams what it held back before the call that follows', async () => {
      const { deltas } = await ask(['<thi', toolCall('look')]);

      expect(deltas.map(({ type }) => type)).toStrictEqual(['text', 'tool_call']);
    });

    it.each([toolCall('look'), thinking('told apart')])('streams a piece of a closing tag before what cuts it off: %o', async (cut) => {
      const { response, deltas } = await ask(['<think>Hm.</th', cut, 'ink>So.</think>Yes.']);

      expect(response.content).toStrictEqual([thinking('Hm.</th'), cut, thinking('ink>So.'), text('Yes.')]);
      expect(deltas.map((delta) => (delta.type === 'tool_call' ? delta.type : delta.text)).join('|')).toBe(`Hm.|</th|${cut.type === 'tool_call' ? 'tool_call' : 'told apart'}|ink>So.|Yes.`);
    });

    it('takes a tag for text where the server tells thinking apart itself', async () => {
      const parts = [thinking('Hm.', { signature: 's' }), text('<think>a</think>b')];

      expect(await read(parts)).toStrictEqual(parts);
      expect(await read(parts, INSIDE)).toStrictEqual(parts);
    });

    it('splits on beside thinking without text, media and provider parts, which nothing streams', async () => {
      const signed = thinking('', { signature: 's' });
      const block: ReplyPart = { type: 'provider', provider: 'scripted', data: { id: 1 } };

      expect(await read([signed, '<thi', media, 'nk>a</th', block, 'ink>b', signed])).toStrictEqual([
        signed,
        media,
        thinking('a'),
        block,
        text('b'),
        signed,
      ]);
      expect(await read(['<thi', media, 'cket'])).toStrictEqual([text('<thi'), media, text('cket')]);
    });

    it('leaves with the text what the provider attached to it, even if nothing else is left', async () => {
      const attached = { signature: 's' };
      const call = toolCall('look');

      expect(await read([{ type: 'text', text: '<think>a</think>b', providerData: attached }])).toStrictEqual([
        thinking('a'),
        { type: 'text', text: 'b', providerData: attached },
      ]);
      expect(await read([{ type: 'text', text: '<think>a</think>', providerData: attached }, call])).toStrictEqual([
        thinking('a'),
        { type: 'text', text: '', providerData: attached },
        call,
      ]);
    });

    it('splits thinking that lies in several texts', async () => {
      expect(await read(['<think>a', 'b</think>c', 'd'])).toStrictEqual([thinking('a'), thinking('b'), text('c'), text('d')]);
    });
  });

  it('splits a reply that was not streamed', async () => {
    const silent = withThinkTags(scriptedLLM(['<think>a</think>b'], { streams: false }));
    const unheard = withThinkTags(scriptedLLM(['<think>a</think>b']));

    const heard = await silent.chat(llmRequest({ onDelta: () => undefined }));

    expect(heard.content).toStrictEqual([thinking('a'), text('b')]);
    expect((await unheard.chat(llmRequest())).content).toStrictEqual([thinking('a'), text('b')]);
  });

  it('asks for no stream that nobody listens to', async () => {
    const inner = scriptedLLM(['ok']);

    await withThinkTags(inner).chat(llmRequest());

    expect(inner.requests[0]).not.toHaveProperty('onDelta');
  });

  it('leaves the rest of the reply alone', async () => {
    const reply = { content: '<think>a</think>b', rawStopReason: 'stop', responseId: 'r', modelId: 'm', usage: { outputTokens: 7 } };

    expect((await ask(reply)).response).toMatchObject({ stopReason: 'end_turn', rawStopReason: 'stop', responseId: 'r', modelId: 'm', usage: { outputTokens: 7 } });
  });

  it('hands a reply without tags on as it came, and its fragments too', async () => {
    const whole = { content: [text('abc')], stopReason: 'end_turn', usage: {} };
    const fragments = [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }, { type: 'text', text: 'c' }];
    const seen: unknown[] = [];

    const response = await withThinkTags(rawLLM(fragments, () => whole)).chat(llmRequest({ onDelta: (delta) => seen.push(delta) }));

    expect(response).toBe(whole);
    // The first told that there is no tag: from then on there is nothing to do.
    expect(seen[1]).toBe(fragments[1]);
    expect(seen[2]).toBe(fragments[2]);
  });

  it('has the metadata of its model', () => {
    const llm = withThinkTags(scriptedLLM([], { provider: 'p', modelId: 'm', systemPrompt: 's', capabilities: { contextWindow: 9 } }));

    expect(llm).toMatchObject({ provider: 'p', modelId: 'm', systemPrompt: 's', capabilities: { contextWindow: 9 } });
  });
});

describe('a reply of nothing but thinking', () => {
  const empty = { kind: 'malformed_response', code: 'empty', retryable: true };

  it.each<[string, string | ReplyContent, ThinkTagsOptions | undefined]>([
    ['with an unclosed tag', '<think>Hm.', undefined],
    ['with white space behind it', '<think>Hm.</think>\n', undefined],
    ['with a half closing tag', '<think>Hm.</thi', undefined],
    ['with a tag and nothing else', '<think>', undefined],
    ['that began inside', 'Hm.', INSIDE],
    ['with thinking that the server told apart', [thinking('', { signature: 's' }), '<think>Hm.'], undefined],
  ])('GN8 is an empty reply: %s', async (_what, content, options) => {
    const error = await failureOf({ content, usage: { outputTokens: 7 } }, options);

    expect(error).toMatchObject({ ...empty, usage: { outputTokens: 7 } });
  });

  it.each(['filtered', 'max_tokens'] as const)('GN8 is a reply when it was ended so: %s', async (stopReason) => {
    const { response, deltas } = await ask({ content: '<think>Hm.</thi', stopReason, chunk: 12 });

    expect(response).toMatchObject({ stopReason, content: [thinking('Hm.</thi')] });
    expect(deltas).toStrictEqual([
      { type: 'thinking', text: 'Hm.' },
      { type: 'thinking', text: '</thi' },
    ]);
  });

  it.each([
    ['a call', toolCall('look')],
    ['media', media],
    ['a provider part', { type: 'provider', provider: 'scripted', data: {} } as const],
  ])('is none when there is %s', async (_what, part) => {
    expect(await read(['<think>Hm.', part])).toStrictEqual([thinking('Hm.'), part]);
  });

  it('is asked again by the retry around it', async () => {
    const llm = scriptedLLM(['<think>Hm.', '<think>Hm.</think>Yes.']);

    const { result, recording } = await runScripted({ llm, decorate: (inner) => withRetry(withThinkTags(inner)) });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Yes.' });
    expect(recording.of('step.retrying')).toMatchObject([{ error: { kind: 'malformed_response' } }]);
  });
});

describe('a reply that breaks off', () => {
  const partialOf = async (content: string | ReplyContent, deltaCount: number, options?: ThinkTagsOptions): Promise<unknown> => {
    const error = await failureOf(cutStream({ content, chunk: 4 }, { deltaCount, partial: true }), options);
    expect(error).toMatchObject({ kind: 'network', retryable: true });
    return (error as LLMError).partial;
  };

  it('keeps no half thinking as text', async () => {
    const reply = '<think>Hmmmmmmm.</think>Yes.';

    expect(await partialOf(reply, 1)).toStrictEqual([]);
    expect(await partialOf(reply, 2)).toStrictEqual([]);
    expect(await partialOf(reply, 5)).toStrictEqual([]);
    expect(await partialOf(reply, 6)).toStrictEqual([thinking('Hmmmmmmm.')]);
    expect(await partialOf(reply, 7)).toStrictEqual([thinking('Hmmmmmmm.'), text('Yes.')]);
    expect(await partialOf('internal', 1, INSIDE)).toStrictEqual([]);
  });

  it('keeps the text of a reply without tags, and the error as it was', async () => {
    const thrown = new LLMError({ kind: 'server', message: 'Oops.', partial: [{ type: 'text', text: 'Yes <think>' }] });
    const bare = new LLMError({ kind: 'server', message: 'Oops.' });
    const drawn = new LLMError({ kind: 'server', message: 'Oops.', partial: [media] });
    const odd = new TypeError('no LLMError');

    expect(await partialOf('Yes, <think>.', 2)).toStrictEqual([text('Yes, <th')]);
    for (const error of [thrown, bare, drawn, odd]) {
      expect(await failureOf({ content: 'Yes <think>', error })).toBe(error);
      expect(await failureOf({ content: [], error })).toBe(error);
    }
  });

  it('keeps what was streamed as text, also behind a call that the error does not tell of', async () => {
    const error = new LLMError({ kind: 'network', message: 'Cut.', partial: [{ type: 'text', text: '<think>literal' }] });

    expect(await failureOf({ content: [toolCall('look'), '<think>literal'], error })).toBe(error);
  });

  it('keeps what else the error says', async () => {
    const cause = new Error('socket hang up');
    const error = await failureOf({
      content: '<think>a</think>b',
      error: new LLMError({
        kind: 'server',
        message: 'Oops.',
        retryable: false,
        stopReason: 'circuit_breaker',
        status: 503,
        code: 'busy',
        retryAfterMs: 9,
        requestId: 'req_1',
        usage: { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 2, thinkingTokens: 0 },
        partial: [{ type: 'text', text: '<think>a</think>b' }],
        cause,
      }),
    });

    expect(error).toMatchObject({
      kind: 'server',
      message: 'Oops.',
      retryable: false,
      stopReason: 'circuit_breaker',
      status: 503,
      code: 'busy',
      retryAfterMs: 9,
      requestId: 'req_1',
      usage: { inputTokens: 1, outputTokens: 2 },
      partial: [thinking('a'), text('b')],
      cause,
    });
  });

  it('leaves in the record the answer as far as it was streamed, and no thinking', async () => {
    const reply = cutStream({ content: '<think>Hm.</think>Yes.', chunk: 20 }, { deltaCount: 1 });

    const { result } = await runScripted({ replies: [reply], decorate: (llm) => withThinkTags(llm) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', message: { status: 'interrupted', content: [text('Ye')] } });
  });

  it('begins anew with each attempt of a retry inside', async () => {
    const replies: ScriptedReply[] = [
      { content: '<think>Hm', error: new LLMError({ kind: 'server', message: 'Oops.', partial: [{ type: 'text', text: '<think>Hm' }] }) },
      { content: '<thi', error: new LLMError({ kind: 'server', message: 'Oops.' }) },
      { content: '<think>Ah.</think>Yes.' },
    ];
    const failures: unknown[] = [];

    const { result, recording } = await runScripted({
      replies,
      decorate: (llm) => withThinkTags(withRetry(llm)),
      listener: (event) => event.type === 'step.retrying' && failures.push(event.error.kind),
    });

    expect(failures).toStrictEqual(['server', 'server']);
    expect(result).toMatchObject({ text: 'Yes.', message: { content: [thinking('Ah.'), text('Yes.')] } });
    expect(recording.of('thinking.delta').map(({ attempt, text: words }) => [attempt, words])).toStrictEqual([[1, 'Hm'], [3, 'Ah.']]);
    expect(recording.of('text.delta').map(({ attempt, text: words }) => [attempt, words])).toStrictEqual([[3, 'Yes.']]);
  });

  it('tells whoever makes the next attempt of no half thinking', async () => {
    const partials: unknown[] = [];
    const error = new LLMError({ kind: 'server', message: 'Oops.', partial: [{ type: 'text', text: '<think>Hm' }] });
    const llm = withThinkTags(withRetry(scriptedLLM([{ content: '<think>Hm', error }, 'ok']), { baseDelayMs: 0 }));

    await llm.chat(llmRequest({ onDelta: () => undefined, onAttemptFailed: (attempt) => void partials.push(attempt.error.partial) }));

    expect(partials).toStrictEqual([[]]);
  });
});

describe('in a turn', () => {
  it('B5 records thinking as thinking and sends no tag back', async () => {
    const { result, recorded, llm } = await runScripted({
      replies: [{ content: ['<think>Look first.</think>\n', toolCall('echo', { text: 'a' })], chunk: 3 }, '<think>Seen.</think>Done.'],
      tools: [echoTool()],
      decorate: (inner) => withThinkTags(inner),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Done.' });
    expect(recorded.flatMap((event) => (event.type === 'content.part' ? [event.part] : []))).toStrictEqual([
      thinking('Look first.'),
      text('\n'),
      thinking('Seen.'),
      text('Done.'),
    ]);
    expect(llm.requests[1]!.messages.map((message) => textOf(message)).join('')).not.toContain('think');
  });

  it('keeps the text that was shown when the turn is aborted', async () => {
    const controller = new AbortController();
    const { result } = await runScripted({
      replies: [{ content: '<think>Hm.</think>Yes, and', chunk: 22, hangs: true }],
      decorate: (llm) => withThinkTags(llm),
      signal: controller.signal,
      listener: (event) => {
        if (event.type === 'text.delta') controller.abort('enough');
      },
    });

    expect(result).toMatchObject({ stopReason: 'aborted', text: 'Yes,' });
  });
});

describe('misuse', () => {
  it.each([
    ['no model', () => withThinkTags(undefined as unknown as LLM), 'withThinkTags needs an LLM'],
    ['an unknown option', () => withThinkTags(scriptedLLM([]), { tag: 'x' } as ThinkTagsOptions), 'no option `tag`'],
    ['no tags', () => withThinkTags(scriptedLLM([]), { tags: [] }), '`tags`'],
    ['names for tags', () => withThinkTags(scriptedLLM([]), { tags: ['think'] as never }), '`tags`'],
    ['an empty tag', () => withThinkTags(scriptedLLM([]), { tags: [{ open: '<think>', close: '' }] }), '`tags`'],
    ['a tag that begins with white space', () => withThinkTags(scriptedLLM([]), { tags: [{ open: ' <t>', close: '</t>' }] }), '`open`'],
    ['a word for a truth', () => withThinkTags(scriptedLLM([]), { startsInside: 'yes' as never }), '`startsInside`'],
  ])('is refused by name: %s', (_what, call, message) => {
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
  });

  it.each([
    ['no reply', undefined],
    ['a reply without parts', { stopReason: 'end_turn' }],
    ['parts that are none', { content: ['<think>', null, { type: 'text' }], stopReason: 'end_turn', usage: {} }],
  ])('of an adapter is told by the loop: %s', async (_what, response) => {
    const { result } = await runScripted({ decorate: () => withThinkTags(rawLLM([], () => response)) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'malformed_response' } });
    expect(result.error?.message).toContain('not a reply');
  });

  it.each([['nothing', undefined], ['a word', 'a'], ['text without text', { type: 'text' }]])(
    'of an adapter is told by the loop: a fragment that is %s',
    async (_what, delta) => {
      const { result } = await runScripted({ decorate: () => withThinkTags(rawLLM([delta], () => undefined)) });

      expect(result.error?.message).toContain('onDelta takes');
    },
  );
});
