import { isLLMError, LLMError, type LLM, type LLMRequest, type LLMResponse, type Message, textOf, toUsage } from 'turnloop';

/** A line of an answer: text, a piece of a call (the first with the name), an error, or the end. */
type Line = { text: string } | { call: number; name?: string; input: string } | { error: string } | { end: 'done' | 'limit'; tokens: [number, number] };

/** A model behind a server that answers with JSON lines. */
export const linesLLM = (url: string, systemPrompt = ''): LLM => ({ provider: 'lines', modelId: 'lines-1', systemPrompt, chat: (request) => chat(url, request) });

async function chat(url: string, { systemPrompt, messages, tools, signal, onDelta }: LLMRequest): Promise<LLMResponse> {
  const decoder = new TextDecoder();
  let [rest, text] = ['', ''];
  const calls: { type: 'tool_call'; name: string; inputText: string }[] = [];
  // `fetch` leaves a listener on the signal it gets, and that of the turn lives long.
  const connection = new AbortController();
  const letGo = (): void => connection.abort(signal.reason);
  signal.addEventListener('abort', letGo);
  try {
    signal.throwIfAborted();
    const answer = await fetch(url, { method: 'POST', signal: connection.signal, body: JSON.stringify({ systemPrompt, messages: messages.map(toWire), tools }) });
    const kind = answer.status === 429 ? 'rate_limit' : answer.status > 499 ? 'server' : 'invalid_request';
    if (!answer.ok) throw new LLMError({ kind, status: answer.status, message: await answer.text() });
    for await (const bytes of answer.body ?? []) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
      rest = lines.pop() ?? ''; // A chunk may end anywhere in a line.
      for (const line of lines.map((json) => JSON.parse(json) as Line)) {
        if ('text' in line) {
          text += line.text;
          onDelta?.({ type: 'text', text: line.text });
        } else if ('call' in line) {
          (calls[line.call] ??= { type: 'tool_call', name: line.name ?? '', inputText: '' }).inputText += line.input;
          onDelta?.({ type: 'tool_call', callIndex: line.call, name: line.name, inputText: line.input });
        } else if ('end' in line) {
          const usage = toUsage({ inputTokens: line.tokens[0], outputTokens: line.tokens[1] });
          const content = [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls];
          return { content, stopReason: line.end === 'limit' ? 'max_tokens' : 'end_turn', usage };
        } else throw new LLMError({ kind: 'server', message: line.error });
      }
    }
    throw new LLMError({ kind: 'network', message: 'The answer broke off.' });
  } catch (cause) {
    if (isLLMError(cause) || signal.aborted) throw cause;
    throw new LLMError({ kind: cause instanceof SyntaxError ? 'malformed_response' : 'network', message: String(cause), cause });
  } finally {
    signal.removeEventListener('abort', letGo);
  }
}

/** A message as this server takes it: a result names its call. Arguments that are no object were never run, and go back as `{}`. */
function toWire(message: Message): object {
  const text = textOf(message);
  if (message.role === 'user') return { role: 'user', text };
  if (message.role === 'tool') return { role: 'tool', call: message.toolCallId, text };
  const calls = message.content.filter((part) => part.type === 'tool_call');
  return { role: 'assistant', text, calls: calls.map(({ id, name, input, inputText }) => ({ id, name, input: input === undefined ? '{}' : inputText })) };
}
