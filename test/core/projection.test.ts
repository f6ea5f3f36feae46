/** Projection: any list of messages becomes a history that every protocol accepts, by the least change, and says how. */
import { describe, expect, it } from 'vitest';
import {
  type AssistantPart,
  assistantMessage,
  createTranscript,
  type FindingKind,
  type Message,
  projectMessages,
  type RecordedEvent,
  toolMessage,
  type UserMessageOrigin,
  userMessage,
} from 'turnloop';
import { echoTool, gatedTool, runScripted, seededRandom, startScripted, thinking, toolCall } from 'turnloop/testing';
import { conversation, secondProcess, throughJson } from './support.ts';

function call(id: string): AssistantPart {
  return { type: 'tool_call', id, name: 'echo', inputText: '{}', input: {} };
}

function asks(id: string, ...content: readonly (AssistantPart | string)[]): Message {
  return assistantMessage(content.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)), { id });
}

function answers(toolCallId: string, content = `result of ${toolCallId}`, id = `r-${toolCallId}`): Message {
  return toolMessage(content, { toolCallId, name: 'echo', id });
}

function says(text: string, id = `u-${text}`): Message {
  return userMessage(text, { id });
}

/** What became of a history, by id, and the kinds of its findings. */
function project(messages: readonly Message[], strict = false): readonly [ids: readonly string[], kinds: readonly FindingKind[]] {
  const projection = projectMessages(messages, { strict });
  return [projection.messages.map((message) => message.id), projection.findings.map((finding) => finding.kind)];
}

const NOT_KNOWN = [
  {
    type: 'text',
    text: 'Error: the tool call failed.\nThe result of this call is not known: it was interrupted before a result was recorded.',
  },
] as const;

describe('projectMessages', () => {
  it('PJ1 returns a well-formed history as it is, by reference', () => {
    const history = [says('a'), asks('m1', call('c1'), call('c2')), answers('c1'), answers('c2'), asks('m2', 'done')];

    const projection = projectMessages(history);

    expect(projection.messages).toBe(history);
    expect(projection.findings).toStrictEqual([]);
  });

  it('PJ2 moves a user message behind the result that it stands before', () => {
    const history = [says('a'), asks('m1', call('c1')), says('b'), answers('c1')];

    expect(project(history)).toStrictEqual([['u-a', 'm1', 'r-c1', 'u-b'], ['result_moved']]);
  });

  it('CX6 repairs a user message injected between call and result', () => {
    const history = [asks('m1', call('c1'), call('c2')), answers('c1'), says('injected'), answers('c2')];

    expect(project(history)).toStrictEqual([['m1', 'r-c1', 'r-c2', 'u-injected'], ['result_moved']]);
  });

  it('PJ3 pulls distant results to their calls, several at once', () => {
    const history = [
      asks('m1', call('c1')),
      says('a'),
      asks('m2', call('c2'), call('c3')),
      says('b'),
      answers('c3'),
      answers('c1'),
      answers('c2'),
    ];

    expect(project(history)).toStrictEqual([
      ['m1', 'r-c1', 'u-a', 'm2', 'r-c2', 'r-c3', 'u-b'],
      ['result_moved', 'result_moved', 'result_moved'],
    ]);
  });

  it('PJ4 gives every call without a result one that says so, in the middle and at the end', () => {
    const history = [asks('m1', call('c1')), says('a'), asks('m2', call('c2'))];

    const { messages, findings } = projectMessages(history);

    expect(messages.map((message) => message.role)).toStrictEqual(['assistant', 'tool', 'user', 'assistant', 'tool']);
    expect([messages[1], messages[4]]).toMatchObject([
      { toolCallId: 'c1', isError: true, content: NOT_KNOWN },
      { toolCallId: 'c2', isError: true, content: NOT_KNOWN },
    ]);
    expect(findings).toStrictEqual([
      { kind: 'result_synthesized', messageId: 'm1', toolCallId: 'c1' },
      { kind: 'result_synthesized', messageId: 'm2', toolCallId: 'c2' },
    ]);
  });

  it('PJ5 drops a result without a call, and moves one that stands before its call', () => {
    const history = [answers('c1'), says('a'), asks('m1', call('c1')), answers('nobody')];

    expect(project(history)).toStrictEqual([['u-a', 'm1', 'r-c1'], ['result_moved', 'orphan_result_dropped']]);
  });

  it('PJ5 drops a second result of one call', () => {
    const history = [asks('m1', call('c1')), answers('c1'), answers('c1', 'again', 'r-again')];

    expect(project(history)).toStrictEqual([['m1', 'r-c1'], ['orphan_result_dropped']]);
  });

  it('PJ6 keeps a compaction summary, and drops an assistant message with nothing in it', () => {
    const summary = userMessage('Summary so far.', { id: 'sum', origin: 'summary' });

    expect(project([summary, asks('empty'), asks('blank', ' '), says('a')])).toStrictEqual([
      ['sum', 'u-a'],
      ['empty_message_dropped', 'empty_message_dropped'],
    ]);
  });

  it('PJ7 reports every repair once, and not the order of adjacent parallel results', () => {
    const reordered = [asks('m1', call('c1'), call('c2')), answers('c2'), answers('c1')];
    const broken = [asks('m2', ' ', call('c3')), says('a'), answers('c3'), answers('lost'), says(' ')];

    expect(project(reordered)).toStrictEqual([['m1', 'r-c1', 'r-c2'], []]);
    expect(projectMessages(broken).findings).toStrictEqual([
      { kind: 'blank_text_dropped', messageId: 'm2' },
      { kind: 'result_moved', messageId: 'r-c3', toolCallId: 'c3' },
      { kind: 'empty_message_dropped', messageId: 'u- ' },
      { kind: 'orphan_result_dropped', messageId: 'r-lost', toolCallId: 'lost' },
    ]);
  });

  it.each<[string, readonly AssistantPart[], boolean]>([
    ['nothing but blank thinking', [thinking(' ')], false],
    ['real thinking', [thinking('hm')], true],
    ['thinking that is signed, though empty', [thinking('', { signature: 's' })], true],
    ['redacted thinking', [thinking('', { redactedData: 'x' })], true],
    ['blank thinking and a call', [thinking(''), call('c1')], true],
  ])('PJ8 for an assistant message of %j', (_what, content, kept) => {
    const history = [says('a'), assistantMessage(content, { id: 'm1' })];

    expect(project(history)[0].includes('m1')).toBe(kept);
  });

  it('CX4 drops blank texts, and gives an empty result its placeholder', () => {
    const history = [
      userMessage([{ type: 'text', text: 'a' }, { type: 'text', text: ' \n' }], { id: 'u1' }),
      asks('m1', '', call('c1')),
      answers('c1', ' '),
    ];

    const { messages } = projectMessages(history);

    expect(messages.map((message) => message.content)).toStrictEqual([
      [{ type: 'text', text: 'a' }],
      [call('c1')],
      [{ type: 'text', text: '(The tool gave no output.)' }],
    ]);
  });

  it('CX9 leaves user messages of different origins separate', () => {
    const origins: readonly UserMessageOrigin[] = ['user', 'reminder', 'memory', 'host', 'user'];
    const history = origins.map((origin, index) => userMessage(origin, { id: `u${index}`, origin }));

    expect(projectMessages(history).messages).toBe(history);
  });
});

describe('projectMessages, strict', () => {
  it('PJ9 drops what stands before the first user message', () => {
    expect(project([asks('m1', 'hello'), says('a'), asks('m2', 'b')], true)).toStrictEqual([
      ['u-a', 'm2'],
      ['leading_message_dropped'],
    ]);
  });

  it('PJ9 merges consecutive assistant messages', () => {
    const { messages, findings } = projectMessages([says('a'), asks('m1', 'one'), asks('m2', 'two')], { strict: true });

    expect(conversation(messages)).toStrictEqual(['user: a', 'assistant: onetwo']);
    expect(findings).toStrictEqual([{ kind: 'assistants_merged', messageId: 'm2' }]);
  });

  it('PJ9 drops a call whose id was used before, with its result', () => {
    const history = [says('a'), asks('m1', call('c1')), answers('c1'), says('b'), asks('m2', 'again', call('c1')), answers('c1', 'two', 'r2')];

    expect(project(history, true)).toStrictEqual([
      ['u-a', 'm1', 'r-c1', 'u-b', 'm2'],
      ['duplicate_call_dropped', 'orphan_result_dropped'],
    ]);
  });

  it('PJ9 gives the later result to the first call if that had none, and drops the emptied message', () => {
    const history = [says('a'), asks('m1', call('c1')), says('b'), asks('m2', call('c1')), answers('c1')];

    expect(project(history, true)).toStrictEqual([
      ['u-a', 'm1', 'r-c1', 'u-b'],
      ['duplicate_call_dropped', 'result_moved'],
    ]);
  });

  it('PJ9 does none of this unless it is asked to', () => {
    const history = [asks('m1', 'hello'), asks('m2', 'two'), says('a')];

    expect(projectMessages(history).messages).toBe(history);
  });
});

describe('random histories', () => {
  it('PJ10 have each call followed by exactly its results, and projecting again changes nothing', () => {
    const random = seededRandom(7);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
    const ids = ['c1', 'c2', 'c3', 'c4'];

    for (let round = 0; round < 3000; round += 1) {
      const history = Array.from({ length: Math.floor(random() * 10) }, (_, index) =>
        pick([
          () => says(pick(['a', ' ', 'b']), `u${index}`),
          () => asks(`m${index}`, pick(['', 'text']), ...ids.filter(() => random() < 0.3).map(call)),
          () => answers(pick(ids), pick(['', 'ok']), `r${index}`),
        ])(),
      );

      for (const strict of [false, true]) {
        const { messages } = projectMessages(history, { strict });

        expect(wrongPairs(messages)).toStrictEqual([]);
        expect(projectMessages(messages, { strict }).messages).toBe(messages);
      }
    }
  });
});

/** Calls that are not followed by their results, and results that follow no call. */
function wrongPairs(messages: readonly Message[]): readonly string[] {
  let open: string[] = [];
  const wrong: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (open.shift() !== message.toolCallId) wrong.push(`result ${message.id}`);
      continue;
    }
    wrong.push(...open.map((id) => `call ${id}`));
    open = message.role === 'assistant' ? message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : [])) : [];
    if (message.content.length === 0) wrong.push(`empty ${message.id}`);
  }
  return [...wrong, ...open.map((id) => `call ${id}`)];
}

describe('the fold of a turn', () => {
  it('CX1 keeps what is for people out of what the model reads', async () => {
    const tool = { ...echoTool(), execute: () => ({ content: 'short', display: { full: 'the whole thing' } }) };

    const { llm } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [tool] });

    const sent = llm.requests[1]!.messages.flatMap((message): readonly object[] => message.content);
    expect(JSON.stringify(sent)).not.toMatch(/the whole thing|display|origin/);
  });

  it('CX2 keeps what a provider attached to its parts and calls', async () => {
    const signature = { thoughtSignature: 'abc' };

    const { llm } = await runScripted({
      replies: [[{ type: 'text', text: 'hm', providerData: signature }, toolCall('echo', {}, { providerData: signature })], 'done'],
      tools: [echoTool()],
    });

    expect(llm.requests[1]!.messages[1]!.content).toMatchObject([{ providerData: signature }, { providerData: signature }]);
  });

  it('CX3 adds status and note only to the history', async () => {
    const tool = { ...echoTool(), execute: () => ({ content: '', isError: true, note: 'try again' }) };

    const { llm, recording } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [tool] });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({
      content: [{ type: 'text', text: '' }],
      isError: true,
      note: 'try again',
    });
    expect(conversation(llm.requests[1]!.messages)[2]).toBe(
      'tool call_1: Error: the tool call failed and gave no output.\ntry again',
    );
  });

  it('CX5 puts a message recorded while calls are open behind their results, also in another process', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate], check: false });
    await turn.runtime.flush();
    const message: RecordedEvent = { type: 'message', message: userMessage('meanwhile', { id: 'm' }), turnId: 'turn_1', at: 0 };

    turn.transcript.record(message);
    const elsewhere = createTranscript(throughJson(turn.transcript.events));
    gate.open();
    const { llm } = await turn.finish();

    const order = ['user: hi', 'assistant: gate() gate()', 'tool call_1: done', 'tool call_2: done', 'user: meanwhile'];
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual(order);
    expect(elsewhere.buildMessages().map((one) => one.role)).toStrictEqual(['user', 'assistant', 'tool', 'tool', 'user']);
    expect(elsewhere.buildMessages().at(-1)).toMatchObject({ id: 'm' });
  });

  it('CX8 keeps the origin of each user message, so that prompts can be told from what was injected', async () => {
    const { recorded } = await runScripted({
      replies: ['not yet', 'done'],
      input: [userMessage('prompt'), userMessage('a note', { origin: 'host' })],
      hooks: [{ name: 'once', shouldContinueAfterStop: (_context, stop) => stop.continuations === 0 }],
    });

    const messages = secondProcess(recorded).transcript.buildMessages();
    expect(messages.map((message) => (message.role === 'user' ? message.origin : message.role))).toStrictEqual([
      'user',
      'host',
      'assistant',
      'reminder',
      'assistant',
    ]);
  });
});
