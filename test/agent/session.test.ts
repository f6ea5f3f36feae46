/** Sessions: turns, suspension and decisions over processes, records that a crash or a failing disk left behind. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LLMError, type RecordedEvent, TRANSCRIPT_VERSION, userCancel, userMessage, type UserMessage } from 'turnloop';
import { createAgent, type Session } from 'turnloop/agent';
import { fileSessionStore, inProcessSessionStore, type SessionEvent, type SessionStore } from 'turnloop/sessions';
import { checkTranscript, echoTool, gatedTool, hanging, hangingTool, recordingTool, repeat, scriptedLLM, toolCall } from 'turnloop/testing';
import { crashingStore, turnEvents } from './support/crashing-store.ts';
import { suspendAll } from './support/policies.ts';
import { codeOf, lastRequest, reopen, said, startAgent, type Started, story, types } from './support/session-kit.ts';

describe('a session', () => {
  it('E9 runs turns one after the other over one history, and counts what they spend', async () => {
    const { session, llm } = await startAgent([toolCall('echo', { text: 'a' }), 'Done.', 'Again.'], { tools: [echoTool()], llmOptions: { usage: { inputTokens: 10, outputTokens: 2 } } });

    const first = await session.run('Hello.').result;
    await session.run([userMessage('And'), userMessage('now?')]).result;

    expect(first).toMatchObject({ stopReason: 'end_turn', text: 'Done.', agent: 'agent', steps: 2 });
    expect(lastRequest(llm)).toStrictEqual([
      'user: Hello.', 'assistant: echo()', 'tool call_1: a', 'assistant: Done.', 'user: And', 'user: now?',
    ]);
    expect([session.turns, session.usage.inputTokens, session.usage.outputTokens]).toStrictEqual([2, 30, 6]);
    expect(session.status).toBe('idle');
    expect(types(await session.events())).toStrictEqual([
      'turn.begin', 'message', 'step.begin', 'usage', 'tool.call', 'tool.start', 'tool.finished', 'tool.result', 'step.end',
      'step.begin', 'usage', 'content.part', 'step.end', 'turn.end',
      'turn.begin', 'message', 'message', 'step.begin', 'usage', 'content.part', 'step.end', 'turn.end',
    ]);
  });

  it('E10 law-12 hands the host value to tools, and the metadata to events, and records only the latter', async () => {
    const host = { secret: 'sk-do-not-record' };
    const tool = recordingTool();
    const { session, store } = await startAgent([toolCall('record'), 'ok'], { tools: [tool] });
    await session.run('a', { host, metadata: { user: 'u1' } }).result;

    expect(tool.runs[0]?.context.host).toBe(host);
    const { events } = await store.read('s');
    expect(JSON.stringify(events)).not.toContain('sk-do-not-record');
    expect(turnEvents(events).every(({ metadata }) => metadata?.['user'] === 'u1')).toBe(true);
  });

  it('E1 has the prompt of a skill in its turn only', async () => {
    const { session, llm } = await startAgent(['1', '2'], { systemPrompt: 'Base.' });
    await session.run('a', { skill: 'Skill body.' }).result;
    await session.run('b').result;

    expect(llm.requests[0]?.systemPrompt).toContain('Skill body.');
    expect(llm.requests[1]?.systemPrompt).toBe('Base.');
  });

  it('E11 refuses what makes no sense, naming it with an example', async () => {
    const { session, agent } = await startAgent([]);
    for (const blank of ['', ' \n', [userMessage(' ')], userMessage([])]) expect(() => session.run(blank)).toThrow(/The input is blank/);
    await expect(session.followUp('')).rejects.toThrow(/The input is blank/);
    await expect(session.followUp([userMessage('a')] as never)).rejects.toThrow("The input is a list; it takes one text or user message. For example: session.followUp('And then?').");
    expect(session.queue).toStrictEqual([]);
    await session.close();
    const other = await agent.openSession();
    expect(() => other.run(7 as never)).toThrow(/session\.run\('Hello'\)/);
    expect(() => other.run([])).toThrow(TypeError);
    expect(() => other.run('a', { deadline: 1 } as never)).toThrow(/deadline/);
    expect(() => other.resume({ decision: [] } as never)).toThrow(TypeError);
    expect(() => other.subscribe('x' as never)).toThrow(TypeError);
    await expect(agent.openSession({ id: 'x' } as never)).rejects.toThrow(TypeError);
    await expect(agent.openSession({ sessionId: 'a', resumeSessionId: 'b' })).rejects.toThrow(/differ/);
    expect(await codeOf(() => other.resume())).toBe('no_open_turn');
    for (const decisions of [[null], [{ toolCallId: 'c', action: 'edit' }], [{ toolCallId: 'c', action: 'answer' }], {}]) expect(() => other.resume({ decisions } as never)).toThrow(/^"?decisions/);
  });

  it('BR-017 keeps the beginning of a turn together with its input: no process can die between them', async () => {
    const appended: (readonly string[])[] = [];
    const store = inProcessSessionStore();
    const create: SessionStore['create'] = async (session) => {
      const log = await store.create(session);
      return { ...log, header: log.header, load: () => log.load(), close: () => log.close(), child: (id) => log.child(id), saveSnapshot: (snapshot) => log.saveSnapshot(snapshot), append: (events) => (appended.push(events.map(({ type }) => type)), log.append(events)) };
    };
    const { session } = await startAgent(['Hi.'], { sessions: { ...store, create } });
    await session.run([userMessage('a'), userMessage('b')]).result;
    expect(appended.slice(0, 2)).toStrictEqual([['turn.begin', 'message', 'message'], ['step.begin']]);
    await session.close();
  });

  it('E11 refuses a message that it has already, and two of one id at once: given again, nothing is asked twice', async () => {
    const { session } = await startAgent([repeat('ok')]);
    const message: UserMessage = { ...userMessage('Pay.'), id: 'm1' };
    await session.run(message).result;
    expect(await codeOf(() => session.run(message))).toBe('message_exists');
    expect(await codeOf(() => session.followUp(message))).toBe('message_exists');
    const other = { ...message, id: 'm2' };
    expect(() => session.run([other, other])).toThrow('Two messages of the input have the id "m2".');
    expect(session.turns).toBe(1);
    await session.run(other).result;
    await session.close();
  });

  it('refuses metadata that is no JSON, and tools that are no list', async () => {
    const { session } = await startAgent([repeat('ok')]);
    for (const metadata of [{ a: 1n }, 5, []]) await expect(session.run('a', { metadata: metadata as never }).result).rejects.toThrow('"metadata" is not a JSON object');
    const other = await createAgent({ llm: scriptedLLM([]), tools: () => null as never }).openSession();
    expect(await other.run('a').result).toMatchObject({ stopReason: 'fatal_error', error: { message: expect.stringContaining('`tools` must give a list of tools') } });
  });

  it('E11 refuses two tools of one name when it is opened, whoever adds them', async () => {
    const tool = { ...echoTool(), name: 'dispatch_agent' };
    await expect(createAgent({ llm: scriptedLLM([]), tools: [tool], subAgents: true }).openSession()).rejects.toThrow('Two tools are named "dispatch_agent".');
    await expect(createAgent({ llm: scriptedLLM([]), tools: [echoTool()], deferredTools: [echoTool()] }).openSession()).rejects.toThrow('Two tools are named "echo".');
  });

  it('E11 is opened anew, gone on with, or either, and by one at a time', async () => {
    const { agent, session, store } = await startAgent([repeat('ok')]);
    expect(await codeOf(() => agent.openSession({ sessionId: 's' }))).toBe('session_exists');
    expect(await codeOf(() => agent.openSession({ resumeSessionId: 's' }))).toBe('session_locked');
    expect(await codeOf(() => agent.openSession({ resumeSessionId: 'none' }))).toBe('session_not_found');
    expect(await codeOf(() => agent.openSession({ sessionId: '' }))).toBe('invalid_session_id');
    await session.run('a').result;
    await session.close();

    const again = await agent.openSession({ sessionId: 's', resumeSessionId: 's' });
    expect(said(again)).toStrictEqual(['user: a', 'assistant: ok']);
    const fresh = await agent.openSession({ sessionId: 'new', resumeSessionId: 'new' });
    expect(said(fresh)).toStrictEqual([]);
    expect((await store.list()).map(({ sessionId }) => sessionId)).toContain('new');
  });

  it('E11 agent.run keeps no session', async () => {
    const { agent, store } = await startAgent(['ok']);
    expect(await agent.run('a').result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect((await store.list()).map(({ sessionId }) => sessionId)).toStrictEqual(['s']);
  });

  it('V7 A7 keeps what a cancelled turn said, with one reminder, and stacks nothing when that happens again', async () => {
    const { session, runtime, llm } = await startAgent([{ content: 'Half an ans', hangs: true }, { content: ' ', hangs: true }, 'ok']);
    for (const input of ['a', 'b']) {
      const turn = session.run(input);
      await runtime.flush();
      turn.abort(userCancel());
      turn.abort(userCancel());
      expect(await turn.result).toMatchObject({ stopReason: 'aborted' });
    }
    await session.run('c').result;

    expect(lastRequest(llm)).toStrictEqual([
      'user: a', 'assistant: Half an ans', expect.stringMatching(/^user: The user interrupted/), 'user: b', 'user: c',
    ]);
  });

  it('V7 keeps the part of a programmatic abort without a reminder, and nothing twice when cancelled in its tools', async () => {
    const hang = hangingTool();
    const { session, runtime } = await startAgent([{ content: 'Half', hangs: true }, ['Look.', toolCall('hang')], 'ok'], { tools: [hang] });
    let turn = session.run('a');
    await runtime.flush();
    turn.abort();
    await turn.result;
    expect(said(session)).toStrictEqual(['user: a', 'assistant: Half']);

    turn = session.run('b');
    await runtime.flush();
    turn.abort(userCancel());
    await turn.result;
    expect(said(session).filter((line) => line.includes('Look.'))).toStrictEqual(['assistant: Look. hang()']);
    expect(said(session)).toHaveLength(5);
  });

  it('BR-161 keeps the result of a finished call when its sibling hangs and the turn is aborted', async () => {
    const none = { accesses: [] };
    const { session, runtime } = await startAgent([[toolCall('echo', { text: 'real' }), toolCall('hang')], 'ok'], {
      tools: [echoTool(none), hangingTool({ ...none, ignoresAbort: true })],
    });
    const turn = session.run('a');
    await runtime.flush();
    expect(types(await session.events())).toContain('tool.finished');
    turn.abort();
    await runtime.settle(turn.result);

    expect(said(session)[2]).toBe('tool call_1: real');
    expect(said(session)[3]).toContain('aborted');
  });

  it('BR-163 has the same model, prompt, tools and name before and after a compaction', async () => {
    const long = 'word '.repeat(6_000);
    const { session, llm, agent } = await startAgent(({ tools }) => (tools.length === 0 ? 'Summary.' : long), {
      name: 'planner', systemPrompt: 'Plan.', tools: [echoTool()], llmOptions: { modelId: 'm2', capabilities: { contextWindow: 200_000 } },
    });
    for (const input of ['a', 'b', 'c', 'd']) await session.run(`${input} ${long}`).result;
    const before = llm.requests.at(-1);
    await session.compact();
    await session.run('e').result;

    const after = llm.requests.at(-1);
    expect([after?.systemPrompt, after?.tools.map(({ name }) => name)]).toStrictEqual([before?.systemPrompt, before?.tools.map(({ name }) => name)]);
    expect([agent.name, session.agent, llm.modelId]).toStrictEqual(['planner', 'planner', 'm2']);
    expect(session.messages().some((message) => message.role === 'user' && message.origin === 'summary')).toBe(true);
  });

  it('TD2 does not let a medium into its history that the model does not take', async () => {
    const { session, llm } = await startAgent(['1', '2'], { llmOptions: { capabilities: { mediaTypes: ['image/png'] } } });
    await session.run(userMessage([{ type: 'text', text: 'Look:' }, { type: 'media', mediaType: 'image/tiff', data: 'AAAA' }])).result;
    await session.run('b').result;

    for (const { messages } of llm.requests) expect(JSON.stringify(messages)).not.toContain('"media"');
    expect(said(session)[0]).toMatch(/^user: Look:.*image\/tiff/s);
  });
});

/** A session with a turn whose four calls wait, in a store that another process can open. */
async function waiting(): Promise<Started> {
  const started = await startAgent([['a', 'b', 'c', 'd'].map((text) => toolCall('echo', { text })), 'Done.'], { tools: [echoTool()], hooks: [suspendAll()] });
  await started.session.run('go').result;
  return started;
}

describe('a suspended session', () => {
  it('A20 A19 goes on in another process with what a person decided', async () => {
    const { session, store } = await waiting();
    await session.close();
    const later = await reopen(store, ['Done.'], { tools: [echoTool()], hooks: [suspendAll()] });

    expect(later.session.status).toBe('suspended');
    const pending = later.session.pending();
    expect(pending.map(({ name, input, step, agentPath }) => ({ name, input, step, agentPath }))).toStrictEqual(
      ['a', 'b', 'c', 'd'].map((text) => ({ name: 'echo', input: { text }, step: 1, agentPath: [] })),
    );
    const ids = pending.map(({ toolCallId }) => toolCallId);
    const turn = later.session.resume({
      decisions: [
        { toolCallId: ids[0]!, action: 'allow' },
        { toolCallId: ids[1]!, action: 'deny', reason: 'not b' },
        { toolCallId: ids[2]!, action: 'edit', input: { text: 'C!' } },
        { toolCallId: ids[3]!, action: 'answer', result: 'by hand' },
      ],
    });

    expect(await turn.result).toMatchObject({ stopReason: 'end_turn', text: 'Done.', steps: 2, turnId: session.openTurn()?.turnId });
    expect(said(later.session).slice(2, 6)).toStrictEqual([
      'tool call_1: a', expect.stringContaining('not b'), 'tool call_3: C!', 'tool call_4: by hand',
    ]);
    expect(checkTranscript(turnEvents(await later.session.events()), { complete: true })).toStrictEqual([]);
  });

  it('A20 keeps calls pending about which nothing was decided, over as many processes as it takes', async () => {
    let { session, store } = await waiting();
    const undecided: number[] = [];
    for (let round = 0; session.status === 'suspended'; round += 1) {
      await session.close();
      ({ session, store } = await reopen(store, ['Done.'], { idPrefix: `p${round}`, tools: [echoTool()], hooks: [suspendAll()] }));
      undecided.push(session.pending().length);
      const [first] = session.pending();
      await session.resume({ decisions: [{ toolCallId: first!.toolCallId, action: 'allow' }] }).result;
    }

    expect(undecided).toStrictEqual([4, 3, 2, 1]);
    expect(said(session).slice(2)).toStrictEqual(['tool call_1: a', 'tool call_2: b', 'tool call_3: c', 'tool call_4: d', 'assistant: Done.']);
    expect(session.turns).toBe(1);
  });

  it('A20 stays suspended if nothing is decided', async () => {
    const { session } = await waiting();
    expect(await session.resume().result).toMatchObject({ stopReason: 'suspended' });
    expect(session.pending()).toHaveLength(4);
  });

  it('A20 refuses a new input, and says how to go on', async () => {
    const { session } = await waiting();
    expect(await codeOf(() => session.run('b'))).toBe('turn_open');
    expect(() => session.run('b')).toThrow(/4 calls.*session\.resume\(\{ decisions \}\).*denyPending: true/s);
    expect(await codeOf(() => session.runQueued())).toBe('turn_open');
  });

  it('A20 is given up with `denyPending`: each call is answered at its place, and the history is valid', async () => {
    const { session } = await waiting();
    const turn = session.run('Never mind.', { denyPending: true });
    const events = [];
    for await (const event of turn) events.push(event);

    expect(await turn.result).toMatchObject({ text: 'Done.' });
    expect(story(session)).toStrictEqual([
      'user: go', 'assistant: echo() echo() echo() echo()', ...Array.from({ length: 4 }, (): unknown => expect.stringContaining('not executed')), 'user: Never mind.', 'assistant: Done.',
    ]);
    expect(new Set(events.map(({ turnId }) => turnId))).toStrictEqual(new Set([turn.turnId]));
    expect(checkTranscript(turnEvents(await session.events()), { complete: true })).toStrictEqual([]);
  });

  it('BR-116 cannot be resumed twice at once', async () => {
    const { session, agent } = await waiting();
    session.resume();
    expect(await codeOf(() => session.resume())).toBe('turn_running');
    expect(await codeOf(() => agent.openSession({ resumeSessionId: 's' }))).toBe('session_locked');
    await session.idle();
  });

  it('A20 refuses a decision about no call that waits, with the ids of those that do, and two about one', async () => {
    const { session } = await waiting();
    const [call] = session.pending();
    const resume = (): unknown => session.resume({ decisions: [{ toolCallId: 'nope', action: 'allow' }] });
    expect(resume).toThrow(expect.objectContaining({ code: 'not_pending', message: expect.stringContaining(call!.toolCallId) }));
    const decision = { toolCallId: call!.toolCallId, action: 'allow' as const };
    expect(() => session.resume({ decisions: [decision, decision] })).toThrow(`decisions has two decisions about call "${call!.toolCallId}".`);
    expect(session.status).toBe('suspended');
  });
});

/** A store with session `s` of these events. */
async function stored(events: readonly unknown[]): Promise<SessionStore> {
  const store = inProcessSessionStore();
  await (await store.create({ sessionId: 's', createdAt: 0, events: events as readonly SessionEvent[] })).close();
  return store;
}

const stamp = { turnId: 't1', at: 0 };
const inStep = { ...stamp, step: 1, stepId: 's1' };
const source = { provider: 'scripted', modelId: 'scripted-model' };

/** A turn that died in the middle of a step with two calls, one of which has its result. */
const interrupted: readonly RecordedEvent[] = [
  { type: 'turn.begin', ...stamp, version: TRANSCRIPT_VERSION, inputCount: 1 },
  { type: 'message', ...stamp, message: userMessage('go', { id: 'm1' }) },
  { type: 'step.begin', ...inStep },
  { type: 'tool.call', ...inStep, index: 0, count: 2, reply: { source, stopReason: 'tool_use' }, toolCallId: 'c1', name: 'echo', inputText: '{"text":"x"}', input: { text: 'x' } },
  { type: 'tool.call', ...inStep, index: 1, count: 2, toolCallId: 'c2', name: 'echo', inputText: '{"text":"y"}', input: { text: 'y' } },
  { type: 'tool.start', ...inStep, toolCallId: 'c1' },
  { type: 'tool.finished', ...inStep, toolCallId: 'c1', result: { content: [{ type: 'text', text: 'x' }] } },
];

describe('a session that is read back', () => {
  it('RS1 starts no turn, no tool and no compaction, and goes on with ids that were never there', async () => {
    const tool = echoTool();
    const { session, llm } = await reopen(await stored(interrupted), ['Done.'], { tools: [tool] });

    expect([session.status, session.turns, llm.callCount, tool.runCount]).toStrictEqual(['interrupted', 1, 0, 0]);
    expect(await session.events()).toStrictEqual(interrupted);
    await session.resume().result;
    await session.run('next').result;
    expect(session.turns).toBe(2);
    expect(checkTranscript(turnEvents(await session.events()))).toStrictEqual([]);
  });

  it('RS1 BR-017 has no open turn if one died before its input was kept: there is nothing to go on with, and the next turn ends it', async () => {
    const { session, llm } = await reopen(await stored(interrupted.slice(0, 1)), ['Done.', 'More.']);

    expect([session.status, session.openTurn()]).toStrictEqual(['idle', undefined]);
    expect(await codeOf(() => session.resume())).toBe('no_open_turn');
    await session.undo();
    await session.run('go').result;
    await session.run('on').result;
    expect(lastRequest(llm)).toStrictEqual(['user: go', 'assistant: Done.', 'user: on']);
    expect(checkTranscript(turnEvents(await session.events()), { complete: true })).toStrictEqual([]);
  });

  it('RS1 gives a queued input its turn if the one that it was to begin died before it was kept', async () => {
    const message = userMessage('later', { id: 'm1' });
    const { session } = await reopen(await stored([{ type: 'input.queued', at: 0, message }, interrupted[0]]), ['Done.']);

    expect(session.queue.map((queued) => queued.message)).toStrictEqual([message]);
    await session.runQueued()!.result;
    expect(said(session)).toStrictEqual(['user: later', 'assistant: Done.']);
    expect(session.queue).toStrictEqual([]);
  });

  it('RS2 law-9 runs what had not started, and nothing that had finished', async () => {
    const tool = echoTool();
    const { session } = await reopen(await stored(interrupted), ['Done.'], { tools: [tool] });

    expect(await session.resume().result).toMatchObject({ text: 'Done.', steps: 2, turnId: 't1' });
    expect(tool.runs.map(({ toolCallId }) => toolCallId)).toStrictEqual(['c2']);
    expect(said(session)).toStrictEqual(['user: go', 'assistant: echo() echo()', 'tool c1: x', 'tool c2: y', 'assistant: Done.']);
  });

  it.each([3, 4, 5, 6, 7])('RS2 TD20 closes the calls of a turn that died behind %i events at their place when it is given up', async (count) => {
    const { session, llm } = await reopen(await stored(interrupted.slice(0, count)), ['Done.'], { tools: [echoTool()] });
    await session.run('Never mind.', { denyPending: true }).result;

    const isWhole = count >= 5;
    expect(lastRequest(llm)).toStrictEqual([
      'user: go',
      ...(isWhole ? ['assistant: echo() echo()', expect.stringMatching(/^tool c1: /), expect.stringMatching(/^tool c2: .*not executed/s)] : []),
      'user: Never mind.',
    ]);
    expect(checkTranscript(turnEvents(await session.events()))).toStrictEqual([]);
  });

  it('RS2 drops a result whose call was never recorded', async () => {
    const orphan: RecordedEvent = { type: 'tool.result', ...inStep, toolCallId: 'c9', name: 'echo', result: { content: [{ type: 'text', text: 'orphan' }] } };
    const { session } = await reopen(await stored([...interrupted.slice(0, 5), orphan]), ['Done.'], { tools: [echoTool()] });
    await session.resume().result;
    expect(JSON.stringify(session.messages())).not.toContain('orphan');
  });

  it('RS3 CX5 puts a message that came while calls were open behind their results, also when the turn goes on', async () => {
    const reminder: RecordedEvent = { type: 'message', ...stamp, message: userMessage('Remember.', { id: 'm2', origin: 'reminder' }) };
    const { session, llm } = await reopen(await stored([...interrupted, reminder]), ['Done.'], { tools: [echoTool()] });
    expect(said(session).at(-1)).toBe('user: Remember.');

    await session.resume().result;
    expect(lastRequest(llm)).toStrictEqual(['user: go', 'assistant: echo() echo()', 'tool c1: x', 'tool c2: y', 'user: Remember.']);
  });

  it('RS4 BR-074 refuses what a newer release wrote, and changes nothing of it', async () => {
    const store = await stored([{ ...interrupted[0]!, version: TRANSCRIPT_VERSION + 98 }, ...interrupted.slice(1)]);
    const before = await store.read('s');

    expect(await codeOf(() => reopen(store))).toBe('unsupported_version');
    expect(await store.read('s')).toStrictEqual(before);
    // It was let go of.
    expect(await codeOf(async () => (await store.open('s')).close())).toBeUndefined();
  });

  it('RS4 keeps and ignores events of types that it does not know', async () => {
    const strange = { type: 'turn.mood', ...stamp, mood: 'good' };
    const { session } = await reopen(await stored([...interrupted.slice(0, 2), strange, ...interrupted.slice(2)]), ['Done.'], { tools: [echoTool()] });
    await session.resume().result;
    expect(story(session).at(-1)).toBe('assistant: Done.');
    expect(await session.events()).toContainEqual(strange);
  });

  it('RS4 BR-074 says which event cannot be read, in a typed error, and lets go of the session', async () => {
    const store = await stored([interrupted[0], { type: 'message', ...stamp }, ...interrupted.slice(1)]);

    await expect(reopen(store)).rejects.toThrow(/event 2 .*message.*Nothing was changed/s);
    expect(await codeOf(() => reopen(store))).toBe('broken_log');
    expect(await codeOf(async () => (await store.open('s')).close())).toBeUndefined();
  });

  it.each(['turns', 'steps', 'usage', 'queue', 'state', 'at', 'agent'])('RS4 BR-074 E10 has a default for the `%s` that an older snapshot lacks', async (name) => {
    const { session, reopened } = await withSnapshot((kept) => Object.fromEntries(Object.entries(kept).filter(([member]) => member !== name)));
    expect(reopened.session.messages()).toStrictEqual(session.messages());
    await reopened.session.run('more').result;
    expect(JSON.stringify(await reopened.session.events())).not.toContain('null');
    expect(Object.values(reopened.session.usage).every(Number.isFinite) && Number.isFinite(reopened.session.turns)).toBe(true);
  });

  it('RS4 BR-074 E10 refuses the snapshot of a newer release, and changes nothing', async () => {
    expect(await codeOf(() => withSnapshot((kept) => ({ ...kept, version: 99 })))).toBe('unsupported_version');
  });

  it.each([
    ['messages that are none', { messages: [42] }],
    ['no messages', { messages: 'gone' }],
    ['messages with parts that are none', { messages: [{ role: 'user', id: 'x', origin: 'user', content: [null] }] }],
    ['an answer to nothing', { messages: [{ role: 'tool', id: 'x', toolCallId: 'c', name: 'echo', content: [] }] }],
  ])('BR-017 E11 reads the whole log if the snapshot has %s, and says so', async (_, transcript) => {
    const { session, reopened } = await withSnapshot((kept) => ({ ...kept, transcript: { version: TRANSCRIPT_VERSION, ...transcript } }));

    expect(reopened.session.repairs.map(({ kind }) => kind)).toStrictEqual(['snapshot_dropped']);
    expect(reopened.session.messages()).toStrictEqual(session.messages());
    expect([reopened.session.turns, reopened.session.usage]).toStrictEqual([session.turns, session.usage]);
  });

  it('E9 BR-017 of a file whose last line was torn goes on behind the last whole event, and says so', async () => {
    const { folder, path } = await inFolder('log.jsonl');
    const { session } = await startAgent(['1'], { sessions: fileSessionStore(folder) });
    await session.run('a').result;
    await session.close();
    await rm((await path()).replace('log.jsonl', 'snapshot.json'));
    // Without the end of `turn.end`.
    await writeFile(await path(), (await readFile(await path(), 'utf8')).slice(0, -20));

    const later = await reopen(fileSessionStore(folder), ['2']);
    expect(later.session.repairs.map(({ kind }) => kind)).toStrictEqual(['torn_line']);
    expect([later.session.status, said(later.session)]).toStrictEqual(['interrupted', ['user: a', 'assistant: 1']]);
    expect(await later.session.resume().result).toMatchObject({ stopReason: 'end_turn', text: '1', steps: 1 });
    expect(later.llm.callCount).toBe(0);
    await later.session.close();
  });
});

/** A session of two turns in files, and another process that finds its snapshot changed. */
async function withSnapshot(change: (snapshot: object) => object): Promise<{ readonly session: Session; readonly reopened: Started }> {
  const { folder, path } = await inFolder('snapshot.json');
  const { session } = await startAgent([repeat('ok')], { sessions: fileSessionStore(folder) });
  await session.run('a').result;
  await session.run('b').result;
  await session.close();
  const kept = JSON.parse(await readFile(await path(), 'utf8')) as object;
  expect(kept).toHaveProperty('transcript.messages.length', 4);
  await writeFile(await path(), JSON.stringify(change(kept)));
  return { session, reopened: await reopen(fileSessionStore(folder), [repeat('ok')]) };
}

/** A folder for one session, that is removed with the test; and where a file of the session is. */
async function inFolder(file: string): Promise<{ readonly folder: string; readonly path: () => Promise<string> }> {
  const folder = await mkdtemp(join(tmpdir(), 'turnloop-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return { folder, path: async () => join(folder, (await readdir(folder))[0] ?? '', file) };
}

describe('a session whose store fails', () => {
  it('TD20 ends the turn, keeps what is durable, and lets later messages through', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'tool.finished', mode: 'fails' });
    const { session, llm } = await startAgent([[toolCall('echo', { text: '1' }), toolCall('echo', { text: '2' })], 'Done.'], { tools: [echoTool({ replay: 'safe' })], sessions: store });

    expect(await session.run('go').result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'store_failed' } });
    expect(session.status).toBe('interrupted');
    expect(await codeOf(() => session.run('b'))).toBe('turn_open');
    expect(await session.run('b', { denyPending: true }).result).toMatchObject({ text: 'Done.' });
    expect(lastRequest(llm)).toStrictEqual([
      'user: go', 'assistant: echo() echo()', expect.stringMatching(/^tool call_1/), expect.stringMatching(/^tool call_2/), 'user: b',
    ]);
    expect(checkTranscript(turnEvents(await session.events()))).toStrictEqual([]);
  });

  it('TD20 can go on with the turn once the store works again', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'tool.finished', mode: 'fails' });
    const { session } = await startAgent([toolCall('echo', { text: '1' }), 'Done.'], { tools: [echoTool({ replay: 'safe' })], sessions: store });
    await session.run('go').result;

    expect(await session.resume().result).toMatchObject({ stopReason: 'end_turn', text: 'Done.' });
    expect(said(session)).toContain('tool call_1: 1');
  });

  it.each(['turn.begin', 'message', 'step.begin', 'usage', 'tool.call', 'tool.start', 'tool.finished', 'tool.result', 'step.end', 'turn.end'])(
    'BR-116 has the same history in memory as after a reload when it failed at %s',
    async (at) => {
      const store = crashingStore({ at: ({ type }) => type === at, mode: 'breaks', error: new Error('EIO') });
      const { session } = await startAgent([toolCall('echo'), 'Done.'], { tools: [echoTool()], sessions: store });

      expect(await session.run('go').result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' } });
      const later = await reopen(await store.survivor(), [], { tools: [echoTool()] });
      expect(later.session.messages()).toStrictEqual(session.messages());
      expect([later.session.status, later.session.openTurn(), later.session.usage]).toStrictEqual([session.status, session.openTurn(), session.usage]);
    },
  );

  it('TD20 gives a result, and no exception, if the turn before cannot be given up', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'turn.end', mode: 'breaks', error: new Error('EIO') });
    const { session } = await startAgent([repeat('ok')], { sessions: store });
    await session.run('a').result;

    expect(await session.run('b', { denyPending: true }).result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' }, steps: 0 });
    expect(session.status).toBe('interrupted');
  });

  it('BR-116 has the same history in memory as after a reload when the model failed', async () => {
    const { session, store } = await startAgent([new LLMError({ kind: 'auth', message: 'no key' })], { retry: false });
    expect(await session.run('go').result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'auth' } });
    const before = session.messages();
    await session.close();
    const later = await reopen(store);
    expect([later.session.status, later.session.messages()]).toStrictEqual(['idle', before]);
  });

  it('E10 reports a snapshot that could not be kept, and goes on without it', async () => {
    const problems: Error[] = [];
    const inner = inProcessSessionStore();
    const store: SessionStore = {
      ...inner,
      create: async (session) => {
        const log = await inner.create(session);
        return { header: log.header, load: () => log.load(), append: (events) => log.append(events), saveSnapshot: () => Promise.reject(new Error('EIO')), child: (id) => log.child(id), close: () => log.close() };
      },
    };
    const { session } = await startAgent(['ok'], { sessions: store, onProblem: (problem) => problems.push(problem) });
    await session.run('a').result;
    await session.close();

    expect(problems.map(({ message }) => message)).toStrictEqual(['EIO']);
    expect(said((await reopen(inner)).session)).toStrictEqual(['user: a', 'assistant: ok']);
  });

  it('law-4 is closed within the grace when a store hangs', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'tool.finished' });
    const { session, runtime } = await startAgent([toolCall('echo'), hanging()], { tools: [echoTool()], sessions: store, graceMs: 100 });
    const turn = session.run('a');
    await store.crashed;
    turn.abort();
    expect(await runtime.settle(turn.result)).toMatchObject({ stopReason: 'aborted' });
    expect(runtime.now()).toBeLessThanOrEqual(100);
    expect(session.status).toBe('interrupted');
  });
});

describe('steering in a session', () => {
  it('TD19 BR-032 goes between the results and the next request, also while the last text streams', async () => {
    const gate = gatedTool();
    const { session, llm } = await startAgent([[toolCall('gate'), toolCall('echo', { text: 'x' })], 'almost', 'done'], { tools: [gate, echoTool()] });
    const turn = session.run('a');
    await gate.started();
    const steered = turn.steer('S');
    gate.finish();
    for await (const event of turn) if (event.type === 'text.delta' && event.text === 'almost') void turn.steer('T');

    expect(await steered).toBe('delivered');
    expect(lastRequest(llm)).toStrictEqual([
      'user: a', 'assistant: gate() echo()', 'tool call_1: done', 'tool call_2: x', 'user: S', 'assistant: almost', 'user: T',
    ]);
  });

  it('A10 V5 cancels one call, and the turn goes on', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    expect(turn.cancelToolCall('call_1')).toBe(true);
    expect(await turn.result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
  });

  it('V2 A9 a stop of a hook wins over calls and over what is steered', async () => {
    const gate = gatedTool();
    const { session, llm } = await startAgent([toolCall('gate'), 'never'], { tools: [gate], hooks: [{ name: 'enough', afterStep: () => ({ reason: 'enough' }) }] });
    const turn = session.run('a');
    await gate.started();
    const steered = turn.steer('more');
    gate.finish();

    expect(await turn.result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'enough' });
    expect(await steered).toBe('undelivered');
    expect(llm.callCount).toBe(1);
  });

  it('V3 hooks may have a turn go on more than once', async () => {
    let left = 3;
    const { session } = await startAgent(['1', '2', '3', '4'], { hooks: [{ name: 'more', shouldContinueAfterStop: () => (left -= 1) >= 0 }] });
    expect(await session.run('a').result).toMatchObject({ text: '4', steps: 4 });
  });
});
