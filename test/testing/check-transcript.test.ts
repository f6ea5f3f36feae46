// `checkTranscript` is silent about every transcript a correct loop can leave, cut off anywhere, and names the law for
// each fault planted into one.
import { NO_USAGE, userMessage, type RecordedEvent, type ReplyInfo } from 'turnloop';
import { checkTranscript, type CheckTranscriptOptions } from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

type EventOf<Type extends RecordedEvent['type']> = Extract<RecordedEvent, { type: Type }>;

const USAGE = { ...NO_USAGE, inputTokens: 10, outputTokens: 5 };
const REPLY: ReplyInfo = { source: { provider: 'p', modelId: 'm' }, stopReason: 'tool_use' };
const turn = { turnId: 't', at: 1 };
const first = { ...turn, step: 1, stepId: 's1' };
const second = { ...turn, step: 2, stepId: 's2' };
const result = { content: [{ type: 'text', text: 'ok' }] } as const;
const text = { type: 'text', text: 'hm' } as const;

const begin: EventOf<'turn.begin'> = { ...turn, type: 'turn.begin', version: 1, inputCount: 1 };
const input: EventOf<'message'> = { ...turn, type: 'message', message: userMessage('hi', { id: 'm1' }) };
const usageOf = (stepId: string, step: number): EventOf<'usage'> => ({
  ...turn,
  type: 'usage',
  modelId: 'm',
  purpose: 'step',
  step,
  stepId,
  usage: USAGE,
});
const call = (toolCallId: string, index: number): EventOf<'tool.call'> => ({
  ...first,
  type: 'tool.call',
  toolCallId,
  name: 'echo',
  inputText: '{}',
  input: {},
  index,
  count: 3,
});
const start = (toolCallId: string): EventOf<'tool.start'> => ({ ...first, type: 'tool.start', toolCallId });
const finished = (toolCallId: string): EventOf<'tool.finished'> => ({ ...first, type: 'tool.finished', toolCallId, result });
const settled = (toolCallId: string): EventOf<'tool.result'> => ({ ...first, type: 'tool.result', toolCallId, name: 'echo', result });
const stepEnd: EventOf<'step.end'> = { ...first, type: 'step.end', stopReason: 'tool_use', modelId: 'm', usage: USAGE };
const turnEnd: EventOf<'turn.end'> = { ...turn, type: 'turn.end', stopReason: 'end_turn', steps: 2 };
const suspend: EventOf<'turn.suspend'> = { ...turn, type: 'turn.suspend', calls: [{ toolCallId: 'b', pending: [] }] };
const resume: EventOf<'turn.resume'> = { ...turn, type: 'turn.resume', decisions: [] };

const CALLS: readonly RecordedEvent[] = [
  { ...first, type: 'content.part', part: text, index: 0, count: 3, reply: REPLY },
  call('a', 1),
  call('b', 2),
];
const HEAD: readonly RecordedEvent[] = [begin, input, { ...first, type: 'step.begin' }, usageOf('s1', 1), ...CALLS];
const RESULTS: readonly RecordedEvent[] = [start('a'), start('b'), finished('b'), finished('a'), settled('a'), settled('b'), stepEnd];
const LAST: readonly RecordedEvent[] = [
  { ...second, type: 'step.begin' },
  usageOf('s2', 2),
  { ...second, type: 'content.part', part: text, index: 0, count: 1, reply: { ...REPLY, stopReason: 'end_turn' } },
  { ...second, type: 'step.end', stopReason: 'end_turn', modelId: 'm', usage: USAGE },
  turnEnd,
];
const WHOLE = [...HEAD, ...RESULTS, ...LAST];

/** The violations, without where they are. */
function broken(events: readonly RecordedEvent[], options?: CheckTranscriptOptions) {
  return checkTranscript(events, options).map(({ law, message }) => `${law}: ${message}`);
}

/** `WHOLE` with some events replaced: by others, or by nothing. */
function withChange(change: (event: RecordedEvent, index: number) => RecordedEvent | readonly RecordedEvent[]): RecordedEvent[] {
  return WHOLE.flatMap((event, index) => change(event, index));
}

/** `WHOLE` with a member of every event of a type changed. */
function withMember(type: RecordedEvent['type'], change: object): RecordedEvent[] {
  return withChange((event) => (event.type === type ? { ...event, ...change } : event));
}

/** `WHOLE` with an event put in front of another. */
function withInsertion(added: RecordedEvent, before: RecordedEvent): RecordedEvent[] {
  return withChange((event) => (event === before ? [added, event] : event));
}

describe('correct transcripts', () => {
  it('finds nothing in a whole turn', () => {
    const result = { usage: { ...NO_USAGE, inputTokens: 20, outputTokens: 10 }, steps: 2, stopReason: 'end_turn' } as const;

    expect(checkTranscript(WHOLE, { complete: true, result })).toStrictEqual([]);
  });

  it('finds nothing in any beginning of it', () => {
    for (let end = 0; end <= WHOLE.length; end += 1) expect(broken(WHOLE.slice(0, end))).toStrictEqual([]);
  });

  it('finds nothing in several turns', () => {
    const next = { turnId: 't2', at: 9 };
    const events = [...WHOLE, { ...begin, ...next, inputCount: 0 }, { ...turnEnd, ...next, steps: 0 }];

    expect(broken(events, { complete: true })).toStrictEqual([]);
  });

  it('takes a turn that nobody ended for one whose recorder died', () => {
    expect(broken([...HEAD, { ...begin, turnId: 't2', inputCount: 0 }])).toStrictEqual([]);
  });

  it('takes a suspended turn for one that has come to its end', () => {
    const suspended = [...HEAD, start('a'), finished('a'), settled('a'), suspend];

    expect(broken(suspended, { complete: true })).toStrictEqual([]);
  });

  it('lets a resumed call start again, and the turn go on', () => {
    const events = [...HEAD, start('a'), finished('a'), settled('a'), start('b'), suspend, resume];

    expect(broken([...events, start('b'), finished('b'), settled('b'), stepEnd, ...LAST], { complete: true })).toStrictEqual([]);
  });

  it('lets a step whose reply is void be asked again after a resume', () => {
    const again = { ...turn, step: 1, stepId: 's1b' };
    const void1 = HEAD.slice(0, -1);
    const events: RecordedEvent[] = [
      ...void1,
      resume,
      { ...again, type: 'step.begin' },
      { ...again, type: 'content.part', part: text, index: 0, count: 1, reply: REPLY },
      { ...stepEnd, ...again, usage: NO_USAGE },
      { ...turnEnd, steps: 1 },
    ];

    expect(broken(events, { complete: true })).toStrictEqual([]);
  });

  it('lets a reply that failed or was cut off have no step.end', () => {
    const part: RecordedEvent = {
      ...first,
      type: 'content.part',
      part: text,
      index: 0,
      count: 1,
      reply: { source: REPLY.source, interrupted: 'aborted' },
    };
    const cut: RecordedEvent[] = [begin, input, { ...first, type: 'step.begin' }, part, { ...turnEnd, stopReason: 'aborted', steps: 1 }];

    expect(broken(cut, { complete: true })).toStrictEqual([]);
    expect(broken(cut.filter((event) => event !== part), { complete: true })).toStrictEqual([]);
  });

  it('lets a suspended turn be closed without a resume', () => {
    const events = [...HEAD, suspend, finished('a'), settled('a'), finished('b'), settled('b'), stepEnd];

    expect(broken([...events, { ...turnEnd, stopReason: 'aborted', steps: 1 }], { complete: true })).toStrictEqual([]);
  });

  it('lets a turn that was given up lack finishes and the end of its step', () => {
    const events = [...HEAD, start('a'), settled('a'), settled('b'), { ...turnEnd, stopReason: 'aborted', steps: 1 } as const];
    const cut = HEAD.slice(0, -1);

    expect(broken(events, { complete: true })).toStrictEqual([]);
    expect(broken([...cut, { ...turnEnd, stopReason: 'aborted', steps: 1 }], { complete: true })).toStrictEqual([]);
  });

  it('lets a reply that was filtered or cut at the limit have no part', () => {
    for (const stopReason of ['filtered', 'max_tokens'] as const) {
      const end: RecordedEvent = { ...first, type: 'step.end', stopReason, modelId: 'm', usage: USAGE };
      const events = [...HEAD.slice(0, 4), end, { ...turnEnd, stopReason, steps: 1 }];

      expect(broken(events, { complete: true })).toStrictEqual([]);
    }
  });

  it('lets a call that shares a result be ended before it has it', () => {
    const cancelled = { content: [{ type: 'text', text: 'cancelled' }], isError: true } as const;
    const events = withChange((event) => {
      if (event.type === 'tool.call' && event.toolCallId === 'b') return { ...event, sameAs: 'a' };
      if (event.type === 'tool.start' && event.toolCallId === 'b') return [];
      return 'result' in event && event.toolCallId === 'b' ? { ...event, result: cancelled } : event;
    });

    expect(broken(events, { complete: true })).toStrictEqual([]);
  });

  it('ignores an event that it does not know', () => {
    const later = { ...turn, type: 'later.event' } as unknown as RecordedEvent;

    expect(broken(withInsertion(later, stepEnd))).toStrictEqual([]);
  });
});

describe('law 1', () => {
  it.each<[string, RecordedEvent[], string[]]>([
    [
      'a call without a result',
      withChange((event) => (event.type === 'tool.result' && event.toolCallId === 'b' ? [] : event)),
      ['1: call b of "echo" has no tool.result'],
    ],
    [
      'a turn that ends with calls open',
      [...HEAD, { ...turnEnd, steps: 1 }],
      [
        '1: call a of "echo" has no tool.result',
        '1: call b of "echo" has no tool.result',
        '3: turn.end comes without the step.end of step 1',
      ],
    ],
    ['a second result', withInsertion(settled('a'), stepEnd), ['1: call a has a second tool.result']],
    [
      'a result of no call',
      withInsertion(settled('x'), stepEnd),
      ['1: tool.result of x belongs to no call of step 1'],
    ],
    [
      'a result shared with a call that is not earlier',
      withChange((event) => (event.type === 'tool.call' && event.toolCallId === 'a' ? { ...event, sameAs: 'b' } : event)),
      ['1: call a shares the result of b, which is no earlier call of the step'],
    ],
    [
      'a shared result that is another',
      [
        ...HEAD.slice(0, -1),
        { ...call('b', 2), sameAs: 'a' },
        finished('a'),
        { ...finished('b'), result: { content: [] } },
        settled('a'),
        { ...settled('b'), result: { content: [] } },
        stepEnd,
      ],
      ['1: call b shares the result of a, and has another'],
    ],
    [
      'an id of a call given twice',
      [
        ...WHOLE,
        { ...begin, turnId: 't2', inputCount: 0 },
        { ...first, turnId: 't2', stepId: 's3', type: 'step.begin' },
        ...CALLS.map((event) => ({ ...event, turnId: 't2', stepId: 's3' })),
      ],
      [
        '1: two of the record\'s ids are "a": that of a call is not new',
        '1: two of the record\'s ids are "b": that of a call is not new',
      ],
    ],
  ])('sees %s', (_name, events, expected) => {
    expect(broken(events)).toStrictEqual(expected);
  });
});

describe('law 2', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;

  it.each<[string, RecordedEvent[], string[]]>([
    ['another version', withMember('turn.begin', { version: 2 }), ['2: turn t has version 2, not 1']],
    ['undefined', withMember('turn.end', { stoppedBy: undefined }), ['2: not plain JSON: turn.end.stoppedBy is undefined']],
    ['a function', withMember('turn.end', { metadata: { f: () => 1 } }), ['2: not plain JSON: turn.end.metadata.f is a function']],
    ['a cycle', withMember('turn.end', { metadata: cycle }), ['2: not plain JSON: turn.end.metadata.self is a cycle']],
    ['a number that is none', withMember('turn.end', { at: NaN }), ['2: not plain JSON: turn.end.at is NaN']],
    ['an object of a class', withMember('turn.end', { error: new Error('x') }), ['2: not plain JSON: turn.end.error is an object of class Error']],
    ['something in a list', withMember('turn.end', { metadata: { l: [1, 2n] } }), ['2: not plain JSON: turn.end.metadata.l.1 is a bigint']],
    [
      'a message without an id',
      withMember('message', { message: userMessage('hi') }),
      ['2: a message has no id'],
    ],
    [
      'an id that a message and a step share',
      withMember('message', { message: userMessage('hi', { id: 's1' }) }),
      ['2: two of the record\'s ids are "s1": that of a step is not new'],
    ],
  ])('sees %s', (_name, events, expected) => {
    expect(broken(events)).toStrictEqual(expected);
  });
});

describe('law 3', () => {
  it.each<[string, readonly RecordedEvent[], string[]]>([
    ['an event before the turn', [input, begin], ['3: message comes before any turn.begin']],
    ['an event of another turn', withMember('turn.end', { turnId: 'x' }), ['3: turn.end belongs to turn x, within turn t']],
    ['an event after the end', [...WHOLE, { ...input, message: userMessage('late', { id: 'm2' }) }], ['3: message comes after the turn.end of turn t']],
    ['a second end', [...WHOLE, turnEnd], ['3: turn.end comes after the turn.end of turn t']],
    ['a turn begun twice', [begin, begin], ['3: two of the record\'s ids are "t": that of a turn is not new']],
    ['a step before the input', withChange((event) => (event === input ? [] : event)), ['3: step 1 begins with 1 messages of the input missing']],
    ['a number that is left out', [begin, input, { ...second, type: 'step.begin' }], ['3: step 2 begins where step 1 was due']],
    [
      'a step within a step',
      [...HEAD, { ...second, type: 'step.begin' }],
      ['3: step 2 begins while step 1 is open'],
    ],
    [
      'a message within a step',
      withInsertion({ ...input, message: userMessage('x', { id: 'm2' }) }, stepEnd),
      ['3: message m2 comes within step 1'],
    ],
    [
      'an event of a step that is not the one that runs',
      withInsertion({ ...start('a'), stepId: 's9' }, stepEnd),
      ['3: tool.start belongs to step 1 (s9), which is not the step that runs'],
    ],
    [
      'parts out of order',
      [...HEAD.slice(0, 5), call('b', 2), call('a', 1)],
      ['3: tool.call 2 of step 1 stands where part 1 was due', '3: tool.call 1 of step 1 stands where part 2 was due'],
    ],
    [
      'parts that count differently',
      [...HEAD.slice(0, 5), { ...call('a', 1), count: 2 }],
      ['3: tool.call 1 of step 1 counts 2 parts, the parts before it 3'],
    ],
    [
      'a part beyond the count',
      [...HEAD, call('c', 3)],
      ['3: tool.call 3 of step 1 is beyond its own count of 3'],
    ],
    [
      'a part after a tool began',
      [...HEAD.slice(0, -1), start('a'), call('b', 2)],
      ['3: tool.start of a comes before all parts of the reply: 2 of 3', '3: tool.call 2 of step 1 comes after a tool of the step'],
    ],
    [
      'a result that did not finish',
      withChange((event) => (event.type === 'tool.finished' && event.toolCallId === 'a' ? [] : event)),
      ['3: call a has a tool.result without a tool.finished before it'],
    ],
    [
      'a finish after its result',
      [...HEAD, settled('a'), finished('a')],
      ['3: call a finishes after its tool.result'],
    ],
    [
      'results out of order',
      [...HEAD, finished('a'), finished('b'), settled('b'), settled('a'), stepEnd],
      ['3: the tool.result of b stands where that of a was due'],
    ],
    [
      'a result that names another tool',
      withChange((event) => (event.type === 'tool.result' && event.toolCallId === 'a' ? { ...event, name: 'x' } : event)),
      ['3: the tool.result of a names "x", its call "echo"'],
    ],
    [
      'a tool after the end of its step',
      [...HEAD, ...RESULTS, start('a')],
      ['3: tool.start of a comes after the step.end of step 1', '9: call a starts after it finished'],
    ],
    [
      'a part after the end of its step',
      withInsertion({ ...second, type: 'content.part', part: text, index: 1, count: 1 }, turnEnd),
      ['3: content.part 1 of step 2 is beyond its own count of 1', '3: content.part 1 of step 2 comes after its step.end'],
    ],
    [
      'a step that ends without a part',
      withChange((event) => (event.type === 'content.part' && event.step === 2 ? [] : event)),
      ['3: step 2 ends "end_turn" without a part of its reply'],
    ],
    [
      'a step that ends for another reason than its reply',
      withChange((event) => (event === stepEnd ? { ...stepEnd, stopReason: 'end_turn' } : event)),
      ['3: step 1 ends "end_turn", its reply "tool_use"'],
    ],
    ['a second end of a step', [...HEAD, ...RESULTS, stepEnd], ['3: step 1 has a second step.end']],
    [
      'a step that ends with parts missing',
      [...HEAD.slice(0, 5), stepEnd],
      ['3: step 1 ends with 1 of its 3 parts'],
    ],
    [
      'a turn that ends with a reply half recorded',
      [...HEAD.slice(0, 5), { ...turnEnd, steps: 1 }],
      ['3: turn.end comes with 1 parts of the reply of step 1, which are not all'],
    ],
    ['a wrong count of steps', withMember('turn.end', { steps: 3 }), ['3: turn.end counts 3 steps, the record 2']],
    ['a suspension without a step', [begin, input, suspend], ['3: turn.suspend comes without a step']],
    ['a suspension after the step', [...HEAD, ...RESULTS, suspend], ['3: turn.suspend comes after the step.end of step 1', '3: turn.suspend names b, which has finished', '3: call b has a tool.result though it stands behind a suspended call']],
    ['a suspension of nothing', [...HEAD, { ...suspend, calls: [] }], ['3: turn.suspend names no call']],
    [
      'a suspension of no call of the step',
      [...HEAD, { ...suspend, calls: [{ toolCallId: 'x', pending: [] }] }],
      ['3: turn.suspend names x, which is no call of step 1'],
    ],
    [
      'a result behind a suspended call',
      [...HEAD, finished('b'), settled('b'), { ...suspend, calls: [{ toolCallId: 'a', pending: [] }] }],
      [
        '3: the tool.result of b stands where that of a was due',
        '3: call b has a tool.result though it stands behind a suspended call',
      ],
    ],
    ['something while the turn is suspended', [...HEAD, suspend, start('a')], ['3: tool.start comes while turn t is suspended']],
  ])('sees %s', (_name, events, expected) => {
    expect(broken(events)).toStrictEqual(expected);
  });

  it('misses the end of a turn only where it must be complete', () => {
    const cut = WHOLE.slice(0, -1);

    expect(broken(cut, { complete: true })).toStrictEqual(['3: turn t has no turn.end']);
    expect(broken([...cut, { ...begin, turnId: 't2', inputCount: 0 }], { complete: true })).toStrictEqual([
      '3: turn t has no turn.end',
      '3: turn t2 has no turn.end',
    ]);
  });

  it('compares the end with the result', () => {
    const result = { usage: { ...NO_USAGE, inputTokens: 20, outputTokens: 10 }, steps: 1, stopReason: 'aborted' } as const;

    expect(broken(WHOLE, { result })).toStrictEqual([
      '3: the record ends "end_turn", the result says "aborted"',
      '3: the record has 2 steps, the result says 1',
    ]);
  });
});

describe('law 5', () => {
  it.each<[string, RecordedEvent[], string[]]>([
    [
      'a negative counter',
      [begin, { ...usageOf('s', 1), purpose: 'other', usage: { ...USAGE, inputTokens: -1 } }],
      ['5: usage counter inputTokens is -1'],
    ],
    [
      'tokens of another step',
      withInsertion(usageOf('s9', 9), stepEnd),
      ['5: the tokens of a reply belong to no open step: 9 (s9)'],
    ],
    [
      'tokens that name their step by another number',
      [begin, input, { ...first, type: 'step.begin' }, usageOf('s1', 2)],
      ['5: the tokens of a reply belong to no open step: 2 (s1)'],
    ],
    [
      'tokens after the parts, twice',
      withInsertion(usageOf('s1', 1), stepEnd),
      ['5: the tokens of step 1 are recorded twice', '5: the tokens of step 1 are recorded only after its parts'],
    ],
    [
      'other tokens at the end of the step',
      withChange((event) => (event === stepEnd ? { ...stepEnd, usage: NO_USAGE } : event)),
      ['5: the step.end of step 1 has other tokens than the usage event of its reply'],
    ],
  ])('sees %s', (_name, events, expected) => {
    expect(broken(events)).toStrictEqual(expected);
  });

  it('compares the sum with the result', () => {
    const result = { usage: USAGE, steps: 2, stopReason: 'end_turn' } as const;

    expect(broken(WHOLE, { result })[0]).toMatch(/^5: the usage events add up to {"inputTokens":20,.*the result says {"inputTokens":10/);
    expect(broken(WHOLE.slice(0, -1), { result })).toStrictEqual([]);
  });
});

describe('law 9', () => {
  it.each<[string, readonly RecordedEvent[], string[]]>([
    ['a call that starts twice', [...HEAD, start('a'), start('a')], ['9: call a starts twice']],
    ['a call that starts after it finished', [...HEAD, finished('a'), resume, start('a')], ['9: call a starts after it finished']],
    ['a call that finishes twice', [...HEAD, finished('a'), finished('a')], ['9: call a finishes twice']],
    [
      'a result that is not what the call finished with',
      [...HEAD, finished('a'), { ...settled('a'), result: { content: [] } }],
      ['9: the tool.result of a is not what it finished with'],
    ],
    [
      'a reply that does not say what a resume needs',
      withChange((event) => (event === CALLS[0] ? { ...first, type: 'content.part', part: text, index: 0, count: 3 } : event)),
      ['9: content.part 0 of step 1 does not say what a resume needs to know of the reply'],
    ],
  ])('sees %s', (_name, events, expected) => {
    expect(broken(events)).toStrictEqual(expected);
  });
});

it('says where the fault shows', () => {
  expect(checkTranscript(withInsertion(settled('a'), stepEnd))).toStrictEqual([
    { law: 1, message: 'call a has a second tool.result', index: 13 },
  ]);
});

it.each([undefined, 5, [null], ['turn.begin']])('refuses %j, which is no list of events', (events) => {
  expect(() => checkTranscript(events as never)).toThrow(/checkTranscript takes a list of events\. For example/);
});
