/**
 * Requests over HTTP: aborts, time limits, broken connections and what must not stay behind. Black-box, through the
 * Chat Completions adapter, partly on a real server.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type LLM, type LLMDelta, type Runtime, systemRuntime, userMessage } from 'turnloop';
import { openAIChat, type OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { answer, answerEvents, type ReplayServer, type Responder, startReplayServer } from '../support/replay-server.ts';
import { chatOn, delta, errorOf, events, fakeServer, finish, request } from './fake-server.ts';

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

/** Counts the listeners on a signal and the timers of a runtime that are still there. */
function watched(): { controller: AbortController; runtime: Runtime; left: () => number } {
  const controller = new AbortController();
  let left = 0;
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  const listeners = new Set<unknown>();
  signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
    listeners.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (type: string, listener: EventListener) => {
    listeners.delete(listener);
    remove(type, listener);
  };
  const runtime: Runtime = {
    ...systemRuntime,
    setTimer(delayMs, callback) {
      left += 1;
      let isOpen = true;
      const close = (): void => {
        if (isOpen) left -= 1;
        isOpen = false;
      };
      const cancel = systemRuntime.setTimer(delayMs, () => {
        close();
        callback();
      });
      return () => {
        close();
        cancel();
      };
    },
  };
  return { controller, runtime, left: () => left + listeners.size };
}

function scope(runtime: Runtime): { turnId: string; step: number; stepId: string; runtime: Runtime; notify: () => void } {
  return { turnId: 't', step: 1, stepId: 's', runtime, notify: () => {} };
}

describe('abort', () => {
  it('closes the connection, which the server sees, and keeps the partial text', async () => {
    server.respond(stall);
    const { controller, runtime, left } = watched();
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
    setTimeout(() => controller.abort(), 20);

    const error = await errorOf(chatOn(fake).chat(request(undefined, { signal: controller.signal })));

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
    setTimeout(() => controller.abort(), 20);
    const fetch = async (): Promise<Response> => new Response(body);

    expect(await errorOf(chatOn({ fetch }).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted' });
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
    const fetch = async (...args: Parameters<typeof globalThis.fetch>): Promise<Response> => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return late.fetch(...args);
    };
    setTimeout(() => controller.abort(), 10);

    expect(await errorOf(chatOn({ fetch }).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted' });
    await vi.waitFor(() => expect(late.cancelled()).toBe(1));
  });

  it('settles while the key is being fetched', async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 10);
    const waiting = chatOn(fakeServer(), { apiKey: () => new Promise<string>(() => {}) }).chat(request(undefined, { signal: controller.signal }));

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
    const { controller, runtime, left } = watched();

    for (let count = 0; count < 30; count += 1) await llm().chat(request(undefined, { signal: controller.signal, scope: scope(runtime) }));

    expect(left()).toBe(0);
  });
});

describe('time limits', () => {
  it('ends a server that never answers', async () => {
    server.respond(() => {});

    expect(await errorOf(llm({ timeouts: { connectMs: 40 } }).chat(request()))).toMatchObject({ kind: 'timeout', code: 'connect_timeout', retryable: true });
    await server.requests.at(-1)?.closed;
  });

  it('ends a wait for a key that never comes, with nothing sent', async () => {
    const fake = fakeServer();
    const { controller, runtime, left } = watched();
    const waiting = chatOn(fake, { apiKey: () => new Promise<string>(() => {}), timeouts: { connectMs: 40 } });
    const error = await errorOf(waiting.chat(request(undefined, { signal: controller.signal, scope: scope(runtime) })));

    expect(error).toMatchObject({ kind: 'timeout', code: 'api_key_timeout', message: expect.stringContaining('`apiKey`') });
    expect(fake.sent).toHaveLength(0);
    expect(left()).toBe(0);
  });

  it('counts the wait for a key as time to connect', async () => {
    server.respond(() => {});
    const startedAt = Date.now();
    const apiKey = async (): Promise<string> => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return 'sk-1';
    };

    expect(await errorOf(llm({ apiKey, timeouts: { connectMs: 200 } }).chat(request()))).toMatchObject({ code: 'connect_timeout' });
    expect(Date.now() - startedAt).toBeLessThan(330);
  });

  it('does not let a server that never answers take longer than the first token may', async () => {
    server.respond(() => {});

    expect(await errorOf(llm({ timeouts: { connectMs: 5000, firstTokenMs: 40 } }).chat(request()))).toMatchObject({ kind: 'timeout' });
  }, 2000);

  it('ends a server that sends headers and no token; comments are none', async () => {
    server.respond((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => response.write(': ping\n\n'), 10);
      response.on('close', () => clearInterval(timer));
    });

    expect(await errorOf(llm({ timeouts: { firstTokenMs: 80 } }).chat(request()))).toMatchObject({ kind: 'timeout', code: 'first_token_timeout' });
  });

  const idle: readonly (readonly [string, string])[] = [
    ['a role', events([delta({ role: 'assistant', content: '' })], '')],
    ['an empty delta', events([delta({})], '')],
    ['empty thinking', events([delta({ reasoning_content: '', reasoning_details: [{ type: 'reasoning.text', text: '', index: 0 }] })], '')],
    ['an empty fragment of a call', events([delta({ tool_calls: [{ index: 0, function: { arguments: '' } }] })], '')],
    ['no choice', events([{ choices: [] }], '')],
    ['usage', events([{ choices: [], usage: { prompt_tokens: 1, completion_tokens: 0 } }], '')],
  ];

  const OK = [{ type: 'text', text: 'ok' }];

  function everyTenMs(body: string, first = ''): Responder {
    return (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(first);
      const timer = setInterval(() => response.write(body), 10);
      response.on('close', () => clearInterval(timer));
    };
  }

  it.each(idle)('does not take %s for the first token', async (_name, body) => {
    server.respond(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(body);
      await new Promise((resolve) => setTimeout(resolve, 120));
      response.end(events([delta({ content: 'ok' }), finish('stop')]));
    });

    expect(await llm({ timeouts: { firstTokenMs: 5000, betweenTokensMs: 40 } }).chat(request())).toMatchObject({ content: expect.arrayContaining(OK) });
  });

  it.each(idle)('ends a server that sends %s again and again', async (_name, body) => {
    const timeouts = { firstTokenMs: 80, betweenTokensMs: 80 };
    const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{' } };

    server.respond(everyTenMs(body));
    expect(await errorOf(llm({ timeouts }).chat(request()))).toMatchObject({ kind: 'timeout', code: 'first_token_timeout' });
    server.respond(everyTenMs(body, events([delta({ tool_calls: [call] })], '')));
    expect(await errorOf(llm({ timeouts }).chat(request()))).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout' });
  });

  it.each(idle)('waits for the end no longer than between tokens when %s follows the finish reason again and again', async (_name, body) => {
    const timeouts = { firstTokenMs: 5000, betweenTokensMs: 60 };

    server.respond(everyTenMs(body, events([delta({ content: 'ok' }), finish('stop')], '')));
    expect(await llm({ timeouts }).chat(request())).toMatchObject({ content: expect.arrayContaining(OK), stopReason: 'end_turn' });
    server.respond(everyTenMs(body, events([finish('content_filter')], '')));
    expect(await llm({ timeouts }).chat(request())).toMatchObject({ stopReason: 'filtered' });
  }, 2000);

  it.each([
    ['text', { content: 'x' }],
    ['a refusal', { refusal: 'x' }],
    ['thinking', { reasoning_content: 'x' }],
    ['details of thinking', { reasoning_details: [{ type: 'reasoning.text', text: 'x', index: 0 }] }],
    ['encrypted thinking', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', id: 'r' }] }],
    ['arguments', { tool_calls: [{ index: 0, function: { arguments: ' ' } }] }],
  ])('counts %s as a token', async (_name, content) => {
    server.respond(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let count = 0; count < 6; count += 1) {
        response.write(events([delta(content)], ''));
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
      response.end(events([delta({ content: 'ok', tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }), finish('stop')]));
    });

    expect(await llm({ timeouts: { firstTokenMs: 160, betweenTokensMs: 160 } }).chat(request())).toMatchObject({ rawStopReason: 'stop' });
  });

  it('ends a plain answer that goes on with white space alone', async () => {
    server.respond(everyTenMs(' \n', '{"choices":'));

    expect(await errorOf(llm({ timeouts: { firstTokenMs: 80, betweenTokensMs: 80 } }).chat(request()))).toMatchObject({ kind: 'timeout' });
  }, 2000);

  it('ends a server that stalls between tokens, and keeps the text', async () => {
    server.respond(stall);
    const { controller, runtime, left } = watched();
    const error = await errorOf(llm({ timeouts: { betweenTokensMs: 40 } }).chat(request(undefined, { signal: controller.signal, scope: scope(runtime) })));

    expect(error).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout', retryable: true, partial: [{ text: 'par' }] });
    await server.requests.at(-1)?.closed;
    expect(left()).toBe(0);
  });

  it('does not end a slow server that keeps sending, with one timer at a time', async () => {
    server.respond(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let count = 0; count < 8; count += 1) {
        response.write(events([delta({ content: 'x' })], ''));
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      response.end(events([finish('stop')]));
    });
    const setTimer = vi.fn(systemRuntime.setTimer);
    const response = await llm({ timeouts: { betweenTokensMs: 120 } }).chat(request(undefined, { scope: scope({ ...systemRuntime, setTimer }) }));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'xxxxxxxx' }]);
    expect(setTimer.mock.calls.length).toBeLessThan(8);
  });

  it('BR-094: takes Infinity and huge limits as none', async () => {
    const onWarning = vi.fn();
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    server.respond(answerEvents([delta({ content: 'ok' }), finish('stop')]));
    const timeouts = { connectMs: Infinity, firstTokenMs: 1e12, betweenTokensMs: Infinity };

    await llm({ timeouts }).chat(request());
    await new Promise((resolve) => setTimeout(resolve, 5));

    expect(onWarning).not.toHaveBeenCalled();
  });

  it('does not wait for a server that leaves the stream open after its end mark', async () => {
    const fake = fakeServer({ body: events([delta({ content: 'ok' }), finish('stop')]), open: true });

    expect(await chatOn(fake).chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
    expect(fake.cancelled()).toBe(1);
  });

  it('says what is wrong with a reply that is over, also if its stream is left open', async () => {
    const open = { body: events([delta({ content: ' ' }), finish('stop')]), open: true };
    const failed = { status: 500, body: 'out of order', open: true };

    expect(await errorOf(chatOn(fakeServer(open)).chat(request()))).toMatchObject({ kind: 'malformed_response', code: 'empty' });
    // A thousand times as fast.
    const runtime: Runtime = { ...systemRuntime, now: () => systemRuntime.now() * 1000, setTimer: (ms, callback) => systemRuntime.setTimer(ms / 1000, callback) };
    expect(await errorOf(chatOn(fakeServer(failed)).chat(request(undefined, { scope: scope(runtime) })))).toMatchObject({ kind: 'server', status: 500 });
  });

  it('takes a finished reply whose stream is left open for complete', async () => {
    const fake = fakeServer({ body: events([delta({ content: 'ok' }), finish('stop')], ''), open: true });

    expect(await chatOn(fake, { timeouts: { betweenTokensMs: 30 } }).chat(request())).toMatchObject({ stopReason: 'end_turn' });
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
    server.respond((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(events([delta({ content: 'par' })], ''));
      setTimeout(() => response.destroy(), 20);
    });

    expect(await errorOf(llm().chat(request()))).toMatchObject({ kind: 'network', retryable: true, partial: [{ text: 'par' }] });
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
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      response.end(events([finish('stop')]));
    });
    const model = llm();
    const names = Array.from({ length: 10 }, (_, at) => `name-${at}`);

    const replies = await Promise.all(names.map((name) => model.chat(request([userMessage(name)]))));

    expect(replies.map(({ content }) => content)).toStrictEqual(names.map((text) => [{ type: 'text', text }]));
  });
});
