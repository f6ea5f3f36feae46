/** Adapters that fail wrongly, one thing each. */
import type { LLMConformanceCaseId } from 'turnloop/testing/conformance';
import { emptyReply, errorWith, type FaultDefinition } from './llm-conformance-fault.ts';
import { toWire } from './llm-conformance-scripted.ts';

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

export const failureFaults: Readonly<Record<string, FaultDefinition>> = {
  'takes every failure for one of the server': {
    caughtBy: REFUSED,
    saying: /"rate_limit"/,
    error: (error) => errorWith(error, { kind: 'server', retryable: true }),
  },
  'throws errors of its own': {
    caughtBy: ['errors.server'],
    saying: /not an LLMError/,
    error: (error) => new Error(error.message),
  },
  'does not say how long to wait': {
    caughtBy: ['errors.retry_after'],
    saying: /`retryAfterMs`/,
    error: (error) => errorWith(error, { retryAfterMs: undefined }),
  },
  'takes a failure within the answer for its end': {
    caughtBy: ['errors.in_stream'],
    saying: /resolved all the same/,
    error: (error) => (error.kind === 'overloaded' ? emptyReply('Half a sentence') : error),
  },
  'quotes the server': {
    caughtBy: ['errors.secrets'],
    saying: /shows the key in its text/,
    error: (error, { apiKey }) => errorWith(error, { message: error.message.replaceAll('***', apiKey) }),
  },
  'says the key in a code': {
    caughtBy: ['errors.secrets'],
    saying: /shows the key in its `code`/,
    error: (error, { apiKey }) => errorWith(error, { code: `bad key ${apiKey}` }),
  },
  'takes a cut for the end of the reply': {
    caughtBy: ['cut.text', 'cut.close', 'cut.call', 'cut.partial'],
    saying: /resolved all the same/,
    error: (error) => (error.kind === 'network' ? emptyReply('Half a sentence') : error),
  },
  'does not know what a cut is': {
    caughtBy: ['cut.start', 'cut.text'],
    saying: /"network"/,
    error: (error) => (error.kind === 'network' ? errorWith(error, { kind: 'unknown', retryable: false }) : error),
  },
  'forgets what had come': {
    caughtBy: ['cut.partial', 'cut.thinking'],
    saying: /`partial`/,
    error: (error) => errorWith(error, { partial: undefined }),
  },
  'keeps calls of a reply that was cut': {
    caughtBy: ['cut.partial'],
    saying: /holds a call/,
    error: (error) => errorWith(error, { partial: [{ type: 'tool_call', name: 'look_up', inputText: '{' }] as never }),
  },
  'is no good after a failure': {
    caughtBy: ['reuse.error', 'reuse.cut'],
    saying: /before/,
    chat: (chat) => {
      let failure: unknown;
      return async (request) => {
        if (failure !== undefined) throw new Error('failed before', { cause: failure });
        return chat(request).catch((thrown: unknown) => {
          if (!request.signal.aborted) failure = thrown;
          throw thrown;
        });
      };
    },
  },
  'is no good after an abort': {
    caughtBy: ['reuse.abort'],
    saying: /before/,
    chat: (chat) => {
      let wasAborted = false;
      return async (request) => {
        if (wasAborted) throw new Error('aborted before');
        request.signal.addEventListener('abort', () => (wasAborted = true), { once: true });
        return chat(request);
      };
    },
  },
  'keeps the connection': {
    caughtBy: ['errors.connection', 'abort.connection'],
    saying: /letting go of the connection did not settle/,
    wire: (request) => ({ ...toWire(request), letGo: new Promise(() => {}) }),
  },
};
