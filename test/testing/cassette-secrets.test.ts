/** F2: a cassette hides what is secret by its name, in whatever form it stands, and what a path names, wherever it leads. */
import { readFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createCassette, type CassetteOptions } from 'turnloop/testing/cassette';
import { answer, type Responder } from '../support/replay-server.ts';
import { errorOf, post, record, startServer } from './cassette-support.ts';

const KEY = 'SECRET-123"/+=';
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** What a file holds after one request, and that the request is replayed from it. */
async function fileAfter(init: RequestInit, responder: Responder = answer('{}'), options: CassetteOptions = {}): Promise<string> {
  const server = await startServer(responder);
  const send = async (fetch: typeof globalThis.fetch): Promise<unknown> => (await fetch(server.baseUrl, { method: 'POST', ...init })).text();
  const file = await record(server, send, options);
  const cassette = await createCassette(file, { ...options, mode: 'replay' });
  await send(cassette.fetch);
  cassette.assertDone();
  return readFileSync(file, 'utf8');
}

describe('F2: a body', () => {
  it.each<[string, string]>([
    ['a member of JSON', JSON.stringify({ mcp_servers: [{ url: 'http://x', authorization_token: KEY }] })],
    ['a header within JSON', JSON.stringify({ tools: [{ headers: { Authorization: `Bearer ${KEY}` } }], say: KEY })],
    ['another spelling of it', JSON.stringify({ apiKey: KEY, API_KEY: KEY, 'x-api-key': KEY, clientSecret: KEY, password: KEY })],
    ['JSON within a text of JSON', JSON.stringify({ arguments: JSON.stringify({ inner: JSON.stringify({ password: `${KEY}\\` }), after: 1 }) })],
    ['JSON that was cut off', JSON.stringify({ model: 'm', api_key: KEY }).slice(0, -3)],
    ['a form', new URLSearchParams({ grant_type: 'refresh_token', client_secret: KEY }).toString()],
    ['an address in a text', `see http://example.com/y?a=1&token=${encodeURIComponent(KEY)} there`],
  ])('keeps no key that stands in %s', async (_where, body) => {
    const file = await fileAfter({ body }, answer(body));

    expect(file).not.toContain('SECRET-123');
    expect(file.match(/\[redacted\]/g)!.length).toBeGreaterThanOrEqual(2);
  });

  it('keeps what stands beside a key as it is', async () => {
    const body = JSON.stringify({ arguments: JSON.stringify({ before: 'a "quoted" text\\', password: KEY, after: '\\"' }), token: 'Hel', key: 'city', max_tokens: 'few', signature: 'c2ln' });

    expect(JSON.parse(await fileAfter({ body }))).toMatchObject({ exchanges: [{ request: { body: { json: JSON.parse(body.replace(inJson(inJson(KEY)), '[redacted]')) as unknown } } }] });
  });

  it.each<[string, string, (bytes: string) => Buffer]>([
    ['gzip', 'gzip', gzipSync],
    ['brotli', 'br', brotliCompressSync],
    ['what nobody can unpack', 'secret-coding', (text) => Buffer.from([...Buffer.from(text)].map((byte) => byte ^ 1))],
    ['gzip that is none', 'gzip', (text) => Buffer.from(text)],
  ])('is searched though it is packed as %s', async (_name, coding, pack) => {
    const file = await fileAfter({ headers: { 'content-encoding': coding }, body: new Uint8Array(pack(JSON.stringify({ password: KEY, say: 'hi' }))) });

    expect(file).not.toContain('SECRET-123');
    expect(file).toContain('[redacted]');
    expect(file.includes('"say": "hi"')).toBe(coding !== 'secret-coding' && _name !== 'gzip that is none');
  });

  it('is replayed though it is a form whose boundary is another each time', async () => {
    const server = await startServer(answer('ok'));
    const form = (): FormData => {
      const data = new FormData();
      data.set('purpose', 'user_data');
      data.set('file', new Blob([new Uint8Array([0, 255, 10])]), 'a.bin');
      return data;
    };
    const file = await record(server, (fetch) => fetch(server.baseUrl, { method: 'POST', body: form() }).then((response) => response.text()));

    const { fetch } = await createCassette(file);
    expect(await (await fetch(server.baseUrl, { method: 'POST', body: form() })).text()).toBe('ok');
  });
});

describe('F2: a secret', () => {
  it.each<[string, string]>([
    ['base64', Buffer.from(KEY).toString('base64')],
    ['base64 of addresses', Buffer.from(KEY).toString('base64url')],
    ['hex', Buffer.from(KEY).toString('hex')],
    ['an address', encodeURIComponent(KEY)],
    ['JSON', inJson(KEY)],
    ['JSON within JSON', inJson(inJson(KEY))],
  ])('is hidden in an answer that quotes it as %s', async (_form, quoted) => {
    const file = await fileAfter({ headers: { 'x-api-key': KEY } }, answer(`you sent <${quoted}>`));

    expect(file).toMatch(/you sent <\[redacted\]=*>/);
  });

  it.each<[string, string]>([
    ['authorization', `ApiKey id:${KEY}`],
    ['authorization', `Basic ${Buffer.from(`user:${KEY}`).toString('base64')}`],
    ['cookie', `a=b; sid="${KEY}"`],
    ['x-jwt', KEY],
    ['bearer', KEY],
    ['session-id', KEY],
    ['org-id', KEY],
    ['workspace-id', KEY],
    ['x-account-id', KEY],
    ['x-tenant-id', KEY],
  ])('is known from the header %s: %s', async (name, value) => {
    expect(await fileAfter({ headers: { [name]: value } }, answer(`you are ${KEY}`))).toContain('you are [redacted]');
  });

  it('is hidden where a header of the answer holds an address with it, and in the words of its status', async () => {
    const responder: Responder = (response) => {
      response.writeHead(401, `Bad key ${KEY.slice(0, 10)}`, { location: 'http://h/?api_key=other-SECRET-123&x=1' }).end('no');
    };
    const file = await fileAfter({ headers: { 'x-api-key': KEY.slice(0, 10) } }, responder, { headers: ['location'] });

    expect(file).not.toContain('SECRET-123');
    expect(file).toContain('http://h/?api_key=[redacted]&x=1');
    expect(file).toContain('Bad key [redacted]');
  });

  it('is hidden in the code of a connection that failed', async () => {
    const server = await startServer();
    const failing: typeof globalThis.fetch = () => Promise.reject(Object.assign(new Error('failed'), { code: `E_${KEY.slice(0, 10)}` }));
    const file = await record(server, (fetch) => errorOf(post(fetch, server.baseUrl, {}, { headers: { 'x-api-key': KEY.slice(0, 10) } })), { fetch: failing });

    expect(readFileSync(file, 'utf8')).toContain('"code": "E_[redacted]"');
  });
});

describe('F2: a path to hide', () => {
  it.each<[string, string, string]>([
    ['metadata.*', '{"metadata":{"a.b":"SECRET","":"SECRET","x y":"SECRET","é":"SECRET","1":"SECRET"},"other":"said"}', 'said'],
    ['metadata.**', '{"metadata":{"deep":[{"a.b":"SECRET"}]},"other":"said"}', 'said'],
    ['metadata["a.b"]', '{"metadata":{"a.b":"SECRET","ab":"said"}}', 'said'],
    ['metadata["1"]', '{"metadata":{"1":"SECRET","2":"said"}}', 'said'],
    ['metadata.é', '{"metadata":{"é":"SECRET","e":"said"}}', 'said'],
    ['**.email', '{"email":"SECRET","a":[{"x y":{"email":"SECRET"}}],"b":"said"}', 'said'],
    ['calls[*].arguments.email', JSON.stringify({ calls: [{ arguments: JSON.stringify({ email: 'SECRET', city: 'said' }) }] }), 'said'],
    ['**', '{"a":"SECRET","b":["SECRET"]}', ''],
  ])('%s hides what it names in %s', async (path, body, left) => {
    const file = await fileAfter({ body }, answer(body), { redact: [path] });

    expect(file).not.toContain('SECRET');
    expect(file).toContain(left);
  });

  it.each<[string, string]>([
    ['data of several lines', 'event: x\ndata: {"email":\ndata: "SECRET"}\n\ndata: {"email":"SECRET"}\ndata: {"said":1}\n\n'],
    ['an event that was cut off', 'data: {"said":1}\n\ndata: {"email":"SEC'],
    ['JSON that was cut off', '{"said":1,"list":[{"email":"SECRET"'],
    ['a list that was cut off', '[{"said":1},{"email":"SECRET"'],
  ])('leads into %s', async (_what, body) => {
    const file = await fileAfter({ body: '{}' }, answer(body), { redact: ['**.email'] });

    expect(file).not.toContain('SEC');
  });

  it('leaves an end of events alone, and what is no JSON', async () => {
    expect(await fileAfter({ body: 'plain' }, answer('data: {"a":1}\n\ndata: [DONE]\n\n'), { redact: ['email'] })).toContain('data: [DONE]');
  });

  it.each(['a[', 'a]', 'a..b', '.a', 'a.', '$.metadata.user_id', '$', 'messages.0.content', 'messages[].content', 'metadata.user_id ', 'a b', '?', 'a["b]', 'a"b"', '*a', '0'])(
    'is refused where it leads nowhere: %j',
    async (path) => {
      for (const option of ['redact', 'ignore'] as const) {
        await expect(createCassette('never.json', { [option]: [path] })).rejects.toThrow(new RegExp(`^createCassette: ".*" in \`${option}\` is no path: it cannot be read from .* Write metadata\\.user_id`));
      }
    },
  );

  it('is for what may differ, too: `**` is all there is in a body', async () => {
    const server = await startServer(answer('ok'));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, { a: 1, b: [2] }).then((response) => response.text()));

    const { fetch } = await createCassette(file, { ignore: ['**'] });
    expect(await (await post(fetch, server.baseUrl, { a: 3, c: 4 })).text()).toBe('ok');
  });
});

describe('F2: a function that hides', () => {
  it('and throws is named, with where it was, and nothing is written', async () => {
    const server = await startServer(answer('{}'));
    const redact = [
      (): string => {
        throw new Error('no such word');
      },
    ];
    const failure = await errorOf(record(server, async (fetch) => (await post(fetch, server.baseUrl, { say: 'hi' })).text(), { redact }));

    expect(failure).toBeInstanceOf(TypeError);
    expect(String(failure)).toMatch(/a function of `redact` failed at `(url|say)`: no such word/);
  });
});

describe('F2: an answer', () => {
  it('says where it came from, and in the words of its status', async () => {
    const responder: Responder = (response, { url }) => {
      if (url === '/there') response.writeHead(218, 'This is fine').end('here');
      else response.writeHead(307, { location: '/there' }).end();
    };
    const server = await startServer(responder);
    const file = await record(server, (fetch) => post(fetch, `${server.baseUrl}/here`, {}).then((response) => response.text()));

    const { url, status, statusText } = await post((await createCassette(file)).fetch, `${server.baseUrl}/here`, {});
    expect([new URL(url).pathname, status, statusText]).toStrictEqual(['/there', 218, 'This is fine']);
  });

  it('has the address that was asked for, key and all, where nothing led elsewhere', async () => {
    const server = await startServer(answer('ok'));
    const file = await record(server, (fetch) => fetch(`${server.baseUrl}?key=${KEY}`).then((response) => response.text()));

    expect((await (await createCassette(file)).fetch(`${server.baseUrl}?key=mine`)).url).toBe(`${server.baseUrl}?key=mine`);
  });

  it('to a request for its head has no body', async () => {
    const server = await startServer(answer('', 200));
    const file = await record(server, (fetch) => fetch(server.baseUrl, { method: 'HEAD' }));

    expect((await (await createCassette(file)).fetch(server.baseUrl, { method: 'HEAD' })).body).toBeNull();
  });
});
