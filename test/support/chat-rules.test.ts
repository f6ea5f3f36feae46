/** The rules that stand for a strict server: each one is seen to be broken by a body that breaks it. */
import { expect, it } from 'vitest';
import { checkChatRequest } from './chat-rules.ts';

const CALL = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
const USER = { role: 'user', content: 'a' };
const CALLS = { role: 'assistant', content: null, tool_calls: [CALL] };
const RESULT = { role: 'tool', tool_call_id: 'c1', content: 'r' };

function broken(...messages: readonly unknown[]): string {
  return checkChatRequest({ model: 'm', messages }).join('\n');
}

it('takes a whole conversation', () => {
  expect(broken({ role: 'system', content: 's' }, USER, CALLS, RESULT, { role: 'assistant', content: 'done' }, USER)).toBe('');
});

it.each([
  ['calls without results', [USER, CALLS], /calls without results/],
  ['a message between call and result', [USER, CALLS, USER, RESULT], /calls without results before it/],
  ['a result without a call', [USER, RESULT], /follows no calls/],
  ['a second result', [USER, CALLS, RESULT, RESULT], /or a second one/],
  ['an id used twice', [USER, CALLS, RESULT, CALLS, RESULT], /used twice/],
  ['an illegal id', [USER, { ...CALLS, tool_calls: [{ ...CALL, id: 'a:b' }] }], /illegal id/],
  ['an illegal name', [USER, { ...CALLS, tool_calls: [{ ...CALL, function: { name: 'a.b', arguments: '{}' } }] }], /illegal name/],
  ['arguments that are no object', [USER, { ...CALLS, tool_calls: [{ ...CALL, function: { name: 'f', arguments: '[' } }] }], /no object/],
  ['empty text', [{ role: 'user', content: ' ' }], /empty content/],
  ['an empty part', [{ role: 'user', content: [{ type: 'text', text: '' }] }], /empty text part/],
  ['content that is nothing', [{ role: 'user', content: [] }], /neither text nor parts/],
  ['an empty result', [USER, CALLS, { ...RESULT, content: '' }], /without text/],
  ['an assistant with nothing', [USER, { role: 'assistant', content: null }], /neither content nor calls/],
  ['an unknown role', [USER, { role: 'function', content: 'x' }], /unknown role/],
  ['a call of another type', [USER, { ...CALLS, tool_calls: [{ ...CALL, type: 'custom' }] }, RESULT], /call of unknown type/],
  ['an empty list of calls', [USER, { role: 'assistant', content: 'x', tool_calls: [] }], /empty list/],
  ['a first message of the assistant', [{ role: 'assistant', content: 'x' }], /first message/],
  ['a late system prompt', [USER, { role: 'system', content: 's' }], /system is not first/],
  ['a field of ours', [USER, { role: 'assistant', content: 'x', source: {} }], /unknown field source/],
  ['a field of ours in a user’s message', [{ ...USER, origin: 'user' }], /unknown field origin/],
  ['a field of ours in a result', [USER, CALLS, { ...RESULT, isError: true }], /unknown field isError/],
  ['a field of ours in a call', [USER, { ...CALLS, tool_calls: [{ ...CALL, input: {} }] }, RESULT], /unknown field input/],
  ['a field of ours in a function', [USER, { ...CALLS, tool_calls: [{ ...CALL, function: { ...CALL.function, id: 1 } }] }, RESULT], /unknown field id/],
  ['a part that nobody knows', [{ role: 'user', content: [{ type: 'media', data: 'x' }] }], /not taken here: "media"/],
  ['an image in the system prompt', [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://h/i' } }] }, USER], /not taken here/],
  ['an image that is bare base64', [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'AAAA' } }] }], /neither an address nor data/],
  ['an image that is no object', [{ role: 'user', content: [{ type: 'image_url', image_url: 'https://h/i' }] }], /image_url: no object/],
  ['audio of another format', [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'ogg' } }] }], /audio without data, or/],
  ['a file that is no object', [{ role: 'user', content: [{ type: 'file', file: 'AAAA' }] }], /file: no object/],
  ['a file without a name', [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } }] }], /without a name or data/],
  ['a lone surrogate', [{ role: 'user', content: 'a\ud83d' }], /unsafe text/],
])('refuses %s', (_name, messages, rule) => {
  expect(broken(...messages)).toMatch(rule);
});

it.each([
  [{ name: 'a.b', parameters: { type: 'object', properties: {} } }, /illegal name/],
  [{ name: 'f', parameters: { type: 'string' } }, /no object/],
  [{ name: 'f', parameters: { type: 'object', properties: {}, anyOf: [] } }, /anyOf at the root/],
])('refuses the tool %j', (tool, rule) => {
  expect(checkChatRequest({ model: 'm', messages: [USER], tools: [{ type: 'function', function: tool }] }).join()).toMatch(rule);
});
