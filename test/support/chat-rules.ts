/**
 * What strict Chat Completions servers refuse, rule by rule, written by hand from their documentation and errors.
 * Knows nothing of the adapter.
 */
import { checkFields, checkStrings, isBase64, isBlank, isObject, isObjectText, type Say, type Wire } from './rule-check.ts';

interface WireMessage {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
  readonly [field: string]: unknown;
}

interface WireCall {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown };
}

const LEGAL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ROLES = new Set(['system', 'user', 'assistant', 'tool']);
/** Fields that some server knows, by role; everything else is ours by mistake. */
const FIELDS: Readonly<Record<string, string>> = {
  system: 'role content |',
  user: 'role content |',
  assistant: 'role | content tool_calls reasoning reasoning_content reasoning_text reasoning_details extra_content thought_signature',
  tool: 'role content tool_call_id |',
};
const CALL_FIELDS = 'id type function | extra_content thought_signature';
/** Content parts by the role that may say them. */
const PARTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  system: { text: 'type text |' },
  user: { text: 'type text |', image_url: 'type image_url |', input_audio: 'type input_audio |', file: 'type file |', video_url: 'type video_url |' },
  assistant: { text: 'type text |', thinking: 'type thinking |', refusal: 'type refusal |' },
};

/** Every broken rule of a request's body; empty if a strict server takes it. */
export function checkChatRequest(body: unknown): string[] {
  const { model, messages, tools } = body as { model?: unknown; messages?: unknown; tools?: unknown };
  const broken: string[] = [];
  if (typeof model !== 'string' || model === '') broken.push('model: missing');
  if (!Array.isArray(messages)) return [...broken, 'messages: not a list'];
  if (tools !== undefined) broken.push(...checkTools(tools));
  return [...broken, ...checkMessages(messages as readonly WireMessage[])];
}

function checkMessages(messages: readonly WireMessage[]): string[] {
  const broken: string[] = [];
  const seenIds = new Set<string>();
  let open = new Map<string, number>();
  let isInResults = false;

  for (const [at, message] of messages.entries()) {
    const say: Say = (rule) => void broken.push(`messages[${at}]: ${rule}`);
    const { role, content } = message;
    if (typeof role !== 'string' || !ROLES.has(role)) say('unknown role');
    if (role === 'system' && at > 0) say('system is not first');
    if (role === 'tool') {
      if (!isInResults) say('a result that follows no calls');
      const id = message.tool_call_id;
      if (typeof id !== 'string' || !open.has(id)) say('a result without a call, or a second one');
      else open.delete(id);
      if (typeof content !== 'string' || content.trim() === '') say('a result without text');
    } else {
      if (open.size > 0) say(`calls without results before it: ${[...open.keys()].join(', ')}`);
      open = new Map();
      isInResults = false;
    }
    if (typeof role === 'string') checkFields(message, FIELDS[role] ?? '', say);
    if (role === 'user' || role === 'system') checkContent(content, role, say);
    if (role === 'assistant') {
      const calls = checkAssistant(message, seenIds, say);
      open = new Map(calls.map((id) => [id, at]));
      isInResults = calls.length > 0;
    }
    checkStrings(message, say);
  }
  if (open.size > 0) broken.push(`end: calls without results: ${[...open.keys()].join(', ')}`);
  const first = messages.find(({ role }) => role !== 'system');
  if (first !== undefined && first.role !== 'user') broken.push('the first message is not the user\'s');
  return broken;
}

function checkAssistant(message: WireMessage, seenIds: Set<string>, say: Say): string[] {
  const { content, tool_calls: calls } = message;
  if (content !== null) checkContent(content, 'assistant', say);
  if (calls === undefined) {
    const hasThinking = Object.keys(message).some((field) => /^(reasoning|extra|thought)/.test(field));
    if (content === null && !hasThinking) say('neither content nor calls');
    return [];
  }
  if (!Array.isArray(calls) || calls.length === 0) {
    say('an empty list of calls');
    return [];
  }
  const ids: string[] = [];
  for (const call of calls as readonly WireCall[]) {
    const { id, type, function: called } = call;
    checkFields({ ...call }, CALL_FIELDS, say);
    checkFields({ ...called }, 'name arguments |', say);
    if (type !== 'function') say('a call of unknown type');
    if (typeof id !== 'string' || !LEGAL_ID.test(id)) say(`an illegal id: ${JSON.stringify(id)}`);
    else if (seenIds.has(id)) say(`an id that is used twice: ${id}`);
    else ids.push(id);
    if (typeof id === 'string') seenIds.add(id);
    if (typeof called?.name !== 'string' || !LEGAL_NAME.test(called.name)) say(`an illegal name: ${JSON.stringify(called?.name)}`);
    if (!isObjectText(called?.arguments)) say(`arguments that are no object: ${JSON.stringify(called?.arguments)}`);
  }
  return ids;
}

function checkContent(content: unknown, role: string, say: Say): void {
  if (typeof content === 'string') {
    if (content.trim() === '') say('empty content');
    return;
  }
  if (!Array.isArray(content) || content.length === 0) {
    say('content that is neither text nor parts');
    return;
  }
  for (const part of content as readonly Wire[]) {
    const { type, text } = part;
    const fields = typeof type === 'string' ? PARTS[role]?.[type] : undefined;
    if (fields === undefined) say(`a part that is not taken here: ${JSON.stringify(type)}`);
    else checkFields(part, fields, say);
    if (type === 'text' && isBlank(text)) say('an empty text part');
    if (type === 'image_url') checkImage(part[type], say);
    if (type === 'input_audio') checkAudio(part[type], say);
    if (type === 'file') checkFile(part[type], say);
  }
}

function checkImage(image: unknown, say: Say): void {
  if (!isObject(image)) {
    say('image_url: no object');
    return;
  }
  checkFields(image, 'url | detail', say);
  if (typeof image['url'] !== 'string' || !/^(?:https?:\/\/|data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$)/.test(image['url'])) say('an image that is neither an address nor data');
}

function checkAudio(audio: unknown, say: Say): void {
  if (!isObject(audio) || !isBase64(audio['data']) || !['wav', 'mp3'].includes(String(audio['format']))) say('audio without data, or in a format that is not taken');
}

function checkFile(file: unknown, say: Say): void {
  if (!isObject(file)) {
    say('file: no object');
    return;
  }
  checkFields(file, '| filename file_data file_id', say);
  const { filename, file_data: data, file_id: id } = file;
  if (id === undefined && (isBlank(filename) || typeof data !== 'string' || !/^data:[a-z0-9.+-]+\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/.test(data))) say('a file without a name or data');
}

function checkTools(tools: unknown): string[] {
  if (!Array.isArray(tools) || tools.length === 0) return ['tools: an empty list'];
  const names = new Set<unknown>();
  const broken: string[] = [];
  for (const { function: tool } of tools as readonly { function?: { name?: unknown; parameters?: Record<string, unknown> } }[]) {
    if (typeof tool?.name !== 'string' || !LEGAL_NAME.test(tool.name)) broken.push('tools: an illegal name');
    if (names.has(tool?.name)) broken.push('tools: a name twice');
    names.add(tool?.name);
    const schema = tool?.parameters ?? {};
    if (schema['type'] !== 'object' || typeof schema['properties'] !== 'object') broken.push('tools: a schema that is no object');
    for (const word of ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref']) if (word in schema) broken.push(`tools: ${word} at the root`);
  }
  return broken;
}
