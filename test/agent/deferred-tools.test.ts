/** Deferred tools in full turns: what the model sees, what is recorded, and what becomes of calls that will not do. */
import { describe, expect, it } from 'vitest';
import { type AnyTool, decorateLLM, type Hook, type LLMRequest, type Message, type Tool, ToolAccesses } from 'turnloop';
import { deferTools } from 'turnloop/agent';
import { approval, withRetry } from 'turnloop/policies';
import { cutStream, echoTool, recordingTool, runScripted, type RunScriptedOptions, type TestTool, toolCall } from 'turnloop/testing';
import { crash, resultLines, resultTexts, resumeFrom, secondProcess } from '../core/support.ts';

function mail(options: Partial<Parameters<typeof recordingTool>[0]> = {}): TestTool {
  return recordingTool({
    name: 'send_mail',
    description: 'Sends a mail to somebody.',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
    execute: ({ to }) => `sent to ${String(to)}`,
    ...options,
  });
}

const call = (name: string, input?: unknown): ReturnType<typeof toolCall> => toolCall('call_tool', JSON.stringify({ name, input }));

/** Runs a turn with deferred tools. */
function run(deferred: readonly AnyTool[], options: RunScriptedOptions) {
  const set = deferTools(deferred);
  return runScripted({ ...options, tools: [echoTool(), ...set.tools], decorate: (llm) => set.wrap(llm) });
}

const namesOf = ({ tools }: LLMRequest): readonly string[] => tools.map(({ name }) => name);

/** A message as a provider gets it. */
const wire = (messages: readonly Message[]): string => JSON.stringify(messages);

describe('deferred tools', () => {
  it('E18 are not in the requests, whose list of tools never changes', async () => {
    const { llm, result } = await run([mail(), recordingTool({ name: 'other' })], {
      replies: [toolCall('search_tools', { query: 'mail' }), call('send_mail', { to: 'ann' }), 'done'],
    });

    expect(result.stopReason).toBe('end_turn');
    expect(llm.requests.map(namesOf)).toStrictEqual(Array.from({ length: 3 }, () => ['echo', 'search_tools', 'call_tool']));
    expect(llm.requests[1]!.tools).toBe(llm.requests[0]!.tools);
  });

  it('E18 are recorded, authorised and run as what they are', async () => {
    const tool = mail({ describe: ({ to }) => `Mail ${String(to)}` });
    const seen: string[] = [];
    const watch: Hook = {
      name: 'watch',
      prepareToolCall: (_context, { name, input }) => void seen.push(`prepare ${name} ${JSON.stringify(input)}`),
      authorizeToolCall: (_context, { name, description }) => void seen.push(`authorize ${name}: ${description ?? ''}`),
    };
    const { recording, transcript } = await run([tool], { replies: [call('send_mail', { to: 'ann' }), 'done'], hooks: [watch] });

    expect(seen).toStrictEqual(['prepare send_mail {"to":"ann"}', 'authorize send_mail: Mail ann']);
    expect(tool.inputs).toStrictEqual([{ to: 'ann' }]);
    expect(recording.of('tool.call')).toMatchObject([{ name: 'send_mail', inputText: '{"to":"ann"}', input: { to: 'ann' }, description: 'Mail ann' }]);
    expect(recording.of('tool.start')).toHaveLength(1);
    expect(recording.of('tool.result')).toMatchObject([{ name: 'send_mail' }]);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('E18 keep all they say of themselves, with objects of a class too', async () => {
    class Counter implements Tool<{ readonly by: number }> {
      readonly name = 'count';
      readonly description = 'Counts.';
      readonly inputSchema = { type: 'object', properties: { by: { type: 'integer' } } };
      readonly replay = 'idempotent';
      readonly timeoutMs = 50;
      #sum = 0;
      parseInput(input: unknown): { readonly by: number } {
        return { by: (input as { by: number }).by + this.#sum };
      }
      accesses(): ReturnType<typeof ToolAccesses.write> {
        return ToolAccesses.write(`sum:${this.#sum}`);
      }
      describe(): string {
        return `Count from ${this.#sum}`;
      }
      execute({ by }: { readonly by: number }): string {
        this.#sum += by;
        return String(this.#sum);
      }
    }
    const tool: AnyTool = new Counter();
    const [deferred] = deferTools([tool]).tools.slice(2);
    expect(deferred).toMatchObject({ name: 'count', replay: 'idempotent', timeoutMs: 50, deferred: true });
    expect(deferred).not.toHaveProperty('readOnly');

    const { recorded } = await run([tool], { replies: [call('count', { by: 2 }), call('count', { by: 1 }), 'done'] });
    expect(resultTexts(recorded)).toStrictEqual(['2', '5']);
  });

  it('E18 go back to the model as the calls that it made, with their results', async () => {
    const { llm } = await run([mail()], {
      replies: [[toolCall('echo', { text: 'a' }), toolCall('call_tool', '{"name":"send_mail","input":{"to":"ann"}}', { providerId: 'fc_1' })], 'done'],
    });

    const [, reply, other, result] = llm.requests[1]!.messages;
    expect(reply!.content).toMatchObject([
      { type: 'tool_call', id: 'call_1', name: 'echo' },
      { type: 'tool_call', id: 'call_2', name: 'call_tool', inputText: '{"name":"send_mail","input":{"to":"ann"}}', input: { name: 'send_mail', input: { to: 'ann' } }, providerId: 'fc_1' },
    ]);
    expect(result).toMatchObject({ role: 'tool', toolCallId: 'call_2', name: 'call_tool', content: [{ text: 'sent to ann' }] });
    expect(other).toMatchObject({ name: 'echo' });
  });

  it('E18 law-11 leave the beginning of each request as it was, byte for byte and object for object', async () => {
    const { llm, transcript } = await run([mail()], {
      replies: [toolCall('search_tools', { query: 'mail' }), call('send_mail', { to: 'ann' }), call('nobody'), call('send_mail', { to: 'bob' }), 'done'],
    });

    for (const [index, { messages }] of llm.requests.entries()) {
      const before = llm.requests[index - 1]?.messages ?? [];
      for (const [at, message] of before.entries()) expect(messages[at]).toBe(message);
    }
    // Another process that reads the record sends the same.
    const again = await run([mail()], { ...secondProcess(transcript.events), replies: ['again'], input: 'more' });
    const sent = llm.requests.at(-1)!.messages;
    expect(wire(again.llm.requests[0]!.messages.slice(0, sent.length))).toBe(wire(sent));
  });

  it('E18 leave a request alone that has nothing to do with them', async () => {
    const set = deferTools([mail()]);
    const seen: LLMRequest[] = [];
    const { llm } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'done'],
      tools: [echoTool(), ...set.tools],
      decorate: (inner) => {
        const wrapped = set.wrap(inner);
        return decorateLLM(wrapped, (request) => {
          seen.push(request);
          return wrapped.chat(request);
        });
      },
    });

    const [, { messages }] = llm.requests as readonly [LLMRequest, LLMRequest];
    expect(messages).toHaveLength(3);
    for (const [index, message] of messages.entries()) expect(message).toBe(seen[1]!.messages[index]);
  });

  it('E18 stream in one piece, under the name and with the arguments that are recorded', async () => {
    const { recording } = await run([mail()], {
      replies: [{ content: ['Hm. ', toolCall('call_tool', '{ "name": "send_mail", "input": { "to": "ann" } }', { providerId: 'p' }), toolCall('echo', { text: 'a' })], chunk: 8 }, 'done'],
    });

    const deltas = recording.of('tool.call.delta').map(({ toolCallId, name, inputText }) => [toolCallId, name, inputText]);
    const calls = recording.of('tool.call').map(({ toolCallId, name, inputText }) => ({ toolCallId, name, inputText }));
    expect(calls.map(({ name }) => name)).toStrictEqual(['send_mail', 'echo']);
    for (const { toolCallId, name, inputText } of calls) {
      const own = deltas.filter(([id]) => id === toolCallId);
      expect(own[0]![1]).toBe(name);
      expect(own.map(([, , text]) => text).join('')).toBe(inputText);
    }
  });

  it('E18 hold back nothing of an attempt that failed', async () => {
    const set = deferTools([mail()]);
    const { recording, result } = await runScripted({
      replies: [cutStream([call('send_mail', { to: 'ann' })], { deltaCount: 1 }), { content: [toolCall('echo', '{"text":"a"}')], chunk: 8 }, 'done'],
      tools: [echoTool(), ...set.tools],
      decorate: (llm) => set.wrap(withRetry(llm)),
    });

    expect(result.stopReason).toBe('end_turn');
    expect(recording.of('tool.call.delta').map(({ name, inputText }) => [name, inputText])).toStrictEqual([
      ['echo', '{"text":'],
      [undefined, '"a"}'],
    ]);
  });

  it('E18 can be chosen by name: the model is made to call the one tool', async () => {
    const choose: Hook = { name: 'choose', beforeStep: ({ step }) => (step === 1 ? { toolChoice: { name: 'send_mail' } } : undefined) };
    const { llm } = await run([mail()], { replies: [call('send_mail', { to: 'ann' }), 'done'], hooks: [choose] });

    expect(llm.requests.map(({ toolChoice }) => toolChoice)).toStrictEqual([{ name: 'call_tool' }, undefined]);
  });

  it('E18 may be called by their own name', async () => {
    const { recorded, llm } = await run([mail()], { replies: [toolCall('send_mail', { to: 'ann' }), 'done'] });

    expect(resultTexts(recorded)).toStrictEqual(['sent to ann']);
    expect(llm.requests[1]!.messages[1]!.content).toMatchObject([{ name: 'call_tool', inputText: '{"name":"send_mail","input":{"to":"ann"}}' }]);
  });
});

describe('calls of deferred tools that will not do', () => {
  it.each([
    ['is cut off', '{"name":"send_mail","input":{"to"', /The arguments of "call_tool" are not valid JSON: .* position 33/],
    ['has a number too large to be exact', '{"name":"send_mail","input":{"to":12345678901234567890}}', /too large to be exact/],
    ['names nothing', '{"input":{}}', /"name" must be the name of a tool/],
    ['is no object', '[]', /they must be an object/],
    ['has arguments as a text', '{"name":"send_mail","input":"{\\"to\\":\\"ann\\"}"}', /"input" must be an object with the arguments of the tool, not string/],
    ['has arguments as a list', '{"name":"send_mail","input":[]}', /"input" must be an object with the arguments of the tool, not a list/],
    ['has arguments in the wrong place', '{"name":"send_mail","to":"ann"}', /there is nothing but "name" and "input", so "to" belongs into "input"/],
    ['names a tool that there is not', '{"name":"send_email","input":{}}', /no tool named "send_email" behind call_tool, so nothing was run. Did you mean "send_mail"\?/],
    ['names a tool that is listed', '{"name":"echo","input":{}}', /no tool named "echo" behind call_tool, .* call those that are listed directly/],
    ['names itself', '{"name":"call_tool","input":{}}', /no tool named "call_tool" behind call_tool/],
    ['names what every object has', '{"name":"constructor","input":{}}', /no tool named "constructor"/],
  ])('E18 law-13 a call that %s is answered with what is wrong, and nothing runs', async (_what, inputText, message) => {
    const tool = mail();
    const { recorded, llm, result } = await run([tool], { replies: [toolCall('call_tool', inputText), 'done'] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringMatching(message)]]);
    expect(tool.runCount).toBe(0);
    expect(llm.requests[1]!.messages[1]!.content).toMatchObject([{ name: 'call_tool', inputText }]);
    expect(result.stopReason).toBe('end_turn');
  });

  it('E18 law-13 wrong arguments are answered in the words of the tool itself', async () => {
    const tool = mail();
    const { recorded } = await run([tool], { replies: [[call('send_mail'), call('send_mail', { to: 5 })], 'done'] });

    expect(resultTexts(recorded)).toStrictEqual([
      expect.stringContaining('Invalid arguments for "send_mail": "to" is missing. Nothing was run. The form is { to: string }.'),
      expect.stringContaining('"to" must be string, not number'),
    ]);
    expect(tool.runCount).toBe(0);
  });

  it('E18 nobody is asked about a call that runs nothing', async () => {
    const questions: string[] = [];
    const ask = approval({
      ask: ({ call: { name } }) => {
        questions.push(name);
        return { action: 'allow' };
      },
    });
    await run([mail()], { replies: [[call('nobody'), call('send_mail', { to: 'ann' })], 'done'], hooks: [ask] });

    expect(questions).toStrictEqual(['send_mail']);
  });

  it('E18 a model that was not wrapped runs nothing either', async () => {
    const tool = mail();
    const { recorded } = await runScripted({ replies: [call('send_mail', { to: 'ann' }), 'done'], tools: deferTools([tool]).tools });

    expect(resultTexts(recorded)[0]).toContain('deferTools().wrap(llm)');
    expect(tool.runCount).toBe(0);
  });
});

describe('deferred tools over a suspension and a crash', () => {
  it('E18 A20 a call waits, is decided elsewhere, and runs as what it is', async () => {
    const tool = mail();
    const set = deferTools([tool]);
    const options: RunScriptedOptions = { tools: set.tools, decorate: (llm) => set.wrap(llm), hooks: [approval({ rules: [{ tool: 'send_mail', decision: 'ask' }] })] };
    const first = await runScripted({ ...options, replies: [call('send_mail', { to: 'ann' })] });
    expect(first.result.pending).toMatchObject([{ name: 'send_mail', input: { to: 'ann' } }]);

    const second = await runScripted({
      ...options,
      ...secondProcess(first.recorded),
      resume: { decisions: [{ toolCallId: 'call_1', action: 'edit', input: { to: 'bob' } }] },
      replies: ['done'],
    });
    expect(tool.inputs).toStrictEqual([{ to: 'bob' }]);
    expect(second.llm.requests[0]!.messages[1]!.content).toMatchObject([{ name: 'call_tool' }]);
  });

  it('E18 law-9 a call that had not started when the process stopped is run by the next', async () => {
    const tool = mail();
    const set = deferTools([tool]);
    const options: RunScriptedOptions = { tools: set.tools, decorate: (llm) => set.wrap(llm), replies: [call('send_mail', { to: 'ann' }), 'done'] };
    const events = await crash('tool.call', options);
    const { result } = await resumeFrom(events, { ...options, replies: ['done'] });

    expect(result.text).toBe('done');
    expect(tool.inputs).toStrictEqual([{ to: 'ann' }]);
  });

  it('E18 a call of a tool that is gone is answered by the loop, as any other', async () => {
    const set = deferTools([mail()]);
    const options: RunScriptedOptions = { tools: set.tools, decorate: (llm) => set.wrap(llm), replies: [call('send_mail', { to: 'ann' })] };
    const events = await crash('tool.call', options);
    const { recorded } = await resumeFrom(events, { replies: ['done'], tools: [echoTool()] });

    expect(resultTexts(recorded)[0]).toContain('There is no tool named "send_mail"');
  });
});

describe('search_tools', () => {
  const many: readonly AnyTool[] = [
    recordingTool({ name: 'mcp__github__create_issue', description: 'Opens an issue in a repository.', inputSchema: { type: 'object', properties: { title: { type: 'string' } } } }),
    recordingTool({ name: 'mcp__github__listPullRequests', description: 'Lists the pull requests of a repository.' }),
    recordingTool({ name: 'send_mail', description: 'Sends a mail about an issue.' }),
    recordingTool({ name: 'readFile', description: 'Reads files from the disk.' }),
    recordingTool({ name: '读取文件', description: '读取一个文件的内容。' }),
    ...Array.from({ length: 200 }, (_, index) => recordingTool({ name: `filler_${index}`, description: 'Does something in a repository.' })),
  ];

  async function search(input: Parameters<typeof toolCall>[1], tools: readonly AnyTool[] = many): Promise<string> {
    const { recorded } = await run(tools, { replies: [toolCall('search_tools', input), 'done'] });
    return resultTexts(recorded)[0]!;
  }
  const found = (text: string): readonly string[] =>
    text.split('\n').flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { name: string }).name] : []));

  it('E18 shows name, description and schema of what it finds, and how to call it', async () => {
    const text = await search({ query: 'create issue', limit: 1 });

    expect(text.split('\n')).toStrictEqual([
      JSON.stringify({ name: 'mcp__github__create_issue', description: 'Opens an issue in a repository.', inputSchema: { type: 'object', properties: { title: { type: 'string' } } } }),
      'Call one with call_tool {"name": …, "input": …}, where "input" is an object of its inputSchema.',
    ]);
  });

  it.each([
    ['words of a name before words of a description', 'issue', ['mcp__github__create_issue', 'send_mail']],
    ['rare words before common ones', 'pull request in a repository', ['mcp__github__listPullRequests']],
    ['parts of names in camel case', 'read', ['readFile']],
    ['a word in another form', 'FILES', ['readFile']],
    ['a tool named in full', 'filler_7', ['filler_7']],
    ['words of a script without spaces', '文件', ['读取文件']],
  ])('E18 finds %s', async (_what, query, expected) => {
    expect(found(await search({ query })).slice(0, expected.length)).toStrictEqual(expected);
  });

  it('E18 shows a few, more if asked, and never too many', async () => {
    expect(found(await search({ query: 'repository' }))).toHaveLength(5);
    expect(found(await search({ query: 'repository', limit: 9 }))).toHaveLength(9);
    expect(found(await search({ query: 'repository', limit: 1_000 }))).toHaveLength(20);
    expect(found(await search({ query: 'repository', limit: -3 }))).toHaveLength(1);
  });

  it('E18 shows as many schemas as there is room for, and names the others', async () => {
    const large = Array.from({ length: 4 }, (_, index) => recordingTool({ name: `large_${index}`, description: 'x'.repeat(3_000) }));
    const text = await search({ query: 'large' }, large);

    expect(found(text)).toStrictEqual(['large_0', 'large_1']);
    expect(text).toContain('Also found, search for the name to see it: large_2, large_3.');
    expect(text.length).toBeLessThan(8_192);
    // One that is larger than the room is shown all the same.
    expect(found(await search({ query: 'huge' }, [recordingTool({ name: 'huge', description: 'x'.repeat(20_000) })]))).toStrictEqual(['huge']);
  });

  it('E18 says so if nothing has these words, with names of what there is', async () => {
    const text = await search({ query: 'xyzzy ??' });

    expect(text).toMatch(/^No tool has these words.* There are: mcp__github__create_issue, .* and 155 more\.$/);
    expect(await search({ query: '' }, [])).toBe('There are no tools to be found.');
  });

  it('E18 runs beside whatever changes something', async () => {
    const { recording } = await run([mail()], { replies: [[toolCall('echo', { text: 'a' }), toolCall('search_tools', { query: 'mail' })], 'done'] });

    expect(recording.of('tool.start').map(({ toolCallId }) => toolCallId)).not.toContain('call_2');
  });
});

describe('deferTools', () => {
  it('law-13 refuses what cannot be deferred, in clear words', () => {
    expect(() => deferTools('all' as never)).toThrow(/"tools" is not a list/);
    expect(() => deferTools([{ name: 'x' } as never])).toThrow(/Tool "x" has no execute function/);
    expect(() => deferTools([mail(), mail()])).toThrow(/Two tools are named "send_mail"/);
    expect(() => deferTools([mail({ name: 'call_tool' })])).toThrow(/a tool is named "call_tool", which is the name of one that it adds/);
    expect(() => deferTools([mail()], { max: 5 } as never)).toThrow(/no option `max`; it takes limit/);
    expect(() => deferTools([mail()], { limit: 0 })).toThrow(/`limit` must be a whole number from 1 to 20, not 0/);
    expect(() => deferTools([mail()]).wrap({} as never)).toThrow(/needs an LLM/);
  });
});
