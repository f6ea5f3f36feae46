/** Wire, Anthropic Messages. */
import { anthropic } from 'turnloop/providers/anthropic';
import { tokenOf } from './scenario.ts';
import { argumentFragments, DELTAS, encodeNamed, WRITE_TOOL_NAME, type WireProtocol } from './wire-reply.ts';

interface StreamEvent {
  readonly content_block?: { readonly id?: string };
  readonly delta?: { readonly text?: string; readonly partial_json?: string };
}

export const wireAnthropic: WireProtocol = {
  name: 'anthropic',
  resultMark: '"tool_result"',
  connect: (baseUrl) => anthropic({ model: 'bench', baseUrl }),
  path: '/messages',
  stream(reply) {
    if (reply === 'text') return textStream(Array.from({ length: DELTAS }, (_, index) => tokenOf(index)));
    const block = { type: 'tool_use', id: 'toolu_0', name: WRITE_TOOL_NAME, input: {} };
    return encode(block, argumentFragments().map((fragment) => ({ type: 'input_json_delta', partial_json: fragment })), 'tool_use');
  },
  shortStream: (text) => textStream([text]),
  firstBody: (prompt) => ({ max_tokens: 1024, messages: [{ role: 'user', content: prompt }], stream: true }),
  secondBody(prompt, { id, json, output }) {
    const use = { type: 'tool_use', id, name: WRITE_TOOL_NAME, input: JSON.parse(json) as unknown };
    const result = { type: 'tool_result', tool_use_id: id, content: output };
    const messages = [{ role: 'user', content: prompt }, { role: 'assistant', content: [use] }, { role: 'user', content: [result] }];
    return { max_tokens: 1024, messages, stream: true };
  },
  read(event) {
    const { content_block: block, delta } = event as StreamEvent;
    return { text: delta?.text, fragment: delta?.partial_json, callId: block?.id };
  },
};

function textStream(texts: readonly string[]): Buffer {
  return encode({ type: 'text', text: '' }, texts.map((text) => ({ type: 'text_delta', text })), 'end_turn');
}

function encode(block: object, deltas: readonly object[], stopReason: string): Buffer {
  const usage = { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 };
  const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'bench', content: [], stop_reason: null, stop_sequence: null, usage };
  return encodeNamed([
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: deltas.length } },
    { type: 'message_stop' },
  ]);
}
