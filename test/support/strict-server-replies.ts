/** Replies of the strict servers: one small reply, as each protocol streams it. */
import type { Wire } from './rule-check.ts';

/** What a model says, in this order. */
export interface ScriptedReply {
  /** Thinking, signed or encrypted as the protocol does it. */
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
}

export interface ScriptedCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What is replied to. */
export interface Asked {
  /** Number of the reply, from 1: ids are made of it. */
  readonly number: number;
  readonly body: Wire;
}

/** Counted as tokens. */
const INPUT = 10;
const OUTPUT = 5;

/** Chat Completions. */
export function chatEvents({ thinking, text, calls = [] }: ScriptedReply, { number, body }: Asked): string {
  const chunk = (more: object): object => ({ id: `chatcmpl-${number}`, object: 'chat.completion.chunk', created: 1, model: body['model'], ...more });
  const delta = (content: object, reason: string | null = null): object => chunk({ choices: [{ index: 0, delta: content, finish_reason: reason }] });
  const options = body['stream_options'] as { readonly include_usage?: boolean } | undefined;
  const chunks = [
    delta({ role: 'assistant', content: '' }),
    ...pieces(thinking).map((piece) => delta({ reasoning_content: piece })),
    ...pieces(text).map((piece) => delta({ content: piece })),
    ...calls.flatMap(({ name, input }, index) => [
      delta({ tool_calls: [{ index, id: `call_${number}_${index}`, type: 'function', function: { name, arguments: '' } }] }),
      ...pieces(JSON.stringify(input)).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    ...(options?.include_usage === true ? [chunk({ choices: [], usage: { prompt_tokens: INPUT, completion_tokens: OUTPUT, total_tokens: INPUT + OUTPUT } })] : []),
  ];
  return chunks.map(data).join('') + 'data: [DONE]\n\n';
}

/** Messages. */
export function anthropicEvents({ thinking, text, calls = [] }: ScriptedReply, { number, body }: Asked): string {
  const usage = { input_tokens: INPUT, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 };
  const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: body['model'], content: [], stop_reason: null, stop_sequence: null, usage };
  const blocks: [object, object[]][] = [];
  if (thinking !== undefined) {
    const deltas = pieces(thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece }));
    blocks.push([{ type: 'thinking', thinking: '', signature: '' }, [...deltas, { type: 'signature_delta', signature: `sig_${number}` }]]);
  }
  if (text !== undefined) blocks.push([{ type: 'text', text: '' }, pieces(text).map((piece) => ({ type: 'text_delta', text: piece }))]);
  for (const [at, { name, input }] of calls.entries()) {
    blocks.push([{ type: 'tool_use', id: `toolu_${number}_${at}`, name, input: {} }, pieces(JSON.stringify(input)).map((piece) => ({ type: 'input_json_delta', partial_json: piece }))]);
  }
  const events = [
    { type: 'message_start', message },
    ...blocks.flatMap(([block, deltas], index) => [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: OUTPUT } },
    { type: 'message_stop' },
  ];
  return events.map(named).join('');
}

/** A response as it is when it is complete. */
export interface MadeResponse extends Wire {
  readonly id: string;
  readonly output: readonly Wire[];
}

/** The response to a request of the Responses protocol. */
export function responseOf({ thinking, text, calls = [] }: ScriptedReply, { number, body }: Asked): MadeResponse {
  const output: Wire[] = [];
  const include = Array.isArray(body['include']) ? (body['include'] as readonly unknown[]) : [];
  if (thinking !== undefined) {
    const secret = include.includes('reasoning.encrypted_content') ? { encrypted_content: `secret_${number}` } : {};
    output.push({ id: `rs_${number}`, type: 'reasoning', summary: [{ type: 'summary_text', text: thinking }], ...secret });
  }
  if (text !== undefined) {
    output.push({ id: `msg_${number}`, type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] });
  }
  for (const [at, { name, input }] of calls.entries()) {
    output.push({ id: `fc_${number}_${at}`, type: 'function_call', status: 'completed', call_id: `call_${number}_${at}`, name, arguments: JSON.stringify(input) });
  }
  const usage = {
    input_tokens: INPUT,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: OUTPUT,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: INPUT + OUTPUT,
  };
  return { id: `resp_${number}`, object: 'response', created_at: 1, status: 'completed', model: body['model'], error: null, incomplete_details: null, output, usage };
}

/** Responses. */
export function responseEvents(response: MadeResponse): string {
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const events: Wire[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...response.output.flatMap((item, at) => itemEvents(item, at)),
    { type: 'response.completed', response },
  ];
  return events.map((event, at) => named({ ...event, type: event['type'] as string, sequence_number: at })).join('');
}

function itemEvents(item: Wire, at: number): readonly Wire[] {
  const place = { output_index: at, item_id: item['id'] };
  const begin = (empty: object): Wire => ({ type: 'response.output_item.added', output_index: at, item: { ...item, ...empty } });
  const end: Wire = { type: 'response.output_item.done', output_index: at, item };
  if (item['type'] === 'function_call') {
    const text = item['arguments'] as string;
    return [
      begin({ arguments: '', status: 'in_progress' }),
      ...pieces(text).map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
      { type: 'response.function_call_arguments.done', ...place, arguments: text },
      end,
    ];
  }
  if (item['type'] === 'reasoning') {
    const [part] = item['summary'] as readonly [{ readonly text: string }];
    const within = { ...place, summary_index: 0 };
    return [
      begin({ summary: [] }),
      { type: 'response.reasoning_summary_part.added', ...within, part: { ...part, text: '' } },
      ...pieces(part.text).map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...within, delta })),
      { type: 'response.reasoning_summary_text.done', ...within, text: part.text },
      { type: 'response.reasoning_summary_part.done', ...within, part },
      end,
    ];
  }
  const [part] = item['content'] as readonly [{ readonly text: string }];
  const within = { ...place, content_index: 0 };
  return [
    begin({ content: [], status: 'in_progress' }),
    { type: 'response.content_part.added', ...within, part: { ...part, text: '' } },
    ...pieces(part.text).map((delta) => ({ type: 'response.output_text.delta', ...within, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...within, text: part.text, logprobs: [] },
    { type: 'response.content_part.done', ...within, part },
    end,
  ];
}

/** Gemini. */
export function geminiEvents({ thinking, text, calls = [] }: ScriptedReply, { number }: Asked): string {
  const signature = Buffer.from(`signature ${number}`).toString('base64');
  const parts: object[] = [
    ...pieces(thinking).map((piece) => ({ text: piece, thought: true })),
    ...pieces(text).map((piece) => ({ text: piece })),
    // Of calls side by side the first one is signed.
    ...calls.map(({ name, input }, at) => ({ functionCall: { name, args: input }, ...(at === 0 && { thoughtSignature: signature }) })),
  ];
  const usageMetadata = { promptTokenCount: INPUT, candidatesTokenCount: OUTPUT, totalTokenCount: INPUT + OUTPUT };
  const chunk = (content: object, end: object): object => ({
    candidates: [{ content: { role: 'model', ...content }, index: 0, ...end }],
    usageMetadata,
    modelVersion: 'strict',
    responseId: `response_${number}`,
  });
  return [...parts.map((part) => chunk({ parts: [part] }, {})), chunk({}, { finishReason: 'STOP' })].map(data).join('');
}

/** A text in two pieces, so that readers have to join them. */
function pieces(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== '');
}

function data(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function named(event: Wire & { readonly type: string }): string {
  return `event: ${event.type}\n${data(event)}`;
}
