/** F2: what is secret is in no cassette, wherever it stood, and a cassette replays all the same. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createCassette } from 'turnloop/testing/cassette';
import { ADAPTERS } from '../providers/every-adapter.ts';
import { answer, type Responder } from '../support/replay-server.ts';
import { ask, llmErrorOf, piecesOf, post, record, startServer, textOfFolder } from './cassette-support.ts';

const KEY = 'sk-live-SECRET123/+=';
const IDS = {
  'x-request-id': 'req_SECRET123',
  'openai-organization': 'org-SECRET123',
  'openai-project': 'proj_SECRET123',
  'set-cookie': 'session=cookie-SECRET123; Path=/; HttpOnly; Domain=example.com',
};
const ECHO = `no such key: ${KEY} (${encodeURIComponent(KEY)}), of org-SECRET123, proj_SECRET123, see req_SECRET123, cookie-SECRET123`;

describe.each(ADAPTERS)('F2: of a planted secret, through $name,', (adapter) => {
  const echoes: readonly (readonly [string, Responder])[] = [
    ['a reply that quotes it', answer(adapter.stream({ text: ECHO }), 200, { 'content-type': 'text/event-stream', ...IDS })],
    ['a refusal', answer(JSON.stringify({ error: { message: ECHO } }), 401, IDS)],
    ['a page', answer(`<html>${ECHO}</html>`, 500, IDS)],
    ['an answer in other letters', answer(ECHO.toUpperCase(), 500, IDS)],
    ['bytes that are no text', answer([Buffer.from([0xff, 0xfe]), Buffer.from(ECHO)], 200, IDS)],
    ['a failure in the stream', answer(adapter.errorEvent(ECHO), 200, { 'content-type': 'text/event-stream', ...IDS })],
  ];

  it.each(echoes)('nothing is in the file after %s', async (_name, responder) => {
    const server = await startServer(responder);
    const connect = (fetch: typeof globalThis.fetch, apiKey: string): ReturnType<typeof adapter.connect> =>
      adapter.connect({ apiKey, baseUrl: `${server.baseUrl}?key=QUERY-${apiKey}`, headers: { 'x-my-token': `header-${apiKey}`, cookie: `c=cookie-${apiKey}` }, fetch });
    const file = await record(server, (fetch) => ask(connect(fetch, KEY), `My key is ${KEY}, and QUERY-${KEY}`).catch(() => undefined));

    expect(textOfFolder(dirname(file)).toUpperCase()).not.toContain('SECRET123');
    const base64 = [...readFileSync(file, 'utf8').matchAll(/"([\w+/=]{40,})"/g)].map(([, line = '']) => line).join('');
    expect(Buffer.from(base64, 'base64').toString('latin1').toUpperCase()).not.toContain('SECRET123');

    // With another key, in all places.
    const cassette = await createCassette(file);
    await ask(connect(cassette.fetch, 'other-key'), 'My key is other-key, and QUERY-other-key').catch(() => undefined);
    cassette.assertDone();
  });
});

describe('F2: redaction', () => {
  const ok = answer('{}');

  it('finds what one exchange tells in another that came before', async () => {
    const server = await startServer((response, request) => answer('{"note":"later-SECRET123"}')(response, request));
    const file = await record(server, async (fetch) => {
      await (await post(fetch, server.baseUrl, { n: 1 })).text();
      await (await post(fetch, server.baseUrl, { n: 2 }, { headers: { 'x-api-key': 'later-SECRET123' } })).text();
    });

    expect(readFileSync(file, 'utf8')).not.toContain('SECRET123');
    expect(readFileSync(file, 'utf8').match(/\[redacted\]/g)).toHaveLength(2);
  });

  it('leaves nothing of a secret that begins with another', async () => {
    const server = await startServer(answer('[part-SECRET-whole] [part-SECRET]'));
    const headers = { 'x-api-key': 'part-SECRET', 'x-other-key': 'part-SECRET-whole' };
    const file = await record(server, async (fetch) => (await post(fetch, server.baseUrl, {}, { headers })).text());

    expect(await (await post((await createCassette(file)).fetch, server.baseUrl, {})).text()).toBe('[[redacted]] [[redacted]]');
  });

  it('hides the beginning of a key that a broken answer ends in', async () => {
    const server = await startServer((response, request) => answer(`no such key: ${KEY.slice(0, 12)}`)(response, request));
    const file = await record(server, async (fetch) => (await post(fetch, server.baseUrl, {}, { headers: { authorization: `Bearer ${KEY}` } })).text());

    expect(readFileSync(file, 'utf8')).toContain('no such key: [redacted]');
  });

  it('masks a short secret where its name stands, and garbles no other text for it', async () => {
    const server = await startServer(answer('a test'));
    const file = await record(server, (fetch) => post(fetch, `${server.baseUrl}?key=test&model=test`, { say: 'test' }, { headers: { 'x-api-key': 'test' } }).then((response) => response.text()), {
      headers: ['x-api-key'],
    });

    const text = readFileSync(file, 'utf8');
    expect(text).toContain('?key=[redacted]&model=test"');
    expect(text).toContain('"x-api-key": "[redacted]"');
    expect(text).toContain('"say": "test"');
    expect(text).toContain('"a test"');
  });

  it.each([
    ['a key of OpenAI', `sk-proj-${'aB3_'.repeat(9)}`],
    ['a key of Anthropic', `sk-ant-api03-${'aB3-'.repeat(9)}`],
    ['a key of Google', `AIza${'aB3_'.repeat(9)}`],
    ['an organisation', 'org-aB3aB3aB3aB3aB3aB3'],
    ['a project', 'proj_aB3aB3aB3aB3aB3aB3'],
    ['a request', 'req_011CaB3aB3aB3aB3aB3aB3'],
  ])('knows %s by its looks', async (_name, secret) => {
    const server = await startServer(answer(`Rate limit of ${secret}: wait.`, 429));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { say: `It is ${secret}.` }).then((response) => response.text()));

    const { fetch } = await createCassette(file);
    expect(await (await post(fetch, server.baseUrl, { say: `It is ${secret}.` })).text()).toBe('Rate limit of [redacted]: wait.');
    expect(readFileSync(file, 'utf8')).not.toContain(secret);
  });

  it('keeps the ids of replies and calls, which requests refer to', async () => {
    const ids = '{"ids":["chatcmpl-aB3aB3aB3aB3aB3aB3aB3","resp_aB3aB3aB3aB3aB3aB3aB3","msg_aB3aB3aB3aB3aB3aB3aB3","call_aB3aB3aB3aB3aB3aB3aB3","toolu_aB3aB3aB3aB3aB3aB3aB3"]}';
    const server = await startServer(answer(ids));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}).then((response) => response.text()));

    expect(await (await post((await createCassette(file)).fetch, server.baseUrl, {})).text()).toBe(ids);
  });

  it('takes what stands behind a cookie for no secret', async () => {
    const server = await startServer(answer('HttpOnly at example.com: c-SECRET-1', 200, { 'set-cookie': 'c=c-SECRET-1; Domain=example.com; HttpOnly' }));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}).then((response) => response.text()));

    expect(readFileSync(file, 'utf8')).toContain('"HttpOnly at example.com: [redacted]"');
  });

  it('hides what a failed connection quotes', async () => {
    const server = await startServer();
    const fetch = async (): Promise<Response> => {
      throw new TypeError(`cannot send ${KEY}`);
    };
    const file = await record(server, (through) => post(through, server.baseUrl, {}, { headers: { authorization: KEY } }).catch(() => undefined), { fetch });

    expect(readFileSync(file, 'utf8')).toContain('"message": "cannot send [redacted]"');
  });

  it.each([
    ['sk-live-SECRET1 and x', 'sk-live-SECRET1 and x', true],
    ['sk-live-SECRET1 and x', 'another and x', true],
    ['sk-live-SECRET1 and x', ' and x', true],
    ['sk-live-SECRET1 and x', 'another and y', false],
    ['x and sk-live-SECRET1', 'y and another', false],
    ['a sk-live-SECRET1 a', 'a a', false],
    ['a bsk-live-SECRET1bsk-live-SECRET1c', 'a b1c', false],
    ['xb sk-live-SECRET1 b sk-live-SECRET1 c', 'xb 1 b 2 c', true],
  ])('of the recorded %j the text %j is the same: %s', async (recorded, got, isSame) => {
    const server = await startServer(ok);
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { say: recorded }, { headers: { 'x-api-key': 'sk-live-SECRET1' } }));

    const asked = post((await createCassette(file)).fetch, server.baseUrl, { say: got });
    expect(await asked.then(() => true, () => false)).toBe(isSame);
  });

  it('takes no numbers of tokens for secrets', async () => {
    const server = await startServer(answer('{"used":30000000}', 200, { 'x-ratelimit-limit-tokens': '30000000' }));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}).then((response) => response.text()));

    expect(readFileSync(file, 'utf8')).toContain('30000000');
  });

  it('masks named fields of requests and answers, events included, and parameters', async () => {
    const server = await startServer(answer('data: {"id":"chat-1","by":{"user":"jane"},"n":1.0}\r\n\r\ndata: {"id": "chat-1", "x": 1}\n\ndata: [DONE]\n\n'));
    const redact = ['**.user', 'tags[*]', '?tenant', 'deep["odd key"]'];
    const send = (fetch: typeof globalThis.fetch, name: string): Promise<string> =>
      post(fetch, `${server.baseUrl}?tenant=${name}`, { user: { name }, tags: [name, 1], deep: { 'odd key': name, tags: ['kept'] } }).then((response) => response.text());
    const file = await record(server, (fetch) => send(fetch, 'jane'), { redact });

    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain('jane');
    expect(text).toContain('kept');
    const { fetch } = await createCassette(file);
    // What is hidden matches anything, also without the option; lines that hide nothing keep their bytes.
    expect(await send(fetch, 'john')).toBe('data: {"id":"chat-1","by":{"user":"[redacted]"},"n":1}\r\n\r\ndata: {"id": "chat-1", "x": 1}\n\ndata: [DONE]\n\n');
  });

  it('lets a function change every text, and compares what it made of it', async () => {
    const server = await startServer(answer('Jane says hi'));
    const redact = [(text: string, path: string): string => (path === 'kept' ? text : text.replaceAll(/Jane|Joan/g, 'NAME'))];
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { say: 'I am Jane', kept: 'Jane' }).then((response) => response.text()), { redact });

    const text = readFileSync(file, 'utf8');
    expect(text).toContain('"say": "I am NAME"');
    expect(text).toContain('"kept": "Jane"');
    expect(text).toContain('"NAME says hi"');
    const { fetch } = await createCassette(file, { redact });
    expect((await llmErrorOf(post(fetch, server.baseUrl, { say: 'I am Bob', kept: 'Jane' }))).message).toContain('say: recorded "I am NAME", got "I am Bob"');
    expect((await post(fetch, server.baseUrl, { say: 'I am Joan', kept: 'Jane' })).status).toBe(200);
  });

  it('refuses what a function returns if it is no text', async () => {
    const { fetch } = await createCassette('never-written.json', { redact: [(() => undefined) as never] });
    const server = await startServer(ok);
    await post(fetch, server.baseUrl, { say: 'x' });

    await expect(record(server, (live) => post(live, server.baseUrl, { say: 'x' }), { redact: [(() => 7) as never] })).rejects.toThrow(
      /TypeError|a function of `redact` must return a text, not number/,
    );
  });

  it('leaves the pieces of a body where they were, as far as it can', async () => {
    const server = await startServer();
    const sent = ['data: {"a":', '"1"}\n', '\ndata: key-SEC', 'RET123 and', ' more\n', '\nend'];
    const live = async (): Promise<Response> => new Response(Readable.toWeb(Readable.from(sent.map((piece) => Buffer.from(piece)))) as ReadableStream<Uint8Array>);
    const headers = { 'x-api-key': 'key-SECRET123' };
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}, { headers }).then((response) => response.text()), { fetch: live });

    const pieces = await piecesOf(await post((await createCassette(file)).fetch, server.baseUrl, {}, { headers }));

    expect(pieces).toStrictEqual(['data: {"a":', '"1"}\n', '\ndata: [redact', 'ed] and mo', 're\n', '\nend']);
  });

  it('shows no secret in the message of a miss', async () => {
    const server = await startServer(ok);
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { say: 'x' }));

    const cassette = await createCassette(file);
    const error = await llmErrorOf(post(cassette.fetch, `${server.baseUrl}?api_key=QUERY-SECRET123`, { say: 'HEADER-SECRET123 QUERY-SECRET123' }, { headers: { authorization: 'Bearer HEADER-SECRET123' } }));

    expect(error.message).toContain('say: recorded "x", got "[redacted] [redacted]"');
    expect(error.message).not.toContain('SECRET123');
    expect(() => cassette.assertDone()).not.toThrow(/SECRET123/);
  });
});
