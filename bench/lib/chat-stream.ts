/** Chat stream: replies of a Chat Completions server as the bytes of their event stream, and what is in them. */
import { tokenOf } from './scenario.ts';

/** Deltas of a text, and fragments of the arguments. */
export const DELTAS = 20_000;
const ARGUMENTS_LENGTH = 193_000;

/** What a server of {@link replay-server} answers with; the path of the address says which. */
export type ReplayedReply = 'text' | 'arguments';

/** The tool that the arguments are for. */
export const WRITE_TOOL_NAME = 'write_file';

/** The arguments that come in fragments: a file as a model writes one, quotes and line breaks escaped. */
export function writeArguments(): string {
  let content = '';
  for (let line = 1; content.length < ARGUMENTS_LENGTH * 0.93; line += 1) {
    content += `export const value${line} = compute("item-${line}", { limit: ${line * 7} }); // line ${line}\n`;
  }
  const path = 'src/generated/values.ts';
  const json = JSON.stringify({ path, content });
  return JSON.stringify({ path, content: content + 'x'.repeat(Math.max(0, ARGUMENTS_LENGTH - json.length)) });
}

/** The whole body of a reply. */
export function chatStream(reply: ReplayedReply): Buffer {
  const deltas: object[] = [{ role: 'assistant', content: reply === 'text' ? '' : null }];
  if (reply === 'text') {
    for (let index = 0; index < DELTAS; index += 1) deltas.push({ content: tokenOf(index) });
  } else {
    const call = { id: 'call_0', type: 'function', function: { name: WRITE_TOOL_NAME, arguments: '' } };
    deltas.push({ tool_calls: [{ index: 0, ...call }] });
    const json = writeArguments();
    const cut = (index: number): number => Math.floor((index * json.length) / DELTAS);
    for (let index = 0; index < DELTAS; index += 1) {
      deltas.push({ tool_calls: [{ index: 0, function: { arguments: json.slice(cut(index), cut(index + 1)) } }] });
    }
  }
  return encode(deltas, reply === 'text' ? 'stop' : 'tool_calls');
}

/** The body of a short reply, for the request that brings a tool's result. */
export function shortChatStream(text: string): Buffer {
  return encode([{ role: 'assistant', content: '' }, { content: text }], 'stop');
}

function encode(deltas: readonly object[], finishReason: string): Buffer {
  const head = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench' };
  const usage = { prompt_tokens: 10, completion_tokens: deltas.length, total_tokens: 10 + deltas.length };
  const chunks = [
    ...deltas.map((delta) => ({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] })),
    { ...head, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: finishReason }] },
    { ...head, choices: [], usage },
  ];
  return Buffer.from(`${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`);
}
