/** Wire, Chat Completions. */
import { openAIChat } from 'turnloop/providers/openai-chat';
import { tokenOf } from './scenario.ts';
import { argumentFragments, DELTAS, WRITE_TOOL_NAME, type WireProtocol } from './wire-reply.ts';

interface Chunk {
  readonly choices: readonly {
    readonly delta: {
      readonly content?: string | null;
      readonly tool_calls?: readonly { readonly id?: string; readonly function: { readonly arguments: string } }[];
    };
  }[];
}

export const wireChat: WireProtocol = {
  name: 'openai-chat',
  resultMark: '"role":"tool"',
  connect: (baseUrl) => openAIChat({ model: 'bench', baseUrl }),
  path: '/chat/completions',
  stream(reply) {
    const deltas: object[] = [{ role: 'assistant', content: reply === 'text' ? '' : null }];
    if (reply === 'text') {
      for (let index = 0; index < DELTAS; index += 1) deltas.push({ content: tokenOf(index) });
    } else {
      const call = { id: 'call_0', type: 'function', function: { name: WRITE_TOOL_NAME, arguments: '' } };
      deltas.push({ tool_calls: [{ index: 0, ...call }] });
      for (const fragment of argumentFragments()) deltas.push({ tool_calls: [{ index: 0, function: { arguments: fragment } }] });
    }
    return encode(deltas, reply === 'text' ? 'stop' : 'tool_calls');
  },
  shortStream: (text) => encode([{ role: 'assistant', content: '' }, { content: text }], 'stop'),
  firstBody: (prompt) => ({ messages: [{ role: 'user', content: prompt }], stream: true }),
  secondBody(prompt, { id, json, output }) {
    const calls = [{ id, type: 'function', function: { name: WRITE_TOOL_NAME, arguments: json } }];
    const messages = [{ role: 'user', content: prompt }, { role: 'assistant', tool_calls: calls }, { role: 'tool', tool_call_id: id, content: output }];
    return { messages, stream: true };
  },
  read(event) {
    const delta = (event as Chunk).choices[0]?.delta;
    if (delta === undefined) return undefined;
    const [call] = delta.tool_calls ?? [];
    return { text: delta.content ?? undefined, callId: call?.id, fragment: call?.function.arguments };
  },
};

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
