/** F2: cassettes keep how a connection failed, where a body broke off, when pieces came, and that a client let go. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { virtualRuntime, watchedController } from 'turnloop/testing';
import { createCassette } from 'turnloop/testing/cassette';
import { ADAPTERS } from '../providers/every-adapter.ts';
import { answer } from '../support/replay-server.ts';
import { ask, asking, errorOf, llmErrorOf, makeFolder, piecesOf, post, record, startServer } from './cassette-support.ts';

const SSE = { 'content-type': 'text/event-stream' };

function endOf(file: string): unknown {
  const { exchanges } = JSON.parse(readFileSync(file, 'utf8')) as { exchanges: { end: object }[] };
  return exchanges[0]?.end;
}

describe.each(ADAPTERS)('F2: a cassette recorded through $name', (adapter) => {
  const whole = adapter.stream({ text: 'One two three four.' });
  const half = whole.slice(0, whole.indexOf('four.'));

  it('replays a body that was cut off: the same deltas, the same error', async () => {
    const server = await startServer((response) => {
      response.writeHead(200, SSE).write(half, () => setImmediate(() => response.destroy()));
    });
    const chat = async (fetch: typeof globalThis.fetch): Promise<unknown> => {
      const deltas: unknown[] = [];
      const error = await llmErrorOf(adapter.connect({ baseUrl: server.baseUrl, fetch }).chat(asking('Hello', { onDelta: (delta) => deltas.push(delta) })));
      return { deltas, kind: error.kind, code: error.code, message: error.message, partial: error.partial };
    };
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await chat(fetch);
    });

    expect(endOf(file)).toMatchObject({ type: 'failed' });
    expect(live).toMatchObject({ kind: 'network' });
    expect(await chat((await createCassette(file)).fetch)).toStrictEqual(live);
  });

  it('replays a server that is not there', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const baseUrl = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
    closed.close();
    const file = join(makeFolder(), 'cassette.json');
    const recording = await createCassette(file);
    const live = await llmErrorOf(ask(adapter.connect({ baseUrl, fetch: recording.fetch }), 'Hello'));
    await recording.close();

    const replayed = await llmErrorOf(ask(adapter.connect({ baseUrl, fetch: (await createCassette(file)).fetch }), 'Hello'));

    expect(replayed).toMatchObject({ kind: 'network', code: 'ECONNREFUSED', message: live.message });
  });

  it('replays what had come when the client aborted, and waits for it to abort again', async () => {
    const server = await startServer((response) => {
      response.writeHead(200, SSE).write(half);
    });
    const chat = async (fetch: typeof globalThis.fetch): Promise<unknown> => {
      const controller = new AbortController();
      const deltas: unknown[] = [];
      const onDelta = (delta: unknown): void => {
        deltas.push(delta);
        if (JSON.stringify(deltas).includes('two')) setImmediate(() => controller.abort());
      };
      const error = await llmErrorOf(adapter.connect({ baseUrl: server.baseUrl, fetch }).chat(asking('Hello', { signal: controller.signal, onDelta })));
      return { deltas, kind: error.kind };
    };
    let live: unknown;
    const file = await record(server, async (fetch) => {
      live = await chat(fetch);
    });

    expect(endOf(file)).toMatchObject({ type: 'aborted' });
    expect(live).toMatchObject({ kind: 'aborted' });
    expect(await chat((await createCassette(file)).fetch)).toStrictEqual(live);
  });
});

describe('F2: while a cassette records', () => {
  it('each piece reaches the client before the server has the next, as it is', async () => {
    const gates: (() => void)[] = [];
    const server = await startServer(async (response) => {
      response.writeHead(200, SSE).flushHeaders();
      for (const piece of ['one', 'two', 'three']) {
        await new Promise<void>((open) => void gates.push(open));
        response.write(piece);
      }
      response.end();
    });

    await record(server, async (fetch) => {
      const response = await post(fetch, server.baseUrl, {});
      expect([response.status, response.statusText, response.url, response.headers.get('content-type')]).toStrictEqual([200, 'OK', server.baseUrl, 'text/event-stream']);
      const reader = response.body!.getReader();
      for (const piece of ['one', 'two', 'three']) {
        gates.at(-1)?.();
        expect(Buffer.from((await reader.read()).value!).toString()).toBe(piece);
      }
      expect((await reader.read()).done).toBe(true);
    });
  });

  it('nothing is read that the client did not ask for', async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled += 1;
          controller.enqueue(new Uint8Array([pulled]));
        },
      },
      { highWaterMark: 0 },
    );
    const { fetch } = await createCassette(join(makeFolder(), 'cassette.json'), { fetch: async () => new Response(body) });

    const reader = (await post(fetch, 'http://h/', {})).body!.getReader();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulled).toBe(0);
    await reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulled).toBe(1);
    await reader.cancel();
  });

  it('a client may do with its bytes what it likes', async () => {
    const file = join(makeFolder(), 'cassette.json');
    const piece = new TextEncoder().encode('..said..');
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(piece.subarray(2, 6));
        controller.close();
      },
    });
    const cassette = await createCassette(file, { fetch: async () => new Response(body) });

    const reader = (await post(cassette.fetch, 'http://h/', {})).body!.getReader();
    (await reader.read()).value!.fill(0);
    await reader.read();
    await cassette.close();

    expect(await (await post((await createCassette(file)).fetch, 'http://h/', {})).text()).toBe('said');
  });

  it.each([
    ['a cause', new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) })],
    ['several', new TypeError('fetch failed', { cause: new AggregateError([Object.assign(new Error('x'), { code: 'ECONNRESET' })]) })],
    ['itself', Object.assign(new TypeError('fetch failed'), { code: 'ECONNRESET' })],
  ])('the code of a failed connection is kept that %s has', async (_name, thrown) => {
    const file = join(makeFolder(), 'cassette.json');
    const fetch = async (): Promise<Response> => {
      throw thrown;
    };
    const cassette = await createCassette(file, { fetch });
    expect(await errorOf(post(cassette.fetch, 'http://h/', {}))).toBe(thrown);
    await cassette.close();

    const replayed = await errorOf(post((await createCassette(file)).fetch, 'http://h/', {}));

    expect(replayed).toBeInstanceOf(TypeError);
    expect(replayed).toMatchObject({ message: 'fetch failed', cause: { code: 'ECONNRESET' } });
  });

  it('a client that lets go of the body lets go of the connection', async () => {
    const server = await startServer((response) => void response.writeHead(200, SSE).write('one'));

    const file = await record(server, async (fetch) => {
      const reader = (await post(fetch, server.baseUrl, {})).body!.getReader();
      await reader.read();
      await reader.cancel();
      await server.requests[0]?.closed;
    });

    expect(endOf(file)).toMatchObject({ type: 'aborted' });
  });

  it('what has not ended when it is closed counts as aborted', async () => {
    const server = await startServer((response) => void response.writeHead(200, SSE).write('one'));

    const file = await record(server, async (fetch) => {
      await (await post(fetch, server.baseUrl, {})).body!.getReader().read();
    });

    expect(endOf(file)).toMatchObject({ type: 'aborted' });
    const reader = (await post((await createCassette(file)).fetch, server.baseUrl, {})).body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('one');
  });

  it('an abort before the answer is one, and not a failure', async () => {
    const controller = new AbortController();
    const server = await startServer(() => controller.abort());

    const file = await record(server, (fetch) => errorOf(post(fetch, server.baseUrl, {}, { signal: controller.signal })));

    expect(endOf(file)).toMatchObject({ type: 'aborted' });
  });
});

describe('F2: a replay', () => {
  const PIECES = [Buffer.from('data: Gr\u{1f642}ße\r\n').subarray(0, 10), Buffer.from('data: Gr\u{1f642}ße\r\n').subarray(10), Buffer.from('end')];
  const latin1 = (pieces: readonly Buffer[]): readonly string[] => pieces.map((piece) => piece.toString('latin1'));

  /** A recording whose pieces came 1000, 1500 and 4000 ms after the request, the headers after 200, the end after 4100. */
  async function timedFile(change: (text: string) => string = (text) => text): Promise<string> {
    const runtime = virtualRuntime();
    const steps = [1000, 500, 2500];
    const fetch: typeof globalThis.fetch = async () => {
      await runtime.advance(200);
      let next = 0;
      const body = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            const piece = PIECES[next];
            await runtime.advance((steps[next] ?? 100) - (next === 0 ? 200 : 0));
            next += 1;
            if (piece === undefined) controller.close();
            else controller.enqueue(new Uint8Array(piece));
          },
        },
        { highWaterMark: 0 },
      );
      return new Response(body, { status: 200, headers: SSE });
    };
    const file = join(makeFolder(), 'cassette.json');
    const cassette = await createCassette(file, { fetch, runtime });
    await piecesOf(await post(cassette.fetch, 'http://h/', {}));
    await cassette.close();
    writeFileSync(file, change(readFileSync(file, 'utf8')));
    return file;
  }

  it('takes the time that the server took, on the clock it is given, if told so', async () => {
    const runtime = virtualRuntime({ start: 5000 });
    const { fetch } = await createCassette(await timedFile(), { timing: 'recorded', runtime });

    const response = await runtime.settle(post(fetch, 'http://h/', {}));
    const times = [runtime.now()];
    const reader = response.body!.getReader();
    for (let ended = false; !ended; ) {
      ended = (await runtime.settle(reader.read())).done;
      times.push(runtime.now());
    }

    expect(times.map((time) => time - 5000)).toStrictEqual([200, 1000, 1500, 4000, 4100]);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('answers at once by default, in the pieces that came', async () => {
    const { fetch } = await createCassette(await timedFile());

    expect(await piecesOf(await post(fetch, 'http://h/', {}))).toStrictEqual(latin1(PIECES));
  });

  it.each([
    ['bytes', 1, Buffer.concat(PIECES).length],
    ['whole', Infinity, 1],
    ['halves', (left: number): number => Math.ceil(left / 2), 5],
  ])('cuts bodies anew, into %s', async (_name, pieces, count) => {
    const { fetch } = await createCassette(await timedFile(), { pieces: pieces === Infinity ? (left: number): number => left : pieces });

    const got = await piecesOf(await post(fetch, 'http://h/', {}));

    expect(got.join('')).toBe(latin1(PIECES).join(''));
    expect(got).toHaveLength(count);
  });

  it.each([0, 0.5, Number.NaN, '3' as unknown as number])('breaks off where `pieces` gives %s, and says so', async (length) => {
    const { fetch } = await createCassette(await timedFile(), { pieces: () => length });

    await expect(post(fetch, 'http://h/', {}).then(piecesOf)).rejects.toThrow(/a function of `pieces` must return a number of at least 1, not /);
  });

  it('lets a piece come when the last of its bytes came', async () => {
    const runtime = virtualRuntime();
    const { fetch } = await createCassette(await timedFile(), { timing: 'recorded', runtime, pieces: 11 });

    const reader = (await runtime.settle(post(fetch, 'http://h/', {}))).body!.getReader();
    const times: number[] = [];
    while (!(await runtime.settle(reader.read())).done) times.push(runtime.now());

    expect(times).toStrictEqual([1500, 4000]);
  });

  it.each(['while it waits for the answer', 'while it waits for a piece'])('ends at an abort %s, with its reason, and leaves no timer and no listener', async (when) => {
    const runtime = virtualRuntime();
    const controller = watchedController();
    const { fetch } = await createCassette(await timedFile(), { timing: 'recorded', runtime });
    const asked = post(fetch, 'http://h/', {}, { signal: controller.signal });
    asked.catch(() => undefined);
    let waiting: Promise<unknown> = asked;
    if (when !== 'while it waits for the answer') {
      const reader = (await runtime.settle(asked)).body!.getReader();
      await runtime.settle(reader.read());
      waiting = reader.read();
    }
    await runtime.flush();
    expect(runtime.pendingTimers).toBe(1);

    const reason = new Error('enough');
    controller.abort(reason);

    expect(await errorOf(waiting)).toBe(reason);
    expect([runtime.pendingTimers, controller.listenerCount]).toStrictEqual([0, 0]);
  });

  it('leaves nothing behind when it is read to its end, and when it is cancelled', async () => {
    const runtime = virtualRuntime();
    const file = await timedFile();
    for (const end of ['read', 'cancel']) {
      const controller = watchedController();
      const { fetch } = await createCassette(file, { timing: 'recorded', runtime });
      const response = await runtime.settle(post(fetch, 'http://h/', {}, { signal: controller.signal }));
      if (end === 'read') await runtime.settle(response.text());
      else await response.body?.cancel();
      expect([runtime.pendingTimers, controller.listenerCount]).toStrictEqual([0, 0]);
    }
  });

  it('of what was aborted before the answer waits for the next abort', async () => {
    const file = await timedFile((text) => text.replace(/"response": \{[^]*\},\n( +)"end": \{\n +"type": "complete"/, '"end": { "type": "aborted"'));
    const controller = watchedController();
    const asked = post((await createCassette(file)).fetch, 'http://h/', {}, { signal: controller.signal });
    const state = await Promise.race([asked.catch(() => 'over'), new Promise((resolve) => setImmediate(resolve, 'waiting'))]);

    controller.abort('enough');

    expect([state, await errorOf(asked), controller.listenerCount]).toStrictEqual(['waiting', 'enough', 0]);
  });

  it('of a request whose signal is aborted already takes nothing, nor is it recorded', async () => {
    const file = await timedFile();
    for (const mode of ['replay', 'record'] as const) {
      const cassette = await createCassette(file, { mode });
      const signal = AbortSignal.abort('enough');
      expect(await errorOf(post(cassette.fetch, 'http://h/', {}, { signal }))).toBe('enough');
      expect(await errorOf(cassette.fetch(new Request('http://h/', { method: 'POST', body: '{}', signal })))).toBe('enough');
      await cassette.close();
    }
    const cassette = await createCassette(file);
    await post(cassette.fetch, 'http://h/', {});
    cassette.assertDone();
  });

  it.each([
    ['text in pieces within a character', Buffer.from('Grüße \u{1f642}'), 'text'],
    ['a byte order mark and line ends of Windows', Buffer.from('\ufeffdata: x\r\n\r\n'), 'text'],
    ['JSON as it is written by a program', Buffer.from('{"a":[1,"x"]}'), 'json'],
    ['JSON as it is written by hand', Buffer.from('{ "a": 1.0 }\n'), 'text'],
    ['keys that a program would put in another order', Buffer.from('{"b":1,"1":2,"b":3}'), 'text'],
    ['an odd key', Buffer.from('{"__proto__":{"a":1}}'), 'json'],
    ['bytes that are no text', Buffer.from([0, 255, 254, 10, 0xc3]), 'base64'],
    ['a character that is cut in two', Buffer.from('Grü').subarray(0, 3), 'base64'],
    ['many bytes that are no text', Buffer.alloc(1000, 255), 'base64'],
  ])('gives the very bytes of %s', async (_name, bytes, kind) => {
    const server = await startServer(answer([bytes.subarray(0, 3), bytes.subarray(3)]));
    const file = await record(server, (fetch) => post(fetch, server.baseUrl, {}).then((response) => response.text()));

    const response = await post((await createCassette(file, { pieces: 1 })).fetch, server.baseUrl, {});

    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`"body": {\\n +"${kind}"[^]*"body": {\\n +"${kind}"|"${kind}": [[{]`));
  });

  it.each([
    ['no bytes', answer('', 200)],
    ['no body', answer('', 204)],
  ])('gives an answer with %s', async (_name, responder) => {
    const server = await startServer(responder);
    let live: readonly unknown[] = [];
    const look = async (fetch: typeof globalThis.fetch): Promise<readonly unknown[]> => {
      const response = await post(fetch, server.baseUrl, {});
      return [response.status, response.body === null, await response.text()];
    };
    const file = await record(server, async (fetch) => {
      live = await look(fetch);
    });

    expect(await look((await createCassette(file)).fetch)).toStrictEqual(live);
  });
});
