/**
 * Incremental Responses: the server remembers, a request holds what is new. Whatever happens to a history, the model is
 * given that history and nothing else. Black-box, on a server that remembers and refuses as a strict one does.
 */
import { describe, expect, it, vi } from 'vitest';
import {
  assistantMessage,
  createEventDispatcher,
  createTranscript,
  type LLM,
  type LLMResponse,
  type Message,
  runTurn,
  toolMessage,
  userMessage,
} from 'turnloop';
import type { OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { withThinkTags } from 'turnloop/policies';
import { errorOf, request } from './fake-server.ts';
import { called, type Item, MODEL, named, reasoning, responseOf, responsesOn, said, stored } from './openai-responses-support.ts';
import { type HeardRequest, refusal, rememberingServer, type RememberingServer, type Script } from './remembering-server.ts';

const COMPUTED: Script = (number) => [reasoning(number), said(number, `answer ${number}`)];
const WITH_CALL: Script = (number) => [reasoning(number), called(number)];

interface Scene {
  readonly server: RememberingServer;
  readonly llm: LLM;
  /** Sends a history and gives it with the reply. */
  readonly go: (history: readonly Message[]) => Promise<readonly Message[]>;
}

function scene(script: Script = COMPUTED, options: Partial<OpenAIResponsesOptions> = {}): Scene {
  const server = rememberingServer(script);
  const llm = responsesOn(server, { state: 'incremental', ...options });
  return { server, llm, go: async (history) => [...history, toMessage(await llm.chat(request(history)))] };
}

function toMessage(response: LLMResponse): Message {
  return stored(response);
}

function result(number: number, content = 'r'): Message {
  return toolMessage(content, { toolCallId: `own_resp_${number}_1`, name: 'f' });
}

/** What each request went on from, and how many items it held. */
function shapes({ heard }: RememberingServer): readonly unknown[] {
  return heard.map(({ previousId, input }) => [previousId, input.length]);
}

/** What the model was given, without ids and secrets. */
function gist({ conversation }: HeardRequest | undefined = { conversation: [] } as never): readonly unknown[] {
  return conversation.map((item) => {
    const { type, role, content, call_id: callId, output } = item;
    if (type === 'function_call') return `call ${String(callId)}`;
    if (type === 'function_call_output') return `output ${String(callId)} ${String(output)}`;
    if (type === 'reasoning') return 'reasoning';
    return `${String(role)} ${typeof content === 'string' ? content : (content as Item[]).map(({ text }) => text).join('')}`;
  });
}

describe('a conversation', () => {
  it('B2: sends what is new, behind the response before it', async () => {
    const { server, go } = scene();
    let history: readonly Message[] = [userMessage('one')];
    for (const text of ['two', 'three']) history = [...(await go(history)), userMessage(text)];
    await go(history);

    expect(shapes(server)).toStrictEqual([
      [undefined, 1],
      ['resp_1', 1],
      ['resp_2', 1],
    ]);
    expect(server.heard.map(({ body }) => body['store'])).toStrictEqual([true, true, true]);
    expect(gist(server.heard[2])).toStrictEqual(['user one', 'reasoning', 'assistant answer 1', 'user two', 'reasoning', 'assistant answer 2', 'user three']);
  });

  it('sends all outputs of a reply\'s calls, and steering behind them', async () => {
    const { server, go } = scene((number) => [reasoning(number), called(number), called(number * 10)]);
    const history = await go([userMessage('go')]);
    await go([...history, result(1, 'a'), toolMessage('b', { toolCallId: 'own_resp_1_2', name: 'f' }), userMessage('also', { origin: 'steering' })]);

    expect(server.heard[1]?.previousId).toBe('resp_1');
    expect(gist(server.heard[1]).slice(-3)).toStrictEqual(['output call_1 a', 'output call_10 b', 'user also']);
    expect(server.heard[1]?.broken).toStrictEqual([]);
  });

  it('sends instructions and tools each time, since the server keeps none', async () => {
    const { server, llm, go } = scene();
    const history = [...(await go([userMessage('one')])), userMessage('two')];
    const tools = [{ name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} } }];
    await llm.chat(request(history, { systemPrompt: 'Be brief.', tools }));

    expect(server.heard[1]?.body).toMatchObject({ previous_response_id: 'resp_1', instructions: 'Be brief.', tools: [{ name: 'f' }] });
  });

  it('goes through a whole turn of the loop', async () => {
    const { server, llm } = scene((number) => (number < 3 ? WITH_CALL(number) : COMPUTED(number)));
    const { record, buildMessages } = createTranscript();
    const tool = { name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} }, execute: () => 'found' };
    const turn = { llm, tools: [tool], buildMessages, dispatchEvent: createEventDispatcher({ record }) };

    expect(await runTurn({ ...turn, input: 'go' })).toMatchObject({ stopReason: 'end_turn', text: 'answer 3' });
    expect(await runTurn({ ...turn, input: 'more' })).toMatchObject({ text: 'answer 4' });
    expect(shapes(server)).toStrictEqual([[undefined, 1], ['resp_1', 1], ['resp_2', 1], ['resp_3', 1]]);
    expect(gist(server.heard[3])).toHaveLength(10);
  });

  it('a request that is repeated says the same again', async () => {
    let failures = 2;
    const { server, llm, go } = scene((number) => (number > 1 && failures-- > 0 ? new Response('busy', { status: 503 }) : COMPUTED(number)));
    const history = [...(await go([userMessage('one')])), userMessage('two')];
    for (let attempt = 0; attempt < 2; attempt += 1) expect(await errorOf(llm.chat(request(history)))).toMatchObject({ kind: 'overloaded' });
    await go(history);

    expect(shapes(server).slice(1)).toStrictEqual(Array.from({ length: 3 }, () => ['resp_1', 1]));
  });

  it('an answer may be asked for again, and either be gone on with', async () => {
    const { server, go } = scene();
    const first = [...(await go([userMessage('one')])), userMessage('two')];
    const [left, right] = [await go(first), await go(first)];
    await go([...left, userMessage('left')]);
    await go([...right, userMessage('right')]);

    expect(shapes(server).slice(3)).toStrictEqual([['resp_2', 1], ['resp_3', 1]]);
    expect(gist(server.heard[3]).slice(-2)).toStrictEqual(['assistant answer 2', 'user left']);
    expect(gist(server.heard[4]).slice(-2)).toStrictEqual(['assistant answer 3', 'user right']);
  });

  it('XC1: two conversations on one LLM, side by side and from the same start, stay apart', async () => {
    const { server, go } = scene();
    const start = userMessage('one');
    let histories: readonly (readonly Message[])[] = await Promise.all([go([start]), go([start])]);
    for (const round of [1, 2, 3]) {
      histories = await Promise.all(histories.map((history, at) => go([...history, userMessage(`${at} ${round}`)])));
    }

    for (const { broken, input } of server.heard) expect([broken, input.length]).toStrictEqual([[], 1]);
    for (const [at, heard] of server.heard.slice(-2).entries()) {
      expect(gist(heard).filter((text) => /^user \d/.test(String(text)))).toStrictEqual([1, 2, 3].map((round) => `user ${at} ${round}`));
    }
  });

  it('a history that is built anew from equal messages is the same history', async () => {
    const { server, go } = scene(WITH_CALL);
    const copy = (history: readonly Message[]): readonly Message[] => JSON.parse(JSON.stringify(history)) as Message[];
    const history = await go([userMessage('one')]);
    const more = await go(copy([...history, result(1)]));
    await go(copy([...more, result(2)]));

    expect(shapes(server)).toStrictEqual([[undefined, 1], ['resp_1', 1], ['resp_2', 1]]);
  });

  it('law-10: a request costs what is new in it', async () => {
    const { go } = scene(WITH_CALL);
    let history: readonly Message[] = [userMessage('go')];
    const stringify = vi.spyOn(JSON, 'stringify');
    const costs: number[] = [];
    for (let number = 1; number <= 60; number += 1) {
      stringify.mockClear();
      history = [...(await go(history)), result(number)];
      costs.push(stringify.mock.calls.length);
    }

    // The first step writes the user's message as well.
    expect(new Set(costs.slice(1)).size).toBe(1);
  });
});

describe('a history that does not go on from what the server has is sent whole', () => {
  const long = async (): Promise<Scene & { readonly history: readonly Message[] }> => {
    const made = scene();
    let history: readonly Message[] = [userMessage('one')];
    for (const text of ['two', 'three']) history = [...(await made.go(history)), userMessage(text)];
    return { ...made, history };
  };

  it.each<[string, (history: readonly Message[]) => readonly Message[], readonly unknown[]]>([
    ['compacted', (history) => [userMessage('summary', { origin: 'summary' }), ...history.slice(2)], ['user summary', 'user two', 'reasoning', 'assistant answer 2', 'user three']],
    ['with an edited message', ([first, ...rest]) => [userMessage('edited', { id: first!.id }), ...rest], ['user edited', 'reasoning', 'assistant answer 1', 'user two', 'reasoning', 'assistant answer 2', 'user three']],
    ['with a message before it', (history) => [userMessage('memory', { origin: 'memory', transient: true }), ...history], ['user memory', 'user one', 'reasoning', 'assistant answer 1', 'user two', 'reasoning', 'assistant answer 2', 'user three']],
    ['without its first reply', (history) => history.filter((_message, at) => at !== 1), ['user one', 'user two', 'reasoning', 'assistant answer 2', 'user three']],
  ])('%s', async (_name, change, expected) => {
    const { server, go, history } = await long();
    await go(change(history));

    expect(server.heard[2]?.previousId).toBeUndefined();
    expect(gist(server.heard[2])).toStrictEqual(expected);
    expect(server.heard[2]?.broken).toStrictEqual([]);
  });

  it('resumed by another process', async () => {
    const { server, history } = await long();
    const other = responsesOn(server, { state: 'incremental' });
    const reply = await other.chat(request(history));
    await other.chat(request([...history, toMessage(reply), userMessage('four')]));

    expect(shapes(server).slice(2)).toStrictEqual([[undefined, 7], ['resp_3', 1]]);
    expect(server.heard.map(({ broken }) => broken)).toStrictEqual([[], [], [], []]);
  });

  it('but from where it still goes on: an edited tail, another model in between, a reply that was cut off', async () => {
    const { server, go, history } = await long();
    const foreign = assistantMessage('theirs', { source: { provider: 'anthropic', modelId: 'claude', responseId: 'resp_1' } });
    const cut = assistantMessage('half', { source: { provider: 'openai', modelId: MODEL, responseId: 'resp_x' }, status: 'interrupted' });
    await go([...history.slice(0, 2), userMessage('edited')]);
    await go([...history, foreign, userMessage('four')]);
    await go([...history, cut, userMessage('go on')]);

    expect(shapes(server).slice(2)).toStrictEqual([['resp_1', 1], ['resp_2', 3], ['resp_2', 3]]);
    expect(gist(server.heard[3]).slice(-3)).toStrictEqual(['user three', 'assistant theirs', 'user four']);
    expect(gist(server.heard[4]).slice(-3)).toStrictEqual(['user three', 'assistant half', 'user go on']);
  });

  it('with a reply that was changed: thinking taken out of its text, a call dropped, other arguments', async () => {
    const tagged = rememberingServer((number) => [said(number, `<think>why</think>answer ${number}`)]);
    const llm = withThinkTags(responsesOn(tagged, { state: 'incremental' }));
    const history = [userMessage('one'), toMessage(await llm.chat(request([userMessage('one')])))];
    const { server, go } = scene((number) => [called(number), called(number * 10)]);
    const [first, reply] = await go([userMessage('one')]);
    const other = await go([userMessage('one')]);
    await llm.chat(request([...history, userMessage('two')]));
    await go([first!, { ...reply, content: reply!.content.slice(0, 1) } as Message, toolMessage('r', { toolCallId: 'own_resp_1_0', name: 'f' })]);
    const edited = { ...other[1], content: other[1]!.content.map((part, at) => (at === 0 ? { ...part, inputText: '{"a":2}' } : part)) } as Message;
    await go([other[0]!, edited, ...[0, 1].map((at) => toolMessage('r', { toolCallId: `own_resp_2_${at}`, name: 'f' }))]);

    expect(tagged.heard[1]?.previousId).toBeUndefined();
    expect(gist(tagged.heard[1])).toStrictEqual(['user one', 'assistant answer 1', 'user two']);
    expect(server.heard.slice(2).map(({ previousId, broken }) => [previousId, broken])).toStrictEqual([[undefined, []], [undefined, []]]);
  });

  it('what was for one request only is not gone on from', async () => {
    const { server, llm, go } = scene();
    const first = await go([userMessage('one')]);
    const asked = [...first, userMessage('two')];
    const second = toMessage(await llm.chat(request([...asked, userMessage('reminder', { transient: true })])));
    await go([...asked, second, userMessage('three')]);

    expect(shapes(server)).toStrictEqual([[undefined, 1], ['resp_1', 2], ['resp_1', 4]]);
    expect(gist(server.heard[2])).not.toContain('user reminder');
    expect(server.heard[2]?.broken).toStrictEqual([]);
  });

  it('so is one whose last reply nobody answered, and one that ends with a reply', async () => {
    const { server, go } = scene((number) => [{ type: 'local_shell_call', id: `lsh_${number}`, call_id: `call_${number}`, status: 'completed', action: {} }, said(number, 'x')]);
    const history = await go([userMessage('one')]);
    await go([...history, userMessage('two')]);
    const { server: plain, go: goOn } = scene();
    await goOn(await goOn([userMessage('one')]));

    expect(server.heard[1]).toMatchObject({ previousId: undefined, broken: [] });
    expect(plain.heard[1]).toMatchObject({ previousId: undefined, broken: [] });
  });

  it('replies that are not complete are not gone on from', async () => {
    const incomplete = responseOf([said(1, 'half')], { id: 'resp_1', status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    const { server, go } = scene((number) => (number === 1 ? new Response(named([{ type: 'response.incomplete', response: incomplete }])) : COMPUTED(number)));
    await go([...(await go([userMessage('one')])), userMessage('go on')]);

    expect(shapes(server)[1]).toStrictEqual([undefined, 3]);
  });

  it('a reply that stands there twice is gone on from where the server gave it', async () => {
    const { server, go } = scene((number) => [said(number, 'x')]);
    const [first, reply] = await go([userMessage('one')]);
    await go([first!, reply!, first!, reply!, userMessage('two')]);

    expect(shapes(server)[1]).toStrictEqual(['resp_1', 3]);
  });

  it('ids of calls that the server would not know again are not gone on from', async () => {
    const { server, go } = scene((number) => [called(number, 'f', '{}', { call_id: 'a b' })]);
    const history = await go([userMessage('one')]);
    await go([...history, toolMessage('r', { toolCallId: 'own_resp_1_0', name: 'f' })]);

    expect(server.heard[1]).toMatchObject({ previousId: undefined, broken: [] });
  });
});

describe('a server that does not have the response', () => {
  it('BR-034: gets the whole history at once, and the attempt is announced', async () => {
    const { server, llm, go } = scene();
    const history = [...(await go([userMessage('one')])), userMessage('two')];
    server.responses.clear();
    const failures: string[] = [];
    const reply = await llm.chat(request(history, { onAttemptFailed: ({ error }) => void failures.push(error.code) }));
    await go([...history, toMessage(reply), userMessage('three')]);

    expect(shapes(server)).toStrictEqual([[undefined, 1], ['resp_1', 1], [undefined, 4], ['resp_3', 1]]);
    expect(failures).toStrictEqual(['previous_response_not_found']);
  });

  it.each([
    refusal('previous_response_not_found'),
    new Response(JSON.stringify({ error: { code: 400, message: "llama.cpp does not support 'previous_response_id'.", type: 'invalid_request_error' } }), { status: 400 }),
    new Response(JSON.stringify({ error: { message: 'Response with id resp_1 (previous_response_id) not found' } }), { status: 404 }),
    new Response(JSON.stringify({ error: { message: 'No tool call found for function call output with call_id call_1.' } }), { status: 400 }),
    new Response(`data: ${JSON.stringify({ type: 'error', code: 'previous_response_not_found', message: 'gone' })}\n\n`),
    new Response(named([{ type: 'response.created', response: { id: 'r', previous_response_id: null } }])),
  ])('whatever it says: %#', async (answer) => {
    const { server, go } = scene((number) => (number === 2 ? answer.clone() : COMPUTED(number)));
    const history = await go([userMessage('one')]);
    await go([...history, userMessage('two')]);

    expect(shapes(server)).toStrictEqual([[undefined, 1], ['resp_1', 1], [undefined, 4]]);
    expect(server.heard[2]?.broken).toStrictEqual([]);
  });

  it('another failure is no reason to say it again', async () => {
    const { server, llm, go } = scene((number) => (number === 2 ? new Response(JSON.stringify({ error: { message: 'bad temperature' } }), { status: 400 }) : COMPUTED(number)));
    const history = await go([userMessage('one')]);

    expect(await errorOf(llm.chat(request([...history, userMessage('two')])))).toMatchObject({ kind: 'invalid_request' });
    expect(server.heard).toHaveLength(2);
  });

  it('had it none twice in a row, is not relied on any more', async () => {
    const { server, go } = scene();
    let history = await go([userMessage('one')]);
    for (const text of ['two', 'three', 'four', 'five']) {
      server.responses.clear();
      history = await go([...history, userMessage(text)]);
    }

    expect(server.heard.map(({ previousId }) => previousId)).toStrictEqual([undefined, 'resp_1', undefined, 'resp_3', undefined, undefined, undefined]);
  });

  it('BR-034: for one conversation, is relied on for the others', async () => {
    const { server, go } = scene();
    let [lost, kept] = [await go([userMessage('a')]), await go([userMessage('b')])];
    for (const text of ['two', 'three', 'four']) {
      for (const id of server.responses.keys()) if (id !== 'resp_2') server.responses.delete(id);
      lost = await go([...lost, userMessage(text)]);
    }
    kept = await go([...kept, userMessage('two')]);
    await go([...kept, userMessage('three')]);

    expect(shapes(server).slice(-2)).toStrictEqual([['resp_2', 1], ['resp_8', 1]]);
    expect(server.heard.filter(({ broken }) => broken.length > 0)).toHaveLength(2);
  });

  it('never had one, of whichever conversation, is not relied on any more', async () => {
    const { server, go } = scene();
    for (let number = 1; number <= 6; number += 1) {
      const history = await go([userMessage(`one ${number}`)]);
      server.responses.clear();
      await go([...history, userMessage('two')]);
    }

    expect(server.heard.filter(({ previousId }) => previousId !== undefined)).toHaveLength(4);
  });

  it('a history that is broken itself is no lost response', async () => {
    const { server, llm, go } = scene();
    const other = await go([userMessage('other')]);
    const history = await go([userMessage('one')]);
    const orphan = toolMessage('r', { toolCallId: 'nobody', name: 'f' });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(await errorOf(llm.chat(request([...history, orphan])))).toMatchObject({ kind: 'invalid_history' });
    }
    await go([...history, userMessage('two')]);
    await go([...other, userMessage('two')]);

    expect(server.heard.slice(-2).map(({ previousId, broken }) => [previousId, broken])).toStrictEqual([['resp_2', []], ['resp_1', []]]);
  });

  it('and forgot several at once has forgotten once', async () => {
    const { server, go } = scene();
    const histories = await Promise.all(['a', 'b', 'c'].map((text) => go([userMessage(text)])));
    server.responses.clear();
    const later = await Promise.all(histories.map((history) => go([...history, userMessage('two')])));
    await Promise.all(later.map((history) => go([...history, userMessage('three')])));

    expect(server.heard.slice(-3).map(({ previousId }) => typeof previousId)).toStrictEqual(['string', 'string', 'string']);
  });

  it('says that it keeps none, is not asked for it', async () => {
    const { server, go } = scene((number) => new Response(named([{ type: 'response.completed', response: responseOf([said(number, 'x')], { id: `resp_${number}`, store: false }) }])));
    await go([...(await go([userMessage('one')])), userMessage('two')]);

    expect(shapes(server)[1]).toStrictEqual([undefined, 3]);
  });
});

it('what is remembered is bounded: the conversation that rested longest is forgotten first', async () => {
  const { server, go } = scene();
  const big = 'x'.repeat(12 * 1024 * 1024);
  const first = await go([userMessage(big)]);
  const second = await go([userMessage(big)]);
  const again = await go([...first, userMessage('more')]);
  const third = await go([userMessage(big)]);
  for (const history of [again, third, second]) await go([...history, userMessage('next')]);

  expect(server.heard.slice(4).map(({ previousId }) => previousId)).toStrictEqual(['resp_3', 'resp_4', undefined]);
});

it('without `state`, nothing of this happens', async () => {
  const { server, go } = scene(COMPUTED, { state: undefined });
  await go([...(await go([userMessage('one')])), userMessage('two')]);

  expect(server.heard.map(({ body, input }) => [body['store'], body['previous_response_id'], input.length])).toStrictEqual([[false, undefined, 1], [false, undefined, 4]]);
});
