/** What strict servers of the Anthropic Messages protocol refuse in one content block, wherever it stands. */
import { checkFields, isBase64, isBlank, isObject, listOf, type Say, type Wire } from './rule-check.ts';

/** Where a block stands. */
export type Where = 'user' | 'assistant' | 'result';

interface BlockRule {
  readonly where: readonly Where[];
  readonly fields: string;
}

const SERVER_RESULT: BlockRule = { where: ['assistant'], fields: 'type tool_use_id content | cache_control caller' };

const BLOCKS: Readonly<Record<string, BlockRule>> = {
  text: { where: ['user', 'assistant', 'result'], fields: 'type text | cache_control citations' },
  image: { where: ['user', 'result'], fields: 'type source | cache_control transformations' },
  document: { where: ['user', 'result'], fields: 'type source | cache_control citations context title' },
  search_result: { where: ['user', 'result'], fields: 'type content source title | cache_control citations' },
  tool_reference: { where: ['result'], fields: 'type tool_name | cache_control' },
  tool_result: { where: ['user'], fields: 'type tool_use_id | content is_error cache_control toolset_name' },
  container_upload: { where: ['user', 'assistant'], fields: 'type file_id | cache_control' },
  // A cache mark on thinking is refused.
  thinking: { where: ['assistant'], fields: 'type thinking signature |' },
  redacted_thinking: { where: ['assistant'], fields: 'type data |' },
  tool_use: { where: ['assistant'], fields: 'type id name input | cache_control caller toolset_name' },
  server_tool_use: { where: ['assistant'], fields: 'type id name input | cache_control caller' },
  mcp_tool_use: { where: ['assistant'], fields: 'type id name input server_name | cache_control' },
  mcp_tool_result: { where: ['assistant'], fields: 'type tool_use_id | content is_error cache_control' },
  compaction: { where: ['assistant'], fields: 'type content | cache_control encrypted_content' },
  web_search_tool_result: SERVER_RESULT,
  web_fetch_tool_result: SERVER_RESULT,
  code_execution_tool_result: SERVER_RESULT,
  bash_code_execution_tool_result: SERVER_RESULT,
  text_editor_code_execution_tool_result: SERVER_RESULT,
  tool_search_tool_result: SERVER_RESULT,
  advisor_tool_result: SERVER_RESULT,
};

const IMAGE_TYPES = new Set<unknown>(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** The rules of one block. */
export function checkAnthropicBlock(block: Wire, where: Where, say: Say): void {
  const { type } = block;
  const rule = typeof type === 'string' && Object.hasOwn(BLOCKS, type) ? BLOCKS[type] : undefined;
  if (rule === undefined) {
    say(`unknown block ${JSON.stringify(type)}`);
    return;
  }
  if (!rule.where.includes(where)) say(`a ${String(type)} block where it may not stand`);
  checkFields(block, rule.fields, say);
  switch (type) {
    case 'text':
      if (isBlankText(block)) say('a blank text block');
      return;
    case 'image':
      checkImageSource(block['source'], say);
      return;
    case 'document':
      checkDocument(block, say);
      return;
    case 'thinking':
      if (typeof block['thinking'] !== 'string') say('thinking: no text');
      if (isBlank(block['signature'])) say('thinking without a signature');
      return;
    case 'redacted_thinking':
      if (isBlank(block['data'])) say('redacted thinking without data');
      return;
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      if (typeof block['name'] !== 'string' || !/^[a-zA-Z0-9_-]{1,200}$/.test(block['name'])) say(`an illegal name: ${JSON.stringify(block['name'])}`);
      if (!isObject(block['input'])) say('input that is no object');
      return;
    case 'tool_result':
      checkResult(block, say);
  }
}

/** True for a text block that says nothing. */
export function isBlankText({ type, text }: Wire): boolean {
  return type === 'text' && isBlank(text);
}

function checkResult({ content, is_error: isError }: Wire, say: Say): void {
  if (isError !== undefined && typeof isError !== 'boolean') say('is_error: no boolean');
  if (content === undefined) return;
  if (typeof content === 'string') {
    if (isBlank(content)) say('a result with blank content');
    return;
  }
  const blocks = listOf(content, 'content', say);
  if (blocks.length === 0) say('a result with empty content');
  for (const [at, block] of blocks.entries()) checkAnthropicBlock(block, 'result', (rule) => say(`content[${at}]: ${rule}`));
  if (isError === true && blocks.some((block) => block['type'] !== 'text')) say('an error’s result with other blocks than text');
}

function checkImageSource(source: unknown, say: Say): void {
  if (!isObject(source)) {
    say('source: no object');
    return;
  }
  switch (source['type']) {
    case 'base64':
      checkFields(source, 'type media_type data |', say);
      if (!IMAGE_TYPES.has(source['media_type'])) say(`an image of a type that is not taken: ${JSON.stringify(source['media_type'])}`);
      if (!isBase64(source['data'])) say('an image whose data is no base64');
      return;
    case 'url':
      checkUrl(source, say);
      return;
    case 'file':
      checkFields(source, 'type file_id |', say);
      return;
    default:
      say(`unknown source ${JSON.stringify(source['type'])}`);
  }
}

function checkDocument({ source, title, context }: Wire, say: Say): void {
  for (const text of [title, context]) if (text !== undefined && text !== null && isBlank(text)) say('a blank title or context');
  if (!isObject(source)) {
    say('source: no object');
    return;
  }
  switch (source['type']) {
    case 'base64':
      checkFields(source, 'type media_type data |', say);
      if (source['media_type'] !== 'application/pdf') say(`a document of a type that is not taken: ${JSON.stringify(source['media_type'])}`);
      if (!isBase64(source['data'])) say('a document whose data is no base64');
      return;
    case 'text':
      checkFields(source, 'type media_type data |', say);
      if (source['media_type'] !== 'text/plain') say(`a text document of a type that is not taken: ${JSON.stringify(source['media_type'])}`);
      if (isBlank(source['data'])) say('a blank text document');
      return;
    case 'content':
      checkFields(source, 'type content |', say);
      return;
    case 'url':
      checkUrl(source, say);
      return;
    case 'file':
      checkFields(source, 'type file_id |', say);
      return;
    default:
      say(`unknown source ${JSON.stringify(source['type'])}`);
  }
}

function checkUrl(source: Wire, say: Say): void {
  checkFields(source, 'type url |', say);
  if (typeof source['url'] !== 'string' || !/^https?:\/\//.test(source['url'])) say('a source that is no http address');
}
