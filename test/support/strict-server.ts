/**
 * Strict server: a local HTTP server of one protocol that refuses, in the real server's shape, what the real ones refuse,
 * and streams a small reply to everything else. What it refuses is said by the rules; what it replies by its script.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkMessagesRequest } from './anthropic-rules.ts';
import { checkChatRequest } from './chat-rules.ts';
import { checkGenerateContentRequest } from './gemini-rules.ts';
import { isObject, type Wire } from './rule-check.ts';
import { checkResponsesRequest, type KnownResponse } from './responses-rules.ts';
import { anthropicEvents, chatEvents, geminiEvents, responseEvents, responseOf, type ScriptedReply } from './strict-server-replies.ts';

export type StrictProtocol = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google';

/** A request as the server saw it. */
export interface StrictRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed. */
  readonly body: Wire;
  /** The rules that it breaks; empty if it was taken. */
  readonly broken: readonly string[];
}

export interface StrictServerOptions {
  /** What is replied, in order; behind the last one it says `ok`. @defaultValue none */
  readonly replies?: readonly ScriptedReply[];
  /** In place of the protocol's rules as they stand. */
  readonly check?: (body: unknown) => readonly string[];
}

export interface StrictServer {
  /** `http://127.0.0.1:PORT/v1`, for Gemini `…/v1beta`. */
  readonly baseUrl: string;
  /** Every request so far, oldest first. */
  readonly requests: readonly StrictRequest[];
  /** Every rule that any request broke, with the request's number from 0. */
  readonly refusals: readonly string[];
  /** What a Responses server remembers, by the id of the response; delete from it to let one expire. */
  readonly responses: Map<string, KnownResponse>;
  /** Says what is replied from now on. */
  script(...replies: readonly ScriptedReply[]): void;
  close(): Promise<void>;
}

/** How a protocol is spoken. */
interface Speech {
  readonly version: string;
  readonly path: RegExp;
  /** Whether a request says who it is from. */
  isKnown(headers: IncomingHttpHeaders): boolean;
  check(body: unknown, responses: ReadonlyMap<string, KnownResponse>): readonly string[];
  refuse(status: number, message: string, code?: string): unknown;
  /** What a real server says, by the rule of ours that is broken. */
  readonly words: readonly (readonly [RegExp, string])[];
}

const BEARER = (headers: IncomingHttpHeaders): boolean => /^Bearer \S+$/.test(headers.authorization ?? '');

const SPEECH: Readonly<Record<StrictProtocol, Speech>> = {
  'openai-chat': {
    version: 'v1',
    path: /\/chat\/completions$/,
    isKnown: BEARER,
    check: checkChatRequest,
    refuse: refuseLikeOpenAI,
    words: [[/calls without results/, 'An assistant message with \'tool_calls\' must be followed by tool messages responding to each \'tool_call_id\'.']],
  },
  'openai-responses': {
    version: 'v1',
    path: /\/responses$/,
    isKnown: BEARER,
    check: (body, responses) => checkResponsesRequest(body, { responses }),
    refuse: refuseLikeOpenAI,
    words: [
      [/calls without output/, 'No tool output found for function call.'],
      [/without its required following item/, 'Item of type \'reasoning\' was provided without its required following item.'],
      [/an id that is used twice/, 'Duplicate item found. Remove duplicate items from your input and try again.'],
    ],
  },
  anthropic: {
    version: 'v1',
    path: /\/messages$/,
    isKnown: (headers) => headers['x-api-key'] !== undefined || BEARER(headers),
    check: (body) => checkMessagesRequest(body),
    refuse: (status, message) => ({ type: 'error', error: { type: status === 400 ? 'invalid_request_error' : 'authentication_error', message }, request_id: 'req_1' }),
    words: [
      [/calls without results|0 results for the call/, '`tool_use` ids were found without `tool_result` blocks immediately after.'],
      [/a result without a call/, 'unexpected `tool_use_id` found in `tool_result` blocks.'],
      [/blank text block/, 'text content blocks must contain non-whitespace text'],
    ],
  },
  google: {
    version: 'v1beta',
    path: /\/models\/[^/:]+:streamGenerateContent\?(?:.*&)?alt=sse/,
    isKnown: (headers) => headers['x-goog-api-key'] !== undefined,
    check: (body) => checkGenerateContentRequest(body),
    refuse: (code, message) => ({ error: { code, message, status: code === 400 ? 'INVALID_ARGUMENT' : 'UNAUTHENTICATED' } }),
    words: [[/responses for \d+ calls|calls without responses/, 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.']],
  },
};

/** Starts a server of a protocol on a free port. */
export async function startStrictServer(protocol: StrictProtocol, options: StrictServerOptions = {}): Promise<StrictServer> {
  const speech = SPEECH[protocol];
  const requests: StrictRequest[] = [];
  const responses = new Map<string, KnownResponse>();
  let script = [...(options.replies ?? [])];
  let replied = 0;

  const server = createServer((request, response) => {
    void readBody(request).then((text) => answer(request, response, text));
  });

  function answer(request: IncomingMessage, response: ServerResponse, text: string): void {
    const { url = '', headers } = request;
    if (request.method !== 'POST' || !speech.path.test(url)) return sendJson(response, 404, speech.refuse(404, `no such path: ${url}`));
    if (!speech.isKnown(headers)) return sendJson(response, 401, speech.refuse(401, 'no key'));
    const body = parse(text);
    const broken = [...headerRules(protocol, headers), ...(options.check?.(body) ?? speech.check(body, responses)), ...streamRules(protocol, body)];
    requests.push({ url, headers, body, broken });
    if (broken.length > 0) return refuse(response, broken);
    const reply = script.shift() ?? { text: 'ok' };
    replied += 1;
    sendEvents(response, eventsOf(reply, body));
  }

  function refuse(response: ServerResponse, broken: readonly string[]): void {
    const rules = broken.join('; ');
    if (rules.includes('previous_response_not_found')) {
      return sendJson(response, 400, speech.refuse(400, 'Previous response not found.', 'previous_response_not_found'));
    }
    const words = speech.words.find(([rule]) => rule.test(rules))?.[1];
    return sendJson(response, 400, speech.refuse(400, words === undefined ? rules : `${words} (${rules})`));
  }

  function eventsOf(reply: ScriptedReply, body: Wire): string {
    const asked = { number: replied, body };
    switch (protocol) {
      case 'openai-chat':
        return chatEvents(reply, asked);
      case 'anthropic':
        return anthropicEvents(reply, asked);
      case 'google':
        return geminiEvents(reply, asked);
      case 'openai-responses': {
        const made = responseOf(reply, asked);
        responses.set(made.id, { input: conversationOf(body), output: made.output, isStored: body['store'] !== false });
        return responseEvents(made);
      }
    }
  }

  /** What a response is kept with: all that was said before its reply. */
  function conversationOf({ input, previous_response_id: previousId }: Wire): readonly unknown[] {
    const previous = typeof previousId === 'string' ? responses.get(previousId) : undefined;
    const items: readonly unknown[] = typeof input === 'string' ? [{ role: 'user', content: input }] : Array.isArray(input) ? input : [];
    return previous === undefined ? items : [...previous.input, ...previous.output, ...items];
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/${speech.version}`,
    requests,
    responses,
    get refusals() {
      return requests.flatMap(({ broken }, at) => broken.map((rule) => `request ${at}: ${rule}`));
    },
    script(...replies) {
      script = [...replies];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuseLikeOpenAI(status: number, message: string, code: string | null = null): unknown {
  return { error: { message, type: status === 401 ? 'authentication_error' : 'invalid_request_error', param: code === null ? null : 'previous_response_id', code } };
}

function headerRules(protocol: StrictProtocol, headers: IncomingHttpHeaders): readonly string[] {
  const broken = /^application\/json\b/.test(headers['content-type'] ?? '') ? [] : ['content-type: no JSON'];
  return protocol === 'anthropic' && headers['anthropic-version'] === undefined ? [...broken, 'anthropic-version: header is required'] : broken;
}

/** This server streams only; Gemini's path says so. */
function streamRules(protocol: StrictProtocol, body: Wire): readonly string[] {
  return protocol === 'google' || body['stream'] === true ? [] : ['stream: this server does nothing else'];
}

/** What is no JSON object becomes an empty one, which every protocol refuses. */
function parse(text: string): Wire {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_1', 'request-id': 'req_1' });
  response.end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': 'req_1', 'request-id': 'req_1' });
  response.end(events);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}
