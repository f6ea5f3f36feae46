/** Adapters that read replies wrongly, one thing each. */
import { LLMError, type LLMDelta, type LLMResponse } from 'turnloop';
import { emptyReply, errorWith, mapCalls, relay, withReject, type FaultDefinition } from './llm-conformance-fault.ts';

export const replyFaults: Readonly<Record<string, FaultDefinition>> = {
  'has no name for its provider': {
    caughtBy: ['llm.metadata'],
    saying: /`provider` is ""/,
    llm: (llm) => ({ ...llm, provider: '' }),
  },
  'keeps the key in a field': {
    caughtBy: ['llm.secrets'],
    saying: /the LLM shows the key/,
    llm: (llm, { apiKey }) => {
      const headers = new Map([['authorization', `Bearer ${apiKey}`]]);
      return Object.defineProperty({ ...llm }, 'options', { value: { headers } });
    },
  },
  'tells no fragments': {
    caughtBy: ['text.stream', 'thinking.stream', 'calls.single'],
    saying: /no fragment of type `text`/,
    chat: (chat) => (request) => chat({ ...request, onDelta: undefined }),
  },
  'tells the fragments when the reply has ended': {
    caughtBy: ['text.live', 'abort.in_delta'],
    saying: /still coming/,
    chat: (chat) => async (request) => {
      const held: LLMDelta[] = [];
      const response = await chat({ ...request, onDelta: (delta) => held.push(delta) });
      for (const delta of held) request.onDelta?.(delta);
      return response;
    },
  },
  'tells a fragment after the reply': {
    caughtBy: ['deltas.late'],
    saying: /after chat had settled/,
    chat: (chat) => async (request) => {
      const response = await chat(request);
      setTimeout(() => request.onDelta?.({ type: 'text', text: '' }), 5);
      return response;
    },
  },
  'tells each fragment twice': {
    caughtBy: ['text.stream'],
    saying: /add up to/,
    chat: (chat) => (request) =>
      chat({ ...request, onDelta: (delta) => [delta, delta].map((each) => request.onDelta?.(each)) }),
  },
  'decodes each piece of bytes for itself': {
    caughtBy: ['text.bytes'],
    saying: /content/,
    chat: (chat, { chunkBytes }) => async (request) => {
      const response = await chat({ ...request, onDelta: undefined });
      if (chunkBytes === undefined) return response;
      const spoil = (text: string): string => text.replace(/[^\u0000-\u007f]/gu, '\ufffd\ufffd');
      return { ...response, content: response.content.map((part) => (part.type === 'text' ? { ...part, text: spoil(part.text) } : part)) };
    },
  },
  'gives up early': {
    caughtBy: ['text.slow'],
    saying: /Too slow/,
    chat: (chat) => (request) => {
      const { promise, reject } = withReject<LLMResponse>();
      const timer = setTimeout(() => reject(new LLMError({ kind: 'timeout', message: 'Too slow.' })), 20);
      return Promise.race([promise, chat(request)]).finally(() => clearTimeout(timer));
    },
  },
  'needs a listener': {
    caughtBy: ['request.without_listener'],
    saying: /onDelta/,
    chat: (chat) => async (request) => {
      if (request.onDelta === undefined) throw new TypeError('request.onDelta is not a function');
      return chat(request);
    },
  },
  'takes thinking for text': {
    caughtBy: ['thinking.stream'],
    saying: /content of the reply/,
    parts: (content) => content.map((part) => (part.type === 'thinking' ? { type: 'text', text: part.text } : part)),
    delta: (delta) => (delta.type === 'thinking' ? { type: 'text', text: delta.text } : delta),
  },
  'forgets what signs thinking': {
    caughtBy: ['thinking.signature', 'request.signature'],
    saying: /`signature`/,
    parts: (content) =>
      content.map((part) => (part.type === 'thinking' ? { type: 'thinking', text: part.text } : part)),
  },
  'puts text before calls': {
    caughtBy: ['parts.order'],
    saying: /order in which/,
    parts: (content) => content.toSorted((left, right) => Number(left.type === 'tool_call') - Number(right.type === 'tool_call')),
  },
  'forgets the id of a reply': {
    caughtBy: ['reply.metadata'],
    saying: /besides its content: expected .*reply_1/,
    reply: () => ({ responseId: undefined }),
  },
  'says that the model it asked for has answered': {
    caughtBy: ['reply.metadata'],
    saying: /besides its content/,
    reply: () => ({ modelId: undefined }),
  },
  'forgets what the server called the end': {
    caughtBy: ['reply.metadata'],
    saying: /besides its content/,
    reply: ({ stopReason }) => ({ rawStopReason: stopReason }),
  },
  'gives calls ids of its own': {
    caughtBy: ['calls.single'],
    saying: /content\[0\] has `id`/,
    parts: (content) => mapCalls(content, (call) => ({ ...call, id: 'call_1' })),
  },
  'parses arguments': {
    caughtBy: ['calls.single'],
    saying: /content\[0\] has `input`/,
    parts: (content) => mapCalls(content, (call) => ({ ...call, input: {} })),
  },
  'repairs arguments': {
    caughtBy: ['calls.exact', 'calls.broken'],
    saying: /content of the reply/,
    chat: (chat) => async (request) => {
      const { content, ...rest } = await chat({ ...request, onDelta: undefined });
      return { ...rest, content: mapCalls(content, (call) => ({ ...call, inputText: rewritten(call.inputText) })) };
    },
  },
  'tells of calls without their name': {
    caughtBy: ['calls.single'],
    saying: /first fragment of call 0 has no `name`/,
    chat: (chat) => (request) => chat({ ...request, onDelta: relay(request, (delta) => ({ ...delta, name: undefined })) }),
  },
  'counts calls from 1': {
    caughtBy: ['calls.provider_ids'],
    saying: /`providerId` of their first fragments/,
    chat: (chat) => (request) => chat({ ...request, onDelta: relay(request, (delta) => ({ ...delta, callIndex: delta.callIndex + 1 })) }),
  },
  'takes a call with the same arguments for the same call': {
    caughtBy: ['calls.parallel'],
    saying: /calls put together/,
    parts: (content) => [...new Map(content.map((part) => [JSON.stringify({ ...part, providerId: '' }), part])).values()],
  },
  'adds every fragment to the call that began last': {
    caughtBy: ['calls.interleaved'],
    saying: /content of the reply/,
    chat: (chat) => async (request) => {
      const inputs: string[] = [];
      const onDelta = (delta: LLMDelta): void => {
        if (delta.type !== 'tool_call') return;
        if (delta.name !== undefined) inputs.push('');
        inputs.push(`${inputs.pop() ?? ''}${delta.inputText}`);
      };
      const { content, ...rest } = await chat({ ...request, onDelta });
      return { ...rest, content: mapCalls(content, (call) => ({ ...call, inputText: inputs.shift() })) };
    },
  },
  'drops calls without arguments': {
    caughtBy: ['calls.no_arguments'],
    saying: /names of the calls/,
    chat: (chat) => async (request) => {
      const { content, ...rest } = await chat({ ...request, onDelta: undefined });
      return { ...rest, content: content.filter((part) => part.type !== 'tool_call' || part.inputText !== '') };
    },
  },
  "drops the server's ids": {
    caughtBy: ['calls.provider_ids'],
    saying: /`providerId`/,
    parts: (content) => mapCalls(content, ({ providerId: _id, ...call }) => call),
  },
  'counts nothing': {
    caughtBy: ['usage.counts'],
    saying: /`usage`/,
    reply: () => ({ usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 } }),
  },
  'gives some counters only': {
    caughtBy: ['usage.counts'],
    saying: /`usage.cacheReadTokens` is undefined/,
    reply: ({ usage }) => ({ usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens } as LLMResponse['usage'] }),
  },
  'counts cached tokens twice': {
    caughtBy: ['usage.cache_read', 'usage.cache_write'],
    saying: /`usage`/,
    reply: ({ usage }) => ({
      usage: { ...usage, inputTokens: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens },
    }),
  },
  'counts thinking beside the output': {
    caughtBy: ['usage.thinking'],
    saying: /`usage/,
    reply: ({ usage }) => ({ usage: { ...usage, outputTokens: usage.outputTokens - usage.thinkingTokens } }),
  },
  'knows one end only': {
    caughtBy: ['stop.tool_use', 'stop.max_tokens', 'stop.max_tokens_in_call', 'stop.stop_sequence', 'stop.filtered'],
    saying: /`stopReason`/,
    reply: () => ({ stopReason: 'end_turn' }),
  },
  'knows no end': {
    caughtBy: ['stop.end_turn'],
    saying: /`stopReason`/,
    reply: () => ({ stopReason: 'unknown' }),
  },
  'gives empty replies': {
    caughtBy: ['empty.reply', 'empty.thinking'],
    saying: /resolved all the same/,
    error: (error) => (error.code === 'empty' ? emptyReply() : error),
  },
  'forgets what an empty reply cost': {
    caughtBy: ['empty.reply'],
    saying: /was paid for/,
    error: (error) => errorWith(error, { usage: undefined }),
  },
  'takes every empty reply for a failure': {
    caughtBy: ['empty.max_tokens', 'empty.filtered'],
    saying: /Empty/,
    chat: (chat) => async (request) => {
      const response = await chat(request);
      if (response.content.length === 0) throw new LLMError({ kind: 'malformed_response', code: 'empty', message: 'Empty.' });
      return response;
    },
  },
};

function rewritten(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return '{}';
  }
}
