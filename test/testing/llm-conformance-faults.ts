/** Adapters that do one thing wrong each, and the cases that have to find it. */
import { type LLM, LLMError, type LLMDelta, type LLMRequest, type LLMResponse, type ReplyPart, toLLMError, userMessage } from 'turnloop';
import type { LLMConformanceCaseId, LLMScene, LLMUnderTest } from 'turnloop/testing';
import { scriptedOnScene, toWire, type WireWriter } from './llm-conformance-scripted.ts';

/** An adapter that does one thing wrong. */
export interface Fault {
  /** What it does. */
  readonly name: string;
  /** Cases that have to fail. */
  readonly caughtBy: readonly LLMConformanceCaseId[];
  /** What the first of them has to say. */
  readonly saying: RegExp;
  readonly createLLM: (scene: LLMScene) => LLMUnderTest;
}

type Chat = LLM['chat'];

/** A fault of `chat`. */
function chatFault(caughtBy: readonly LLMConformanceCaseId[], saying: RegExp, change: (chat: Chat, scene: LLMScene) => Chat): Omit<Fault, 'name'> {
  return {
    caughtBy,
    saying,
    createLLM(scene) {
      const good = scriptedOnScene(scene);
      return { ...good, llm: { ...good.llm, chat: change(good.llm.chat, scene) } };
    },
  };
}

/** A fault in what is made of a whole reply. The fragments are left as they came, unless told otherwise. */
function replyFault(
  caughtBy: readonly LLMConformanceCaseId[],
  saying: RegExp,
  change: (response: LLMResponse) => Partial<LLMResponse>,
  changeDelta: (delta: LLMDelta) => LLMDelta = (delta) => delta,
): Omit<Fault, 'name'> {
  return chatFault(caughtBy, saying, (chat) => async (request) => {
    const { onDelta } = request;
    const response = await chat({ ...request, onDelta: onDelta && ((delta) => onDelta(changeDelta(delta))) });
    return { ...response, ...change(response) };
  });
}

/** A fault in the content of a reply. */
function partFault(
  caughtBy: readonly LLMConformanceCaseId[],
  saying: RegExp,
  change: (content: readonly ReplyPart[]) => readonly ReplyPart[],
  changeDelta?: (delta: LLMDelta) => LLMDelta,
): Omit<Fault, 'name'> {
  return replyFault(caughtBy, saying, ({ content }) => ({ content: change(content) }), changeDelta);
}

/** A fault in what is thrown. */
function errorFault(caughtBy: readonly LLMConformanceCaseId[], saying: RegExp, change: (error: LLMError, scene: LLMScene) => unknown): Omit<Fault, 'name'> {
  return chatFault(caughtBy, saying, (chat, scene) => async (request) => {
    try {
      return await chat(request);
    } catch (thrown) {
      if (request.signal.aborted) throw thrown;
      const changed = change(toLLMError(thrown), scene);
      if (isResponse(changed)) return changed;
      throw changed;
    }
  });
}

function isResponse(value: unknown): value is LLMResponse {
  return typeof value === 'object' && value !== null && 'content' in value;
}

/** A fault in how a request is written. */
function wireFault(caughtBy: readonly LLMConformanceCaseId[], saying: RegExp, write: WireWriter): Omit<Fault, 'name'> {
  return { caughtBy, saying, createLLM: (scene) => scriptedOnScene(scene, write) };
}

function changed(error: LLMError, options: Partial<LLMError>): LLMError {
  const { kind, message, retryable, retryAfterMs, partial, code, usage } = error;
  return new LLMError({ kind, message, retryable, retryAfterMs, partial, code, usage, ...options });
}

function mapCalls(content: readonly ReplyPart[], change: (call: Extract<ReplyPart, { type: 'tool_call' }>) => object): readonly ReplyPart[] {
  return content.map((part) => (part.type === 'tool_call' ? (change(part) as ReplyPart) : part));
}

const REFUSED: readonly LLMConformanceCaseId[] = [
  'errors.rate_limit',
  'errors.overloaded',
  'errors.auth',
  'errors.permission',
  'errors.not_found',
  'errors.quota',
  'errors.invalid_request',
  'errors.invalid_history',
  'errors.context_overflow',
  'errors.request_too_large',
  'errors.media_rejected',
  'errors.content_filter',
];

const FAULTS: Readonly<Record<string, Omit<Fault, 'name'>>> = {
  'has no name for its provider': {
    caughtBy: ['llm.metadata'],
    saying: /`provider` is ""/,
    createLLM(scene) {
      const good = scriptedOnScene(scene);
      return { ...good, llm: { ...good.llm, provider: '' } };
    },
  },
  'keeps the key in a field': {
    caughtBy: ['llm.secrets'],
    saying: /the LLM shows the key/,
    createLLM(scene) {
      const good = scriptedOnScene(scene);
      return { ...good, llm: Object.defineProperty({ ...good.llm }, 'options', { value: { headers: new Map([['authorization', `Bearer ${scene.apiKey}`]]) } }) };
    },
  },

  'tells no fragments': chatFault(['text.stream', 'thinking.stream', 'calls.single'], /no fragment of type `text`/, (chat) => (request) => chat({ ...request, onDelta: undefined })),
  'tells the fragments when the reply has ended': chatFault(['text.live', 'abort.in_delta'], /still coming/, (chat) => async (request) => {
    const held: LLMDelta[] = [];
    const response = await chat({ ...request, onDelta: (delta) => held.push(delta) });
    for (const delta of held) request.onDelta?.(delta);
    return response;
  }),
  'tells a fragment after the reply': chatFault(['deltas.late'], /after chat had settled/, (chat) => async (request) => {
    const response = await chat(request);
    setTimeout(() => request.onDelta?.({ type: 'text', text: '' }), 5);
    return response;
  }),
  'tells each fragment twice': chatFault(['text.stream'], /add up to/, (chat) => (request) =>
    chat({ ...request, onDelta: (delta) => [delta, delta].map((each) => request.onDelta?.(each)) }),
  ),
  'decodes each piece of bytes for itself': chatFault(['text.bytes'], /content/, (chat, { chunkBytes }) => async (request) => {
    const response = await chat({ ...request, onDelta: undefined });
    const spoil = (text: string): string => (chunkBytes === undefined ? text : text.replace(/[^\u0000-\u007f]/gu, '\ufffd\ufffd'));
    return { ...response, content: response.content.map((part) => (part.type === 'text' ? { ...part, text: spoil(part.text) } : part)) };
  }),
  'gives up early': chatFault(['text.slow'], /Too slow/, (chat) => (request) => {
    const { promise, reject } = withReject<LLMResponse>();
    const timer = setTimeout(() => reject(new LLMError({ kind: 'timeout', message: 'Too slow.' })), 20);
    return Promise.race([promise, chat(request)]).finally(() => clearTimeout(timer));
  }),
  'needs a listener': chatFault(['request.without_listener'], /onDelta/, (chat) => async (request) => {
    if (request.onDelta === undefined) throw new TypeError('request.onDelta is not a function');
    return chat(request);
  }),

  'takes thinking for text': partFault(
    ['thinking.stream'],
    /content of the reply/,
    (content) => content.map((part) => (part.type === 'thinking' ? { type: 'text', text: part.text } : part)),
    (delta) => (delta.type === 'thinking' ? { type: 'text', text: delta.text } : delta),
  ),
  'forgets what signs thinking': partFault(['thinking.signature', 'request.signature'], /`signature`/, (content) =>
    content.map((part) => (part.type === 'thinking' ? { type: 'thinking', text: part.text } : part)),
  ),
  'puts text before calls': partFault(['parts.order'], /order in which/, (content) => content.toSorted((left, right) => Number(left.type === 'tool_call') - Number(right.type === 'tool_call'))),
  'gives calls ids of its own': partFault(['calls.single'], /content\[0\] has `id`/, (content) => mapCalls(content, (call) => ({ ...call, id: 'call_1' }))),
  'parses arguments': partFault(['calls.single'], /content\[0\] has `input`/, (content) => mapCalls(content, (call) => ({ ...call, input: {} }))),
  'repairs arguments': chatFault(['calls.exact', 'calls.broken'], /content of the reply/, (chat) => async (request) => {
    const { content, ...rest } = await chat({ ...request, onDelta: undefined });
    return { ...rest, content: mapCalls(content, (call) => ({ ...call, inputText: rewritten(call.inputText) })) };
  }),
  'tells of calls without their name': chatFault(['calls.single'], /first fragment of call 0 has no `name`/, (chat) => (request) =>
    chat({ ...request, onDelta: (delta) => request.onDelta?.(delta.type === 'tool_call' ? { ...delta, name: undefined } : delta) }),
  ),
  'counts calls from 1': chatFault(['calls.provider_ids'], /`providerId` of their first fragments/, (chat) => (request) =>
    chat({ ...request, onDelta: (delta) => request.onDelta?.(delta.type === 'tool_call' ? { ...delta, callIndex: delta.callIndex + 1 } : delta) }),
  ),
  'takes a call with the same arguments for the same call': partFault(['calls.parallel'], /calls put together/, (content) => [...new Map(content.map((part) => [JSON.stringify({ ...part, providerId: '' }), part])).values()]),
  'adds every fragment to the call that began last': chatFault(['calls.interleaved'], /content of the reply/, (chat) => async (request) => {
    const inputs: string[] = [];
    const onDelta = (delta: LLMDelta): void => {
      if (delta.type !== 'tool_call') return;
      if (delta.name !== undefined) inputs.push('');
      inputs.push(`${inputs.pop() ?? ''}${delta.inputText}`);
    };
    const { content, ...rest } = await chat({ ...request, onDelta });
    return { ...rest, content: mapCalls(content, (call) => ({ ...call, inputText: inputs.shift() })) };
  }),
  'drops calls without arguments': chatFault(['calls.no_arguments'], /names of the calls/, (chat) => async (request) => {
    const { content, ...rest } = await chat({ ...request, onDelta: undefined });
    return { ...rest, content: content.filter((part) => part.type !== 'tool_call' || part.inputText !== '') };
  }),
  "drops the server's ids": partFault(['calls.provider_ids'], /`providerId`/, (content) => mapCalls(content, ({ providerId: _id, ...call }) => call)),

  'counts nothing': replyFault(['usage.counts'], /`usage`/, () => ({ usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 } })),
  'gives some counters only': replyFault(['usage.counts'], /`usage.cacheReadTokens` is undefined/, ({ usage }) => ({ usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens } as LLMResponse['usage'] })),
  'counts cached tokens twice': replyFault(['usage.cache_read', 'usage.cache_write'], /`usage`/, ({ usage }) => ({
    usage: { ...usage, inputTokens: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens },
  })),
  'counts thinking beside the output': replyFault(['usage.thinking'], /`usage/, ({ usage }) => ({ usage: { ...usage, outputTokens: usage.outputTokens - usage.thinkingTokens } })),

  'knows one end only': replyFault(['stop.tool_use', 'stop.max_tokens', 'stop.max_tokens_in_call', 'stop.stop_sequence', 'stop.filtered'], /`stopReason`/, () => ({ stopReason: 'end_turn' })),
  'knows no end': replyFault(['stop.end_turn'], /`stopReason`/, () => ({ stopReason: 'unknown' })),
  'gives empty replies': errorFault(['empty.reply', 'empty.thinking'], /resolved all the same/, (error) => (error.code === 'empty' ? emptyReply() : error)),
  'forgets what an empty reply cost': errorFault(['empty.reply'], /was paid for/, (error) => changed(error, { usage: undefined })),
  'takes every empty reply for a failure': chatFault(['empty.max_tokens', 'empty.filtered'], /Empty/, (chat) => async (request) => {
    const response = await chat(request);
    if (response.content.length === 0) throw new LLMError({ kind: 'malformed_response', code: 'empty', message: 'Empty.' });
    return response;
  }),

  'takes every failure for one of the server': errorFault(REFUSED, /"rate_limit"/, (error) => changed(error, { kind: 'server', retryable: true })),
  'throws errors of its own': errorFault(['errors.server'], /not an LLMError/, (error) => new Error(error.message)),
  'does not say how long to wait': errorFault(['errors.retry_after'], /`retryAfterMs`/, (error) => changed(error, { retryAfterMs: undefined })),
  'takes a failure within the answer for its end': errorFault(['errors.in_stream'], /resolved all the same/, (error) => (error.kind === 'overloaded' ? emptyReply('end_turn', 'Half a sentence') : error)),
  'quotes the server': errorFault(['errors.secrets'], /shows the key in its text/, (error, { apiKey }) => changed(error, { message: error.message.replaceAll('***', apiKey) })),
  'says the key in a code': errorFault(['errors.secrets'], /shows the key in its `code`/, (error, { apiKey }) => changed(error, { code: `bad key ${apiKey}` })),
  'takes a cut for the end of the reply': errorFault(['cut.text', 'cut.close', 'cut.call', 'cut.partial'], /resolved all the same/, (error) => (error.kind === 'network' ? emptyReply('end_turn', 'Half a sentence') : error)),
  'does not know what a cut is': errorFault(['cut.start', 'cut.text'], /"network"/, (error) => (error.kind === 'network' ? changed(error, { kind: 'unknown', retryable: false }) : error)),
  'forgets what had come': errorFault(['cut.partial', 'cut.thinking'], /`partial`/, (error) => changed(error, { partial: undefined })),
  'keeps calls of a reply that was cut': errorFault(['cut.partial'], /holds a call/, (error) => changed(error, { partial: [{ type: 'tool_call', name: 'look_up', inputText: '{' }] as never })),
  'is no good after a failure': chatFault(['reuse.error', 'reuse.cut'], /before/, (chat) => {
    let failure: unknown;
    return async (request) => {
      if (failure !== undefined) throw new Error('failed before', { cause: failure });
      return chat(request).catch((thrown: unknown) => {
        if (!request.signal.aborted) failure = thrown;
        throw thrown;
      });
    };
  }),
  'is no good after an abort': chatFault(['reuse.abort'], /before/, (chat) => {
    let wasAborted = false;
    return async (request) => {
      if (wasAborted) throw new Error('aborted before');
      request.signal.addEventListener('abort', () => (wasAborted = true), { once: true });
      return chat(request);
    };
  }),
  'keeps the connection': {
    caughtBy: ['errors.connection', 'abort.connection'],
    saying: /letting go of the connection did not settle/,
    createLLM: (scene) => scriptedOnScene(scene, (request) => ({ ...toWire(request), letGo: new Promise(() => {}) })),
  },

  'does not hear an abort': chatFault(
    ['abort.before', 'abort.in_delta', 'abort.waiting', 'abort.headers', 'abort.midway', 'abort.stalled', 'abort.connection', 'abort.others', 'reuse.abort'],
    /resolved all the same/,
    (chat) => (request) => chat({ ...request, signal: new AbortController().signal }),
  ),
  'hangs after an abort': chatFault(['abort.waiting', 'abort.stalled', 'abort.in_delta', 'abort.before'], /did not settle within/, (chat) => async (request) => {
    try {
      return await chat(request);
    } catch (thrown) {
      return request.signal.aborted ? new Promise(() => {}) : Promise.reject(thrown);
    }
  }),
  'hears an abort once the answer has begun': chatFault(['abort.waiting', 'abort.headers'], /did not settle within/, (chat) => (request) => {
    const controller = new AbortController();
    const onDelta = (delta: LLMDelta): void => {
      request.onDelta?.(delta);
      if (request.signal.aborted) controller.abort();
      request.signal.addEventListener('abort', () => controller.abort(), { once: true });
    };
    return chat({ ...request, onDelta, signal: controller.signal });
  }),
  'rejects on an abort, and reads on': chatFault(['abort.midway'], /fragments after the abort|after chat had settled/, (chat) => (request) => {
    const { promise, reject } = withReject<LLMResponse>();
    request.signal.addEventListener('abort', () => reject(request.signal.reason));
    return Promise.race([promise, chat({ ...request, signal: new AbortController().signal })]);
  }),
  'ends all requests when one is aborted': chatFault(['abort.others'], /abort/, (chat) => {
    const all = new AbortController();
    return (request) => {
      request.signal.addEventListener('abort', () => all.abort(), { once: true });
      return chat({ ...request, signal: all.signal });
    };
  }),
  'leaves a listener on the signal': chatFault(['abort.listeners'], /listeners on the signals/, (chat) => (request) => {
    request.signal.addEventListener('abort', () => {});
    return chat(request);
  }),
  'leaves a timer behind': chatFault(['request.scope'], /timers left/, (chat) => (request) => {
    request.scope?.runtime.setTimer(1000, () => {});
    return chat(request);
  }),
  'mixes requests side by side': chatFault(['reuse.concurrent'], /the replies|add up to/, (chat) => {
    let latest: LLMRequest['onDelta'];
    return (request) => {
      latest = request.onDelta;
      return chat({ ...request, onDelta: (delta) => latest?.(delta) });
    };
  }),

  'sends no tools': wireFault(['request.content'], /look_up is not in the request/, (request) => toWire({ ...request, tools: [] })),
  'sends the newest message first': wireFault(['request.content', 'request.prefix'], /the places of/, (request) => ({ ...toWire(request), body: toWire({ ...request, messages: request.messages.toReversed() }).body + JSON.stringify(request.tools) + request.systemPrompt })),
  'names calls by how many there are': wireFault(['request.prefix'], /differs from the first/, (request) => ({ ...toWire(request), body: `${request.messages.length}${toWire(request).body}` })),
  'names a result by our id': wireFault(['request.pairs', 'request.round_trip'], /the ids that the results name/, (request) => ({
    ...toWire(request),
    results: request.messages.flatMap((message) => (message.role === 'tool' ? [{ id: message.toolCallId, text: JSON.stringify(message.content) }] : [])),
  })),
  'sends an id of another provider twice': wireFault(['request.pairs'], /different ids/, (request) => {
    const { calls = [], ...rest } = toWire(request);
    return { ...rest, calls: calls.map((call) => ({ ...call, id: 'SAME00001' })) };
  }),
  'never sends the ids of the server': wireFault(['request.round_trip'], /the id of a call that the server itself had named/, (request) => {
    const { calls = [], results = [], ...rest } = toWire(request);
    return { ...rest, calls: calls.map((call) => ({ ...call, id: `x${call.id}` })), results: results.map((result) => ({ ...result, id: `x${result.id}` })) };
  }),
  'sends arguments that are no JSON': wireFault(['request.broken_arguments'], /which is no JSON/, (request) => {
    const { calls = [], ...rest } = toWire(request);
    const given = request.messages.flatMap((message) => (message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool_call') : []));
    return { ...rest, calls: calls.map((call, at) => ({ ...call, inputText: given[at]!.inputText })) };
  }),
  'sends signatures to anybody': wireFault(['request.signature', 'request.foreign'], /is in the request/, (request) => ({ ...toWire(request), body: toWire(request).body + JSON.stringify(request.messages) })),
  'stumbles over media': chatFault(['request.media'], /atob/, (chat) => async (request) => {
    if (JSON.stringify(request.messages).includes('"media"')) throw new TypeError('atob is not a function');
    return chat(request);
  }),
  'adds to the history': chatFault(['request.unchanged'], /not extensible/, (chat) => async (request) => {
    (request.messages as unknown[]).push(userMessage('Go on.'));
    return chat(request);
  }),
};

/** Every fault. */
export const faults: readonly Fault[] = Object.entries(FAULTS).map(([name, fault]) => ({ name, ...fault }));

function emptyReply(stopReason: LLMResponse['stopReason'] = 'end_turn', text = ''): LLMResponse {
  return {
    content: text === '' ? [] : [{ type: 'text', text }],
    stopReason,
    usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 },
  };
}

function rewritten(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return '{}';
  }
}

function withReject<Value>(): { readonly promise: Promise<Value>; readonly reject: (reason: unknown) => void } {
  let reject = (_reason: unknown): void => {};
  const promise = new Promise<Value>((_resolve, rejectIt) => (reject = rejectIt));
  return { promise, reject };
}
