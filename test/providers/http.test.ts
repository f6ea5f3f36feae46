/**
 * Requests over HTTP: aborts, broken connections and what must not stay behind. Black-box, through the
 * Chat Completions adapter, partly on a real server.
 */
import { setImmediate as nextTask } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type LLM, type LLMDelta, systemRuntime, userMessage } from 'turnloop';
import { openAIChat, type OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { answer, answerEvents, type ReplayServer, type Responder, startReplayServer } from '../support/replay-server.ts';
import { chatOn, delta, errorOf, events, fakeServer, finish, request } from './fake-server.ts';
import { scope, watched } from './watched-runtime.ts';

let server: ReplayServer;

beforeAll(async () => {
  server = await startReplayServer();
});

afterAll(() => server.close());

function llm(options: Partial<OpenAIChatOptions> = {}): LLM {
  return openAIChat({ model: 'm', apiKey: 'sk-1', baseUrl: server.baseUrl, ...options });
}

/** Sends one text event and leaves the answer open. */
const stall: Responder = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(events([delta({ content: 'par' })], ''));
};

describe('abort', () => {
  it('closes the connection, which the server sees, and keeps the partial text', async () => {
    server.respond(stall);
    const { controller, runtime, left } = watched(systemRuntime);
    const onDelta = (): void => controller.abort();

    const error = await errorOf(llm().chat(request(undefined, { signal: controller.signal, onDelta, scope: scope(runtime) })));

    expect(error).toMatchObject({ kind: 'aborted', retryable: false, partial: [{ type: 'text', text: 'par' }] });
    await server.requests.at(-1)?.closed;
    expect(left()).toBe(0);
  });

  it('BR-157, GN10: sends nothing when it was there before', async () => {
    const apiKey = vi.fn(() => 'k');
    const fake = fakeServer();
    const signal = AbortSignal.abort();

    expect(await errorOf(chatOn(fake, { apiKey }).chat(request(undefined, { signal })))).toMatchObject({ kind: 'aborted' });
    expect(fake.sent).toHaveLength(0);
    expect(apiKey).not.toHaveBeenCalled();
  });

  it('BR-070: cancels the body once, and settles at once on a body that never ends', async () => {
    const fake = fakeServer({ body: events([delta({ content: 'x' })], ''), open: true });
    const controller = new AbortController();
    const onDelta = (): void => void nextTask().then(() => controller.abort());

    const error = await errorOf(chatOn(fake).chat(request(undefined, { signal: controller.signal, onDelta })));

    expect(error).toMatchObject({ kind: 'aborted', partial: [{ text: 'x' }] });
    expect(fake.cancelled()).toBe(1);
  });

  it('BR-070: is an abort also when the reader says that all is done', async () => {
    const controller = new AbortController();
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        stream.enqueue(new TextEncoder().encode(events([delta({ content: 'x' }), finish('stop')], '')));
        controller.signal.addEventListener('abort', () => stream.close());
      },
    });
    const onDelta = (): void => void nextTask().then(() => controller.abort());
    const fetch = async (): Promise<Response> => new Response(body);

    expect(await errorOf(chatOn({ fetch }).chat(request(undefined, { signal: controller.signal, onDelta })))).toMatchObject({ kind: 'aborted' });
  });

  it('GN10: in the last delta is still an abort, and nothing is delivered after it', async () => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const fake = fakeServer({ body: events([delta({ content: 'a' }), delta({ content: 'b' }), finish('stop')]) });
    const onDelta = (each: LLMDelta): void => {
      deltas.push(each);
      controller.abort();
    };

    expect(await errorOf(chatOn(fake).chat(request(undefined, { signal: controller.signal, onDelta })))).toMatchObject({ kind: 'aborted' });
    expect(deltas).toHaveLength(1);
  });

  it('EE7: wins over whatever fetch throws, and settles when fetch ignores it', async () => {
    const controller = new AbortController();
    const late = fakeServer({ body: 'x', open: true });
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const fetch = async (...args: Parameters<typeof globalThis.fetch>): Promise<Response> => {
      controller.abort();
      await answered;
      return late.fetch(...args);
    };

    expect(await errorOf(chatOn({ fetch }).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted' });
    answer();
    await vi.waitFor(() => expect(late.cancelled()).toBe(1));
  });

  it('settles while the key is being fetched', async () => {
    const controller = new AbortController();
    const apiKey = (): Promise<string> => {
      controller.abort();
      return new Promise(() => {});
    };
    const waiting = chatOn(fakeServer(), { apiKey }).chat(request(undefined, { signal: controller.signal }));

    expect(await errorOf(waiting)).toMatchObject({ kind: 'aborted' });
  });

  it('XC4: leaves the adapter usable', async () => {
    server.respond(stall);
    const controller = new AbortController();
    const model = llm();
    await errorOf(model.chat(request(undefined, { signal: controller.signal, onDelta: () => controller.abort() })));

    server.respond(answerEvents([delta({ content: 'ok' }), finish('stop')]));
    expect(await model.chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
  });

  it('BR-044: leaves no listener on a signal that sees many requests', async () => {
    server.respond(answerEvents([delta({ content: 'ok' }), finish('stop')]));
    const { controller, runtime, left } = watched(systemRuntime);

    for (let count = 0; count < 30; count += 1) await llm().chat(request(undefined, { signal: controller.signal, scope: scope(runtime) }));

    expect(left()).toBe(0);
  });
});

describe('connections', () => {
  it.each([
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['ECONNRESET', 'network'],
    ['ENOTFOUND', 'network'],
  ])('BR-091, EE8: a fetch that fails with %s is %s', async (code, kind) => {
    const fetch = async (): Promise<Response> => {
      throw new TypeError('fetch failed', { cause: Object.assign(new Error('at https://x/?key=1'), { code }) });
    };

    expect(await errorOf(chatOn({ fetch }).chat(request()))).toMatchObject({ kind, code, retryable: true, message: expect.stringContaining(code) });
  });

  it.each([
    ['UND_ERR_BODY_TIMEOUT', 'timeout'],
    ['ECONNRESET', 'network'],
    [undefined, 'network'],
  ])('BR-091, EE8: a body that breaks with %s is %s, with the text so far', async (code, kind) => {
    const failure = new TypeError('terminated', { cause: code === undefined ? undefined : { code } });
    const fake = fakeServer({ body: events([delta({ content: 'par' })], ''), failure });

    expect(await errorOf(chatOn(fake).chat(request()))).toMatchObject({ kind, partial: [{ text: 'par' }] });
  });

  it('reports a server that is not there', async () => {
    const gone = await startReplayServer();
    await gone.close();

    const error = await errorOf(llm({ baseUrl: gone.baseUrl }).chat(request()));

    expect(error).toMatchObject({ kind: 'network', code: 'ECONNREFUSED' });
  });

  it('reports a connection that the server drops in the middle', async () => {
    let drop = (): void => {};
    server.respond((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(events([delta({ content: 'par' })], ''));
      drop = () => response.destroy();
    });

    expect(await errorOf(llm().chat(request(undefined, { onDelta: () => drop() })))).toMatchObject({ kind: 'network', retryable: true, partial: [{ text: 'par' }] });
  });

  it('does not follow redirects, and says where they point', async () => {
    server.respond(answer('', 307, { location: 'https://elsewhere.example/v1?token=abcdef' }));

    const error = await errorOf(llm().chat(request()));

    expect(error).toMatchObject({ kind: 'not_found', code: 'redirect', message: expect.stringContaining('https://elsewhere.example/v1') });
    expect(error.message).not.toContain('abcdef');
  });

  it('BR-112: lets go of the body of an error, also of one that never ends', async () => {
    const whole = fakeServer({ status: 429, body: '{"error":{"message":"slow"}}' });
    const endless = fakeServer({ status: 500, body: 'x'.repeat(70_000), open: true });

    expect(await errorOf(chatOn(whole).chat(request()))).toMatchObject({ kind: 'rate_limit' });
    expect(await errorOf(chatOn(endless).chat(request()))).toMatchObject({ kind: 'server' });
    expect([whole.cancelled(), endless.cancelled()]).toStrictEqual([0, 1]);
  });

  it('uses a connection again', async () => {
    const ports = new Set<unknown>();
    const fresh = await startReplayServer((response, seen) => {
      ports.add(response.req.socket.remotePort);
      return answerEvents([delta({ content: 'ok' }), finish('stop')])(response, seen);
    });

    for (let count = 0; count < 5; count += 1) await llm({ baseUrl: fresh.baseUrl }).chat(request([userMessage(`n${count}`)]));
    await fresh.close();

    // Cutting the body off at the end mark would cost a connection each time.
    expect(ports.size).toBeLessThan(3);
  });

  it('XC1: reads answers of concurrent requests apart', async () => {
    server.respond(async (response, { body }) => {
      const name = JSON.parse(body).messages[0].content as string;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const piece of name) {
        response.write(events([delta({ content: piece })], ''));
        await nextTask();
      }
      response.end(events([finish('stop')]));
    });
    const model = llm();
    const names = Array.from({ length: 10 }, (_, at) => `name-${at}`);

    const replies = await Promise.all(names.map((name) => model.chat(request([userMessage(name)]))));

    expect(replies.map(({ content }) => content)).toStrictEqual(names.map((text) => [{ type: 'text', text }]));
  });
});
