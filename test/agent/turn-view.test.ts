/** The view of turns: what people are shown of a session, while it runs and after a reload. */
import { describe, expect, it } from 'vitest';
import { LLMError, type LoopEvent, type RecordedEvent, suspend, userMessage } from 'turnloop';
import { emptyTurnsView, reduceTurnsView, type StepItem, stepsOf, type ToolCallItem, turnsOf, type TurnsView, turnsView, type TurnView } from 'turnloop/agent';
import { approval, withRetry } from 'turnloop/policies';
import { cutStream, echoTool, gatedTool, hanging, recordingTool, runScripted, type RunScriptedOptions, startScripted, stalled, thinking, toolCall } from 'turnloop/testing';
import { secondProcess } from '../core/support.ts';

/** A view that follows a turn. */
function follow(): { readonly listener: (event: LoopEvent) => void; readonly views: readonly TurnsView[] } {
  const views: TurnsView[] = [emptyTurnsView()];
  return { listener: (event) => void views.push(reduceTurnsView(views.at(-1)!, event)), views };
}

function lastTurn(view: TurnsView): TurnView {
  return turnsOf(view).at(-1)!;
}

function itemsOf(view: TurnsView): readonly StepItem[] {
  return stepsOf(lastTurn(view)).flatMap(({ items }) => items);
}

function callsOf(view: TurnsView): readonly ToolCallItem[] {
  return itemsOf(view).filter((item) => item.type === 'tool_call');
}

/** The items in short, for every view of a turn in which they changed. */
function history(views: readonly TurnsView[]): readonly string[] {
  const lines = views.map((view) => (view.open.length === 0 ? '' : itemsOf(view).map(shortly).join(' | ')));
  return lines.filter((line, index) => line !== '' && line !== lines[index - 1]);
}

function shortly(item: StepItem): string {
  const mark = item.streaming === true ? '…' : '';
  if (item.type === 'tool_call') return `${item.name}(${item.inputText})${mark} ${item.state}`;
  return item.type === 'part' ? `[${item.part.type}]` : `${item.type === 'thinking' ? '~' : ''}${item.text}${mark}`;
}

/** Runs a turn and hands back every view of it. */
async function watch(options: RunScriptedOptions) {
  const { listener, views } = follow();
  const outcome = await runScripted({ ...options, listener });
  return { ...outcome, views, view: views.at(-1)! };
}

describe('the view of a turn that is watched', () => {
  it('E14 shows text as it arrives, then what is recorded of it', async () => {
    const { views } = await watch({ replies: [{ content: 'Hello world', chunk: 6 }] });

    expect(history(views)).toStrictEqual(['Hello …', 'Hello world…', 'Hello world']);
  });

  it('E14 shows thinking, text and calls in the order of the reply', async () => {
    const { views, view } = await watch({
      replies: [[thinking('Hm.', { signature: 's' }), 'Let me see.', toolCall('echo', { text: 'a' })], 'done'],
      tools: [echoTool()],
    });

    expect(itemsOf(view).map(shortly)).toStrictEqual(['~Hm.', 'Let me see.', 'echo({"text":"a"}) finished', 'done']);
    expect(history(views).slice(0, 8)).toStrictEqual([
      '~Hm.…',
      '~Hm.… | Let me see.…',
      '~Hm.… | Let me see.… | echo({"text":"a"})… streaming',
      '~Hm. | Let me see.… | echo({"text":"a"})… streaming',
      '~Hm. | Let me see. | echo({"text":"a"})… streaming',
      '~Hm. | Let me see. | echo({"text":"a"}) waiting',
      '~Hm. | Let me see. | echo({"text":"a"}) running',
      '~Hm. | Let me see. | echo({"text":"a"}) finished',
    ]);
  });

  it('E14 takes back what a failed attempt streamed, and keeps its error while it is watched', async () => {
    const { views, view, recorded } = await watch({
      replies: [cutStream('Hello world', { deltaCount: 1 }), 'Good day'],
      decorate: (llm) => withRetry(llm),
    });

    expect(history(views)).toStrictEqual(['Hello world…', 'Good day…', 'Good day']);
    const [step] = stepsOf(lastTurn(view));
    expect(step!.live!.retries).toMatchObject([{ attempt: 1, error: { kind: 'network' }, delayMs: expect.any(Number) }]);
    expect(stepsOf(lastTurn(turnsView(recorded)))[0]).not.toHaveProperty('live');
  });

  it('E14 tells calls that run from calls that failed, with their results', async () => {
    const gate = gatedTool();
    const { listener, views } = follow();
    const turn = startScripted({
      replies: [[toolCall(gate.name), toolCall('nobody')], 'done'],
      tools: [gate],
      listener,
    });
    await turn.runtime.flush();
    expect(callsOf(views.at(-1)!).map(({ state }) => state)).toStrictEqual(['running', 'failed']);
    expect(stepsOf(lastTurn(views.at(-1)!))[0]!.state).toBe('working');

    gate.finish('fine');
    await turn.finish();
    const [ran, failed] = callsOf(views.at(-1)!);
    expect(ran).toMatchObject({ state: 'finished', result: { content: [{ text: 'fine' }] }, startedAt: 0, finishedAt: 0 });
    expect(failed).toMatchObject({ state: 'failed', result: { isError: true } });
  });

  it('E14 shows how far a call is, until it has finished', async () => {
    const tool = recordingTool({
      readOnly: true,
      execute: (_input, { progress }) => {
        progress({ kind: 'stdout', text: 'one ' });
        progress({ kind: 'progress', percent: 50 });
        progress({ kind: 'stderr', text: 'two' });
        return { content: 'short', display: 'long' };
      },
    });
    const { views, view } = await watch({ replies: [toolCall(tool.name), 'done'], tools: [tool] });

    const shown = views.flatMap((one) => (one.open.length === 0 ? [] : callsOf(one).flatMap(({ live, state }) => (live ? [{ ...live.progress, state }] : []))));
    expect(shown).toStrictEqual([
      { output: 'one ', state: 'running' },
      { output: 'one ', update: { kind: 'progress', percent: 50 }, state: 'running' },
      { output: 'one two', update: { kind: 'progress', percent: 50 }, state: 'running' },
    ]);
    expect(callsOf(view)[0]).toMatchObject({ state: 'finished', result: { display: 'long' } });
    expect(callsOf(view)[0]).not.toHaveProperty('live');
  });

  it('E14 drops what streamed of a reply that an abort cut off, but for what is kept of it', async () => {
    const { listener, views } = follow();
    const turn = startScripted({ replies: [stalled([thinking('Hm.'), 'Half an ans', toolCall('echo', { text: 'a' })], 3)], tools: [echoTool()], listener });
    await turn.runtime.flush();
    expect(history(views).at(-1)).toBe('~Hm.… | Half an ans… | echo({"text":"a"})… streaming');

    turn.control.abort();
    await turn.finish();
    const view = views.at(-1)!;
    expect(itemsOf(view).map(shortly)).toStrictEqual(['Half an ans']);
    expect(stepsOf(lastTurn(view))[0]).toMatchObject({ state: 'interrupted', reply: { interrupted: 'aborted' } });
    expect(lastTurn(view)).toMatchObject({ state: 'ended', stopReason: 'aborted' });
    expect(lastTurn(view)).not.toHaveProperty('live');
  });

  it('E14 says that a turn was cut short whose end could not be recorded', async () => {
    const { view } = await watch({
      replies: ['never recorded'],
      check: false,
      record: ({ type }) => {
        if (type === 'content.part') throw new Error('disk full');
      },
    });

    expect(lastTurn(view)).toMatchObject({ state: 'running', live: { interrupted: { stopReason: 'fatal_error', error: { kind: 'recorder_failed' } } } });
  });

  it('E14 shares with the view before whatever a fragment does not change', async () => {
    const { listener, views } = follow();
    const options = { listener, tools: [echoTool()] };
    const { transcript } = await runScripted({ ...options, replies: ['first'] });
    await runScripted({ ...options, transcript, replies: [[toolCall('echo', { text: 'a' })], { content: [thinking('Hm.'), 'second answer'], chunk: 4 }] });

    const streaming = views.filter((view) => view.open.length > 0 && lastTurn(view).steps.length === 1 && lastTurn(view).step?.reply === undefined && itemsOf(view).length === 3);
    expect(streaming.length).toBeGreaterThan(3);
    for (const [index, view] of streaming.slice(1).entries()) {
      const before = streaming[index]!;
      expect(view.ended).toBe(before.ended);
      expect(lastTurn(view).steps).toBe(lastTurn(before).steps);
      expect(lastTurn(view).input).toBe(lastTurn(before).input);
    }
    expect(itemsOf(streaming.at(-1)!)[1]).toBe(itemsOf(streaming.at(-2)!)[1]);
  });
});

describe('the view of a session', () => {
  it('E14 tells of each turn what it was given, its tokens, and how it ended', async () => {
    const refused = new LLMError({ kind: 'auth', message: 'No key.' });
    const { transcript } = await runScripted({ replies: [{ content: 'one', usage: { inputTokens: 5, outputTokens: 2 } }], input: 'first', metadata: { from: 'web' } });
    const { recorded } = await runScripted({ transcript, replies: [refused], input: 'second' });

    const [first, second] = turnsOf(turnsView(transcript.events));
    expect(first).toMatchObject({ state: 'ended', stopReason: 'end_turn', metadata: { from: 'web' }, usage: { inputTokens: 5, outputTokens: 2 }, input: [{ content: [{ text: 'first' }] }] });
    expect(first!.steps).toMatchObject([{ step: 1, state: 'ended', stopReason: 'end_turn', modelId: 'scripted-model', usage: { inputTokens: 5, outputTokens: 2 } }]);
    expect(second).toMatchObject({ state: 'ended', stopReason: 'fatal_error', error: { kind: 'auth', message: 'No key.' }, steps: [{ step: 1, state: 'interrupted', items: [] }] });
    expect(turnsView(recorded).ended).toStrictEqual([second]);
  });

  it('E14 puts steering behind the step it came after', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall(gate.name), 'done'], tools: [gate] });
    await turn.runtime.flush();
    void turn.control.steer(userMessage('and this'));
    gate.finish('ok');
    const { recorded } = await turn.finish();

    const [ended] = turnsOf(turnsView(recorded));
    expect(stepsOf(ended!).map(({ messagesAfter }) => messagesAfter.map(({ content }) => content))).toStrictEqual([[[{ type: 'text', text: 'and this' }]], []]);
  });

  it('E14 shows what a suspended turn waits for, and that it goes on', async () => {
    const options = {
      replies: [[toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })], 'done'],
      tools: [echoTool()],
      hooks: [approval({ rules: [{ decision: 'ask', reason: 'Look first.' }] })],
    };
    const first = await watch(options);
    expect(lastTurn(first.view)).toMatchObject({ state: 'suspended', pending: [{ name: 'echo', reason: 'Look first.' }, { name: 'echo' }] });
    expect(callsOf(first.view).map(({ state, pending }) => [state, pending?.length])).toStrictEqual([
      ['pending-approval', 1],
      ['pending-approval', 1],
    ]);
    expect(first.view).toStrictEqual(turnsView(first.recorded));

    const [one] = first.result.pending!;
    const second = await runScripted({ ...options, ...secondProcess(first.recorded), resume: { decisions: [{ toolCallId: one!.toolCallId, action: 'allow' }] } });
    const view = turnsView(second.transcript.events);
    expect(lastTurn(view)).toMatchObject({ state: 'suspended', pending: [{ input: { text: 'b' } }] });
    expect(callsOf(view).map(({ state }) => state)).toStrictEqual(['finished', 'pending-approval']);

    const resumed = second.transcript.events.findIndex(({ type }) => type === 'turn.resume');
    const goingOn = turnsView(second.transcript.events.slice(0, resumed + 1));
    expect(lastTurn(goingOn)).toMatchObject({ state: 'running', pending: [{ input: { text: 'b' } }] });
    expect(callsOf(goingOn).map(({ state }) => state)).toStrictEqual(['waiting', 'pending-approval']);
  });

  it('E14 shows a step that a crash cut off once only', async () => {
    const { recorded } = await runScripted({ replies: ['answer'] });
    const cut = recorded.slice(0, recorded.findIndex(({ type }) => type === 'step.begin') + 1);
    const { transcript } = await runScripted({ ...secondProcess(cut), resume: {}, replies: ['answer'] });

    expect(stepsOf(lastTurn(turnsView(transcript.events))).map(({ step, items }) => [step, items.map(shortly)])).toStrictEqual([[1, ['answer']]]);
  });

  it('E14 keeps what was said behind a step that is asked again', () => {
    const said = (id: string): RecordedEvent => ({ type: 'message', turnId: 't', at: 1, message: userMessage(id, { id }) });
    const begin = (step: number, stepId: string): RecordedEvent => ({ type: 'step.begin', turnId: 't', at: 1, step, stepId });
    const part: RecordedEvent = { type: 'content.part', turnId: 't', at: 1, step: 1, stepId: 'b', index: 0, count: 1, part: { type: 'text', text: 'x' } };
    const events = [said('in'), begin(1, 'a'), said('one'), begin(1, 'b'), part, said('two'), begin(2, 'c'), said('three'), begin(2, 'd')];

    const turn = lastTurn(turnsView(events));
    expect(turn.input.map(({ id }) => id)).toStrictEqual(['in', 'one']);
    expect(stepsOf(turn).map(({ stepId, messagesAfter }) => [stepId, messagesAfter.map(({ id }) => id)])).toStrictEqual([
      ['b', ['two', 'three']],
      ['d', []],
    ]);
  });

  it('E14 leaves a turn behind that was given up without a word', async () => {
    const { recorded } = await runScripted({ replies: ['answer'] });
    const { recorded: next } = await runScripted({ replies: ['next'], turnId: 'other' });

    expect(turnsOf(turnsView([...recorded.slice(0, 3), ...next])).map(({ turnId, state }) => [turnId, state])).toStrictEqual([
      ['turn_1', 'abandoned'],
      ['other', 'ended'],
    ]);
  });

  it('E14 tells when the history was shortened, within a turn and between turns', () => {
    const about = { layer: 'summary', edits: [], tokensBefore: 100, tokensAfter: 10 };
    const step = { turnId: 't', at: 2, step: 1, stepId: 's' };
    const events: RecordedEvent[] = [
      { type: 'turn.begin', turnId: 't', at: 1, version: 1, inputCount: 0 },
      { type: 'step.begin', ...step },
      { type: 'step.end', ...step, stopReason: 'end_turn', modelId: 'm', usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 } },
      { type: 'compaction', turnId: 't', at: 3, ...about },
      { type: 'turn.end', turnId: 't', at: 4, stopReason: 'end_turn', steps: 1 },
      { type: 'compaction', turnId: 'by-hand', at: 5, ...about },
    ];

    const view = turnsView(events);
    expect(turnsOf(view)).toMatchObject([{ compactions: [{ layer: 'summary', afterStep: 1, tokensBefore: 100, tokensAfter: 10, at: 3 }] }]);
    expect(view.compactions).toStrictEqual([{ layer: 'summary', at: 5, tokensBefore: 100, tokensAfter: 10 }]);
  });

  it('E14 ignores what it does not know', async () => {
    const { recorded } = await runScripted({ replies: ['answer'] });
    const view = turnsView(recorded.slice(0, 4));
    const stranger = { type: 'turn.celebrated', turnId: 'turn_1', at: 1, step: 1, stepId: 'step_1' } as unknown as LoopEvent;

    expect(reduceTurnsView(view, stranger)).toBe(view);
    expect(reduceTurnsView(view, { type: 'notice', turnId: 'turn_1', at: 1, name: 'x', data: null })).toBe(view);
    expect(reduceTurnsView(view, { type: 'text.delta', turnId: 'turn_1', at: 1, step: 1, stepId: 'step_1', attempt: 1, text: 'a', agentPath: ['nobody'] })).toBe(view);
    const ended = turnsView(recorded);
    expect(reduceTurnsView(ended, recorded[0]!)).toBe(ended);
  });

  it('E14 takes ids and names for data', () => {
    const step = { turnId: '__proto__', at: 1, step: 1, stepId: 'constructor' };
    const view = turnsView([
      { type: 'turn.begin', turnId: '__proto__', at: 1, version: 1, inputCount: 0 },
      { type: 'step.begin', ...step },
      { type: 'tool.call.delta', ...step, attempt: 1, toolCallId: '__proto__', name: 'toString', inputText: '{}' },
    ]);

    expect(callsOf(view)).toStrictEqual([{ type: 'tool_call', toolCallId: '__proto__', name: 'toString', inputText: '{}', state: 'streaming', streaming: true }]);
  });
});

describe('the view of sub-agents', () => {
  /** A tool that runs turns of its own and forwards their events. */
  const dispatch = (...replies: readonly (readonly Parameters<typeof childTurn>[0][])[]) =>
    recordingTool({
      name: 'dispatch',
      execute: async (_input, { forward }) => {
        await Promise.all(replies.flat().map((reply) => childTurn(reply, forward)));
        return 'all done';
      },
    });

  async function childTurn(reply: NonNullable<RunScriptedOptions['replies']> & readonly unknown[], forward: (event: LoopEvent) => void): Promise<void> {
    await runScripted({ replies: reply, turnId: `child_${count += 1}`, listener: forward, tools: [echoTool()] });
  }
  let count = 0;

  it('E14 stands below the call that runs them, however many there are', async () => {
    count = 0;
    const { view, recorded } = await watch({
      replies: [toolCall('dispatch'), 'done'],
      tools: [dispatch([[toolCall('echo', { text: 'a' }), 'child one'], ['child two']])],
    });

    const [call] = callsOf(view);
    const agents = turnsOf(call!.live!.agents!);
    expect(agents.map(({ turnId, state }) => [turnId, state]).toSorted()).toStrictEqual([
      ['child_1', 'ended'],
      ['child_2', 'ended'],
    ]);
    const first = agents.find(({ turnId }) => turnId === 'child_1')!;
    expect(stepsOf(first).map(({ items }) => items.map(shortly))).toStrictEqual([['echo({"text":"a"}) finished'], ['child one']]);
    expect(callsOf(turnsView(recorded))[0]).not.toHaveProperty('live');
    expect(turnsOf(view)).toHaveLength(1);
  });

  it('E14 nests as deep as they do', () => {
    const step = { turnId: 'outer', at: 1, step: 1, stepId: 's' };
    const call = { type: 'tool.call', toolCallId: 'call_a', name: 'dispatch', inputText: '{}', index: 0, count: 1 } as const;
    const inner = { ...step, turnId: 'inner', stepId: 'i' };
    const innermost = { ...step, turnId: 'innermost', stepId: 'm' };
    const view = turnsView([
      { type: 'turn.begin', turnId: 'outer', at: 1, version: 1, inputCount: 0 },
      { type: 'step.begin', ...step },
      { ...call, ...step },
      { ...call, ...inner, toolCallId: 'call_b', agentPath: ['call_a'] },
      { type: 'text.delta', ...innermost, attempt: 1, text: 'deep', agentPath: ['call_a', 'call_b'] },
    ]);

    const [outer] = callsOf(view);
    expect(outer!.state).toBe('running');
    const [middle] = callsOf(outer!.live!.agents!);
    expect(middle!.state).toBe('running');
    expect(itemsOf(middle!.live!.agents!)).toStrictEqual([{ type: 'text', text: 'deep', streaming: true }]);
  });

  it('E14 shows what comes through when only tools are forwarded', async () => {
    count = 0;
    const tool = recordingTool({
      name: 'dispatch',
      execute: async (_input, { forward }) => {
        await childTurn([toolCall('echo', { text: 'a' }), 'answer'], (event) => {
          if (event.type.startsWith('tool.') || event.type === 'usage') forward(event);
        });
        return 'ok';
      },
    });
    const { view } = await watch({ replies: [toolCall('dispatch'), 'done'], tools: [tool] });

    expect(callsOf(callsOf(view)[0]!.live!.agents!).map(shortly)).toStrictEqual(['echo({"text":"a"}) finished']);
  });

  it('E14 shows whose decision a suspended sub-agent waits for', async () => {
    const pending = [{ toolCallId: 'inner', name: 'bash', input: {}, step: 1, agentPath: [] }];
    const tool = recordingTool({ name: 'dispatch', execute: () => suspend({ pending, state: null }) });
    const { view } = await watch({ replies: [toolCall('dispatch')], tools: [tool] });

    expect(callsOf(view)).toMatchObject([{ state: 'pending-approval', pending: [{ toolCallId: 'inner', agentPath: ['call_1'] }] }]);
    expect(lastTurn(view).pending).toMatchObject([{ toolCallId: 'inner' }]);
  });

  it('E14 forgets nothing of a turn that nobody answers', async () => {
    const { listener, views } = follow();
    const turn = startScripted({ replies: [hanging()], listener });
    await turn.runtime.flush();

    expect(lastTurn(views.at(-1)!)).toMatchObject({ state: 'running', steps: [], step: { state: 'asking', items: [] } });
    turn.control.abort();
    await turn.finish();
  });
});
