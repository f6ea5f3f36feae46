/**
 * What strict servers of Gemini's `generateContent` refuse, rule by rule, written by hand from their documentation and
 * errors. Knows nothing of the adapter.
 */
import { checkGeminiPart } from './gemini-part-rules.ts';
import { checkGeminiSchema } from './gemini-schema-rules.ts';
import { checkFields, checkStrings, checkToolSchema, checkWord, isBlank, isObject, listOf, type Say, type Wire } from './rule-check.ts';

/** What a model takes that another does not. */
export interface GeminiRules {
  /**
   * 2: structured answers exclude tools, results hold no media, and thinking has no levels. 3: the first call of each reply of the current turn
   * has a thought signature. @defaultValue 2
   */
  readonly generation?: 2 | 3;
}

const LEGAL_NAME = /^[a-zA-Z_][\w.:-]{0,63}$/;
const REQUEST_FIELDS = 'contents | model systemInstruction tools toolConfig safetySettings generationConfig cachedContent serviceTier store';
const GENERATION_FIELDS =
  '| stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens temperature topP topK seed ' +
  'presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig thinkingConfig imageConfig mediaResolution';
const TOOL_FIELDS = '| functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch googleMaps mcpServers';
const MODES = ['AUTO', 'ANY', 'NONE', 'VALIDATED'];

/** Every broken rule of a request's body; empty if a strict server takes it. */
export function checkGenerateContentRequest(body: unknown, rules: GeminiRules = {}): string[] {
  if (!isObject(body)) return ['the body is no object'];
  const broken: string[] = [];
  const say: Say = (rule) => void broken.push(rule);
  checkFields(body, REQUEST_FIELDS, say);
  checkSystem(body['systemInstruction'], say);
  const names = checkTools(body['tools'], say);
  checkToolConfig(body['toolConfig'], names, say);
  checkGeneration(body, names, rules, say);
  if (body['cachedContent'] !== undefined) {
    for (const name of ['systemInstruction', 'tools', 'toolConfig']) if (body[name] !== undefined) say(`cachedContent: beside ${name}`);
  }
  checkContents(body['contents'], rules, say);
  checkStrings(body, say);
  return broken;
}

function checkSystem(system: unknown, say: Say): void {
  if (system === undefined) return;
  if (!isObject(system)) {
    say('systemInstruction: no object');
    return;
  }
  checkFields(system, 'parts | role', (rule) => say(`systemInstruction: ${rule}`));
  const parts = listOf(system['parts'], 'systemInstruction.parts', say);
  if (parts.length === 0) say('systemInstruction: no parts');
  for (const part of parts) {
    checkFields(part, 'text |', (rule) => say(`systemInstruction: ${rule}`));
    if (isBlank(part['text'])) say('systemInstruction: blank');
  }
}

/** @returns The names of all declared functions. */
function checkTools(tools: unknown, say: Say): ReadonlySet<unknown> {
  const names = new Set<unknown>();
  if (tools === undefined) return names;
  for (const [at, tool] of listOf(tools, 'tools', say).entries()) {
    const sayTool: Say = (rule) => say(`tools[${at}]: ${rule}`);
    checkFields(tool, TOOL_FIELDS, sayTool);
    if (Object.keys(tool).length === 0) sayTool('empty');
    const { functionDeclarations: declarations } = tool;
    if (declarations === undefined) continue;
    const list = listOf(declarations, 'functionDeclarations', sayTool);
    if (list.length === 0) sayTool('an empty list of functions');
    for (const declaration of list) {
      if (names.has(declaration['name'])) sayTool('a name twice');
      names.add(declaration['name']);
      checkDeclaration(declaration, sayTool);
    }
  }
  return names;
}

function checkDeclaration(declaration: Wire, say: Say): void {
  checkFields(declaration, 'name | description parameters parametersJsonSchema response responseJsonSchema behavior', say);
  const { name, description, parameters, parametersJsonSchema: jsonSchema } = declaration;
  if (typeof name !== 'string' || !LEGAL_NAME.test(name)) say(`an illegal name: ${JSON.stringify(name)}`);
  if (description !== undefined && typeof description !== 'string') say('description: no text');
  if (parameters !== undefined && jsonSchema !== undefined) say('both parameters and parametersJsonSchema');
  if (parameters !== undefined) {
    if (!isObject(parameters) || String(parameters['type']).toUpperCase() !== 'OBJECT') say('parameters that are no object');
    checkGeminiSchema(parameters, 'parameters', say);
  }
  if (jsonSchema !== undefined) checkToolSchema(jsonSchema, say);
}

function checkToolConfig(config: unknown, names: ReadonlySet<unknown>, say: Say): void {
  if (config === undefined) return;
  if (!isObject(config)) {
    say('toolConfig: no object');
    return;
  }
  checkFields(config, '| functionCallingConfig retrievalConfig includeServerSideToolInvocations', (rule) => say(`toolConfig: ${rule}`));
  const { functionCallingConfig: calling } = config;
  if (calling === undefined) return;
  if (!isObject(calling)) {
    say('functionCallingConfig: no object');
    return;
  }
  checkFields(calling, '| mode allowedFunctionNames', (rule) => say(`functionCallingConfig: ${rule}`));
  const { mode, allowedFunctionNames: allowed } = calling;
  if (mode !== undefined) for (const rule of checkWord(mode, MODES, 'functionCallingConfig: unknown mode')) say(rule);
  if (mode === 'ANY' && names.size === 0) say('functionCallingConfig: ANY without functions');
  if (allowed === undefined) return;
  if (mode !== 'ANY' && mode !== 'VALIDATED') say('functionCallingConfig: allowedFunctionNames beside another mode than ANY');
  if (!Array.isArray(allowed) || !allowed.every((name) => names.has(name))) say('functionCallingConfig: a function that is not declared');
}

function checkGeneration(body: Wire, names: ReadonlySet<unknown>, rules: GeminiRules, say: Say): void {
  const { generationConfig: config } = body;
  if (config === undefined) return;
  if (!isObject(config)) {
    say('generationConfig: no object');
    return;
  }
  const sayConfig: Say = (rule) => say(`generationConfig: ${rule}`);
  checkFields(config, GENERATION_FIELDS, sayConfig);
  const { maxOutputTokens, temperature, topP, stopSequences, responseMimeType: mime, responseSchema, responseJsonSchema, thinkingConfig } = config;
  if (maxOutputTokens !== undefined && !(Number.isInteger(maxOutputTokens) && (maxOutputTokens as number) > 0)) sayConfig('maxOutputTokens: no positive integer');
  if (temperature !== undefined && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 2)) sayConfig('temperature: not within 0 and 2');
  if (topP !== undefined && !(typeof topP === 'number' && topP >= 0 && topP <= 1)) sayConfig('topP: not within 0 and 1');
  if (stopSequences !== undefined && !(Array.isArray(stopSequences) && stopSequences.length <= 5)) sayConfig('stopSequences: not a list of at most 5');
  if (mime !== undefined) for (const rule of checkWord(mime, ['text/plain', 'application/json', 'text/x.enum'], 'unknown responseMimeType')) sayConfig(rule);
  if (responseSchema !== undefined && responseJsonSchema !== undefined) sayConfig('both responseSchema and responseJsonSchema');
  if ((responseSchema !== undefined || responseJsonSchema !== undefined) && (mime === undefined || mime === 'text/plain')) sayConfig('a schema without a responseMimeType for it');
  if (responseSchema !== undefined) checkGeminiSchema(responseSchema, 'responseSchema', sayConfig);
  if (responseJsonSchema !== undefined && !isObject(responseJsonSchema)) sayConfig('responseJsonSchema: no object');
  if (mime === 'application/json' && names.size > 0 && (rules.generation ?? 2) < 3) sayConfig('application/json beside functions');
  if (thinkingConfig !== undefined) checkThinking(thinkingConfig, rules.generation ?? 2, sayConfig);
}

function checkThinking(config: unknown, generation: 2 | 3, say: Say): void {
  if (!isObject(config)) {
    say('thinkingConfig: no object');
    return;
  }
  checkFields(config, '| includeThoughts thinkingBudget thinkingLevel', say);
  const { thinkingBudget: budget, thinkingLevel: level } = config;
  if (budget !== undefined && level !== undefined) say('both thinkingBudget and thinkingLevel');
  if (budget !== undefined && !(Number.isInteger(budget) && (budget as number) >= -1)) say('thinkingBudget: neither a count nor -1');
  if (level === undefined) return;
  const word = typeof level === 'string' ? level.toUpperCase() : level;
  for (const rule of checkWord(word, ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'], 'unknown thinkingLevel')) say(rule);
  if (generation < 3) say('thinkingLevel: of a later generation');
}

function checkContents(value: unknown, rules: GeminiRules, say: Say): void {
  const contents = listOf(value, 'contents', say);
  if (contents.length === 0) say('contents: empty');
  if (contents[0] !== undefined && contents[0]['role'] !== 'user') say('the first content is not the user’s');
  let due: readonly Wire[] = [];
  for (const [at, content] of contents.entries()) {
    const sayHere: Say = (rule) => say(`contents[${at}]: ${rule}`);
    checkFields(content, 'role parts |', sayHere);
    const { role } = content;
    for (const rule of checkWord(role, ['user', 'model'], 'unknown role')) sayHere(rule);
    if (at > 0 && contents[at - 1]?.['role'] === role) sayHere('a second content of the same role in a row');
    const parts = listOf(content['parts'], 'parts', sayHere);
    if (parts.length === 0) sayHere('no parts');
    for (const [index, part] of parts.entries()) checkGeminiPart(part, { role, generation: rules.generation ?? 2 }, (rule) => sayHere(`parts[${index}]: ${rule}`));
    checkResponses(parts, due, sayHere);
    due = callsOf(parts);
  }
  if (due.length > 0) say(`end: ${due.length} calls without responses`);
  if (rules.generation === 3) checkSignatures(contents, say);
}

/** Right behind calls stand as many responses, in their order, before all else. */
function checkResponses(parts: readonly Wire[], calls: readonly Wire[], say: Say): void {
  const responses = parts.flatMap(({ functionResponse: response }) => (isObject(response) ? [response] : []));
  if (parts.slice(0, responses.length).some((part) => part['functionResponse'] === undefined)) say('responses that do not come first');
  if (responses.length !== calls.length) say(`${responses.length} responses for ${calls.length} calls right before it`);
  for (const [at, response] of responses.entries()) {
    const call = calls[at];
    if (call === undefined) continue;
    if (response['name'] !== call['name']) say(`response ${at} is named ${JSON.stringify(response['name'])}, its call ${JSON.stringify(call['name'])}`);
    if (response['id'] !== call['id']) say(`response ${at} has another id than its call`);
  }
}

/** The first call of each reply since a person last spoke has a signature. */
function checkSignatures(contents: readonly Wire[], say: Say): void {
  const isSpoken = ({ role, parts }: Wire): boolean => role === 'user' && Array.isArray(parts) && !parts.some((part) => isObject(part) && part['functionResponse'] !== undefined);
  const start = contents.findLastIndex(isSpoken);
  for (const [at, { parts }] of contents.entries()) {
    if (at <= start || !Array.isArray(parts)) continue;
    const first = (parts as readonly unknown[]).find((part) => isObject(part) && part['functionCall'] !== undefined);
    if (isObject(first) && first['thoughtSignature'] === undefined) say(`contents[${at}]: a functionCall without a thoughtSignature`);
  }
}

function callsOf(parts: readonly Wire[]): readonly Wire[] {
  return parts.flatMap(({ functionCall: call }) => (isObject(call) ? [call] : []));
}
