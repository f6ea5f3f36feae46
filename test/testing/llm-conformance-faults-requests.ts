/** Adapters that hear no abort, mix requests, or write them wrongly, one thing each. */
import { LLMError, userMessage, type LLMDelta, type LLMRequest, type LLMResponse } from 'turnloop';
import { withReject, type FaultDefinition } from './llm-conformance-fault.ts';
import { toWire } from './llm-conformance-scripted.ts';

export const requestFaults: Readonly<Record<string, FaultDefinition>> = {
  'does not hear an abort': {
    caughtBy: [
      'abort.before',
      'abort.in_delta',
      'abort.waiting',
      'abort.headers',
      'abort.midway',
      'abort.stalled',
      'abort.connection',
      'abort.others',
      'reuse.abort',
    ],
    saying: /resolved all the same/,
    chat: (chat) => (request) => chat({ ...request, signal: new AbortController().signal }),
  },
  'hangs after an abort': {
    caughtBy: ['abort.waiting', 'abort.stalled', 'abort.in_delta', 'abort.before'],
    saying: /did not settle within/,
    chat: (chat) => async (request) => {
      try {
        return await chat(request);
      } catch (thrown) {
        return request.signal.aborted ? new Promise(() => {}) : Promise.reject(thrown);
      }
    },
  },
  'hears an abort once the answer has begun': {
    caughtBy: ['abort.waiting', 'abort.headers'],
    saying: /did not settle within/,
    chat: (chat) => (request) => {
      const controller = new AbortController();
      const onDelta = (delta: LLMDelta): void => {
        request.onDelta?.(delta);
        if (request.signal.aborted) controller.abort();
        request.signal.addEventListener('abort', () => controller.abort(), { once: true });
      };
      return chat({ ...request, onDelta, signal: controller.signal });
    },
  },
  'rejects on an abort, and reads on': {
    caughtBy: ['abort.midway'],
    saying: /fragments after the abort|after chat had settled/,
    chat: (chat) => (request) => {
      const { promise, reject } = withReject<LLMResponse>();
      request.signal.addEventListener('abort', () => reject(request.signal.reason));
      return Promise.race([promise, chat({ ...request, signal: new AbortController().signal })]);
    },
  },
  'ends all requests when one is aborted': {
    caughtBy: ['abort.others'],
    saying: /abort/,
    chat: (chat) => {
      const all = new AbortController();
      return (request) => {
        request.signal.addEventListener('abort', () => all.abort(), { once: true });
        return chat({ ...request, signal: all.signal });
      };
    },
  },
  'leaves a listener on the signal': {
    caughtBy: ['abort.listeners'],
    saying: /listeners on the signals/,
    chat: (chat) => (request) => {
      request.signal.addEventListener('abort', () => {});
      return chat(request);
    },
  },
  'leaves a timer behind': {
    caughtBy: ['request.scope'],
    saying: /timers left/,
    chat: (chat) => (request) => {
      request.scope?.runtime.setTimer(1000, () => {});
      return chat(request);
    },
  },
  'mixes requests side by side': {
    caughtBy: ['reuse.concurrent'],
    saying: /the replies|add up to/,
    chat: (chat) => {
      let latest: LLMRequest['onDelta'];
      return (request) => {
        latest = request.onDelta;
        return chat({ ...request, onDelta: (delta) => latest?.(delta) });
      };
    },
  },
  'sends no choice of tools': {
    caughtBy: ['settings.tool_choice'],
    saying: /`toolChoice: none` is sent in the same words as no choice.*or refuse it/,
    wire: (request) => toWire({ ...request, toolChoice: undefined }),
  },
  'sends of a choice only that there is one': {
    caughtBy: ['settings.tool_choice'],
    saying: /the choice of `look_up` is sent in the same words as `toolChoice: required`/,
    wire: (request) => toWire({ ...request, toolChoice: typeof request.toolChoice === 'object' ? 'required' : request.toolChoice }),
  },
  'refuses a choice of tools as if the server had failed': {
    caughtBy: ['settings.tool_choice'],
    saying: /no choices here/,
    chat: (chat) => async (request) => {
      if (request.toolChoice !== undefined) throw new LLMError({ kind: 'server', message: 'no choices here' });
      return chat(request);
    },
  },
  'asks for what the server refuses': {
    caughtBy: ['settings.max_output_tokens'],
    saying: /refused by the server/,
    chat: (chat) => async (request) => {
      const response = await chat(request);
      if (request.maxOutputTokens !== undefined) throw new LLMError({ kind: 'invalid_request', message: 'refused by the server' });
      return response;
    },
  },
  'sends no limit of the output': {
    caughtBy: ['settings.max_output_tokens'],
    saying: /`maxOutputTokens: 1000` is sent in the same words as no limit/,
    wire: (request) => toWire({ ...request, maxOutputTokens: undefined }),
  },
  'sends no form of the answer': {
    caughtBy: ['settings.response_schema'],
    saying: /a form is sent in the same words as no form/,
    wire: (request) => toWire({ ...request, responseSchema: undefined }),
  },
  'asks for JSON, whatever its form': {
    caughtBy: ['settings.response_schema'],
    saying: /another form is sent in the same words as a form/,
    wire: (request) => toWire({ ...request, responseSchema: request.responseSchema && {} }),
  },
  'says something else in each request': {
    caughtBy: ['settings.response_schema', 'settings.tool_choice', 'settings.max_output_tokens', 'request.result_error'],
    saying: /the same request by another LLM/,
    wire: (request) => ({ ...toWire(request), body: `${toWire(request).body} ${Math.random()}` }),
  },
  'does not say that a result is an error': {
    caughtBy: ['request.result_error'],
    saying: /an error is sent in the same words as a result/,
    wire: (request) => toWire({ ...request, messages: request.messages.map((message) => (message.role === 'tool' ? { ...message, isError: false } : message)) }),
  },
  'sends no tools': {
    caughtBy: ['request.content'],
    saying: /look_up is not in the request/,
    wire: (request) => toWire({ ...request, tools: [] }),
  },
  'sends the newest message first': {
    caughtBy: ['request.content', 'request.prefix'],
    saying: /the places of/,
    wire: (request) => ({ ...toWire(request), body: toWire({ ...request, messages: request.messages.toReversed() }).body }),
  },
  'names calls by how many there are': {
    caughtBy: ['request.prefix'],
    saying: /differs from the first/,
    wire: (request) => ({ ...toWire(request), body: `${request.messages.length}${toWire(request).body}` }),
  },
  'names a result by our id': {
    caughtBy: ['request.pairs', 'request.round_trip'],
    saying: /the ids that the results name/,
    wire: (request) => ({
      ...toWire(request),
      results: request.messages.flatMap((message) =>
        message.role === 'tool' ? [{ id: message.toolCallId, text: JSON.stringify(message.content) }] : [],
      ),
    }),
  },
  'sends an id of another provider twice': {
    caughtBy: ['request.pairs'],
    saying: /different ids/,
    wire: (request) => {
      const { calls = [], ...rest } = toWire(request);
      return { ...rest, calls: calls.map((call) => ({ ...call, id: 'SAME00001' })) };
    },
  },
  'never sends the ids of the server': {
    caughtBy: ['request.round_trip'],
    saying: /the id of a call that the server itself had named/,
    wire: (request) => {
      const { calls = [], results = [], ...rest } = toWire(request);
      const renamed = <Sent extends { readonly id: string }>(sent: readonly Sent[]): Sent[] => sent.map((each) => ({ ...each, id: `x${each.id}` }));
      return { ...rest, calls: renamed(calls), results: renamed(results) };
    },
  },
  'sends arguments that are no JSON': {
    caughtBy: ['request.broken_arguments'],
    saying: /which is no JSON/,
    wire: (request) => {
      const { calls = [], ...rest } = toWire(request);
      const replies = request.messages.filter((message) => message.role === 'assistant');
      const given = replies.flatMap(({ content }) => content.filter((part) => part.type === 'tool_call'));
      return { ...rest, calls: calls.map((call, at) => ({ ...call, inputText: given[at]!.inputText })) };
    },
  },
  'sends arguments in its own way': {
    caughtBy: ['calls.exact'],
    saying: /sent back/,
    wire: (request) => {
      const { calls = [], ...rest } = toWire(request);
      return { ...rest, calls: calls.map((call) => ({ ...call, inputText: JSON.stringify(JSON.parse(call.inputText)) })) };
    },
  },
  'sends signatures to anybody': {
    caughtBy: ['request.signature', 'request.foreign'],
    saying: /is in the request/,
    wire: (request) => ({ ...toWire(request), body: toWire(request).body + JSON.stringify(request.messages) }),
  },
  'stumbles over media': {
    caughtBy: ['request.media'],
    saying: /atob/,
    chat: (chat) => async (request) => {
      if (JSON.stringify(request.messages).includes('"media"')) throw new TypeError('atob is not a function');
      return chat(request);
    },
  },
  'adds to the history': {
    caughtBy: ['request.unchanged'],
    saying: /not extensible/,
    chat: (chat) => async (request) => {
      (request.messages as unknown[]).push(userMessage('Go on.'));
      return chat(request);
    },
  },
};
