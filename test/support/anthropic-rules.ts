/**
 * What strict servers of the Anthropic Messages protocol refuse, rule by rule, written by hand from their documentation
 * and errors. Knows nothing of the adapter.
 */
import { checkAnthropicBlock, isBlankText, type Where } from './anthropic-block-rules.ts';
import { checkFields, checkStrictSchema, checkStrings, checkToolSchema, checkWord, isBlank, isObject, listOf, type Say, type Wire } from './rule-check.ts';

/** What a model takes that another does not. */
export interface MessagesRules {
  /** Whether a request may end with the beginning of a reply. Newer models refuse it. @defaultValue true */
  readonly prefill?: boolean;
}

const LEGAL_ID = /^[a-zA-Z0-9_-]{1,64}$/;
const LEGAL_TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MAX_CACHE_MARKS = 4;
const MIN_THINKING_TOKENS = 1024;
const REQUEST_FIELDS =
  'model max_tokens messages | cache_control compaction container context_management diagnostics fallbacks inference_geo mcp_servers metadata ' +
  'output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p user_profile_id workspace_id';
const TOOL_FIELDS = 'name input_schema | type description cache_control strict allowed_callers defer_loading eager_input_streaming input_examples';

/** Every broken rule of a request's body; empty if a strict server takes it. */
export function checkMessagesRequest(body: unknown, rules: MessagesRules = {}): string[] {
  if (!isObject(body)) return ['the body is no object'];
  const broken: string[] = [];
  const say: Say = (rule) => void broken.push(rule);
  checkFields(body, REQUEST_FIELDS, say);
  if (isBlank(body['model'])) say('model: missing');
  if (!isPositiveInteger(body['max_tokens'])) say('max_tokens: no positive integer');
  if (body['stream'] !== undefined && typeof body['stream'] !== 'boolean') say('stream: no boolean');
  checkSystem(body['system'], say);
  checkTools(body['tools'], say);
  checkToolChoice(body, say);
  checkThinking(body, say);
  checkSettings(body, say);
  checkMessages(body, rules, say);
  checkCacheMarks(body, say);
  checkStrings(body, say);
  return broken;
}

function checkSystem(system: unknown, say: Say): void {
  if (system === undefined) return;
  if (typeof system === 'string') {
    if (isBlank(system)) say('system: blank');
    return;
  }
  for (const block of listOf(system, 'system', say)) {
    checkFields(block, 'type text | cache_control citations', (rule) => say(`system: ${rule}`));
    if (block['type'] !== 'text') say('system: not a text block');
    if (isBlankText(block)) say('system: a blank text block');
  }
}

function checkTools(tools: unknown, say: Say): void {
  if (tools === undefined) return;
  const names = new Set<unknown>();
  for (const [at, tool] of listOf(tools, 'tools', say).entries()) {
    const sayTool: Say = (rule) => say(`tools[${at}]: ${rule}`);
    const { name, type } = tool;
    if (names.has(name)) sayTool('a name twice');
    names.add(name);
    // Tools that the provider runs.
    if (typeof type === 'string' && /_\d{8}$/.test(type)) continue;
    checkFields(tool, TOOL_FIELDS, sayTool);
    if (type !== undefined && type !== 'custom') sayTool('unknown type');
    if (typeof name !== 'string' || !LEGAL_TOOL_NAME.test(name)) sayTool(`an illegal name: ${JSON.stringify(name)}`);
    if (tool['description'] !== undefined && typeof tool['description'] !== 'string') sayTool('description: no text');
    checkToolSchema(tool['input_schema'], sayTool);
    if (tool['strict'] === true) checkStrictSchema(tool['input_schema'], false, sayTool);
  }
}

function checkToolChoice({ tool_choice: choice, tools, thinking }: Wire, say: Say): void {
  if (choice === undefined) return;
  const offered: readonly unknown[] = Array.isArray(tools) ? tools : [];
  if (offered.length === 0) say('tool_choice: without tools');
  if (!isObject(choice)) {
    say('tool_choice: no object');
    return;
  }
  const { type } = choice;
  for (const rule of checkWord(type, ['auto', 'any', 'tool', 'none'], 'tool_choice: unknown type')) say(rule);
  checkFields(choice, `type ${type === 'tool' ? 'name' : ''} | ${type === 'none' ? '' : 'disable_parallel_tool_use'}`, (rule) => say(`tool_choice: ${rule}`));
  if (type === 'tool' && !offered.some((tool) => isObject(tool) && tool['name'] === choice['name'])) say('tool_choice: a tool that is not offered');
  if ((type === 'any' || type === 'tool') && isThinking(thinking)) say('tool_choice: forces a tool while thinking is enabled');
}

function checkThinking({ thinking, max_tokens: maxTokens, temperature, top_k: topK, top_p: topP }: Wire, say: Say): void {
  if (thinking === undefined) return;
  if (!isObject(thinking)) {
    say('thinking: no object');
    return;
  }
  const { type, budget_tokens: budget } = thinking;
  for (const rule of checkWord(type, ['enabled', 'disabled', 'adaptive', 'between_tools'], 'thinking: unknown type')) say(rule);
  const fields = type === 'enabled' ? 'type budget_tokens | display' : type === 'adaptive' ? 'type | display' : 'type |';
  checkFields(thinking, fields, (rule) => say(`thinking: ${rule}`));
  if (!isThinking(thinking)) return;
  if (type === 'enabled') {
    if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < MIN_THINKING_TOKENS) say(`thinking: a budget below ${MIN_THINKING_TOKENS}`);
    else if (typeof maxTokens === 'number' && budget >= maxTokens) say('thinking: a budget that is not below max_tokens');
  }
  if (temperature !== undefined && temperature !== 1) say('temperature: other than 1 while thinking is enabled');
  if (topK !== undefined) say('top_k: set while thinking is enabled');
  if (typeof topP === 'number' && topP < 0.95) say('top_p: below 0.95 while thinking is enabled');
}

function isThinking(thinking: unknown): boolean {
  return isObject(thinking) && (thinking['type'] === 'enabled' || thinking['type'] === 'adaptive');
}

function checkSettings({ temperature, top_p: topP, top_k: topK, stop_sequences: stops, metadata, output_config: output }: Wire, say: Say): void {
  if (temperature !== undefined && !isBetween(temperature, 0, 1)) say('temperature: not within 0 and 1');
  if (topP !== undefined && !isBetween(topP, 0, 1)) say('top_p: not within 0 and 1');
  if (topK !== undefined && !(Number.isInteger(topK) && (topK as number) >= 0)) say('top_k: no count');
  if (stops !== undefined && !(Array.isArray(stops) && stops.every((each) => !isBlank(each)))) say('stop_sequences: not a list of texts that say something');
  if (metadata !== undefined) {
    if (isObject(metadata)) checkFields(metadata, '| user_id', (rule) => say(`metadata: ${rule}`));
    else say('metadata: no object');
  }
  if (output === undefined) return;
  if (!isObject(output)) {
    say('output_config: no object');
    return;
  }
  checkFields(output, '| effort format task_budget', (rule) => say(`output_config: ${rule}`));
  if (output['effort'] !== undefined) {
    for (const rule of checkWord(output['effort'], ['low', 'medium', 'high', 'xhigh', 'max'], 'output_config: unknown effort')) say(rule);
  }
  const { format } = output;
  if (format === undefined) return;
  if (!isObject(format) || format['type'] !== 'json_schema' || !isObject(format['schema'])) {
    say('output_config: a format without a schema');
    return;
  }
  checkFields(format, 'type schema |', (rule) => say(`output_config.format: ${rule}`));
  checkStrictSchema(format['schema'], false, (rule) => say(`output_config.format: ${rule}`));
}

/** What a walk over the messages has seen so far. */
interface Walk {
  readonly callIds: Set<unknown>;
  /** Calls of the message before that wait for their results, in order. */
  due: readonly unknown[];
  /** Calls of tools that the provider runs, still without what they gave. */
  readonly serverCalls: Map<unknown, string>;
}

function checkMessages(body: Wire, { prefill = true }: MessagesRules, say: Say): void {
  const messages = listOf(body['messages'], 'messages', say);
  if (messages.length === 0) say('messages: empty');
  if (messages[0] !== undefined && messages[0]['role'] !== 'user') say('the first message is not the user’s');
  const walk: Walk = { callIds: new Set(), due: [], serverCalls: new Map() };
  for (const [at, message] of messages.entries()) {
    const sayHere: Say = (rule) => say(`messages[${at}]: ${rule}`);
    checkFields(message, 'role content |', sayHere);
    const { role } = message;
    for (const rule of checkWord(role, ['user', 'assistant'], 'unknown role')) sayHere(rule);
    if (at > 0 && messages[at - 1]?.['role'] === role) sayHere('a second message of the same role in a row');
    const blocks = blocksOf(message, sayHere);
    if (role === 'user') checkResults(blocks, walk, sayHere);
    if (role === 'assistant') checkReply(blocks, at === messages.length - 1, walk, sayHere);
  }
  if (walk.due.length > 0) say(`end: calls without results: ${walk.due.join(', ')}`);
  const last = messages.at(-1);
  if (last?.['role'] === 'assistant') {
    const lastBlock = blocksOf(last, () => undefined).at(-1);
    if (typeof lastBlock?.['text'] === 'string' && lastBlock['text'] !== lastBlock['text'].trimEnd()) say('end: a beginning of a reply that ends in white space');
    if (!prefill && lastBlock?.['type'] === 'text') say('end: the beginning of a reply');
  }
  if (isObject(body['thinking']) && body['thinking']['type'] === 'enabled') checkThinkingComesFirst(messages, say);
}

/** The blocks of a message; text counts as one. */
function blocksOf({ role, content }: Wire, say: Say): readonly Wire[] {
  if (typeof content === 'string') {
    if (isBlank(content)) say('blank content');
    return [{ type: 'text', text: content }];
  }
  const blocks = listOf(content, 'content', say);
  if (blocks.length === 0) say('empty content');
  const where: Where = role === 'assistant' ? 'assistant' : 'user';
  for (const [at, block] of blocks.entries()) checkAnthropicBlock(block, where, (rule) => say(`content[${at}]: ${rule}`));
  return blocks;
}

function checkResults(blocks: readonly Wire[], walk: Walk, say: Say): void {
  const results = blocks.flatMap((block) => (block['type'] === 'tool_result' ? [block['tool_use_id']] : []));
  if (blocks.slice(0, results.length).some((block) => block['type'] !== 'tool_result')) say('results that do not come first');
  for (const id of walk.due) {
    const count = results.filter((each) => each === id).length;
    if (count !== 1) say(`${count} results for the call ${String(id)}`);
  }
  for (const id of results) if (!walk.due.includes(id)) say(`a result without a call right before it: ${String(id)}`);
  walk.due = [];
}

function checkReply(blocks: readonly Wire[], isLast: boolean, walk: Walk, say: Say): void {
  if (walk.due.length > 0) say(`calls without results before it: ${walk.due.join(', ')}`);
  const callers = new Set(blocks.map(({ caller }) => (isObject(caller) ? caller['tool_id'] : undefined)));
  const calls: unknown[] = [];
  for (const block of blocks) {
    const { type, id } = block;
    if (typeof type !== 'string') continue;
    const isServerCall = type === 'server_tool_use' || type === 'mcp_tool_use';
    if (type === 'tool_use' || isServerCall) {
      if (typeof id !== 'string' || !LEGAL_ID.test(id)) say(`an illegal id: ${JSON.stringify(id)}`);
      if (walk.callIds.has(id)) say(`an id that is used twice: ${String(id)}`);
      walk.callIds.add(id);
      if (isServerCall) walk.serverCalls.set(id, type);
      else calls.push(id);
    } else if (type.endsWith('_tool_result')) {
      const expected = type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
      if (walk.serverCalls.get(block['tool_use_id']) !== expected) say(`a ${type} without its ${expected}: ${String(block['tool_use_id'])}`);
      walk.serverCalls.delete(block['tool_use_id']);
    }
  }
  // A reply that was paused goes on; code that called a tool of ours waits for its result.
  for (const [id, type] of walk.serverCalls) if (!isLast && !callers.has(id)) say(`a ${type} without its result: ${String(id)}`);
  const lastType = blocks.at(-1)?.['type'];
  if (lastType === 'thinking' || lastType === 'redacted_thinking') say('thinking is its last block');
  walk.due = calls;
}

/** While thinking is enabled, the reply that is still being worked on starts with it. */
function checkThinkingComesFirst(messages: readonly Wire[], say: Say): void {
  const at = messages.findLastIndex(({ role }) => role === 'assistant');
  const message = messages[at];
  if (message === undefined) return;
  const blocks = blocksOf(message, () => undefined);
  const isOpen = at === messages.length - 1 || blocks.some(({ type }) => type === 'tool_use');
  const firstType = blocks[0]?.['type'];
  if (isOpen && firstType !== 'thinking' && firstType !== 'redacted_thinking') say(`messages[${at}]: does not start with thinking while thinking is enabled`);
}

/** In the order in which they count: tools, system, messages. */
function checkCacheMarks({ tools, system, messages, cache_control: automatic }: Wire, say: Say): void {
  const marks = [tools, system, messages].flatMap(marksIn);
  if (automatic !== undefined && automatic !== null) marks.push(automatic);
  if (marks.length > MAX_CACHE_MARKS) say(`cache_control: ${marks.length} marks`);
  let hasShort = false;
  for (const mark of marks) {
    if (!isObject(mark)) {
      say('cache_control: no object');
      continue;
    }
    checkFields(mark, 'type | ttl', (rule) => say(`cache_control: ${rule}`));
    if (mark['type'] !== 'ephemeral') say('cache_control: unknown type');
    const { ttl = '5m' } = mark;
    for (const rule of checkWord(ttl, ['5m', '1h'], 'cache_control: unknown ttl')) say(rule);
    if (ttl === '1h' && hasShort) say('cache_control: 1h behind 5m');
    hasShort ||= ttl === '5m';
  }
}

/** Marks of tools, of blocks, and of blocks within results; what a tool's schema or input calls so is none. */
function marksIn(value: unknown): unknown[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly unknown[]).flatMap((each): unknown[] => {
    if (!isObject(each)) return [];
    const { cache_control: mark, content } = each;
    return [...marksIn(content), ...(mark === undefined || mark === null ? [] : [mark])];
  });
}

function isPositiveInteger(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}

function isBetween(value: unknown, low: number, high: number): boolean {
  return typeof value === 'number' && value >= low && value <= high;
}
