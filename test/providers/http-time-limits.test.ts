/** Time limits of requests over HTTP, on a virtual clock. Black-box, through the Chat Completions adapter, partly on a real server. */
import { setImmediate as nextTask } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LLMRequest, LLMResponse } from 'turnloop';
import type { OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { answerEvents, type Responder, startReplayServer } from '../support/replay-server.ts';
import { chatOn, delta, errorOf, events, fakeServer, finish, request, slowServer } from './fake-server.ts';
import { scope, watched } from './watched-runtime.ts';

const OK = [{ type: 'text', text: 'ok' }];

/** A chat on a clock that goes on as soon as nothing else happens. */
interface Chat extends Partial<OpenAIChatOptions> {
  readonly runtime?: VirtualRuntime;
  /** What the server sends, a piece every `everyMs`. */
  readonly pieces?: Iterable<string>;
  readonly everyMs?: number;
}

function chat({ runtime = virtualRuntime(), pieces = [], everyMs = 10, ...options }: Chat): Promise<LLMResponse> {
  const server = slowServer({ runtime, everyMs, pieces });
  return runtime.settle(chatOn(server, options).chat(request(undefined, { scope: scope(runtime) })));
}

/** The same piece again and again, after a first one. */
function* endless(piece: string, first = ''): Generator<string> {
  yield first;
  for (;;) yield piece;
}

const neverAnswers = (): Promise<Response> => new Promise(() => {});

/** Starts a server whose requests take no more than they are given, on a clock of the test's. */
async function onRealServer(responder: Responder, more: Partial<LLMRequest> & Partial<OpenAIChatOptions>) {
  const server = await startReplayServer(responder);
  onTestFinished(() => server.close());
  const clock = virtualRuntime();
  const { controller, runtime, left } = watched(clock);
  const { onDelta, ...options } = more;
  const llm = chatOn(globalThis, { baseUrl: server.baseUrl, ...options });
  const failed = errorOf(llm.chat(request(undefined, { signal: controller.signal, scope: scope(runtime), onDelta })));
  const seen = await vi.waitUntil(() => server.requests.at(-1));
  return { clock, failed, seen, left };
}

describe('time limits', () => {
  it('end a server that never answers', async () => {
    const { clock, failed, seen, left } = await onRealServer(() => {}, { timeouts: { connectMs: 40 } });
    await clock.advance(40);

    expect(await failed).toMatchObject({ kind: 'timeout', code: 'connect_timeout', retryable: true });
    await seen.closed;
    expect(left()).toBe(0);
  });

  it('end a wait for a key that never comes, with nothing sent', async () => {
    const fake = fakeServer();
    const clock = virtualRuntime();
    const { controller, runtime, left } = watched(clock);
    const waiting = chatOn(fake, { apiKey: () => new Promise<string>(() => {}), timeouts: { connectMs: 40 } });
    const error = await clock.settle(errorOf(waiting.chat(request(undefined, { signal: controller.signal, scope: scope(runtime) }))));

    expect(error).toMatchObject({ kind: 'timeout', code: 'api_key_timeout', message: expect.stringContaining('`apiKey`') });
    expect(fake.sent).toHaveLength(0);
    expect(left()).toBe(0);
  });

  it('count the wait for a key as time to connect', async () => {
    const runtime = virtualRuntime();
    const apiKey = (): Promise<string> => new Promise((resolve) => void runtime.setTimer(150, () => resolve('sk-1')));

    expect(await errorOf(chat({ runtime, fetch: neverAnswers, apiKey, timeouts: { connectMs: 200 } }))).toMatchObject({ code: 'connect_timeout' });
    expect(runtime.now()).toBe(200);
  });

  it('do not let a server that never answers take longer than the first token may', async () => {
    const runtime = virtualRuntime();

    expect(await errorOf(chat({ runtime, fetch: neverAnswers, timeouts: { connectMs: 5000, firstTokenMs: 40 } }))).toMatchObject({ kind: 'timeout' });
    expect(runtime.now()).toBe(40);
  });

  it('end a server that sends headers and no token; comments are none', async () => {
    const pieces = endless(': ping\n\n');

    expect(await errorOf(chat({ pieces, timeouts: { firstTokenMs: 85 } }))).toMatchObject({ kind: 'timeout', code: 'first_token_timeout' });
  });

  const idle: readonly (readonly [string, string])[] = [
    ['a role', events([delta({ role: 'assistant', content: '' })], '')],
    ['an empty delta', events([delta({})], '')],
    ['empty thinking', events([delta({ reasoning_content: '', reasoning_details: [{ type: 'reasoning.text', text: '', index: 0 }] })], '')],
    ['an empty fragment of a call', events([delta({ tool_calls: [{ index: 0, function: { arguments: '' } }] })], '')],
    ['no choice', events([{ choices: [] }], '')],
    ['usage', events([{ choices: [], usage: { prompt_tokens: 1, completion_tokens: 0 } }], '')],
  ];

  it.each(idle)('do not take %s for the first token', async (_name, body) => {
    const pieces = [body, events([delta({ content: 'ok' }), finish('stop')])];

    expect(await chat({ pieces, everyMs: 120, timeouts: { firstTokenMs: 5000, betweenTokensMs: 40 } })).toMatchObject({ content: expect.arrayContaining(OK) });
  });

  it.each(idle)('end a server that sends %s again and again', async (_name, body) => {
    const timeouts = { firstTokenMs: 85, betweenTokensMs: 85 };
    const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{' } };
    const afterCall = endless(body, events([delta({ tool_calls: [call] })], ''));

    expect(await errorOf(chat({ pieces: endless(body), timeouts }))).toMatchObject({ kind: 'timeout', code: 'first_token_timeout' });
    expect(await errorOf(chat({ pieces: afterCall, timeouts }))).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout' });
  });

  it.each(idle)('wait for the end no longer than between tokens when %s follows the finish reason again and again', async (_name, body) => {
    const timeouts = { firstTokenMs: 5000, betweenTokensMs: 65 };
    const afterText = endless(body, events([delta({ content: 'ok' }), finish('stop')], ''));
    const afterFilter = endless(body, events([finish('content_filter')], ''));

    expect(await chat({ pieces: afterText, timeouts })).toMatchObject({ content: expect.arrayContaining(OK), stopReason: 'end_turn' });
    expect(await chat({ pieces: afterFilter, timeouts })).toMatchObject({ stopReason: 'filtered' });
  });

  it.each([
    ['text', { content: 'x' }],
    ['a refusal', { refusal: 'x' }],
    ['thinking', { reasoning_content: 'x' }],
    ['details of thinking', { reasoning_details: [{ type: 'reasoning.text', text: 'x', index: 0 }] }],
    ['encrypted thinking', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', id: 'r' }] }],
    ['arguments', { tool_calls: [{ index: 0, function: { arguments: ' ' } }] }],
  ])('count %s as a token', async (_name, content) => {
    const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{}' } };
    const token = events([delta(content)], '');
    const pieces = [token, token, token, token, events([delta({ content: 'ok', tool_calls: [call] }), finish('stop')])];

    expect(await chat({ pieces, everyMs: 40, timeouts: { firstTokenMs: 60, betweenTokensMs: 60 } })).toMatchObject({ rawStopReason: 'stop' });
  });

  it('end a plain answer that goes on with white space alone', async () => {
    const timeouts = { firstTokenMs: 85, betweenTokensMs: 85 };

    expect(await errorOf(chat({ pieces: endless(' \n', '{"choices":'), timeouts }))).toMatchObject({ kind: 'timeout' });
  });

  it('end a server that stalls between tokens, and keep the text', async () => {
    const stall: Responder = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(events([delta({ content: 'par' })], ''));
    };
    let arrive = (): void => {};
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const { clock, failed, seen, left } = await onRealServer(stall, { timeouts: { betweenTokensMs: 40 }, onDelta: () => arrive() });
    await arrived;
    await clock.advance(40);

    expect(await failed).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout', retryable: true, partial: [{ text: 'par' }] });
    await seen.closed;
    expect(left()).toBe(0);
  });

  it('do not end a slow server that keeps sending, with one timer at a time', async () => {
    const clock = virtualRuntime();
    const setTimer = vi.fn(clock.setTimer);
    const pieces = [...Array.from({ length: 8 }, () => events([delta({ content: 'x' })], '')), events([finish('stop')])];
    const server = slowServer({ runtime: clock, everyMs: 25, pieces });
    const answering = chatOn(server, { timeouts: { betweenTokensMs: 120 } }).chat(request(undefined, { scope: scope({ ...clock, setTimer }) }));

    expect((await clock.settle(answering)).content).toStrictEqual([{ type: 'text', text: 'xxxxxxxx' }]);
    expect(setTimer.mock.calls.length).toBeLessThan(8);
  });

  it('BR-094: may be Infinity and huge, which is none', async () => {
    const onWarning = vi.fn();
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    const server = await startReplayServer(answerEvents([delta({ content: 'ok' }), finish('stop')]));
    onTestFinished(() => server.close());
    const timeouts = { connectMs: Infinity, firstTokenMs: 1e12, betweenTokensMs: Infinity };

    await chatOn(globalThis, { baseUrl: server.baseUrl, timeouts }).chat(request());
    await nextTask();

    expect(onWarning).not.toHaveBeenCalled();
  });

  it('do not come into it when the stream stays open after its end mark', async () => {
    const fake = fakeServer({ body: events([delta({ content: 'ok' }), finish('stop')]), open: true });

    expect(await chat({ fetch: fake.fetch })).toMatchObject({ content: [{ text: 'ok' }] });
    expect(fake.cancelled()).toBe(1);
  });

  it('let it be said what is wrong with a reply that is over, also if its stream is left open', async () => {
    const open = { body: events([delta({ content: ' ' }), finish('stop')]), open: true };
    const failed = { status: 500, body: 'out of order', open: true };

    expect(await errorOf(chat({ fetch: fakeServer(open).fetch }))).toMatchObject({ kind: 'malformed_response', code: 'empty' });
    expect(await errorOf(chat({ fetch: fakeServer(failed).fetch }))).toMatchObject({ kind: 'server', status: 500 });
  });

  it('take a finished reply whose stream is left open for complete', async () => {
    const fake = fakeServer({ body: events([delta({ content: 'ok' }), finish('stop')], ''), open: true });

    expect(await chat({ fetch: fake.fetch, timeouts: { betweenTokensMs: 30 } })).toMatchObject({ stopReason: 'end_turn' });
  });
});
