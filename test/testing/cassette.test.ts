/** F2: cassettes record model traffic of any adapter once, and replay it with the server gone. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isTurnloopError } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { withFallback, withRetry } from 'turnloop/policies';
import { echoTool, scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { CassetteError, createCassette } from 'turnloop/testing/cassette';
import { ADAPTERS } from '../providers/every-adapter.ts';
import { answer, type Responder } from '../support/replay-server.ts';
import { ask, errorOf, llmErrorOf, makeFolder, piecesOf, post, record, startServer } from './cassette-support.ts';

const SSE = { 'content-type': 'text/event-stream' };
const REPLY = { thinking: 'Hm.', text: 'Grüße aus Oslo 🙂', calls: [{ name: 'weather', input: { city: 'Tromsø' } }] };

const [openAIChat] = ADAPTERS;
if (openAIChat === undefined) throw new Error('no adapter');

/** Where the prompt stands in a request of each adapter. */
const PROMPT_PATHS: Readonly<Record<string, string>> = {
  openAIChat: 'messages[1].content',
  openAIResponses: 'input[0].content',
  anthropic: 'messages[0].content[0].text',
  google: 'contents[0].parts[0].text',
};

describe.each(ADAPTERS)('F2: a cassette recorded through $name', (adapter) => {
  it('replays the same reply, delta by delta, with the server gone and without a key', async () => {
    const server = await startServer(answer(adapter.stream(REPLY), 200, SSE));
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await ask(adapter.connect({ apiKey: 'sk-live-key', baseUrl: server.baseUrl, fetch }), 'Hello');
    });

    const cassette = await createCassette(file, { mode: 'replay' });
    const replayed = await ask(adapter.connect({ baseUrl: server.baseUrl, fetch: cassette.fetch }), 'Hello');

    expect(replayed).toStrictEqual(live);
    expect(server.requests).toHaveLength(1);
    cassette.assertDone();
  });

  it('replays a turn of an agent that calls a tool: what is sent depends on nothing but what was answered', async () => {
    let asked = 0;
    const replies = [{ calls: [{ name: 'echo', input: { text: 'Tromsø' } }, { name: 'echo', input: { text: 'b' } }] }, { text: 'It said Tromsø.' }];
    const server = await startServer((response, request) => answer(adapter.stream(replies[asked++] ?? {}), 200, SSE)(response, request));
    const run = async (fetch: typeof globalThis.fetch): Promise<unknown> => {
      const agent = createAgent({ llm: adapter.connect({ baseUrl: server.baseUrl, fetch }), tools: [echoTool()] });
      const { text, stopReason, steps, usage, error } = await agent.run('Say Tromsø.').result;
      return { text, stopReason, steps, usage, error };
    };
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await run(fetch);
    });

    const cassette = await createCassette(file);

    expect(await run(cassette.fetch)).toStrictEqual(live);
    expect(live).toMatchObject({ text: 'It said Tromsø.', stopReason: 'end_turn', steps: 2 });
    cassette.assertDone();
  });

  it('replays an answer that is not streamed', async () => {
    const body = JSON.stringify({ error: { message: 'No such model.', type: 'not_found_error' } }, null, 2);
    const server = await startServer(answer(body, 404, { 'content-type': 'application/json' }));
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await llmErrorOf(ask(adapter.connect({ baseUrl: server.baseUrl, fetch, stream: false }), 'Hello'));
    });

    const { fetch } = await createCassette(file);

    expect(await llmErrorOf(ask(adapter.connect({ baseUrl: server.baseUrl, fetch, stream: false }), 'Hello'))).toStrictEqual(live);
  });

  it('refuses a changed prompt in words that say what differs and what to do, and that no adapter loses', async () => {
    const server = await startServer(answer(adapter.stream(REPLY), 200, SSE));
    const connect = (fetch: typeof globalThis.fetch): ReturnType<typeof adapter.connect> => adapter.connect({ apiKey: 'sk-live-key', baseUrl: server.baseUrl, fetch });
    const file = await record(server, (fetch) => ask(connect(fetch), 'Hello'));
    const { url = '' } = server.requests[0] ?? {};

    const error = await llmErrorOf(ask(connect((await createCassette(file)).fetch), 'Goodbye'));

    const address = `${new URL(server.baseUrl).origin}${url.split('?')[0] ?? ''}`;
    expect(error.message).toBe(
      [
        `Request 1, POST ${address}, is not in the cassette ${file}. The nearest is recorded request 1. What differs:`,
        `  ${PROMPT_PATHS[adapter.name] ?? ''}: recorded "Hello", got "Goodbye"`,
        "Is the change meant? Then record anew: delete the file, or run once with `mode: 'record'`. If it is a value that changes with every run, such as a date, name its path in `ignore`.",
      ].join('\n'),
    );
    expect(error).toMatchObject({ kind: 'refused', code: 'cassette_miss', retryable: false });
  });

  it('replays a 429 and then the reply, through retries', async () => {
    let asked = 0;
    const busy = answer(JSON.stringify({ error: { message: 'Slow down.' } }), 429, { 'retry-after-ms': '3' });
    const server = await startServer((response, request) => ((asked += 1) === 1 ? busy : answer(adapter.stream(REPLY), 200, SSE))(response, request));
    const chat = async (fetch: typeof globalThis.fetch): Promise<unknown> => {
      const delays: (number | undefined)[] = [];
      const llm = withRetry(adapter.connect({ baseUrl: server.baseUrl, fetch }), { maxDelayMs: 1 });
      const heard = await ask(llm, 'Hello', { onAttemptFailed: ({ error }) => void delays.push(error.retryAfterMs) });
      return { heard, delays };
    };
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await chat(fetch);
    });

    const cassette = await createCassette(file);

    expect(await chat(cassette.fetch)).toStrictEqual(live);
    expect(live).toMatchObject({ delays: [3] });
    cassette.assertDone();
  });
});

describe('F2: a cassette', () => {
  const echo: Responder = (response, request) => answer(`{"echo":${request.body}}`)(response, request);

  it('records if there is no file, and replays if there is one', async () => {
    const server = await startServer(echo);
    const file = join(makeFolder(), 'new/folder/cassette.json');

    const first = await createCassette(pathToFileURL(file));
    const text = await (await post(first.fetch, server.baseUrl, { a: 1 })).text();
    await first.close();
    await server.close();
    const second = await createCassette(file);

    expect([first.mode, second.mode]).toStrictEqual(['record', 'replay']);
    expect(await (await post(second.fetch, server.baseUrl, { a: 1 })).text()).toBe(text);
    expect(readdirSync(join(file, '..'))).toStrictEqual(['cassette.json']);
  });

  it('records anew in mode `record`, and leaves the file alone when nothing was asked', async () => {
    const server = await startServer(echo);
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { a: 1 }).then((response) => response.text()));
    const before = readFileSync(file, 'utf8');

    const idle = await createCassette(file, { mode: 'record' });
    await idle.close();
    expect(readFileSync(file, 'utf8')).toBe(before);

    const next = await startServer(echo);
    const cassette = await createCassette(file, { mode: 'record' });
    await (await post(cassette.fetch, next.baseUrl, { b: 2 })).text();
    await cassette.close();
    await cassette.close();

    expect(readFileSync(file, 'utf8')).not.toContain('"a"');
    expect(readFileSync(file, 'utf8')).toContain('"b"');
  });

  it('is text that reads well: JSON as JSON, an event stream line by line', async () => {
    const server = await startServer((response, request) => answer('data: {"a":"Grüße"}\n\ndata: [DONE]\n\n', 200, SSE)(response, request));
    const runtime = virtualRuntime();
    const file = await record(server, (fetch) => post(fetch, `${server.baseUrl}/x?b=1`, { model: 'm', n: 1 }).then((response) => response.text()), { runtime });

    expect(readFileSync(file, 'utf8').replace(server.baseUrl, 'BASE')).toBe(`{
  "turnloopCassette": 1,
  "exchanges": [
    {
      "request": {
        "method": "POST",
        "url": "BASE/x?b=1",
        "headers": {
          "content-type": "application/json"
        },
        "body": {
          "json": {
            "model": "m",
            "n": 1
          }
        }
      },
      "response": {
        "status": 200,
        "statusText": "OK",
        "headers": {
          "content-type": "text/event-stream"
        },
        "afterMs": 0,
        "body": {
          "text": [
            "data: {\\"a\\":\\"Grüße\\"}",
            "",
            "data: [DONE]",
            "",
            ""
          ]
        },
        "pieces": "37@0"
      },
      "end": {
        "type": "complete",
        "afterMs": 0
      }
    }
  ]
}
`);
  });

  it('replays equal requests in their order, each once, and others in any order', async () => {
    let count = 0;
    const server = await startServer((response, request) => answer(String((count += 1)))(response, request));
    const say = async (fetch: typeof globalThis.fetch, body: unknown): Promise<string> => (await post(fetch, server.baseUrl, body)).text();
    const file = await record(server, async (fetch) => {
      for (const body of [{ q: 'a' }, { q: 'b' }, { q: 'a' }]) await say(fetch, body);
    });

    const { fetch } = await createCassette(file);

    expect([await say(fetch, { q: 'b' }), await say(fetch, { q: 'a' }), await say(fetch, { q: 'a' })]).toStrictEqual(['2', '1', '3']);
    const error = await llmErrorOf(say(fetch, { q: 'a' }));
    expect(error.message).toContain('It equals recorded request 1, but that was replayed already: each is replayed once.');
  });

  it('compares values, not the order of keys', async () => {
    const server = await startServer(echo);
    const file = await record(server, (fetch) => post(fetch, `${server.baseUrl}?x=1&y=2`, { a: { b: 1, c: [2, 3] }, d: null }));

    const { fetch } = await createCassette(file);

    expect((await post(fetch, `${server.baseUrl}?y=2&x=1`, { d: null, a: { c: [2, 3], b: 1 } })).status).toBe(200);
  });

  it.each([
    ['a path', ['metadata.date', '?at']],
    ['wildcards', ['*.date', '?at']],
    ['any depth', ['**.date', '?at']],
    ['a function', [(text: string) => text.replace(/\d{4}-\d\d-\d\d/g, 'DATE')]],
  ])('does not compare what `ignore` names by %s', async (_name, ignore) => {
    const server = await startServer(echo);
    const send = (fetch: typeof globalThis.fetch, date: string, more = {}): Promise<Response> => post(fetch, `${server.baseUrl}?at=${date}`, { metadata: { date }, ...more });
    const file = await record(server, (fetch) => send(fetch, '2025-01-01'));

    const { fetch } = await createCassette(file, { ignore });

    expect((await llmErrorOf(send(fetch, '2026-02-02', { other: 1 }))).message).toContain('differs:\n  other: recorded nothing, got 1\n');
    expect((await send(fetch, '2026-02-02')).status).toBe(200);
    expect(readFileSync(file, 'utf8')).toContain('2025-01-01');
  });

  it('does not compare what `ignore` names where only one request has it', async () => {
    const server = await startServer(echo);
    const file = await record(server, async (fetch) => {
      await post(fetch, server.baseUrl, { q: 1 });
      await post(fetch, server.baseUrl, { q: 2, date: 1 });
    });

    const { fetch } = await createCassette(file, { ignore: ['date'] });

    expect((await post(fetch, server.baseUrl, { q: 1, date: 1 })).status).toBe(200);
    expect((await post(fetch, server.baseUrl, { q: 2 })).status).toBe(200);
  });

  it('lets several requests run at once, recorded in the order in which they were sent', async () => {
    const gates: (() => void)[] = [];
    const server = await startServer(async (response, request) => {
      // The last one is answered first.
      await new Promise<void>((open) => {
        gates.push(open);
        if (gates.length === 5) for (const gate of gates.reverse()) setImmediate(gate);
      });
      await echo(response, request);
    });
    const all = (fetch: typeof globalThis.fetch): Promise<unknown> => Promise.all([0, 1, 2, 3, 4].map(async (q) => (await post(fetch, server.baseUrl, { q })).text()));
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await all(fetch);
    });

    const cassette = await createCassette(file);

    expect(await all(cassette.fetch)).toStrictEqual(live);
    cassette.assertDone();
    const { exchanges } = JSON.parse(readFileSync(file, 'utf8')) as { exchanges: { request: { body: { json: { q: number } } } }[] };
    expect(exchanges.map(({ request }) => request.body.json.q)).toStrictEqual([0, 1, 2, 3, 4]);
  });

  it('sends a request that is an object or holds bytes, and the signal of either, as `fetch` does', async () => {
    const server = await startServer((response, request) => answer(`${String(request.headers['x-a'] ?? '')} ${request.body}`)(response, request));
    const both = async (fetch: typeof globalThis.fetch): Promise<readonly string[]> => [
      await (await fetch(new Request(server.baseUrl, { method: 'POST', body: 'text', headers: { 'x-a': '1' } }))).text(),
      await (await fetch(server.baseUrl, { method: 'PUT', body: new Uint8Array([0x68, 0x69]) })).text(),
      await (await fetch(new URL(`${server.baseUrl}#${String(Math.random())}`))).text(),
    ];
    const file = await record(server, async (fetch) => {
      expect(await both(fetch)).toStrictEqual(['1 text', ' hi', ' ']);
    });

    const { fetch } = await createCassette(file);
    expect(await both(fetch)).toStrictEqual(['1 text', ' hi', ' ']);
  });

  it('keeps the headers that are asked for, beside those that say what a body is', async () => {
    const server = await startServer(answer('{}', 200, { 'x-served-by': 'a', 'x-other': 'b', 'retry-after': '1' }));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}, { headers: { 'X-Title': 'T', 'x-else': 'e' } }), { headers: ['x-title', 'X-Served-By'] });

    const { request, response } = (JSON.parse(readFileSync(file, 'utf8')) as { exchanges: { request: { headers: object }; response: { headers: object } }[] }).exchanges[0]!;
    expect(request.headers).toStrictEqual({ 'content-type': 'text/plain;charset=UTF-8', 'x-title': 'T' });
    expect(response.headers).toStrictEqual({ 'retry-after': '1', 'x-served-by': 'a' });
  });

  it('says at the end what was not asked, and what was asked in vain', async () => {
    const server = await startServer(echo);
    const file = await record(server, async (fetch) => {
      await post(fetch, server.baseUrl, { q: 1 });
      await post(fetch, server.baseUrl, { q: 2 });
    });

    const cassette = await createCassette(file);
    await post(cassette.fetch, server.baseUrl, { q: 1 });
    await llmErrorOf(post(cassette.fetch, server.baseUrl, { q: 3 }));

    const thrown = await errorOf((async () => cassette.assertDone())());
    expect(thrown).toBeInstanceOf(CassetteError);
    expect(thrown).toMatchObject({ code: 'cassette_not_done' });
    expect(String(thrown)).toContain('  q: recorded 2, got 3\n');
    expect(String(thrown)).toContain(`\nRecorded request 2, POST ${server.baseUrl}, was not made.`);
  });

  it('takes no request after it was closed', async () => {
    const server = await startServer(echo);
    const file = join(makeFolder(), 'cassette.json');
    const recording = await createCassette(file);
    await post(recording.fetch, server.baseUrl, {});
    await recording.close();
    const replaying = await createCassette(file);
    await replaying.close();

    for (const { fetch } of [recording, replaying]) {
      expect(await llmErrorOf(post(fetch, server.baseUrl, {}))).toMatchObject({ kind: 'refused', code: 'cassette_closed' });
    }
    expect(server.requests).toHaveLength(1);
  });

  it('ends a turn of an agent at the first miss: nobody asks again, and the error says what differs', async () => {
    const server = await startServer(answer(openAIChat.stream({ text: 'Hi.' }), 200, SSE));
    const connect = (fetch: typeof globalThis.fetch): ReturnType<typeof openAIChat.connect> => openAIChat.connect({ baseUrl: server.baseUrl, fetch });
    const file = await record(server, (fetch) => createAgent({ llm: connect(fetch) }).run('Hello').result);
    let asked = 0;
    const { fetch } = await createCassette(file);
    const counted: typeof globalThis.fetch = (input, init) => {
      asked += 1;
      return fetch(input, init);
    };

    const result = await createAgent({ llm: withFallback([connect(counted), scriptedLLM([])]) }).run('Goodbye').result;

    expect(result.stopReason).toBe('fatal_error');
    expect(result.error?.message).toContain('recorded "Hello", got "Goodbye"');
    expect(asked).toBe(1);
  });
});

describe('F2: the message of a miss', () => {
  const ok = answer('{}');

  async function missOf(recorded: readonly unknown[], got: unknown, path = ''): Promise<string> {
    const server = await startServer(ok);
    const file = await record(server, async (fetch) => {
      for (const body of recorded) await post(fetch, server.baseUrl, body);
    });
    return (await llmErrorOf(post((await createCassette(file)).fetch, server.baseUrl + path, got))).message;
  }

  it('shows the place where long texts begin to differ', async () => {
    const message = await missOf([{ prompt: `${'a'.repeat(500)}Oslo${'b'.repeat(500)}` }], { prompt: `${'a'.repeat(500)}Rome${'b'.repeat(500)}` });

    expect(message).toContain(`  prompt: recorded …"${'a'.repeat(20)}Oslo${'b'.repeat(36)}"…, got …"${'a'.repeat(20)}Rome${'b'.repeat(36)}"…\n`);
  });

  it('names values of other kinds, what is missing, and what is too much', async () => {
    const message = await missOf([{ a: { b: [1, { c: true }] }, 'odd key': 1 }], { a: { b: [1] }, d: null, 'odd key': '1' });

    expect(message).toContain('differs:\n  a.b[1]: recorded {"c":true}, got nothing\n  ["odd key"]: recorded 1, got "1"\n  d: recorded nothing, got null\n');
  });

  it('names the address, parameters and the kind of body', async () => {
    const message = await missOf([{ a: 1 }], [2], '/other?alt=sse');

    expect(message).toMatch(/ {2}url: recorded "http.*\/v1", got "http.*\/v1\/other"\n {2}\?alt: recorded nothing, got "sse"\n {2}body: recorded \{"a":1\}, got \[2\]\n/);
  });

  it('names the method, and fields that every object has', async () => {
    const server = await startServer(ok);
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}));

    const { fetch } = await createCassette(file);
    const error = await llmErrorOf(fetch(server.baseUrl, { method: 'PUT', body: '{"constructor":1,"__proto__":2}' }));

    expect(error.message).toContain('differs:\n  method: recorded "POST", got "PUT"\n  constructor: recorded nothing, got 1\n  __proto__: recorded nothing, got 2\n');
  });

  it('takes another kind of body for further away than any number of fields', async () => {
    const message = await missOf([[1], { a: 1, b: 1, c: 1 }], { a: 2, b: 2, c: 2 });

    expect(message).toContain('The nearest is recorded request 2.');
  });

  it('compares with the recording that differs least, not with the first', async () => {
    const message = await missOf([{ a: 1, b: 1, c: 1 }, { a: 1, b: 2, c: 2 }], { a: 1, b: 2, c: 3 });

    expect(message).toContain('The nearest is recorded request 2. What differs:\n  c: recorded 2, got 3\n');
  });

  it('stays short enough for adapters, whatever differs, and says how much it left out', async () => {
    const many = (text: string): object => Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`${'ключ'.repeat(9)}${index}`, text.repeat(99)]));
    const message = await missOf([many('Привет')], many('Пока'));

    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1000);
    expect(message).toMatch(/\n {2}… and \d+ more\nIs the change meant\?/);
    expect(message).toMatch(/in `ignore`\.$/);
  });

  it('says that nothing is recorded where nothing is', async () => {
    const file = join(makeFolder(), 'empty.json');
    writeFileSync(file, '{"turnloopCassette":1,"exchanges":[]}');

    const error = await llmErrorOf(post((await createCassette(file)).fetch, 'http://127.0.0.1:9', {}));

    expect(error.message).toBe(
      `Request 1, POST http://127.0.0.1:9/, is not in the cassette ${file}. No request is recorded there. Is the change meant? Then record anew: delete the file, or run once with \`mode: 'record'\`.`,
    );
  });
});

describe('F2: a file that is no good', () => {
  const exchange = { request: { method: 'GET', url: 'http://h/', headers: {} }, response: { status: 200, headers: {}, afterMs: 0, pieces: '' }, end: { type: 'complete', afterMs: 0 } };
  const file = (exchanges: unknown): string => JSON.stringify({ turnloopCassette: 1, exchanges });

  it.each([
    ['no JSON', '{"turnloopCassette": 1,', 'cassette_broken', 'a property name in double quotes was expected at position 23'],
    ['no cassette', '[]', 'cassette_broken', 'it has no `turnloopCassette`, the number of its format'],
    ['newer', '{"turnloopCassette":2}', 'cassette_version', 'has format 2; this version of turnloop reads up to 1. Update turnloop, or record anew.'],
    ['without exchanges', file(undefined), 'cassette_broken', '`exchanges` should be a list, but is missing'],
    ['with an odd status', file([{ ...exchange, response: { ...exchange.response, status: 99 } }]), 'cassette_broken', '`exchanges[0].response.status` should be a whole number from 200 to 599, but is 99'],
    ['with odd pieces', file([{ ...exchange, response: { ...exchange.response, pieces: '1@2 x' } }]), 'cassette_broken', '`exchanges[0].response.pieces` should be made of pieces such as "120@35", bytes and milliseconds, but is "x"'],
    ['with an odd header', file([{ ...exchange, response: { ...exchange.response, headers: { 'a b': 'c' } } }]), 'cassette_broken', '`exchanges[0].response.headers` should be made of names and values that a header can have'],
    ['with an odd line', file([{ ...exchange, request: { ...exchange.request, body: { text: ['a', 1] } } }]), 'cassette_broken', '`exchanges[0].request.body.text[1]` should be a text, but is 1'],
    ['with an odd end', file([{ ...exchange, end: { type: 'done', afterMs: 0 } }]), 'cassette_broken', '`exchanges[0].end.type` should be "complete", "aborted" or "failed", but is "done"'],
    ['with an end but no answer', file([{ ...exchange, response: undefined }]), 'cassette_broken', '`exchanges[0].response` should be an answer, since `end` says that it was complete, but is missing'],
  ])('is refused when it is %s', async (_name, text, code, message) => {
    const path = join(makeFolder(), 'cassette.json');
    writeFileSync(path, text);

    const thrown = await errorOf(createCassette(path));

    expect(thrown).toMatchObject({ name: 'CassetteError', code });
    expect(isTurnloopError(thrown)).toBe(true);
    expect(String(thrown)).toContain(`The cassette ${path} `);
    expect(String(thrown)).toContain(message);
  });

  it('is missing in mode `replay`: an error, not the network', async () => {
    const path = join(makeFolder(), 'missing.json');

    const thrown = await errorOf(createCassette(path, { mode: 'replay' }));

    expect(thrown).toMatchObject({ code: 'cassette_missing' });
    expect(String(thrown)).toContain(`There is no cassette ${path} to replay. Record it first: run once with \`mode: 'auto'\` or 'record'`);
  });

  it('cannot be read or written where a folder is: typed errors, and nothing is left beside it', async () => {
    const path = join(makeFolder(), 'folder');
    mkdirSync(path);
    expect(await errorOf(createCassette(path))).toMatchObject({ code: 'cassette_unreadable' });

    const server = await startServer(answer('{}'));
    const cassette = await createCassette(path, { mode: 'record' });
    await post(cassette.fetch, server.baseUrl, {});

    expect(await errorOf(cassette.close())).toMatchObject({ code: 'cassette_unwritable' });
    expect(readdirSync(join(path, '..'))).toStrictEqual(['folder']);
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it('may be changed by hand: lengths of pieces need not fit', async () => {
    const server = await startServer(answer('one two', 200, { 'content-type': 'text/plain' }));
    const path = await record(server, (fetch) => post(fetch, server.baseUrl, {}).then((response) => response.text()));
    writeFileSync(path, readFileSync(path, 'utf8').replace('one two', 'one two three'));

    const response = await post((await createCassette(path)).fetch, server.baseUrl, {});

    expect((await piecesOf(response)).join('')).toBe('one two three');
  });
});

describe('F2: createCassette refuses', () => {
  it.each([
    [['']],
    [[7]],
    [[new URL('https://example.com/c.json')]],
    [['c.json', { mode: 'auto ' }]],
    [['c.json', { timing: 'fast' }]],
    [['c.json', { pieces: 0 }]],
    [['c.json', { redact: 'user' }]],
    [['c.json', { ignore: [7] }]],
    [['c.json', { headers: 'x' }]],
    [['c.json', { fetch: 1 }]],
    [['c.json', { match: [] }]],
  ] as unknown as readonly [Parameters<typeof createCassette>][])('%j with a TypeError that shows a right call', async (args) => {
    const thrown = await errorOf(createCassette(...args));

    expect(thrown).toBeInstanceOf(TypeError);
    expect(String(thrown)).toMatch(/createCassette.*For example: /);
    expect(existsSync('c.json')).toBe(false);
  });
});
