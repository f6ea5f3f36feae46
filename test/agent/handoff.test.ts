/** Handoffs (E16): within a turn, with the hooks of each agent, through crashes, suspensions and reopened sessions. */
import { describe, expect, it } from 'vitest';
import type { Hook } from 'turnloop';
import { type BudgetLimits, createBudget } from 'turnloop/policies';
import { type Agent, type AgentOptions, createAgent } from 'turnloop/agent';
import { echoTool, recordingTool, repeat, type Reply, scriptedLLM, type ScriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';
import { crashingStore } from './support/crashing-store.ts';
import { suspendAll } from './support/policies.ts';
import { codeOf, lastRequest, reopen, said, startAgent, type StartOptions, story, types } from './support/session-kit.ts';

const toBilling = toolCall('transfer_to_billing', { reason: 'money' });

/** A second agent, with a tool, a prompt and a model of its own. */
function billing(replies: readonly Reply[], options: Partial<AgentOptions> = {}): { readonly agent: Agent; readonly llm: ScriptedLLM } {
  const llm = scriptedLLM(replies, { modelId: 'billing-model' });
  const agent = createAgent({ name: 'billing', description: 'Knows invoices.', llm, systemPrompt: 'You do invoices.', tools: [echoTool({ name: 'invoice' })], ...options });
  return { agent, llm };
}

/** A hook that notes at which steps it was asked what. */
function witness(name: string, log: string[]): Hook {
  return {
    name,
    beforeStep: ({ step }) => void log.push(`${name} beforeStep ${step}`),
    prepareToolCall: ({ step }) => void log.push(`${name} prepare ${step}`),
    authorizeToolCall: ({ step }) => {
      log.push(`${name} authorize ${step}`);
      return undefined;
    },
    finalizeToolResult: ({ step }) => {
      log.push(`${name} finalize ${step}`);
      return undefined;
    },
    afterStep: ({ step }) => {
      log.push(`${name} afterStep ${step}`);
      return undefined;
    },
    shouldContinueAfterStop: () => {
      log.push(`${name} asked to go on`);
      return undefined;
    },
  };
}

const options = (more: StartOptions): StartOptions => ({ name: 'front', systemPrompt: 'You greet.', tools: [echoTool()], ...more });

describe('a handoff', () => {
  it('E16 gives model, prompt and tools to the next step of the same turn, and to the turns behind it', async () => {
    const other = billing([toolCall('invoice', { text: 'no. 1' }), 'Paid.', 'Again.']);
    const { session, llm } = await startAgent([toBilling], options({ handoffs: [other.agent] }));

    const result = await session.run('My invoice?').result;

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Paid.', steps: 3, agent: 'billing' });
    expect(llm.requests[0]?.tools.map(({ name }) => name)).toStrictEqual(['echo', 'transfer_to_billing']);
    expect(llm.requests[0]?.tools[1]?.description).toContain('Knows invoices.');
    expect(other.llm.requests.map(({ systemPrompt, tools }) => [systemPrompt, tools.map(({ name }) => name)])).toStrictEqual([
      ['You do invoices.', ['invoice']],
      ['You do invoices.', ['invoice']],
    ]);
    expect(result.usageByModel.map(({ modelId }) => modelId)).toStrictEqual(['scripted-model', 'billing-model']);

    expect((await session.run('And now?').result).text).toBe('Again.');
    expect([session.agent, llm.callCount]).toStrictEqual(['billing', 1]);
    expect(said(session).slice(0, 3)).toStrictEqual([
      'user: My invoice?', 'assistant: transfer_to_billing()', 'tool call_1: The conversation is now with the agent "billing".',
    ]);
  });

  it('E16 is recorded, and told to whoever iterates or listens', async () => {
    const { session } = await startAgent([toBilling], options({ handoffs: [billing(['Hi.']).agent] }));
    const heard: string[] = [];
    session.subscribe(({ type }) => heard.push(type));
    const turn = session.run('a');
    const events = [];
    for await (const event of turn) events.push(event);

    expect(events.filter(({ type }) => type === 'handoff')).toStrictEqual([
      { type: 'handoff', at: 0, turnId: turn.turnId, toolCallId: 'call_1', from: 'front', to: 'billing' },
    ]);
    expect(heard.filter((type) => type === 'handoff')).toHaveLength(1);
    expect(types(await session.events()).slice(4, 9)).toStrictEqual(['tool.call', 'tool.start', 'handoff', 'tool.finished', 'tool.result']);
  });

  it('E16 lets the step that asked for it end under its own agent, and asks the hooks of the one that took over about its own steps only', async () => {
    const log: string[] = [];
    const other = billing([toolCall('invoice'), 'Paid.'], { hooks: [witness('B', log)] });
    const echo = echoTool();
    const { session } = await startAgent(
      [[toBilling, toolCall('echo', { text: 'still mine' })]],
      options({ handoffs: [other.agent], tools: [echo], hooks: [witness('A', log)] }),
    );
    await session.run('a').result;

    expect(echo.runCount).toBe(1);
    expect(log).toStrictEqual([
      'A beforeStep 1', 'A prepare 1', 'A prepare 1', 'A authorize 1', 'A authorize 1', 'A finalize 1', 'A finalize 1', 'A afterStep 1',
      'A beforeStep 2', 'B beforeStep 2', 'A prepare 2', 'B prepare 2', 'A authorize 2', 'B authorize 2', 'A finalize 2', 'B finalize 2', 'A afterStep 2', 'B afterStep 2',
      'A beforeStep 3', 'B beforeStep 3', 'A afterStep 3', 'B afterStep 3', 'A asked to go on', 'B asked to go on',
    ]);
  });

  it('E16 may go on to a third agent and back, with agents that know each other by function', async () => {
    const runtime = virtualRuntime();
    const b: Agent = createAgent({ name: 'b', runtime, llm: scriptedLLM([toolCall('transfer_to_a'), 'b again']), handoffs: () => [a] });
    const a: Agent = createAgent({ name: 'a', runtime, llm: scriptedLLM([toolCall('transfer_to_b'), 'back']), handoffs: () => [b] });
    const session = await a.openSession();

    expect(await session.run('go').result).toMatchObject({ text: 'back', agent: 'a', steps: 3 });
    expect(session.agent).toBe('a');
  });

  it('E16 of a model that asks for two goes to the one asked for last', async () => {
    const other = createAgent({ name: 'shipping', llm: scriptedLLM(['Shipped.']) });
    const { session } = await startAgent([[toBilling, toolCall('transfer_to_shipping')]], options({ handoffs: [billing([]).agent, other] }));

    expect(await session.run('a').result).toMatchObject({ agent: 'shipping', text: 'Shipped.' });
  });

  it('E16 that is denied does not happen', async () => {
    const deny: Hook = { name: 'no', authorizeToolCall: () => ({ action: 'deny', reason: 'not you' }) };
    const { session } = await startAgent([toBilling, 'I stay.'], options({ handoffs: [billing([]).agent], hooks: [deny] }));

    expect(await session.run('a').result).toMatchObject({ agent: 'front', text: 'I stay.' });
    expect(types(await session.events())).not.toContain('handoff');
  });

  it.each([
    ['the agent of the session, over the steps of all', { mine: 4, its: 25 }, 4],
    ['the one that took over, over its own', { mine: 25, its: 2 }, 3],
  ])('E16 ends at the limit of %s', async (_whose, { mine, its }, steps) => {
    const other = billing([repeat(toolCall('invoice'))] as never, { maxSteps: its, loopGuard: false });
    const { session } = await startAgent([toBilling], options({ handoffs: [other.agent], maxSteps: mine, loopGuard: false }));

    expect(await session.run('a').result).toMatchObject({ stopReason: 'max_steps', steps, agent: 'billing' });
  });

  it.each([
    ['budget of the agent that took over', { maxTokens: 2_000 }, {}, 5],
    ['budget of the agent of the session', {}, { maxTokens: 2_000 }, 4],
  ])('E16 spends within the %s', async (_whose, its, mine, steps) => {
    const limited = (limits: BudgetLimits): Partial<AgentOptions> => (limits.maxTokens === undefined ? {} : { budget: createBudget({ ...limits, outputReserve: 1 }) });
    const llm = scriptedLLM([repeat(toolCall('invoice'))], { usage: { inputTokens: 400, outputTokens: 100 } });
    const agent = createAgent({ name: 'billing', llm, tools: [echoTool({ name: 'invoice' })], loopGuard: false, ...limited(its) });
    const llmOptions = { usage: { inputTokens: 400, outputTokens: 100 } };
    const { session } = await startAgent([toBilling], options({ handoffs: [agent], loopGuard: false, llmOptions, ...limited(mine) }));

    expect(await session.run('a').result).toMatchObject({ stopReason: 'max_budget', steps, agent: 'billing' });
  });

  it.each(['approval', 'hooks', 'toolCalls', 'output'] as const)('E16 does not rid the model of the %s of the agent of the session', async (what) => {
    const deny: Hook = { name: 'no', authorizeToolCall: (_context, { name }) => (name === 'invoice' ? { action: 'deny', reason: 'no' } : undefined) };
    const guard = { name: 'guard', check: () => 'no' };
    const policies: Partial<AgentOptions> = {
      approval: { approval: { rules: [{ tool: 'invoice', decision: 'deny' as const }, { decision: 'allow' as const }] } },
      hooks: { hooks: [deny] },
      toolCalls: { guardrails: { toolCalls: [{ ...guard, check: ({ name }: { readonly name: string }) => (name === 'invoice' ? 'no' : undefined) }] } },
      output: { guardrails: { output: [{ ...guard, check: ({ text }: { readonly text: string }) => (text === 'Paid.' ? 'no' : undefined) }] } },
    }[what];
    const invoice = echoTool({ name: 'invoice' });
    const other = billing([toolCall('invoice', { text: 'x' }), 'Paid.'], { tools: [invoice] });
    const { session } = await startAgent([toBilling], options({ handoffs: [other.agent], ...policies }));

    const result = await session.run('a').result;
    expect(invoice.runCount).toBe(what === 'output' ? 1 : 0);
    expect(result).toMatchObject(what === 'toolCalls' || what === 'output' ? { stopReason: 'stopped', stoppedBy: 'guard' } : { stopReason: 'end_turn' });
  });

  it('E16 lets the agent that took over decide by approval and guardrails of its own, and ask for what it wants', async () => {
    const invoice = echoTool({ name: 'invoice' });
    const other = billing([toolCall('invoice', { text: 'x' }), 'Paid.'], { tools: [invoice], approval: { rules: [{ decision: 'allow' }] }, request: { maxOutputTokens: 77 } });
    const { session, llm } = await startAgent([toBilling], options({ handoffs: [other.agent], approval: { rules: [{ tool: 'invoice', decision: 'deny' }, { decision: 'allow' }] }, request: { maxOutputTokens: 99 } }));

    await session.run('a').result;
    expect(invoice.runCount).toBe(1);
    expect([...llm.requests, ...other.llm.requests].map(({ maxOutputTokens }) => maxOutputTokens)).toStrictEqual([99, 77, 77]);
  });

  it('E16 E11 is taken back with the turn that it happened in', async () => {
    const { session, store } = await startAgent(['Hello.', toBilling, 'I am back.'], options({ handoffs: [billing(['Hi.']).agent] }));
    await session.run('a').result;
    await session.run('b').result;
    expect(session.agent).toBe('billing');
    await session.undo();
    expect([session.agent, said(session)]).toStrictEqual(['front', ['user: a', 'assistant: Hello.']]);
    expect(await session.run('c').result).toMatchObject({ text: 'I am back.', agent: 'front' });
    await session.close();
    expect((await reopen(store, [], options({ handoffs: [billing([]).agent] }))).session.agent).toBe('front');
  });
});

describe('agents that may have a conversation', () => {
  it('E16 refuses two of one name, and leaves no session behind', async () => {
    const { agent, store } = await startAgent([], { handoffs: () => [] });
    const front = createAgent({ name: 'front', llm: scriptedLLM([]), sessions: store, handoffs: [billing([]).agent, billing([]).agent] });

    await expect(front.openSession({ sessionId: 'x' })).rejects.toThrow(/named "billing".*createAgent\(\{ name/);
    expect((await store.list()).map(({ sessionId }) => sessionId)).toStrictEqual(['s']);
    expect(agent.name).toBe('agent');
  });

  it('E16 BR-116 refuses a session that was handed to an agent it does not know, and changes nothing of it', async () => {
    const { session, store } = await startAgent([toBilling], options({ handoffs: [billing(['Hi.']).agent] }));
    await session.run('a').result;
    await session.close();
    const before = await store.read('s');

    expect(await codeOf(() => reopen(store, []))).toBe('unknown_agent');
    expect(await codeOf(() => reopen(store, [], { open: { fork: { sessionId: 's' }, sessionId: 'f' } }))).toBe('unknown_agent');
    expect(await store.read('s')).toStrictEqual(before);
    expect((await store.list()).map(({ sessionId }) => sessionId)).toStrictEqual(['s']);
    // It can still be opened by those who know.
    const later = await reopen(store, [], options({ handoffs: [billing(['Still here.']).agent] }));
    expect(await later.session.run('b').result).toMatchObject({ agent: 'billing', text: 'Still here.' });
  });

  it('E16 refuses something that is no agent', async () => {
    await expect(startAgent([], { handoffs: [{ name: 'fake' } as never] })).rejects.toThrow(/createAgent did not make/);
  });

  it('E16 B10 keeps agents apart whose names are in no Latin letters', async () => {
    const [one, two] = ['计费', '客服'].map((name) => createAgent({ name, llm: scriptedLLM([`I am ${name}.`]) }));
    const { session, llm } = await startAgent([toolCall('transfer_to_客服')], options({ handoffs: [one!, two!] }));

    expect(await session.run('a').result).toMatchObject({ agent: '客服', text: 'I am 客服.' });
    expect(llm.requests[0]?.tools.map(({ name }) => name)).toStrictEqual(['echo', 'transfer_to_计费', 'transfer_to_客服']);
  });
});

describe('a handoff and another process', () => {
  it('E16 E11 lasts: the session has the agent that it was handed to', async () => {
    const { session, store } = await startAgent([toBilling], options({ handoffs: [billing(['Hi.']).agent] }));
    await session.run('a').result;
    await session.close();

    const other = billing(['Here.']);
    const later = await reopen(store, [], options({ handoffs: [other.agent] }));
    expect(later.session.agent).toBe('billing');
    expect(await later.session.run('b').result).toMatchObject({ text: 'Here.', agent: 'billing' });
    expect(lastRequest(other.llm)[0]).toBe('user: a');
  });

  it.each(['tool.start', 'handoff', 'tool.finished', 'step.end'])('E16 A19 law-9 ends as it would have after a crash at the first %s', async (at) => {
    const scene = (): { readonly log: string[]; readonly with: StartOptions } => {
      const log: string[] = [];
      const echo = recordingTool({ name: 'echo', replay: 'idempotent', execute: () => 'mine' });
      const other = billing([toolCall('invoice', { text: 'x' }), 'Paid.'], { hooks: [witness('B', log)] });
      return { log, with: options({ handoffs: [other.agent], tools: [echo], hooks: [witness('A', log)] }) };
    };
    const replies = [[toBilling, toolCall('echo')]];
    const whole = await startAgent(replies, scene().with);
    await whole.session.run('a').result;

    const store = crashingStore({ at: ({ type }) => type === at });
    const before = scene();
    const crashed = await startAgent(replies, { ...before.with, sessions: store });
    crashed.session.run('a');
    await store.crashed;
    const after = scene();
    const { session } = await reopen(await store.survivor(), [], after.with);
    const result = await session.resume().result;

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Paid.', agent: 'billing', steps: 3 });
    expect(story(session)).toStrictEqual(story(whole.session));
    // What is left of the step is the business of the agent that began it.
    const ofFirstStep = after.log.filter((line) => line.endsWith(' 1'));
    expect(ofFirstStep.every((line) => line.startsWith('A '))).toBe(true);
    expect(after.log.filter((line) => line.includes('afterStep 1'))).toStrictEqual(['A afterStep 1']);
    const handoffs = (await session.events()).filter((event) => event.type === 'handoff');
    expect(handoffs.map(({ from, to }) => `${from} to ${to}`)).toStrictEqual(['front to billing']);
  });

  it('E16 A20 lets calls that wait for a person end under the agent that made them', async () => {
    const log: string[] = [];
    const scene = (): StartOptions =>
      options({
        handoffs: [billing(['Paid.'], { hooks: [witness('B', log)] }).agent],
        tools: [echoTool({ replay: 'idempotent' })],
        hooks: [{ name: 'ask', authorizeToolCall: (_, { name }) => (name === 'echo' ? { action: 'suspend' } : undefined) }, witness('A', log)],
      });
    const { session, store } = await startAgent([[toBilling, toolCall('echo', { text: 'allowed' })]], scene());
    expect((await session.run('a').result).stopReason).toBe('suspended');
    expect(session.agent).toBe('billing');
    await session.close();
    log.length = 0;

    const later = await reopen(store, [], scene());
    const decisions = later.session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const }));
    expect(await later.session.resume({ decisions }).result).toMatchObject({ text: 'Paid.', agent: 'billing' });
    expect(said(later.session)).toContain('tool call_2: allowed');
    expect(log.filter((line) => line.startsWith('B ') && line.endsWith(' 1'))).toStrictEqual([]);
    expect(log).toContain('A afterStep 1');
  });

  it('E16 A20 asks a person for the agent that has the step', async () => {
    const other = billing([toolCall('invoice', { text: 'x' }), 'Paid.'], { hooks: [suspendAll()] });
    const { session } = await startAgent([toBilling], options({ handoffs: [other.agent] }));
    await session.run('a').result;

    expect(session.pending().map(({ name }) => name)).toStrictEqual(['invoice']);
    const decisions = session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const }));
    expect(await session.resume({ decisions }).result).toMatchObject({ text: 'Paid.' });
  });
});
