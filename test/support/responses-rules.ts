/**
 * What strict servers of the Responses protocol refuse, rule by rule, written by hand from their documentation and
 * errors. Knows nothing of the adapter.
 */
import { checkResponsesItem } from './responses-item-rules.ts';
import { checkFields, checkStrictSchema, checkStrings, checkToolSchema, checkWord, isBlank, isObject, listOf, type Say, type Wire } from './rule-check.ts';

/** What a server keeps of a response. */
export interface KnownResponse {
  /** The whole conversation up to its reply: what was kept before it, and the input it was asked with. */
  readonly input: readonly unknown[];
  /** The items of its reply. */
  readonly output: readonly unknown[];
  /** False if it was asked with `store: false`: nothing may refer to it. */
  readonly isStored: boolean;
}

/** What a server remembers. */
export interface ResponsesServer {
  /** By the id of the response. */
  readonly responses: ReadonlyMap<string, KnownResponse>;
}

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MIN_OUTPUT_TOKENS = 16;
const REQUEST_FIELDS =
  'model | background context_management conversation include input instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls ' +
  'previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream ' +
  'stream_options temperature text tool_choice tools top_logprobs top_p truncation user';
const INCLUDABLE = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
];
/** Calls that the client answers. */
const CLIENT_CALLS = new Set(['function_call', 'custom_tool_call', 'local_shell_call', 'shell_call', 'apply_patch_call', 'computer_call']);

/**
 * Every broken rule of a request's body; empty if a strict server takes it.
 *
 * @param server - What the server remembers; without it, `previous_response_id` names nothing.
 */
export function checkResponsesRequest(body: unknown, server?: ResponsesServer): string[] {
  if (!isObject(body)) return ['the body is no object'];
  const broken: string[] = [];
  const say: Say = (rule) => void broken.push(rule);
  checkFields(body, REQUEST_FIELDS, say);
  checkSettings(body, say);
  checkTools(body['tools'], say);
  checkToolChoice(body, say);
  checkText(body['text'], say);
  checkStrings(body, say);
  checkInput(body, server, say);
  return broken;
}

function checkSettings(body: Wire, say: Say): void {
  if (isBlank(body['model'])) say('model: missing');
  const { instructions, include, max_output_tokens: maxTokens, truncation, reasoning, temperature, top_p: topP } = body;
  if (instructions !== undefined && instructions !== null && typeof instructions !== 'string') say('instructions: no text');
  for (const name of ['store', 'stream', 'background', 'parallel_tool_calls']) {
    const value = body[name];
    if (value !== undefined && value !== null && typeof value !== 'boolean') say(`${name}: no boolean`);
  }
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && (maxTokens as number) >= MIN_OUTPUT_TOKENS)) say(`max_output_tokens: below ${MIN_OUTPUT_TOKENS}`);
  if (truncation !== undefined) for (const rule of checkWord(truncation, ['auto', 'disabled'], 'truncation: unknown')) say(rule);
  if (include !== undefined && include !== null) {
    if (!Array.isArray(include)) say('include: not a list');
    else for (const each of include) for (const rule of checkWord(each, INCLUDABLE, 'include: unknown')) say(rule);
  }
  if (reasoning !== undefined && reasoning !== null) {
    if (!isObject(reasoning)) say('reasoning: no object');
    else {
      checkFields(reasoning, '| effort summary generate_summary context mode', (rule) => say(`reasoning: ${rule}`));
      const { effort, summary } = reasoning;
      if (effort !== undefined) for (const rule of checkWord(effort, ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'], 'reasoning: unknown effort')) say(rule);
      if (summary !== undefined) for (const rule of checkWord(summary, ['auto', 'concise', 'detailed'], 'reasoning: unknown summary')) say(rule);
    }
  }
  if (temperature !== undefined && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 2)) say('temperature: not within 0 and 2');
  if (topP !== undefined && !(typeof topP === 'number' && topP >= 0 && topP <= 1)) say('top_p: not within 0 and 1');
}

function checkTools(tools: unknown, say: Say): void {
  if (tools === undefined) return;
  const names = new Set<unknown>();
  for (const [at, tool] of listOf(tools, 'tools', say).entries()) {
    const sayTool: Say = (rule) => say(`tools[${at}]: ${rule}`);
    const { type, name, parameters, strict } = tool;
    if (typeof type !== 'string') sayTool('type: missing');
    // Tools that the provider runs.
    if (type !== 'function') continue;
    checkFields(tool, 'type name parameters | strict description allowed_callers defer_loading output_schema', sayTool);
    if (typeof name !== 'string' || !LEGAL_NAME.test(name)) sayTool(`an illegal name: ${JSON.stringify(name)}`);
    if (names.has(name)) sayTool('a name twice');
    names.add(name);
    if (parameters !== null) checkToolSchema(parameters, sayTool);
    if (strict !== undefined && strict !== null && typeof strict !== 'boolean') sayTool('strict: no boolean');
    if (strict === true) checkStrictSchema(parameters, true, sayTool);
    // An object without properties is refused here.
    if (isObject(parameters) && parameters['type'] === 'object' && !isObject(parameters['properties'])) sayTool('a schema without properties');
  }
}

function checkToolChoice({ tool_choice: choice, tools }: Wire, say: Say): void {
  if (choice === undefined) return;
  const offered = Array.isArray(tools) ? (tools as readonly unknown[]) : [];
  if (typeof choice === 'string') {
    for (const rule of checkWord(choice, ['none', 'auto', 'required'], 'tool_choice: unknown')) say(rule);
    if (choice === 'required' && offered.length === 0) say('tool_choice: without tools');
    return;
  }
  if (!isObject(choice)) {
    say('tool_choice: neither a word nor an object');
    return;
  }
  if (offered.length === 0) say('tool_choice: without tools');
  if (choice['type'] === 'function') {
    checkFields(choice, 'type name |', (rule) => say(`tool_choice: ${rule}`));
    if (!offered.some((tool) => isObject(tool) && tool['name'] === choice['name'])) say('tool_choice: a tool that is not offered');
  } else if (typeof choice['type'] !== 'string') {
    say('tool_choice: unknown type');
  }
}

function checkText(text: unknown, say: Say): void {
  if (text === undefined) return;
  if (!isObject(text)) {
    say('text: no object');
    return;
  }
  checkFields(text, '| format verbosity', (rule) => say(`text: ${rule}`));
  const { format, verbosity } = text;
  if (verbosity !== undefined) for (const rule of checkWord(verbosity, ['low', 'medium', 'high'], 'text: unknown verbosity')) say(rule);
  if (format === undefined) return;
  if (!isObject(format)) {
    say('text.format: no object');
    return;
  }
  const sayFormat: Say = (rule) => say(`text.format: ${rule}`);
  if (format['type'] !== 'json_schema') {
    for (const rule of checkWord(format['type'], ['text', 'json_object'], 'unknown type')) sayFormat(rule);
    checkFields(format, 'type |', sayFormat);
    return;
  }
  checkFields(format, 'type name schema | description strict', sayFormat);
  if (typeof format['name'] !== 'string' || !LEGAL_NAME.test(format['name'])) sayFormat(`an illegal name: ${JSON.stringify(format['name'])}`);
  checkToolSchema(format['schema'], sayFormat);
  if (format['strict'] === true) checkStrictSchema(format['schema'], true, sayFormat);
}

function checkInput(body: Wire, server: ResponsesServer | undefined, say: Say): void {
  const { input, previous_response_id: previousId, conversation, store } = body;
  let kept: readonly Wire[] = [];
  if (previousId !== undefined && previousId !== null) {
    if (conversation !== undefined && conversation !== null) say('previous_response_id: beside a conversation');
    const previous = typeof previousId === 'string' ? server?.responses.get(previousId) : undefined;
    if (previous?.isStored === true) kept = [...previous.input, ...previous.output].filter(isObject);
    else say(`previous_response_not_found: ${JSON.stringify(previousId)}`);
  }
  if (typeof input === 'string') {
    if (isBlank(input)) say('input: blank');
    checkConversation([...kept, { role: 'user', content: input }], kept.length, say);
    return;
  }
  const items = listOf(input, 'input', say);
  if (items.length === 0 && kept.length === 0) say('input: empty');
  for (const [at, item] of items.entries()) {
    const sayItem: Say = (rule) => say(`input[${at}]: ${rule}`);
    checkResponsesItem(item, sayItem);
    if (item['type'] !== 'reasoning') continue;
    const hasSecret = !isBlank(item['encrypted_content']);
    if (store === false && !hasSecret) sayItem('reasoning that is not kept, without encrypted_content');
    if (server !== undefined && !hasSecret && originOf(item['id'], server)?.isStored !== true) sayItem(`an item that is not known: ${String(item['id'])}`);
  }
  const all = [...kept, ...items];
  checkConversation(all, kept.length, say);
  if (server !== undefined) checkOrigins(all, server, say);
}

/** What holds for the whole conversation, what is kept of it included. @param start - Where the input begins. */
function checkConversation(items: readonly Wire[], start: number, say: Say): void {
  const ids = new Set<unknown>();
  const callIds = new Set<unknown>();
  const due = new Map<unknown, string>();
  for (const [at, item] of items.entries()) {
    const sayItem: Say = (rule) => say(at < start ? `kept[${at}]: ${rule}` : `input[${at - start}]: ${rule}`);
    const { id, type = 'message', call_id: callId } = item;
    if (typeof type !== 'string') continue;
    if (id !== undefined && id !== null && ids.has(id)) sayItem(`an id that is used twice: ${JSON.stringify(id)}`);
    ids.add(id);
    if (type === 'reasoning') {
      if (!isFollowed(items, at)) sayItem(`reasoning without its required following item: ${String(id)}`);
    } else if (CLIENT_CALLS.has(type)) {
      if (callIds.has(callId)) sayItem(`a call_id that is used twice: ${String(callId)}`);
      callIds.add(callId);
      due.set(callId, type);
    } else if (type.endsWith('_output') && CLIENT_CALLS.has(type.slice(0, -'_output'.length))) {
      if (`${String(due.get(callId))}_output` !== type) sayItem(`an output without a call, or a second one: ${String(callId)}`);
      due.delete(callId);
    } else if (type === 'message' && item['role'] !== 'assistant' && due.size > 0) {
      sayItem(`calls without output before it: ${[...due.keys()].join(', ')}`);
    }
  }
  if (due.size > 0) say(`end: calls without output: ${[...due.keys()].join(', ')}`);
}

/** Whether reasoning is followed by what it led to; an item that is known by its id needs one that is, too. */
function isFollowed(items: readonly Wire[], at: number): boolean {
  const next = items.slice(at + 1).find(({ type }) => type !== 'reasoning');
  if (next === undefined) return false;
  const { type = 'message', role, id } = next;
  const isOutput = type === 'message' ? role === 'assistant' : typeof type === 'string' && !type.endsWith('_output');
  return isOutput && (items[at]?.['id'] === undefined || id !== undefined);
}

/** Items that a response gave stand beside those they came with. */
function checkOrigins(items: readonly Wire[], server: ResponsesServer, say: Say): void {
  const ids = new Set(items.map(({ id }) => id));
  for (const [at, { id, type }] of items.entries()) {
    const origin = originOf(id, server);
    if (origin === undefined) continue;
    const output = origin.output.filter(isObject);
    const place = output.findIndex((each) => each['id'] === id);
    if (type === 'reasoning') {
      const next = items.slice(at + 1).find((each) => each['type'] !== 'reasoning');
      if (next !== undefined && !output.slice(place).some((each) => each['id'] === next['id'])) say(`reasoning ${String(id)} before an item of another response`);
    } else {
      const before = output[place - 1];
      if (before?.['type'] === 'reasoning' && !ids.has(before['id'])) say(`item ${String(id)} without its required 'reasoning' item: ${String(before['id'])}`);
    }
  }
}

function originOf(id: unknown, server: ResponsesServer): KnownResponse | undefined {
  if (typeof id !== 'string') return undefined;
  for (const response of server.responses.values()) if (response.output.some((each) => isObject(each) && each['id'] === id)) return response;
  return undefined;
}
