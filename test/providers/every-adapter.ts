/** Every adapter over HTTP, for what all of them have to do alike. */
import type { LLM } from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { anthropicEvents, type Asked, chatEvents, geminiEvents, responseEvents, responseOf, type ScriptedReply } from '../support/strict-server-replies.ts';

/** Options that every adapter takes. */
export interface CommonOptions {
  readonly apiKey?: string | ((ask: { readonly refresh: boolean }) => string | Promise<string>);
  readonly baseUrl?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch;
  readonly stream?: boolean;
  readonly systemPrompt?: string;
}

export interface AdapterCase {
  readonly name: string;
  /** Connects to a model that no table knows. */
  connect(options: CommonOptions): LLM;
  /** A good reply's event stream. */
  stream(reply: ScriptedReply): string;
  /** An event by which a server says that the stream failed. */
  errorEvent(message: string): string;
}

const ASKED: Asked = { number: 1, body: { model: 'test-model', stream_options: { include_usage: true } } };

function sse(value: unknown, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;
}

export const ADAPTERS: readonly AdapterCase[] = [
  {
    name: 'openAIChat',
    connect: (options) => openAIChat({ model: 'test-model', ...options }),
    stream: (reply) => chatEvents(reply, ASKED),
    errorEvent: (message) => sse({ error: { message, code: message } }),
  },
  {
    name: 'openAIResponses',
    connect: (options) => openAIResponses({ model: 'test-model', ...options }),
    stream: (reply) => responseEvents(responseOf(reply, ASKED)),
    errorEvent: (message) => sse({ type: 'error', code: message, message, param: null }, 'error'),
  },
  {
    name: 'anthropic',
    connect: (options) => anthropic({ model: 'test-model', ...options }),
    stream: (reply) => anthropicEvents(reply, ASKED),
    errorEvent: (message) => sse({ type: 'error', error: { type: message, message } }, 'error'),
  },
  {
    name: 'google',
    connect: (options) => google({ model: 'test-model', ...options }),
    stream: (reply) => geminiEvents(reply, ASKED),
    errorEvent: (message) => sse({ error: { code: 500, message, status: message } }),
  },
];
