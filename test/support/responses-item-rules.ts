/** What strict servers of the Responses protocol refuse in one input item, wherever it stands. */
import { checkFields, checkWord, isBlank, isObject, isObjectText, listOf, type Say, type Wire } from './rule-check.ts';

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_CALL_ID = 64;
const STATUSES = ['in_progress', 'completed', 'incomplete'];
const IMAGE_DATA = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const FILE_DATA = /^data:[a-z0-9.+-]+\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/;

/** How the ids of items begin that this file looks into. */
const ID_PREFIXES: Readonly<Record<string, string>> = { message: 'msg_', function_call: 'fc_', reasoning: 'rs_' };

/** Items of tools that the provider runs, and of others that only go back as they came. */
const OPAQUE_ITEMS = new Set<unknown>([
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'compaction',
  'computer_call',
  'computer_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
]);

/** The rules of one item. */
export function checkResponsesItem(item: Wire, say: Say): void {
  const { type = 'message', id, status } = item;
  const prefix = typeof type === 'string' && Object.hasOwn(ID_PREFIXES, type) ? ID_PREFIXES[type] : undefined;
  if (prefix !== undefined && id !== undefined && !(typeof id === 'string' && id.startsWith(prefix))) say(`an id that does not begin with ${prefix}: ${JSON.stringify(id)}`);
  if (typeof id === 'string' && id.length > MAX_CALL_ID * 8) say('an id that is too long');
  if (prefix !== undefined && status !== undefined) for (const rule of checkWord(status, STATUSES, 'unknown status')) say(rule);
  switch (type) {
    case 'message':
      checkMessage(item, say);
      return;
    case 'function_call':
      checkFields(item, 'type call_id name arguments | id status caller namespace', say);
      checkCallId(item['call_id'], say);
      if (typeof item['name'] !== 'string' || !LEGAL_NAME.test(item['name'])) say(`an illegal name: ${JSON.stringify(item['name'])}`);
      if (!isObjectText(item['arguments'])) say(`arguments that are no object: ${JSON.stringify(item['arguments'])}`);
      return;
    case 'function_call_output':
      checkFields(item, 'type call_id output | id status caller', say);
      checkCallId(item['call_id'], say);
      if (typeof item['output'] !== 'string') checkContent(item['output'], ['input_text', 'input_image', 'input_file'], say);
      else if (isBlank(item['output'])) say('a blank output');
      return;
    case 'reasoning':
      checkReasoning(item, say);
      return;
    case 'item_reference':
      checkFields(item, 'type id |', say);
      return;
    default:
      if (!OPAQUE_ITEMS.has(type)) say(`unknown item ${JSON.stringify(type)}`);
  }
}

function checkMessage(item: Wire, say: Say): void {
  const { role, content, id, phase } = item;
  for (const rule of checkWord(role, ['user', 'assistant', 'system', 'developer'], 'unknown role')) say(rule);
  if (phase !== undefined && phase !== null) for (const rule of checkWord(phase, ['commentary', 'final_answer'], 'unknown phase')) say(rule);
  const isAssistant = role === 'assistant';
  checkFields(item, `role content | type id status ${isAssistant ? 'phase' : ''}`, say);
  if (typeof content === 'string') {
    if (isBlank(content)) say('blank content');
    return;
  }
  if (!isAssistant) {
    checkContent(content, ['input_text', 'input_image', 'input_file', 'input_audio'], say);
    return;
  }
  // A server takes back what it gave, also where it says nothing.
  checkContent(content, ['output_text', 'refusal'], say, id !== undefined);
}

function checkContent(content: unknown, types: readonly string[], say: Say, takesBlank = false): void {
  const parts = listOf(content, 'content', say);
  if (parts.length === 0) say('empty content');
  for (const [at, part] of parts.entries()) {
    const sayPart: Say = (rule) => say(`content[${at}]: ${rule}`);
    for (const rule of checkWord(part['type'], types, 'a part that is not taken here')) sayPart(rule);
    checkPart(part, takesBlank, sayPart);
  }
}

function checkPart(part: Wire, takesBlank: boolean, say: Say): void {
  switch (part['type']) {
    case 'input_text':
      checkFields(part, 'type text | prompt_cache_breakpoint', say);
      if (isBlank(part['text'])) say('a blank text');
      return;
    case 'output_text':
      checkFields(part, 'type text | annotations logprobs', say);
      if (part['annotations'] !== undefined && !Array.isArray(part['annotations'])) say('annotations: not a list');
      if (isBlank(part['text']) && !(takesBlank && typeof part['text'] === 'string')) say('a blank text');
      return;
    case 'refusal':
      checkFields(part, 'type refusal |', say);
      if (isBlank(part['refusal'])) say('a blank refusal');
      return;
    case 'input_image':
      checkImage(part, say);
      return;
    case 'input_file':
      checkFile(part, say);
      return;
    case 'input_audio': {
      checkFields(part, 'type input_audio |', say);
      const { input_audio: audio } = part;
      if (!isObject(audio) || isBlank(audio['data']) || !['mp3', 'wav'].includes(String(audio['format']))) say('audio without data, or in a format that is not taken');
    }
  }
}

function checkImage(part: Wire, say: Say): void {
  checkFields(part, 'type | detail file_id image_url prompt_cache_breakpoint', say);
  const { image_url: url, file_id: fileId, detail } = part;
  if (detail !== undefined) for (const rule of checkWord(detail, ['low', 'high', 'auto', 'original'], 'unknown detail')) say(rule);
  if (fileId !== undefined) return;
  if (typeof url !== 'string' || !(/^https?:\/\//.test(url) || IMAGE_DATA.test(url))) say(`an image that is neither an address nor data of a type that is taken: ${JSON.stringify(url)?.slice(0, 40)}`);
}

function checkFile(part: Wire, say: Say): void {
  checkFields(part, 'type | detail file_data file_id file_url filename prompt_cache_breakpoint', say);
  const { file_data: data, file_url: url, file_id: fileId, filename } = part;
  const given = [data, url, fileId].filter((each) => each !== undefined);
  if (given.length !== 1) say('a file that is given not at all, or more than once');
  if (data !== undefined) {
    if (typeof data !== 'string' || !FILE_DATA.test(data)) say('a file whose data is no data address');
    if (isBlank(filename)) say('file data without a filename');
  }
  if (url !== undefined && !(typeof url === 'string' && /^https?:\/\//.test(url))) say('a file whose address is no http address');
}

function checkReasoning(item: Wire, say: Say): void {
  checkFields(item, 'type summary | id content encrypted_content status', say);
  for (const each of listOf(item['summary'], 'summary', say)) {
    checkFields(each, 'type text |', (rule) => say(`summary: ${rule}`));
    if (each['type'] !== 'summary_text' || typeof each['text'] !== 'string') say('summary: no summary_text');
  }
  const { content, encrypted_content: secret } = item;
  if (content !== undefined && content !== null) {
    for (const each of listOf(content, 'content', say)) if (each['type'] !== 'reasoning_text' || typeof each['text'] !== 'string') say('content: no reasoning_text');
  }
  if (secret !== undefined && secret !== null && isBlank(secret)) say('encrypted_content: blank');
}

function checkCallId(id: unknown, say: Say): void {
  if (typeof id !== 'string' || id === '' || id.length > MAX_CALL_ID) say(`an illegal call_id: ${JSON.stringify(id)}`);
}
