/** Messages requests: the container in which the provider runs code for a conversation. Black-box. */
import { describe, expect, it } from 'vitest';
import { assistantMessage, type AssistantPart, type JsonValue, type LLMRequest, type Message, systemRuntime, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { block, call, errorOfReply, messageEnd, messagesOf, messagesOn, messageStart, MODEL, named, OK, own, readReply, result, send, sentBack, textBlock } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';

const CODE = { serverTools: [{ type: 'code_execution_20260120', name: 'code_execution' }] } as const satisfies Partial<AnthropicOptions>;
const EXPIRES = '2026-04-21T07:00:21.511595Z';
const BEFORE = Date.parse('2026-04-21T07:00:21Z');
const AFTER = Date.parse('2026-04-21T07:00:22Z');
const NAMED = { container: { id: 'container_9', expires_at: EXPIRES, skills: null } };

const USE = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: { code: '1' } };
const CALL = block(1, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {}, caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' } });

/** A reply that waits for a call from within its container, as it is streamed. */
function waiting(names: object = NAMED): string {
  const [end, stop] = messageEnd('tool_use') as readonly [{ delta: object }, unknown];
  return named([messageStart(), ...block(0, USE), ...CALL, { ...end, delta: { ...end.delta, ...names } }, stop]);
}

function part(id: string, expiresAt?: string): AssistantPart {
  return { type: 'provider', provider: 'anthropic', data: { container: { id, ...(expiresAt !== undefined && { expires_at: expiresAt }) } } };
}

function at(now: number): Partial<LLMRequest> {
  return { scope: { turnId: 't', step: 1, stepId: 's', runtime: { ...systemRuntime, now: () => now }, notify: () => {} } };
}

async function containerOf(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<AnthropicOptions> = CODE): Promise<JsonValue | undefined> {
  const { body } = await send(messages, more, options);
  return body['container'] as JsonValue | undefined;
}

const TEXT = { type: 'text', text: 'Done.' } as const;
const OVER = [userMessage('a'), own([TEXT, part('container_1', EXPIRES)]), userMessage('b')];

describe('the container of a reply', () => {
  it('B15: goes along with what the reply waits for, saved and loaded, and stands in no message', async () => {
    const fake = await sentBack(waiting(), (parts) => [userMessage('a'), own(parts), result('own_1')], CODE);
    const { body } = fake.sent[1]!;

    expect(body['container']).toBe('container_9');
    expect(messagesOf(fake.sent[1]!)[1]?.content.map(({ type }) => type)).toStrictEqual(['server_tool_use', 'tool_use']);
    expect(checkMessagesRequest(body)).toStrictEqual([]);
  });

  it('B15: stands on a part of the reply, wherever its server names it', async () => {
    const container = { id: 'container_9', expires_at: EXPIRES };
    const early = named([{ type: 'message_start', message: { id: 'm', ...NAMED } }, ...textBlock(0, 'x'), ...messageEnd('end_turn')]);
    const plain = JSON.stringify({ type: 'message', id: 'm', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn', ...NAMED });

    const alone = JSON.stringify({ type: 'message', id: 'm', content: [USE], stop_reason: 'pause_turn', ...NAMED });
    const called = (await readReply(waiting())).response.content;

    expect(called).toHaveLength(2);
    expect(called[1]).toMatchObject({ type: 'tool_call', providerData: { model: MODEL, extra: { caller: {} }, container } });
    for (const body of [early, plain]) expect((await readReply(body)).response.content).toStrictEqual([{ type: 'text', text: 'x', providerData: { model: MODEL, container } }]);
    expect((await readReply(alone)).response.content).toStrictEqual([{ type: 'provider', provider: 'anthropic', data: USE }, { type: 'provider', provider: 'anthropic', data: { container } }]);
    for (const none of [null, { id: 7 }, 'container_9']) expect((await readReply(waiting({ container: none }))).response.content[1]).not.toHaveProperty('providerData.container');
  });

  it('B7: is kept of a reply that was cut off, beside what else is kept of it', async () => {
    const begun = [{ type: 'message_start', message: { id: 'm', ...NAMED } }, ...textBlock(0, 'x').slice(0, 2)];

    expect((await errorOfReply(named(begun))).partial).toMatchObject([{ type: 'text', providerData: { container: { id: 'container_9' } } }]);
    expect((await errorOfReply(named(begun.slice(0, 1)))).partial).toBeUndefined();
  });

  it('is the newest one of the history, of this provider alone', async () => {
    const newer = [...OVER, own([TEXT, part('container_2')]), userMessage('c')];
    const others = assistantMessage([{ ...TEXT, providerData: { container: { id: 'container_3' } } }], { source: { provider: 'other', modelId: 'm' } });
    const block = own([TEXT, { type: 'provider', provider: 'anthropic', data: { type: 'brand_new', container: { id: 'container_4' } } }]);

    expect(await containerOf(newer)).toBe('container_2');
    expect(await containerOf([...newer, others, userMessage('d')])).toBe('container_2');
    expect(await containerOf([...newer, own([TEXT]), userMessage('d')])).toBe('container_2');
    expect(await containerOf([...newer, block, userMessage('d')])).toBe('container_2');
    expect(await containerOf([...newer, own([{ ...TEXT, providerData: { model: 'claude-other', container: { id: 'container_5' } } }]), userMessage('d')])).toBe('container_5');
    expect(await containerOf([userMessage('a')])).toBeUndefined();
  });

  it('is left out once it has expired, unless a reply waits in it', async () => {
    const inWork = [userMessage('a'), own([call('c'), part('container_1', EXPIRES)]), result('c')];
    const paused = [userMessage('a'), own([{ type: 'provider', provider: 'anthropic', data: USE }, part('container_1', EXPIRES)])];

    expect(await containerOf(OVER, at(BEFORE))).toBe('container_1');
    expect(await containerOf(OVER, at(AFTER))).toBeUndefined();
    for (const messages of [inWork, paused]) expect(await containerOf(messages, at(AFTER))).toBe('container_1');
    expect(await containerOf([userMessage('a'), own([TEXT, part('container_1', 'soon')]), userMessage('b')], at(AFTER))).toBe('container_1');
  });

  it('is left out where no tool of the server could use it', async () => {
    expect(await containerOf(OVER, at(BEFORE), {})).toBeUndefined();
    expect(await containerOf(OVER, at(BEFORE), { body: { tools: [CODE.serverTools[0]] } })).toBe('container_1');
  });

  it('gives way to the host\'s own, and goes along with skills that say nothing of it', async () => {
    const skills = [{ type: 'anthropic', skill_id: 'pdf' }];

    expect(await containerOf(OVER, at(BEFORE), { ...CODE, body: { container: 'mine' } })).toBe('mine');
    expect(await containerOf(OVER, at(BEFORE), { ...CODE, body: { container: { id: 'mine', skills } } })).toStrictEqual({ id: 'mine', skills });
    expect(await containerOf(OVER, at(BEFORE), { ...CODE, body: { container: undefined } })).toBeUndefined();
    expect(await containerOf(OVER, at(BEFORE), { ...CODE, body: { container: { skills } } })).toStrictEqual({ skills, id: 'container_1' });
    expect(await containerOf(OVER, at(AFTER), { ...CODE, body: { container: { skills } } })).toStrictEqual({ skills });
  });

  it('law-11: stands behind the messages, also beside skills', async () => {
    const fake = fakeServer(OK);
    const llm = messagesOn(fake, { ...CODE, promptCache: 'off', body: { container: { skills: [] } } });
    for (const messages of [OVER.slice(0, 1), OVER]) await llm.chat(request(messages, at(BEFORE)));
    const [first, second] = fake.sent.map(({ text }) => text);

    expect(second!.startsWith(first!.slice(0, first!.indexOf(']}]')))).toBe(true);
    expect(second).toMatch(/"messages":.*"container":\{"skills":\[\],"id":"container_1"\}/);
  });
});
