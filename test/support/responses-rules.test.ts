/** The rules that stand for a strict Responses server: each one is seen to be broken by a body that breaks it. */
import { describe, expect, it } from 'vitest';
import { checkResponsesRequest, type KnownResponse } from './responses-rules.ts';

const USER = { role: 'user', content: 'a' };
const CALL = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' };
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'r' };
const REASONING = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'E' };
const SAID = { type: 'message', role: 'assistant', id: 'msg_1', status: 'completed', content: [{ type: 'output_text', text: 'b', annotations: [] }] };
const TOOL = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: false };

function brokenBody(fields: Record<string, unknown>): string {
  return checkResponsesRequest({ model: 'm', input: [USER], ...fields }).join('\n');
}

function broken(...input: readonly unknown[]): string {
  return brokenBody({ input });
}

function user(...content: readonly unknown[]): unknown {
  return { type: 'message', role: 'user', content };
}

it('takes a whole conversation with everything in it', () => {
  const input = [
    { role: 'developer', content: 'd' },
    user(
      { type: 'input_text', text: 'a' },
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' },
      { type: 'input_image', file_id: 'file_1' },
      { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
      { type: 'input_file', file_url: 'https://h/d.pdf' },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    ),
    REASONING,
    { ...CALL, id: 'fc_1', status: 'completed' },
    { ...CALL, call_id: 'call_2' },
    OUTPUT,
    { ...OUTPUT, call_id: 'call_2', output: [{ type: 'input_text', text: 'r' }, { type: 'input_image', image_url: 'https://h/i' }] },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'E', content: [{ type: 'reasoning_text', text: 'x' }] },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: {} },
    SAID,
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    { role: 'assistant', content: 'c', phase: 'final_answer' },
    { ...SAID, id: 'msg_2', content: [{ type: 'output_text', text: '', annotations: [] }] },
    USER,
  ];
  const format = { type: 'json_schema', name: 'n', strict: true, schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false } };
  const more = { include: ['reasoning.encrypted_content'], store: false, stream: true, reasoning: { effort: 'low', summary: 'auto' }, text: { format, verbosity: 'low' }, truncation: 'auto' };
  expect(brokenBody({ input, tools: [TOOL, { type: 'web_search' }], tool_choice: { type: 'function', name: 'f' }, instructions: 's', max_output_tokens: 16, temperature: 1, top_p: 1, ...more })).toBe('');
  expect(brokenBody({ input: 'a', text: { format: { type: 'text' } }, tool_choice: 'none' })).toBe('');
});

describe('refuses in the input', () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ['nothing', [], /input: empty/],
    ['an unknown item', [{ type: 'tool' }], /unknown item/],
    ['an unknown role', [{ role: 'tool', content: 'x' }], /unknown role/],
    ['a field of ours', [{ ...USER, origin: 'user' }], /unknown field origin/],
    ['a phase of a user', [{ ...USER, phase: 'commentary' }], /unknown field phase/],
    ['an unknown phase', [USER, { role: 'assistant', content: 'x', phase: 'x' }], /unknown phase/],
    ['blank content', [{ role: 'user', content: ' ' }], /blank content/],
    ['empty content', [user()], /empty content/],
    ['blank text', [user({ type: 'input_text', text: '' })], /blank text/],
    ['text of the assistant in a user’s message', [user({ type: 'output_text', text: 'x' })], /not taken here/],
    ['text of a user in the assistant’s message', [USER, { role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }], /not taken here/],
    ['blank text of the assistant that no server gave', [USER, { role: 'assistant', content: [{ type: 'output_text', text: '' }] }], /blank text/],
    ['annotations that are no list', [USER, { ...SAID, content: [{ type: 'output_text', text: 'x', annotations: null }] }], /annotations/],
    ['a blank refusal', [USER, { role: 'assistant', content: [{ type: 'refusal', refusal: '' }] }], /blank refusal/],
    ['an image of another type', [user({ type: 'input_image', image_url: 'data:image/svg+xml;base64,AAAA' })], /an image that is neither/],
    ['an image without an address', [user({ type: 'input_image' })], /an image that is neither/],
    ['an image of unknown detail', [user({ type: 'input_image', image_url: 'https://h/i', detail: 'most' })], /unknown detail/],
    ['a file without anything', [user({ type: 'input_file', filename: 'a' })], /not at all, or more than once/],
    ['a file that is bare base64', [user({ type: 'input_file', filename: 'a', file_data: 'AAAA' })], /no data address/],
    ['file data without a name', [user({ type: 'input_file', file_data: 'data:application/pdf;base64,AAAA' })], /without a filename/],
    ['a file behind no http address', [user({ type: 'input_file', file_url: 'file:///x' })], /no http address/],
    ['audio of another format', [user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'ogg' } })], /audio without data, or/],
    ['calls without output', [USER, CALL], /end: calls without output/],
    ['a message between call and output', [USER, CALL, USER, OUTPUT], /calls without output before it/],
    ['an output without a call', [USER, OUTPUT], /output without a call/],
    ['an output before its call', [USER, OUTPUT, CALL], /output without a call/],
    ['a second output', [USER, CALL, OUTPUT, OUTPUT], /or a second one/],
    ['an output of another kind', [USER, CALL, { ...OUTPUT, type: 'custom_tool_call_output' }], /output without a call/],
    ['a call_id used twice', [USER, CALL, OUTPUT, CALL, OUTPUT], /call_id that is used twice/],
    ['a call_id that is too long', [USER, { ...CALL, call_id: 'a'.repeat(65) }, { ...OUTPUT, call_id: 'a'.repeat(65) }], /illegal call_id/],
    ['an empty call_id', [USER, { ...CALL, call_id: '' }, { ...OUTPUT, call_id: '' }], /illegal call_id/],
    ['an illegal name', [USER, { ...CALL, name: 'a.b' }, OUTPUT], /illegal name/],
    ['arguments that are no object', [USER, { ...CALL, arguments: '[' }, OUTPUT], /arguments that are no object/],
    ['arguments that are no text', [USER, { ...CALL, arguments: {} }, OUTPUT], /arguments that are no object/],
    ['a field of a call that is not known', [USER, { ...CALL, input: {} }, OUTPUT], /unknown field input/],
    ['a blank output', [USER, CALL, { ...OUTPUT, output: '' }], /blank output/],
    ['an output that is no text', [USER, CALL, { ...OUTPUT, output: { a: 1 } }], /content: not a list/],
    ['a foreign id of a call', [USER, { ...CALL, id: 'call_1' }, OUTPUT], /does not begin with fc_/],
    ['a foreign id of a message', [USER, { ...SAID, id: 'x' }], /does not begin with msg_/],
    ['a foreign id of reasoning', [USER, { ...REASONING, id: 'x' }, SAID], /does not begin with rs_/],
    ['an endless id', [USER, { ...SAID, id: `msg_${'a'.repeat(600)}` }], /too long/],
    ['an unknown status', [USER, { ...SAID, status: 'interrupted' }], /unknown status/],
    ['an id used twice', [USER, SAID, SAID], /an id that is used twice/],
    ['BR-014 reasoning at the end', [USER, REASONING], /without its required following item/],
    ['BR-014 reasoning before a user’s message', [USER, REASONING, USER], /without its required following item/],
    ['BR-014 reasoning before an output', [USER, CALL, REASONING, OUTPUT], /without its required following item/],
    ['BR-014 reasoning before an item without an id', [USER, REASONING, CALL, OUTPUT], /without its required following item/],
    ['a summary that is text', [USER, { ...REASONING, summary: 'x' }, SAID], /summary: not a list/],
    ['a summary of another type', [USER, { ...REASONING, summary: [{ type: 'text', text: 'x' }] }, SAID], /no summary_text/],
    ['reasoning content of another type', [USER, { ...REASONING, content: [{ type: 'text', text: 'x' }] }, SAID], /no reasoning_text/],
    ['blank encrypted_content', [USER, { ...REASONING, encrypted_content: '' }, SAID], /encrypted_content: blank/],
    ['a reference to nothing', [USER, { type: 'item_reference' }], /id: missing/],
    ['a lone surrogate', [{ role: 'user', content: 'a\ud83d' }], /unsafe text/],
  ])('%s', (_name, input, rule) => {
    expect(broken(...input)).toMatch(rule);
  });
});

describe('refuses in the rest of the body', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['a blank model', { model: '' }, /model: missing/],
    ['an unknown field', { max_tokens: 1 }, /unknown field max_tokens/],
    ['blank input', { input: '' }, /input: blank/],
    ['input that is no list', { input: {} }, /input: not a list/],
    ['instructions that are no text', { instructions: ['x'] }, /instructions/],
    ['store that is no boolean', { store: 'no' }, /store: no boolean/],
    ['few output tokens', { max_output_tokens: 15 }, /max_output_tokens: below 16/],
    ['unknown truncation', { truncation: true }, /truncation: unknown/],
    ['include that is no list', { include: 'x' }, /include: not a list/],
    ['an unknown include', { include: ['reasoning'] }, /include: unknown/],
    ['reasoning that is no object', { reasoning: 'high' }, /reasoning: no object/],
    ['an unknown field of reasoning', { reasoning: { budget: 1 } }, /reasoning: unknown field/],
    ['an unknown effort', { reasoning: { effort: 'huge' } }, /unknown effort/],
    ['an unknown summary', { reasoning: { summary: true } }, /unknown summary/],
    ['a high temperature', { temperature: 3 }, /temperature/],
    ['a high top_p', { top_p: 2 }, /top_p/],
    ['a tool of Chat Completions', { tools: [{ type: 'function', function: { name: 'f' } }] }, /unknown field function/],
    ['a tool without a type', { tools: [{ name: 'f' }] }, /type: missing/],
    ['a tool’s illegal name', { tools: [{ ...TOOL, name: 'a.b' }] }, /illegal name/],
    ['a tool twice', { tools: [TOOL, TOOL] }, /name twice/],
    ['a schema that is no object', { tools: [{ ...TOOL, parameters: { type: 'string' } }] }, /schema that is no object/],
    ['a union at a schema’s root', { tools: [{ ...TOOL, parameters: { type: 'object', properties: {}, anyOf: [] } }] }, /anyOf at the root/],
    ['a schema without properties', { tools: [{ ...TOOL, parameters: { type: 'object' } }] }, /without properties/],
    ['strict that is no boolean', { tools: [{ ...TOOL, strict: 'yes' }] }, /strict: no boolean/],
    ['BR-047 a strict schema that is open', { tools: [{ ...TOOL, strict: true }] }, /open though/],
    ['BR-047 a strict schema with an optional property', { tools: [{ ...TOOL, strict: true, parameters: { type: 'object', properties: { a: {} }, additionalProperties: false } }] }, /optional property/],
    ['BR-047 a strict schema that is open further in', { tools: [{ ...TOOL, strict: true, parameters: { type: 'object', properties: { type: { anyOf: [{ type: 'object' }] } }, required: ['type'], additionalProperties: false } }] }, /open though/],
    ['a forced tool without tools', { tool_choice: 'required' }, /without tools/],
    ['a named tool without tools', { tool_choice: { type: 'function', name: 'f' } }, /without tools/],
    ['an unknown choice', { tools: [TOOL], tool_choice: 'any' }, /tool_choice: unknown/],
    ['a choice of no shape', { tools: [TOOL], tool_choice: 1 }, /neither a word nor an object/],
    ['a choice without a type', { tools: [TOOL], tool_choice: { name: 'f' } }, /unknown type/],
    ['a choice of a tool that is not there', { tools: [TOOL], tool_choice: { type: 'function', name: 'g' } }, /not offered/],
    ['a choice of Chat Completions', { tools: [TOOL], tool_choice: { type: 'function', function: { name: 'f' } } }, /unknown field function/],
    ['text that is no object', { text: 'x' }, /text: no object/],
    ['unknown verbosity', { text: { verbosity: 'huge' } }, /unknown verbosity/],
    ['a format that is no object', { text: { format: 'json' } }, /text.format: no object/],
    ['an unknown format', { text: { format: { type: 'xml' } } }, /text.format: unknown type/],
    ['a format of Chat Completions', { text: { format: { type: 'json_schema', json_schema: { name: 'n', schema: {} } } } }, /unknown field json_schema/],
    ['a format of illegal name', { text: { format: { type: 'json_schema', name: 'a b', schema: { type: 'object' } } } }, /illegal name/],
    ['a format that is no object at its root', { text: { format: { type: 'json_schema', name: 'n', schema: { type: 'array' } } } }, /schema that is no object/],
    ['a strict format that is open', { text: { format: { type: 'json_schema', name: 'n', strict: true, schema: { type: 'object' } } } }, /open though/],
    ['BR-034 reasoning that is not kept without its secret', { store: false, input: [USER, { ...REASONING, encrypted_content: null }, SAID] }, /without encrypted_content/],
    ['an id of a response that it does not know', { previous_response_id: 'resp_0' }, /previous_response_not_found/],
  ])('%s', (_name, fields, rule) => {
    expect(brokenBody(fields)).toMatch(rule);
  });

  it('what is no body', () => {
    expect(checkResponsesRequest(null)).not.toStrictEqual([]);
  });
});

describe('remembers', () => {
  const first: KnownResponse = { input: [USER], output: [REASONING, { ...CALL, id: 'fc_1' }], isStored: true };
  const forgotten: KnownResponse = { input: [USER], output: [{ ...REASONING, id: 'rs_9' }, { ...SAID, id: 'msg_9' }], isStored: false };
  const responses = new Map([
    ['resp_1', first],
    ['resp_9', forgotten],
  ]);

  function brokenLater(fields: Record<string, unknown>): string {
    return checkResponsesRequest({ model: 'm', ...fields }, { responses }).join('\n');
  }

  it('what was kept, so that the output alone is enough', () => {
    expect(brokenLater({ previous_response_id: 'resp_1', input: [OUTPUT, USER] })).toBe('');
    expect(brokenLater({ previous_response_id: 'resp_1', input: 'more' })).toMatch(/calls without output/);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['an output that is missing', { previous_response_id: 'resp_1', input: [USER] }, /calls without output/],
    ['an output of another call', { previous_response_id: 'resp_1', input: [{ ...OUTPUT, call_id: 'call_2' }, OUTPUT] }, /output without a call/],
    ['what is kept, sent again', { previous_response_id: 'resp_1', input: [REASONING, { ...CALL, id: 'fc_1' }, OUTPUT] }, /used twice/],
    ['a response that was not to be kept', { previous_response_id: 'resp_9', input: [USER] }, /previous_response_not_found/],
    ['a conversation beside it', { previous_response_id: 'resp_1', conversation: 'conv_1', input: [OUTPUT] }, /beside a conversation/],
    ['BR-014 a call without the reasoning it came with', { input: [USER, { ...CALL, id: 'fc_1' }, OUTPUT] }, /without its required 'reasoning' item: "?rs_1/],
    ['reasoning before an item of another response', { input: [USER, REASONING, SAID] }, /before an item of another response/],
    ['reasoning known by its id alone, that is not kept', { input: [USER, { ...REASONING, id: 'rs_9', encrypted_content: undefined }, { ...SAID, id: 'msg_9' }] }, /item that is not known/],
  ])('and refuses %s', (_name, fields, rule) => {
    expect(brokenLater(fields)).toMatch(rule);
  });

  it('and takes the whole of it sent again without it', () => {
    expect(brokenLater({ input: [USER, REASONING, { ...CALL, id: 'fc_1' }, OUTPUT] })).toBe('');
    expect(brokenLater({ input: [USER, { ...REASONING, encrypted_content: undefined }, { ...CALL, id: 'fc_1' }, OUTPUT] })).toBe('');
  });
});
