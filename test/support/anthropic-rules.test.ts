/** The rules that stand for a strict Messages server: each one is seen to be broken by a body that breaks it. */
import { describe, expect, it } from 'vitest';
import { checkMessagesRequest, type MessagesRules } from './anthropic-rules.ts';

const USER = { role: 'user', content: 'a' };
const USE = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } };
const RESULT = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' };
const CALLS = { role: 'assistant', content: [USE] };
const ANSWER = { role: 'user', content: [RESULT] };
const THOUGHT = { type: 'thinking', thinking: 'Hm.', signature: 's' };
const MARK = { type: 'ephemeral' };
const HOUR = { type: 'ephemeral', ttl: '1h' };
const TOOL = { name: 'f', input_schema: { type: 'object', properties: {} } };
const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
const FOUND = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
const THINKING = { type: 'enabled', budget_tokens: 1024 };
const PNG = { type: 'base64', media_type: 'image/png', data: 'AAAA' };

function broken(fields: Record<string, unknown>, rules: MessagesRules = {}): string {
  return checkMessagesRequest({ model: 'm', max_tokens: 4096, messages: [USER], ...fields }, rules).join('\n');
}

function reply(...content: readonly unknown[]): unknown {
  return { role: 'assistant', content };
}

function user(...content: readonly unknown[]): unknown {
  return { role: 'user', content };
}

it('takes a whole conversation with everything in it', () => {
  const messages = [
    user({ type: 'text', text: 'a' }, { type: 'image', source: PNG }, { type: 'image', source: { type: 'url', url: 'https://h/i' } }, { type: 'image', source: { type: 'file', file_id: 'f' } }),
    reply(THOUGHT, { type: 'redacted_thinking', data: 'd' }, { type: 'text', text: 'b' }, SEARCH, FOUND, USE, { ...USE, id: 'toolu_2', cache_control: HOUR }),
    user(RESULT, { ...RESULT, tool_use_id: 'toolu_2', content: [{ type: 'text', text: 'r' }, { type: 'image', source: PNG }] }, { type: 'text', text: 'c', cache_control: MARK }),
    reply({ type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'm', server_name: 's', input: {} }, { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', content: [] }, { type: 'text', text: 'd' }),
    user(
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, title: 't' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
      { type: 'document', source: { type: 'url', url: 'https://h/d' } },
      { type: 'document', source: { type: 'content', content: 'x' } },
      { type: 'document', source: { type: 'file', file_id: 'f' } },
    ),
  ];
  const tools = [{ ...TOOL, description: 'd', strict: true, input_schema: { type: 'object', properties: {}, additionalProperties: false } }, { type: 'web_search_20250305', name: 'web_search' }];
  const system = [{ type: 'text', text: 's', cache_control: HOUR }];
  const output = { effort: 'high', format: { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } } };
  const more = { metadata: { user_id: 'u' }, stop_sequences: ['x'], stream: true, temperature: 1, top_p: 0.99, output_config: output };
  expect(broken({ messages, tools, system, thinking: THINKING, tool_choice: { type: 'auto' }, ...more })).toBe('');
});

it('takes the beginning of a reply where the model does, and a paused reply everywhere', () => {
  expect(broken({ messages: [USER, reply({ type: 'text', text: 'So' })] })).toBe('');
  expect(broken({ messages: [USER, reply({ type: 'text', text: 'So' })] }, { prefill: false })).toMatch(/end: the beginning of a reply/);
  expect(broken({ messages: [USER, reply({ type: 'text', text: 'So' }, SEARCH)] }, { prefill: false })).toBe('');
});

it('takes code of the provider that waits for a tool of ours', () => {
  const code = { type: 'server_tool_use', id: 'srvtoolu_2', name: 'code_execution', input: {} };
  const call = { ...USE, caller: { type: 'code_execution_20250825', tool_id: 'srvtoolu_2' } };
  const done = { type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_2', content: { type: 'code_execution_result' } };
  expect(broken({ messages: [USER, reply(code, call), ANSWER, reply(done, { type: 'text', text: 'x' })] })).toBe('');
});

describe('refuses in the messages', () => {
  it.each([
    ['nothing', [], /messages: empty/],
    ['a first message of the assistant', [reply({ type: 'text', text: 'x' })], /first message/],
    ['an unknown role', [USER, { role: 'system', content: 's' }], /unknown role/],
    ['two messages of one role', [USER, USER], /same role in a row/],
    ['a field of ours', [{ ...USER, origin: 'user' }], /unknown field origin/],
    ['blank content', [{ role: 'user', content: ' ' }], /blank content/],
    ['empty content', [{ role: 'user', content: [] }], /empty content/],
    ['content that is no list', [{ role: 'user' }], /content: not a list/],
    ['blank text', [user({ type: 'text', text: '\n' })], /blank text block/],
    ['a block of no known type', [user({ type: 'constructor' })], /unknown block/],
    ['a field of a block that is not known', [user({ type: 'text', text: 'a', providerData: 1 })], /unknown field providerData/],
    ['an image of the assistant', [USER, reply({ type: 'image', source: PNG })], /may not stand/],
    ['thinking of the user', [user(THOUGHT)], /may not stand/],
    ['calls without results', [USER, CALLS], /end: calls without results/],
    ['calls without results before a user’s message', [USER, CALLS, USER], /0 results for the call toolu_1/],
    ['a missing result', [USER, reply(USE, { ...USE, id: 'toolu_2' }), ANSWER], /0 results for the call toolu_2/],
    ['a second result', [USER, CALLS, user(RESULT, RESULT)], /2 results/],
    ['results behind text', [USER, CALLS, user({ type: 'text', text: 'x' }, RESULT)], /do not come first/],
    ['results in a later message', [USER, CALLS, USER, CALLS, ANSWER], /0 results/],
    ['a result without a call', [ANSWER], /without a call right before it/],
    ['calls followed by the assistant', [USER, CALLS, CALLS, ANSWER], /calls without results before it/],
    ['an illegal id', [USER, reply({ ...USE, id: 'a:b' }), user({ ...RESULT, tool_use_id: 'a:b' })], /illegal id/],
    ['an id that is too long', [USER, reply({ ...USE, id: 'a'.repeat(65) }), user({ ...RESULT, tool_use_id: 'a'.repeat(65) })], /illegal id/],
    ['an id used twice', [USER, CALLS, ANSWER, CALLS, ANSWER], /used twice/],
    ['an illegal name', [USER, reply({ ...USE, name: 'a.b' }), ANSWER], /illegal name/],
    ['input that is no object', [USER, reply({ ...USE, input: [] }), ANSWER], /input that is no object/],
    ['a blank result', [USER, CALLS, user({ ...RESULT, content: ' ' })], /result with blank content/],
    ['an empty result', [USER, CALLS, user({ ...RESULT, content: [] })], /result with empty content/],
    ['a result within a result', [USER, CALLS, user({ ...RESULT, content: [RESULT] })], /may not stand/],
    ['an error with an image', [USER, CALLS, user({ ...RESULT, is_error: true, content: [{ type: 'image', source: PNG }] })], /other blocks than text/],
    ['is_error that is no boolean', [USER, CALLS, user({ ...RESULT, is_error: 'no' })], /is_error/],
    ['thinking without a signature', [USER, reply({ type: 'thinking', thinking: 'x', signature: '' }, { type: 'text', text: 'x' })], /without a signature/],
    ['thinking whose signature is left out', [USER, reply({ type: 'thinking', thinking: 'x' }, { type: 'text', text: 'x' })], /signature: missing/],
    ['thinking without text', [USER, reply({ type: 'thinking', thinking: 1, signature: 's' }, { type: 'text', text: 'x' })], /thinking: no text/],
    ['redacted thinking without data', [USER, reply({ type: 'redacted_thinking', data: '' }, { type: 'text', text: 'x' })], /without data/],
    ['thinking at the end of a reply', [USER, reply(THOUGHT), USER], /thinking is its last block/],
    ['a search without what it found', [USER, reply(SEARCH, { type: 'text', text: 'x' }), USER], /server_tool_use without its result/],
    ['what was found without a search', [USER, reply(FOUND, { type: 'text', text: 'x' }), USER], /without its server_tool_use/],
    ['a result of another server', [USER, reply(SEARCH, { type: 'mcp_tool_result', tool_use_id: 'srvtoolu_1' }), USER], /without its mcp_tool_use/],
    ['a beginning of a reply with space behind it', [USER, reply({ type: 'text', text: 'So ' })], /ends in white space/],
    ['an image of another type', [user({ type: 'image', source: { ...PNG, media_type: 'image/svg+xml' } })], /image of a type/],
    ['an image that is no base64', [user({ type: 'image', source: { ...PNG, data: 'data:x' } })], /no base64/],
    ['an image without a source', [user({ type: 'image', source: 'x' })], /source: no object/],
    ['an image of an unknown source', [user({ type: 'image', source: { type: 'x' } })], /unknown source/],
    ['an image behind no http address', [user({ type: 'image', source: { type: 'url', url: 'file:///x' } })], /no http address/],
    ['a document of another type', [user({ type: 'document', source: { type: 'base64', media_type: 'text/csv', data: 'AAAA' } })], /document of a type/],
    ['a document that is no base64', [user({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: '' } })], /no base64/],
    ['a text document of another type', [user({ type: 'document', source: { type: 'text', media_type: 'text/csv', data: 'x' } })], /text document of a type/],
    ['a blank text document', [user({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: ' ' } })], /blank text document/],
    ['a document with a blank title', [user({ type: 'document', title: '', source: { type: 'file', file_id: 'f' } })], /blank title/],
    ['a document without a source', [user({ type: 'document', source: null })], /source: no object/],
    ['a document of an unknown source', [user({ type: 'document', source: { type: 'x' } })], /unknown source/],
    ['a lone surrogate', [{ role: 'user', content: 'a\ud83d' }], /unsafe text/],
    ['a lone surrogate in an input', [USER, reply({ ...USE, input: { '\ud83d': 1 } }), ANSWER], /unsafe name/],
    ['what is no object', ['x'], /what is no object/],
  ])('%s', (_name, messages, rule) => {
    expect(broken({ messages })).toMatch(rule);
  });
});

describe('refuses in the rest of the body', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['no model', { model: '' }, /model: missing/],
    ['no max_tokens', { max_tokens: undefined }, /max_tokens: missing/],
    ['max_tokens of nothing', { max_tokens: 0 }, /max_tokens: no positive integer/],
    ['an unknown field', { max_output_tokens: 1 }, /unknown field max_output_tokens/],
    ['stream that is no boolean', { stream: 'yes' }, /stream/],
    ['a blank system prompt', { system: '' }, /system: blank/],
    ['a blank block of the system prompt', { system: [{ type: 'text', text: ' ' }] }, /system: a blank text block/],
    ['an image as system prompt', { system: [{ type: 'image', text: 'x' }] }, /system: not a text block/],
    ['an unknown field of the system prompt', { system: [{ type: 'text', text: 'x', id: 1 }] }, /system: unknown field id/],
    ['a tool’s illegal name', { tools: [{ ...TOOL, name: 'a.b' }] }, /illegal name/],
    ['a tool twice', { tools: [TOOL, TOOL] }, /name twice/],
    ['a field of a tool that is not known', { tools: [{ ...TOOL, parameters: {} }] }, /unknown field parameters/],
    ['a tool of an unknown type', { tools: [{ ...TOOL, type: 'function' }] }, /unknown type/],
    ['a description that is no text', { tools: [{ ...TOOL, description: null }] }, /description/],
    ['a schema that is no object', { tools: [{ ...TOOL, input_schema: { type: 'array' } }] }, /schema that is no object/],
    ['properties that are no object', { tools: [{ ...TOOL, input_schema: { type: 'object', properties: [] } }] }, /properties that are no object/],
    ['a union at a schema’s root', { tools: [{ ...TOOL, input_schema: { type: 'object', oneOf: [] } }] }, /oneOf at the root/],
    ['a strict schema that is open', { tools: [{ ...TOOL, strict: true }] }, /open though the schema is strict/],
    ['a choice without tools', { tool_choice: { type: 'auto' } }, /without tools/],
    ['a choice that is no object', { tools: [TOOL], tool_choice: 'auto' }, /tool_choice: no object/],
    ['an unknown choice', { tools: [TOOL], tool_choice: { type: 'required' } }, /unknown type/],
    ['an unknown field of a choice', { tools: [TOOL], tool_choice: { type: 'none', disable_parallel_tool_use: true } }, /unknown field/],
    ['a choice of a tool that is not there', { tools: [TOOL], tool_choice: { type: 'tool', name: 'g' } }, /not offered/],
    ['a forced tool while thinking', { tools: [TOOL], tool_choice: { type: 'any' }, thinking: THINKING }, /forces a tool/],
    ['thinking that is no object', { thinking: true }, /thinking: no object/],
    ['unknown thinking', { thinking: { type: 'on' } }, /thinking: unknown type/],
    ['a budget beside adaptive thinking', { thinking: { type: 'adaptive', budget_tokens: 2000 } }, /unknown field budget_tokens/],
    ['a small budget', { thinking: { type: 'enabled', budget_tokens: 1023 } }, /below 1024/],
    ['a budget as large as the output', { thinking: { type: 'enabled', budget_tokens: 4096 } }, /not below max_tokens/],
    ['a temperature beside thinking', { thinking: THINKING, temperature: 0 }, /temperature: other than 1/],
    ['top_k beside thinking', { thinking: THINKING, top_k: 1 }, /top_k: set while/],
    ['a low top_p beside thinking', { thinking: THINKING, top_p: 0.5 }, /top_p: below/],
    ['an open call that did not start with thinking', { thinking: THINKING, messages: [USER, CALLS, ANSWER] }, /does not start with thinking/],
    ['a beginning of a reply beside thinking', { thinking: THINKING, messages: [USER, reply({ type: 'text', text: 'So' })] }, /does not start with thinking/],
    ['a high temperature', { temperature: 1.5 }, /temperature: not within/],
    ['a negative top_p', { top_p: -1 }, /top_p: not within/],
    ['half a top_k', { top_k: 0.5 }, /top_k: no count/],
    ['a blank stop sequence', { stop_sequences: [' '] }, /stop_sequences/],
    ['metadata that is no object', { metadata: 'x' }, /metadata: no object/],
    ['an unknown field of metadata', { metadata: { turnId: 1 } }, /metadata: unknown field/],
    ['output_config that is no object', { output_config: 1 }, /output_config: no object/],
    ['an unknown effort', { output_config: { effort: 'huge' } }, /unknown effort/],
    ['a format without a schema', { output_config: { format: { type: 'json_object' } } }, /format without a schema/],
    ['a format with an open object', { output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: { a: { type: ['object', 'null'] } }, additionalProperties: false } } } }, /open though/],
    ['five cache marks', { cache_control: MARK, system: [1, 2, 3, 4].map(() => ({ type: 'text', text: 's', cache_control: MARK })) }, /5 marks/],
    ['five cache marks, one of them within a result', { tools: [1, 2, 3, 4].map((n) => ({ ...TOOL, name: `f${n}`, cache_control: MARK })), messages: [USER, CALLS, user({ ...RESULT, content: [{ type: 'text', text: 'x', cache_control: MARK }] })] }, /5 marks/],
    ['an unknown mark', { cache_control: { type: 'persistent' } }, /cache_control: unknown type/],
    ['a mark that is no object', { cache_control: true }, /cache_control: no object/],
    ['an unknown ttl', { cache_control: { type: 'ephemeral', ttl: '2h' } }, /unknown ttl/],
    ['BR-082 an hour behind five minutes', { tools: [{ ...TOOL, cache_control: MARK }], system: [{ type: 'text', text: 's', cache_control: HOUR }] }, /1h behind 5m/],
    ['BR-130 a mark on thinking', { messages: [USER, reply({ ...THOUGHT, cache_control: MARK }, { type: 'text', text: 'x' }), USER] }, /unknown field cache_control/],
    ['BR-130 a mark on redacted thinking', { messages: [USER, reply({ type: 'redacted_thinking', data: 'd', cache_control: MARK }, { type: 'text', text: 'x' }), USER] }, /unknown field cache_control/],
    ['BR-130 a mark on blank text', { messages: [user({ type: 'text', text: '', cache_control: MARK })] }, /blank text block/],
  ])('%s', (_name, fields, rule) => {
    expect(broken(fields)).toMatch(rule);
  });

  it('what is no body', () => {
    expect(checkMessagesRequest('x')).not.toStrictEqual([]);
  });
});
