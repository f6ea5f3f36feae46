/** Wire, Responses. */
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { tokenOf } from './scenario.ts';
import { argumentFragments, DELTAS, encodeNamed, type NamedEvent, WRITE_TOOL_NAME, type WireProtocol, writeArguments } from './wire-reply.ts';

interface StreamEvent {
  readonly type: string;
  readonly delta?: string;
  readonly item?: { readonly call_id?: string };
}

export const wireResponses: WireProtocol = {
  name: 'openai-responses',
  resultMark: '"function_call_output"',
  connect: (baseUrl) => openAIResponses({ model: 'bench', baseUrl }),
  path: '/responses',
  stream: (reply) => (reply === 'text' ? textStream(Array.from({ length: DELTAS }, (_, index) => tokenOf(index))) : callStream()),
  shortStream: (text) => textStream([text]),
  firstBody: (prompt) => ({ input: [{ role: 'user', content: prompt }], stream: true }),
  secondBody(prompt, { id, json, output }) {
    const call = { type: 'function_call', call_id: id, name: WRITE_TOOL_NAME, arguments: json };
    return { input: [{ role: 'user', content: prompt }, call, { type: 'function_call_output', call_id: id, output }], stream: true };
  },
  read(event) {
    const { type, delta, item } = event as StreamEvent;
    if (type === 'response.output_text.delta') return { text: delta };
    if (type === 'response.function_call_arguments.delta') return { fragment: delta };
    return type === 'response.output_item.added' ? { callId: item?.call_id } : undefined;
  },
};

function textStream(texts: readonly string[]): Buffer {
  const item = { id: 'msg_bench', type: 'message', role: 'assistant' };
  const place = { item_id: item.id, output_index: 0, content_index: 0 };
  const part = { type: 'output_text', text: texts.join(''), annotations: [], logprobs: [] };
  return encode(
    [
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      ...texts.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [], obfuscation: 'x7Jq' })),
      { type: 'response.output_text.done', ...place, text: part.text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
    ],
    { ...item, status: 'completed', content: [part] },
  );
}

function callStream(): Buffer {
  const item = { id: 'fc_bench', type: 'function_call', call_id: 'call_0', name: WRITE_TOOL_NAME };
  const place = { item_id: item.id, output_index: 0 };
  const done = { ...item, status: 'completed', arguments: writeArguments() };
  return encode(
    [
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', arguments: '' } },
      ...argumentFragments().map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta, obfuscation: 'x7Jq' })),
      { type: 'response.function_call_arguments.done', ...place, arguments: done.arguments },
    ],
    done,
  );
}

function encode(events: readonly NamedEvent[], item: object): Buffer {
  const response = { id: 'resp_bench', object: 'response', created_at: 1_700_000_000, model: 'bench', status: 'in_progress', output: [], usage: null };
  const usage = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: events.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 10 + events.length,
  };
  const all = [
    { type: 'response.created', response },
    { type: 'response.in_progress', response },
    ...events,
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { ...response, status: 'completed', output: [item], usage } },
  ];
  return encodeNamed(all.map((event, at) => ({ ...event, sequence_number: at })));
}
