/** An adapter to start your own from: a server that speaks the Quill protocol, as an LLM. README.md walks through it. */
import { isLLMError, LLMError, toUsage, type LLM, type LLMErrorKind, type LLMErrorOptions, type LLMRequest, type LLMResponse } from 'turnloop';
import type { Message, MessagePart, PartialReplyPart, StepStopReason, ToolCallPart } from 'turnloop';
import type { QuillCost, QuillEvent, QuillPart, QuillRequest, QuillTrouble, QuillTurn } from './protocol.ts';

/** Options of {@link quillLLM}. */
export interface QuillOptions {
  readonly url: string;
  readonly apiKey: string;
  /** @defaultValue `quill-1` */
  readonly model?: string | undefined;
  /** What the model is told before the conversation. @defaultValue nothing */
  readonly systemPrompt?: string | undefined;
}

const PROVIDER = 'quill';
const PICTURE_TYPES = ['image/png', 'image/jpeg'];

/** Makes an LLM of a Quill server. */
export function quillLLM({ url, apiKey, model = 'quill-1', systemPrompt = '' }: QuillOptions): LLM {
  // The key lives in this closure: as a field it would be in every log that shows the LLM.
  const send = (body: string, signal: AbortSignal): Promise<Response> =>
    // A redirect would take the key along.
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', 'quill-key': apiKey }, body, signal, redirect: 'error' });
  const redact = (text: string): string => (apiKey === '' ? text : text.replaceAll(apiKey, '***'));

  async function chat(request: LLMRequest): Promise<LLMResponse> {
    const { signal } = request;
    const reply = createReply(request.onDelta);
    // The signal lives as long as the turn, and `fetch` leaves a listener on the one it gets: so it gets one of its own.
    const connection = new AbortController();
    const letGo = (): void => connection.abort();
    signal.addEventListener('abort', letGo);
    try {
      // One that was aborted before does not fire.
      signal.throwIfAborted();
      const answer = await send(writeRequest(model, request), connection.signal);
      if (!answer.ok) throw refusal(await answer.text(), answer.status);
      // Whichever way the loop is left, the body is let go of, and the connection with it.
      for await (const line of linesOf(answer)) {
        // Several lines come in one piece: after an abort from within `onDelta` nothing more is told.
        signal.throwIfAborted();
        const event = parseObject(line) as QuillEvent | undefined;
        if (event === undefined) throw new LLMError({ kind: 'malformed_response', message: `The answer is not Quill's: ${line}` });
        if (event.event === 'trouble') throw toError(event.trouble);
        if (reply.read(event)) return reply.response();
      }
      // Whatever came, it is not a whole reply: half a call must not run, half a text is not the answer.
      throw new LLMError({ kind: 'network', message: 'The answer ended before the reply was complete.' });
    } catch (thrown) {
      const { message, code, ...error } = optionsOf(thrown, signal);
      // Servers quote keys. Redact first, then shorten: half a key is not found any more.
      throw new LLMError({ ...error, message: redact(message).slice(0, 500), code: code && redact(code), partial: reply.partial() });
    } finally {
      signal.removeEventListener('abort', letGo);
    }
  }

  return { provider: PROVIDER, modelId: model, systemPrompt, capabilities: { mediaTypes: PICTURE_TYPES }, chat };
}

/** The lines of an answer. A piece of the body may end within a line, or within a character. */
async function* linesOf({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

/** The object in a text; undefined if it holds none. */
function parseObject(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// --- Failures -------------------------------------------------------------------------------------------------------

/** The server's words in ours. `Map`s, here and below: a word that we do not know may be `constructor`. */
const KINDS: ReadonlyMap<unknown, LLMErrorKind> = new Map([
  ['slow_down', 'rate_limit'], ['busy', 'overloaded'], ['broken', 'server'],
  ['who_are_you', 'auth'], ['not_for_you', 'permission'], ['no_such_model', 'not_found'], ['no_credit', 'quota'],
  ['unclear', 'invalid_request'], ['bad_talk', 'invalid_history'], ['long_talk', 'context_overflow'],
  ['too_big', 'request_too_large'], ['bad_picture', 'media_rejected'], ['improper', 'content_filter'],
]);

/** An answer that is no success, and not always the server's own: a gateway sends a page, or words of its own. */
function refusal(body: string, status: number): LLMError {
  const trouble: Partial<QuillTrouble> | undefined = parseObject(body);
  return toError({ ...trouble, word: trouble?.word ?? `http_${status}`, text: trouble?.text ?? body }, status);
}

function toError({ word, text, wait }: QuillTrouble, status?: number): LLMError {
  // A word that we do not know: the status has to do.
  const kind = KINDS.get(word) ?? (status === 429 ? 'rate_limit' : (status ?? 500) >= 500 ? 'server' : 'invalid_request');
  return new LLMError({ kind, code: word, status, message: `quill: ${text}`, retryAfterMs: wait === undefined ? undefined : wait * 1000 });
}

function optionsOf(thrown: unknown, signal: AbortSignal): LLMErrorOptions {
  if (signal.aborted) return { kind: 'aborted', message: 'The request was aborted.' };
  // What `fetch` throws may quote the address, and what is secret in it: a cause is never shown.
  return isLLMError(thrown) ? thrown : { kind: 'network', message: 'The connection to the Quill server failed.', cause: thrown };
}

// --- What goes out --------------------------------------------------------------------------------------------------

/** What changes from step to step stands last, so that request n+1 begins with the bytes of request n: prompt caches hit. */
function writeRequest(model: string, { systemPrompt, tools, messages, ...request }: LLMRequest): string {
  const { toolChoice = 'auto', responseSchema: form, maxOutputTokens: limit } = request;
  const must = typeof toolChoice === 'object' ? toolChoice.name : { auto: undefined, none: 'nothing', required: 'something' }[toolChoice];
  const body: QuillRequest = {
    model,
    brief: systemPrompt,
    tools: tools.map(({ name, description, inputSchema }) => ({ tool: name, about: description, takes: inputSchema })),
    talk: writeTalk(messages),
    ...{ must, form, limit },
  };
  return JSON.stringify(body);
}

/** The refs of a talk: by our ids of the calls, and all of them. */
interface Refs {
  readonly byId: Map<string, string>;
  readonly taken: Set<string>;
}

function writeTalk(messages: readonly Message[]): readonly QuillTurn[] {
  const refs: Refs = { byId: new Map(), taken: new Set() };
  return messages.flatMap((message): readonly QuillTurn[] => {
    // Seals and marks mean something only to the provider that made them.
    const isOwn = message.role === 'assistant' && message.source?.provider === PROVIDER;
    const parts = message.content.flatMap((part) => writePart(part, isOwn, refs));
    if (message.role !== 'tool') return parts.length === 0 ? [] : [{ who: message.role === 'user' ? 'person' : 'quill', parts }];
    const { toolCallId, isError: failed } = message;
    return [{ who: 'tool', ref: refs.byId.get(toolCallId) ?? toolCallId, failed, parts: parts.length === 0 ? [{ say: '(no output)' }] : parts }];
  });
}

function writePart(part: MessagePart, isOwn: boolean, refs: Refs): readonly QuillPart[] {
  switch (part.type) {
    case 'text':
      // Servers refuse blank text, and with it the conversation.
      return part.text.trim() === '' ? [] : [{ say: part.text }];
    case 'media':
      if (part.data !== undefined && PICTURE_TYPES.includes(part.mediaType)) return [{ picture: part.data, type: part.mediaType }];
      // Told, not dropped: the model would answer as if nothing had been there.
      return [{ say: `[${part.mediaType} left out: this model cannot be sent it]` }];
    case 'thinking':
      return isOwn && part.signature !== undefined ? [{ muse: part.text, seal: part.signature }] : [];
    case 'tool_call': {
      const ref = chooseRef(part, refs.taken);
      refs.taken.add(ref);
      refs.byId.set(part.id, ref);
      const mark = isOwn && typeof part.providerData === 'string' ? part.providerData : undefined;
      // Byte for byte. What is no object never ran, and would be refused in every later request.
      return [{ ask: part.name, ref, with: parseObject(part.inputText) === undefined ? '{}' : part.inputText, mark }];
    }
    case 'provider':
      return []; // Quill has no blocks that only Quill understands.
  }
}

/** The server's own id where it is legal and free, else a form of ours; it depends on earlier calls only. */
function chooseRef({ providerId, id }: ToolCallPart, taken: ReadonlySet<string>): string {
  const isGood = (ref: string | undefined): boolean => ref !== undefined && /^[\w-]{1,24}$/.test(ref) && !taken.has(ref);
  let ref = isGood(providerId) ? providerId : id;
  for (let number = 1; !isGood(ref); number += 1) ref = `${id.replace(/[^\w-]/g, '-').slice(-18)}-${number}`;
  return ref ?? id;
}

// --- What comes in --------------------------------------------------------------------------------------------------

type Part =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string; signature?: string }
  | { type: 'tool_call'; name: string; inputText: string; providerId: string; providerData?: string };

const STOP_REASONS: ReadonlyMap<unknown, StepStopReason> = new Map([
  ['done', 'end_turn'], ['asked', 'tool_use'], ['limit', 'max_tokens'], ['stop_word', 'stop_sequence'], ['withheld', 'filtered'],
]);

/** Reads one reply. All that is known of a request lives in its own call: requests may run side by side. */
function createReply(onDelta: LLMRequest['onDelta']) {
  const content: Part[] = [];
  /** Calls in their order, each with the slot that the server has it in. */
  const calls: { slot: number; part: Part & { type: 'tool_call' } }[] = [];
  let hello: (QuillEvent & { event: 'hello' }) | undefined;
  let bye: (QuillEvent & { event: 'bye' }) | undefined;

  function add(type: 'text' | 'thinking', text: string): void {
    const last = content.at(-1);
    // Thinking behind a seal is thinking of its own.
    if (last?.type === type && !('signature' in last)) last.text += text;
    else content.push({ type, text });
    onDelta?.({ type, text });
  }

  function read(event: QuillEvent): boolean {
    const last = content.at(-1);
    if (event.event === 'hello') hello = event;
    if (event.event === 'bye') bye = event;
    if (event.event === 'say') add('text', event.text);
    if (event.event === 'muse') add('thinking', event.text);
    if (event.event === 'seal' && last?.type === 'thinking') last.signature = event.text;
    if (event.event === 'ask') {
      const { tool: name, ref: providerId, mark, slot } = event;
      // No `id`: the loop gives it. And nothing is parsed: the loop does, and tells the model what is wrong.
      const part: Part = { type: 'tool_call', name, inputText: '', providerId, ...(mark !== undefined && { providerData: mark }) };
      content.push(part);
      calls.push({ slot, part });
      onDelta?.({ type: 'tool_call', callIndex: calls.length - 1, name, providerId, inputText: '' });
    }
    if (event.event === 'with') {
      const callIndex = calls.findLastIndex(({ slot }) => slot === event.slot);
      const call = calls[callIndex];
      if (call === undefined) throw new LLMError({ kind: 'malformed_response', message: 'The answer has arguments of no ask.' });
      call.part.inputText += event.text;
      onDelta?.({ type: 'tool_call', callIndex, inputText: event.text });
    }
    // Any other line is one of a newer server.
    return bye !== undefined;
  }

  function response(): LLMResponse {
    const usage = toDisjoint(bye?.cost);
    const stopReason = STOP_REASONS.get(bye?.why) ?? 'unknown';
    const isEmpty = !content.some((part) => part.type === 'tool_call' || (part.type === 'text' && part.text.trim() !== ''));
    if (isEmpty && stopReason !== 'filtered' && stopReason !== 'max_tokens') {
      throw new LLMError({ kind: 'malformed_response', code: 'empty', message: 'The reply holds nothing.', usage });
    }
    const { answer: responseId, model: modelId } = hello ?? {};
    return { content, stopReason, rawStopReason: bye?.why, usage, responseId, modelId };
  }

  function partial(): readonly PartialReplyPart[] {
    // Calls must not run, and nobody takes thinking back without its seal.
    const isKept = (part: Part): boolean => part.type === 'text' || (part.type === 'thinking' && part.signature !== undefined);
    return content.filter(isKept) as PartialReplyPart[];
  }

  return { read, response, partial };
}

/** Our first four counters have nothing in common; Quill's `read` includes what the cache had to do with. */
function toDisjoint(cost: QuillCost | undefined): LLMResponse['usage'] {
  if (cost === undefined) return toUsage({});
  const { read, recalled, stored, written, mused } = cost;
  const prompt = { inputTokens: read - recalled - stored, cacheReadTokens: recalled, cacheWriteTokens: stored };
  return toUsage({ ...prompt, outputTokens: written, thinkingTokens: mused });
}
