/**
 * The views on recorded events: what people read on a terminal, what programs read with `--json`, and that nothing a
 * model or a tool wrote reaches the terminal as a command.
 */
import { NO_USAGE, type LoopEvent, type RecordedToolResult } from 'turnloop';
import { describe, expect, it } from 'vitest';
import { createJsonView } from './json-view.ts';
import { toPrintable, toPrintableLine } from './printable.ts';
import { createTerminalView, type TerminalViewOptions } from './view.ts';

const ANSWER = { turnId: 't', step: 1, stepId: 's' };

function at(time: number): { turnId: string; step: number; stepId: string; at: number } {
  return { ...ANSWER, at: 1_000 + time };
}

function text(content: string): RecordedToolResult {
  return { content: [{ type: 'text', text: content }] };
}

/** A turn with everything in it: a retry, two parallel reads, an edit, a command, a failure. */
const TURN: readonly LoopEvent[] = [
  { type: 'turn.begin', turnId: 't', at: 1_000, version: 1, inputCount: 1 },
  { type: 'message', turnId: 't', at: 1_000, message: { role: 'user', id: 'm', origin: 'user', content: [{ type: 'text', text: 'do it' }] } },
  { type: 'step.begin', ...at(0) },
  { type: 'text.delta', ...at(5), attempt: 1, text: 'I wi' },
  { type: 'step.retrying', ...at(6), attempt: 1, modelId: 'm', error: { name: 'LLMError', kind: 'overloaded', message: 'The server is overloaded.' }, delayMs: 1_500 },
  { type: 'thinking.delta', ...at(10), attempt: 2, text: 'Reading first.' },
  { type: 'text.delta', ...at(11), attempt: 2, text: 'I read ' },
  { type: 'text.delta', ...at(12), attempt: 2, text: 'both.' },
  { type: 'usage', ...at(12), modelId: 'm', purpose: 'step', usage: { ...NO_USAGE, inputTokens: 100, outputTokens: 20 } },
  { type: 'content.part', ...at(13), index: 0, count: 3, part: { type: 'text', text: 'I read both.' } },
  { type: 'tool.call', ...at(13), index: 1, count: 3, toolCallId: 'a', name: 'read_file', inputText: '{"path":"a.txt"}', description: 'read a.txt' },
  { type: 'tool.call', ...at(13), index: 2, count: 3, toolCallId: 'b', name: 'read_file', inputText: '{"path":"b.txt"}' },
  { type: 'tool.finished', ...at(20), toolCallId: 'b', result: { ...text('Error: no such file: b.txt'), isError: true } },
  { type: 'tool.finished', ...at(25), toolCallId: 'a', result: text('one\ntwo\nthree\n') },
  { type: 'tool.result', ...at(25), toolCallId: 'a', name: 'read_file', result: text('one\ntwo\nthree\n') },
  { type: 'tool.result', ...at(25), toolCallId: 'b', name: 'read_file', result: { ...text('Error: no such file: b.txt'), isError: true } },
  { type: 'step.end', ...at(25), stopReason: 'tool_use', modelId: 'm', usage: NO_USAGE },
  { type: 'step.begin', ...at(30) },
  { type: 'usage', ...at(31), modelId: 'm', purpose: 'step', usage: { ...NO_USAGE, inputTokens: 10, cacheReadTokens: 120, outputTokens: 5 } },
  { type: 'tool.call', ...at(32), index: 0, count: 2, toolCallId: 'c', name: 'edit_file', inputText: '{}', description: 'edit a.txt' },
  { type: 'tool.call', ...at(32), index: 1, count: 2, toolCallId: 'd', name: 'run_command', inputText: '{}', description: 'run npm test' },
  { type: 'tool.start', ...at(33), toolCallId: 'c' },
  { type: 'tool.finished', ...at(35), toolCallId: 'c', result: { ...text('Edited a.txt'), display: '- one\n+ 1' } },
  { type: 'tool.start', ...at(1_035), toolCallId: 'd' },
  { type: 'tool.progress', ...at(1_100), toolCallId: 'd', update: { kind: 'stdout', text: 'first\nsec' } },
  { type: 'tool.progress', ...at(1_200), toolCallId: 'd', update: { kind: 'stderr', text: 'ond\nlast' } },
  { type: 'tool.finished', ...at(3_035), toolCallId: 'd', result: text('first\nsecond\nlast') },
  { type: 'step.begin', ...at(3_040) },
  { type: 'notice', turnId: 't', at: 4_040, name: 'hook.failed', data: { hook: 'h' } },
  { type: 'content.part', ...at(3_050), index: 0, count: 1, part: { type: 'text', text: 'Done.' } },
  { type: 'turn.end', turnId: 't', at: 4_100, stopReason: 'end_turn', steps: 3 },
];

function show(events: readonly LoopEvent[], options: Omit<TerminalViewOptions, 'write'> = {}): string {
  let screen = '';
  const view = createTerminalView({ ...options, write: (piece) => (screen += piece) });
  events.forEach(view);
  return screen;
}

describe('createTerminalView', () => {
  it('tells a turn line by line', () => {
    expect(show(TURN)).toBe(`> do it
I wi
↻ The text above is void. Trying again in 1.5 s: The server is overloaded.
Reading first.
I read both.
→ read a.txt
→ read_file {"path":"b.txt"}
✗ read_file {"path":"b.txt"} · Error: no such file: b.txt · 7 ms
✓ read a.txt · one · + 2 lines · 12 ms
→ edit a.txt
→ run npm test
  │ - one
  │ + 1
✓ edit a.txt · Edited a.txt · 2 ms
  │ first
  │ second
  │ last
✓ run npm test · first · + 2 lines · 2.0 s
! hook.failed {"hook":"h"}
Done.
end_turn · 3 steps · 230 tokens in (120 cached), 25 out · 3.1 s

`);
  });

  it('says why a turn ended otherwise', () => {
    const screen = show([
      { type: 'turn.begin', turnId: 't', at: 0, version: 1, inputCount: 0 },
      { type: 'turn.end', turnId: 't', at: 7, stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 1 },
      { type: 'turn.begin', turnId: 't', at: 0, version: 1, inputCount: 0 },
      { type: 'turn.end', turnId: 't', at: 7, stopReason: 'fatal_error', steps: 0, error: { name: 'LLMError', kind: 'auth', message: 'Wrong key.' } },
    ]);

    expect(screen).toBe(`max_steps by maxSteps · 1 step · 0 tokens in, 0 out · 7 ms

✗ auth: Wrong key.
fatal_error · 0 steps · 0 tokens in, 0 out · 7 ms

`);
  });

  it('leaves out what the person typed, and shows calls that never ran', () => {
    const screen = show(
      [
        ...TURN.slice(0, 3),
        { type: 'tool.call', ...at(13), index: 0, count: 1, toolCallId: 'a', name: 'read_file', inputText: '{', description: 'read a.txt' },
        { type: 'tool.result', ...at(14), toolCallId: 'a', name: 'read_file', result: { ...text('The call was not executed.'), isError: true } },
      ],
      { showInput: false },
    );

    expect(screen).toBe('→ read a.txt\n✗ read a.txt · The call was not executed. · 1 ms\n');
  });

  it('shows the calls of a sub-agent below the one that runs it, and counts what was spent once', () => {
    const agentPath = ['a'];
    const usage = { ...NO_USAGE, inputTokens: 5, outputTokens: 1 };
    const screen = show([
      { type: 'turn.begin', turnId: 't', at: 1_000, version: 1, inputCount: 0 },
      { type: 'tool.call', ...at(0), index: 0, count: 1, toolCallId: 'a', name: 'dispatch_agent', inputText: '{}', description: 'look around' },
      { type: 'turn.begin', turnId: 'u', at: 1_001, version: 1, inputCount: 1, agentPath },
      { type: 'message', turnId: 'u', at: 1_001, message: { role: 'user', id: 'm', origin: 'user', content: [{ type: 'text', text: 'Look around.' }] }, agentPath },
      { type: 'usage', ...at(2), turnId: 'u', modelId: 'm', purpose: 'step', usage, agentPath },
      { type: 'usage', ...at(2), modelId: 'm', purpose: 'child', usage },
      { type: 'tool.call', ...at(2), turnId: 'u', index: 0, count: 1, toolCallId: 'b', name: 'read_file', inputText: '{}', description: 'read a.txt', agentPath },
      { type: 'tool.finished', ...at(3), turnId: 'u', toolCallId: 'b', result: { ...text('one'), display: '1 line' }, agentPath },
      { type: 'text.delta', ...at(4), turnId: 'u', attempt: 1, text: 'It says one.', agentPath },
      { type: 'turn.end', turnId: 'u', at: 1_005, stopReason: 'end_turn', steps: 2, agentPath },
      { type: 'tool.finished', ...at(6), toolCallId: 'a', result: text('It says one.') },
      { type: 'turn.end', turnId: 't', at: 1_007, stopReason: 'end_turn', steps: 1 },
    ]);

    expect(screen).toBe(`→ look around
  → read a.txt
    │ 1 line
  ✓ read a.txt · one · 1 ms
✓ look around · It says one. · 6 ms
end_turn · 1 step · 5 tokens in, 1 out · 7 ms

`);
  });

  it('counts the time of a turn that is gone on with from then on', () => {
    expect(
      show([
        { type: 'turn.resume', turnId: 't', at: 9_000, decisions: [] },
        { type: 'turn.end', turnId: 't', at: 9_004, stopReason: 'end_turn', steps: 2 },
      ]),
    ).toBe('end_turn · 2 steps · 0 tokens in, 0 out · 4 ms\n\n');
  });

  it('shows the beginning of a long output and counts the rest', () => {
    const lines = Array.from({ length: 35 }, (_, index) => `line ${index}\n`).join('');
    const screen = show([
      { type: 'tool.call', ...at(0), index: 0, count: 1, toolCallId: 'a', name: 'run_command', inputText: '{}', description: 'run it' },
      { type: 'tool.progress', ...at(1), toolCallId: 'a', update: { kind: 'stdout', text: lines } },
      { type: 'tool.finished', ...at(2), toolCallId: 'a', result: text('ok') },
    ]);

    expect(screen.split('\n').slice(28)).toStrictEqual(['  │ line 27', '  │ line 28', '  │ line 29', '  │ … 5 more lines', '✓ run it · ok · 2 ms', '']);
  });

  it('cuts to the width of the terminal and colours only when asked', () => {
    const call: LoopEvent = { type: 'tool.call', ...at(0), index: 0, count: 1, toolCallId: 'a', name: 'n', inputText: '', description: 'x'.repeat(50) };

    expect(show([call], { width: 20 })).toBe(`→ ${'x'.repeat(17)}…\n`);
    expect(show([call], { width: 20, colors: true })).toBe(`\u001b[36m→\u001b[0m ${'x'.repeat(17)}…\n`);
  });

  it('lets nothing through that commands a terminal', () => {
    const evil = 'a\u001b]0;title\u0007\u001b[2Jb\rc\u0008\u009b31m\u202ed';
    const screen = show([
      { type: 'message', turnId: 't', at: 0, message: { role: 'user', id: 'm', origin: 'user', content: [{ type: 'text', text: evil }] } },
      { type: 'text.delta', ...at(0), attempt: 1, text: evil },
      { type: 'text.delta', ...at(0), attempt: 1, text: '\u001b' },
      { type: 'text.delta', ...at(0), attempt: 1, text: '[31mred' },
      { type: 'thinking.delta', ...at(0), attempt: 1, text: evil },
      { type: 'tool.call', ...at(0), index: 0, count: 2, toolCallId: 'a', name: evil, inputText: evil },
      { type: 'tool.call', ...at(0), index: 1, count: 2, toolCallId: 'b', name: 'n', inputText: '', description: evil },
      { type: 'tool.progress', ...at(0), toolCallId: 'a', update: { kind: 'stdout', text: `${evil}\n` } },
      { type: 'tool.progress', ...at(0), toolCallId: 'a', update: { kind: 'status', text: evil } },
      { type: 'tool.finished', ...at(0), toolCallId: 'b', result: { ...text(evil), display: evil } },
      { type: 'tool.finished', ...at(0), toolCallId: 'a', result: text(evil) },
      { type: 'notice', turnId: 't', at: 0, name: evil, data: evil },
      { type: 'turn.end', turnId: 't', at: 0, stopReason: 'fatal_error', stoppedBy: evil, steps: 1, error: { name: 'E', kind: evil, message: evil } },
    ]);

     
    expect(screen).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(screen).toContain('␛[31mred');
  });
});

describe('toPrintable', () => {
  it.each([
    ['a\r\nb\rc', 'a\nb\nc'],
    ['\u001b[1mbold\u001b[0m', 'bold'],
    ['\u001b]8;;http://x\u0007link\u001b]8;;\u0007', 'link'],
    ['tab\tbell\u0007 null\u0000 delete\u007f c1\u0085', 'tab\tbell␇ null␀ delete␡ c1\ufffd'],
    ['grüße 漢字 👩‍👩‍👧', 'grüße 漢字 👩‍👩‍👧'],
  ])('makes %j harmless', (given, wanted) => {
    expect(toPrintable(given)).toBe(wanted);
  });

  it('makes one line of several, of whole characters', () => {
    expect(toPrintableLine(' a\n  b\tc ', 10)).toBe('a b c');
    expect(toPrintableLine('😀😀😀', 2)).toBe('😀…');
  });
});

describe('createJsonView', () => {
  it('writes one line an event, whatever the text holds', () => {
    let output = '';
    const event: LoopEvent = { type: 'text.delta', ...at(0), attempt: 1, text: 'a\nb\u2028c\u0085d\u001b[0m' };

    createJsonView((piece) => (output += piece))(event);

    // Every kind of line end that any reader of lines knows.
    expect(output.split(/\r\n|[\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]/)).toStrictEqual([output.trimEnd(), '']);
    expect(JSON.parse(output)).toStrictEqual(event);
  });
});
