/**
 * What a prompt of the AI SDK has to be, rule by rule, written by hand from the SDK's types and from what the packages of
 * its providers refuse. Knows nothing of the adapter.
 */
import type { Version } from './ai-sdk-models.ts';

type Fields = Readonly<Record<string, unknown>>;
type Say = (rule: string) => void;

const LEGAL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MEDIA_TYPE = /^[a-z]+\/[^\sA-Z]+$/;
const UNSAFE_TEXT = /[\p{Cs}\u0000-\u0008\u000b\u000c\u000e-\u001f]/u;

/** Which parts stand in the messages of a role, in each specification. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'file'],
  assistant: ['text', 'file', 'reasoning', 'tool-call', 'tool-result'],
  tool: ['tool-result'],
};
const V4_PARTS = ['custom', 'reasoning-file'];

/** The fields of each part: those it needs, and those it may have. */
const FIELDS: Readonly<Record<string, readonly [needed: readonly string[], optional: readonly string[]]>> = {
  text: [['text'], []],
  reasoning: [['text'], []],
  file: [['data', 'mediaType'], ['filename']],
  'reasoning-file': [['data', 'mediaType'], []],
  custom: [['kind'], []],
  'tool-call': [['toolCallId', 'toolName', 'input'], ['providerExecuted']],
  'tool-result': [['toolCallId', 'toolName', 'output'], []],
};

/** Every broken rule of a prompt; empty if a strict model takes it. */
export function checkPrompt(prompt: unknown, version: Version): string[] {
  if (!Array.isArray(prompt)) return ['prompt: not a list'];
  const broken: string[] = [];
  const ids = new Set<unknown>();
  const providerIds = new Set<unknown>();
  /** Calls of the message before that wait for their results: names by id. */
  let open = new Map<unknown, unknown>();

  for (const [at, message] of (prompt as readonly Fields[]).entries()) {
    const say: Say = (rule) => broken.push(`prompt[${at}]: ${rule}`);
    const { role, content } = message;
    onlyFields(message, ['role', 'content'], say);
    if (role === 'system') {
      if (at > 0) say('system is not first');
      if (typeof content !== 'string' || isBlank(content)) say('system says nothing');
      else checkText(content, say);
      continue;
    }
    const known = PARTS[String(role)];
    if (known === undefined) {
      say('unknown role');
      continue;
    }
    if (open.size > 0 && role !== 'tool') say('calls without results');
    if (role === 'tool' && open.size === 0) say('results without calls');
    if (!Array.isArray(content) || content.length === 0) {
      say('no content');
      continue;
    }
    const parts = content as readonly Fields[];
    const allowed = role === 'assistant' && version === 'v4' ? [...known, ...V4_PARTS] : known;
    for (const part of parts) {
      if (!allowed.includes(String(part['type']))) say(`a part ${String(part['type'])}`);
      else checkPart(part, version, say);
    }
    if (role === 'assistant') {
      open = checkCalls(parts, { ids, providerIds, say });
      if (parts.at(-1)?.['type'] === 'reasoning') say('ends in thinking');
    } else if (role === 'tool') {
      checkResults(parts, open, say);
      open = new Map();
    }
  }
  if (open.size > 0) broken.push('prompt: ends in calls');
  return broken;
}

function checkCalls(parts: readonly Fields[], { ids, providerIds, say }: { ids: Set<unknown>; providerIds: Set<unknown>; say: Say }): Map<unknown, unknown> {
  const open = new Map<unknown, unknown>();
  for (const { type, toolCallId, toolName, providerExecuted } of parts) {
    if (type === 'tool-result' && !providerIds.has(toolCallId)) say('a result of nothing that the provider ran');
    if (type !== 'tool-call') continue;
    if (providerExecuted === true) {
      providerIds.add(toolCallId);
      continue;
    }
    if (providerExecuted !== undefined) say('providerExecuted is neither true nor left out');
    if (typeof toolCallId !== 'string' || !LEGAL_ID.test(toolCallId)) say(`an illegal id ${String(toolCallId)}`);
    if (typeof toolName !== 'string' || !LEGAL_NAME.test(toolName)) say(`an illegal name ${String(toolName)}`);
    if (ids.has(toolCallId)) say('an id twice');
    ids.add(toolCallId);
    open.set(toolCallId, toolName);
  }
  return open;
}

function checkResults(parts: readonly Fields[], open: ReadonlyMap<unknown, unknown>, say: Say): void {
  const answered = new Set<unknown>();
  for (const { toolCallId, toolName } of parts) {
    if (!open.has(toolCallId)) say('a result without its call');
    else if (open.get(toolCallId) !== toolName) say('a result under another name');
    if (answered.has(toolCallId)) say('two results of one call');
    answered.add(toolCallId);
  }
  if (answered.size < open.size) say('a call without its result');
}

function checkPart(part: Fields, version: Version, say: Say): void {
  const type = String(part['type']);
  const [needed, optional] = FIELDS[type]!;
  for (const field of needed) if (part[field] === undefined) say(`${type} without ${field}`);
  onlyFields(part, ['type', 'providerOptions', ...needed, ...optional], say);
  const options = part['providerOptions'];
  if ('providerOptions' in part && !(isObject(options) && Object.keys(options).length > 0 && Object.values(options).every(isObject))) say('odd providerOptions');
  if (typeof part['text'] === 'string') {
    checkText(part['text'], say);
    if (isBlank(part['text']) && type === 'text' && options === undefined) say('a blank text');
    if (part['text'] === '' && options === undefined) say('an empty part');
  }
  if (type === 'file' || type === 'reasoning-file') checkFile(part, version === 'v4', say);
  if (type === 'tool-call') {
    if (!isObject(part['input'])) say('input is no object');
    else checkText(JSON.stringify(part['input']).replace(/\\u([0-9a-f]{4})/g, (_escape, code: string) => String.fromCharCode(parseInt(code, 16))), say);
  }
  if (type === 'tool-result') checkOutput(part['output'], version, say);
}

function checkFile({ data, mediaType }: Fields, isTagged: boolean, say: Say): void {
  if (typeof mediaType !== 'string' || !MEDIA_TYPE.test(mediaType)) say(`a media type ${String(mediaType)}`);
  const content: unknown = isTagged ? (isObject(data) && (data['type'] === 'data' ? data['data'] : data['type'] === 'url' ? data['url'] : undefined)) : data;
  const isUrl = content instanceof URL;
  if (isTagged && isObject(data) && (data['type'] === 'url') !== isUrl) say('a tag that is not true');
  if (!isUrl && (typeof content !== 'string' || !/^[\w+/=]+$/.test(content))) say('no data');
}

/** What an output of mixed content holds. */
const CONTENT: Readonly<Record<Version, Readonly<Record<string, readonly string[]>>>> = {
  v2: { text: ['text'], media: ['data', 'mediaType'] },
  v3: { text: ['text'], 'image-data': ['data', 'mediaType'], 'file-data': ['data', 'mediaType'], 'image-url': ['url'], 'file-url': ['url', 'mediaType'] },
  v4: { text: ['text'], file: ['data', 'mediaType'] },
};

function checkOutput(output: unknown, version: Version, say: Say): void {
  if (!isObject(output)) {
    say('no output');
    return;
  }
  onlyFields(output, ['type', 'value'], say);
  const { type, value } = output;
  if (type === 'text' || type === 'error-text') {
    if (typeof value !== 'string' || isBlank(value)) say('an output that says nothing');
    else checkText(value, say);
  } else if (type === 'json' || type === 'error-json') {
    if (value === undefined) say('no value');
  } else if (type === 'content' && Array.isArray(value) && value.length > 0) {
    for (const part of value as readonly Fields[]) {
      const fields = CONTENT[version][String(part['type'])];
      if (fields === undefined) {
        say(`an output part ${String(part['type'])}`);
        continue;
      }
      onlyFields(part, ['type', ...fields], say);
      if (typeof part['text'] === 'string' && isBlank(part['text'])) say('a blank text in an output');
      if (version === 'v4' && part['type'] === 'file') checkFile(part, true, say);
      else for (const field of fields) if (typeof part[field] !== 'string') say(`an output part without ${field}`);
    }
  } else {
    say(`an output ${String(type)}`);
  }
}

function onlyFields(value: Fields, known: readonly string[], say: Say): void {
  for (const field of Object.keys(value)) if (!known.includes(field)) say(`a field ${field}`);
}

function checkText(text: string, say: Say): void {
  if (UNSAFE_TEXT.test(text)) say('unsafe text');
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
