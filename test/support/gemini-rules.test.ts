/** The rules that stand for a strict Gemini server: each one is seen to be broken by a body that breaks it. */
import { describe, expect, it } from 'vitest';
import { checkGenerateContentRequest, type GeminiRules } from './gemini-rules.ts';

const USER = { role: 'user', parts: [{ text: 'a' }] };
const CALL = { functionCall: { name: 'f', args: { a: 1 } } };
const RESPONSE = { functionResponse: { name: 'f', response: { output: 'r' } } };
const CALLS = { role: 'model', parts: [CALL] };
const ANSWER = { role: 'user', parts: [RESPONSE] };
const DECLARED = { name: 'f', description: 'd', parameters: { type: 'OBJECT', properties: { a: { type: 'STRING' } }, required: ['a'] } };
const TOOLS = [{ functionDeclarations: [DECLARED] }];

function brokenBody(fields: Record<string, unknown>, rules: GeminiRules = {}): string {
  return checkGenerateContentRequest({ contents: [USER], ...fields }, rules).join('\n');
}

function broken(...contents: readonly unknown[]): string {
  return brokenBody({ contents });
}

function user(...parts: readonly unknown[]): unknown {
  return { role: 'user', parts };
}

function model(...parts: readonly unknown[]): unknown {
  return { role: 'model', parts };
}

function declared(parameters: unknown): Record<string, unknown> {
  return { tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] };
}

function property(schema: unknown): Record<string, unknown> {
  return declared({ type: 'OBJECT', properties: { a: schema } });
}

it('takes a whole conversation with everything in it', () => {
  const contents = [
    user({ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { fileData: { fileUri: 'https://h/v', mimeType: 'video/mp4' } }),
    model({ text: 'Hm.', thought: true }, { text: '', thoughtSignature: 'c2ln' }, { ...CALL, thoughtSignature: 'c2ln' }, { functionCall: { name: 'g', id: 'c2' } }),
    user(RESPONSE, { functionResponse: { name: 'g', id: 'c2', response: { error: 'r' } } }, { text: 'and' }),
    model({ executableCode: { language: 'PYTHON', code: '1' } }, { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } }, { text: 'b' }),
    user({ text: 'c' }),
  ];
  const tools = [{ functionDeclarations: [DECLARED, { name: 'g' }, { name: 'h', parametersJsonSchema: { type: 'object', properties: {} } }] }, { googleSearch: {} }];
  const generationConfig = { maxOutputTokens: 1, temperature: 1, topP: 1, stopSequences: ['x'], thinkingConfig: { includeThoughts: true, thinkingBudget: -1 } };
  const toolConfig = { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } };
  expect(brokenBody({ contents, tools, toolConfig, generationConfig, systemInstruction: { parts: [{ text: 's' }] }, safetySettings: [] })).toBe('');
});

it('takes of a later generation what an earlier one refuses', () => {
  const media = { functionResponse: { name: 'f', response: {}, parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }] } };
  const fields = {
    contents: [USER, model({ ...CALL, thoughtSignature: 'c2ln' }, CALL), user(media, RESPONSE)],
    tools: TOOLS,
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema: {}, thinkingConfig: { thinkingLevel: 'low' } },
  };
  expect(brokenBody(fields, { generation: 3 })).toBe('');
  expect(brokenBody(fields)).toMatch(/beside functions[^]*later generation[^]*response with media|later generation[^]*beside functions[^]*response with media/);
});

it('wants a signature on the first call of each reply of the current turn, of a later generation', () => {
  const signed = model({ ...CALL, thoughtSignature: 'c2ln' });
  expect(brokenBody({ contents: [USER, CALLS, ANSWER] }, { generation: 3 })).toMatch(/without a thoughtSignature/);
  expect(brokenBody({ contents: [USER, signed, ANSWER, CALLS, ANSWER] }, { generation: 3 })).toMatch(/contents\[3\]: a functionCall without/);
  expect(brokenBody({ contents: [USER, CALLS, ANSWER, model({ text: 'b' }), USER, signed, ANSWER] }, { generation: 3 })).toBe('');
});

describe('refuses in the contents', () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ['nothing', [], /contents: empty/],
    ['a first content of the model', [model({ text: 'x' })], /first content/],
    ['an unknown role', [{ role: 'assistant', parts: [{ text: 'x' }] }], /unknown role/],
    ['a role of functions', [USER, CALLS, { role: 'function', parts: [RESPONSE] }], /unknown role/],
    ['two contents of one role', [USER, USER], /same role in a row/],
    ['a field of ours', [{ ...USER, id: 'x' }], /unknown field id/],
    ['no parts', [user()], /no parts/],
    ['parts that are no list', [{ role: 'user', parts: {} }], /parts: not a list/],
    ['a part of no kind', [user({})], /part of 0 kinds/],
    ['a part of two kinds', [user({ text: 'a', inlineData: { mimeType: 'image/png', data: 'AAAA' } })], /part of 2 kinds/],
    ['an unknown part', [user({ text: 'a', type: 'text' })], /unknown field type/],
    ['blank text', [user({ text: ' ' })], /blank text/],
    ['text that is no text', [user({ text: 1 })], /text: no text/],
    ['thinking of the user', [user({ text: 'x', thought: true })], /not the model’s/],
    ['a signature of the user', [user({ text: 'x', thoughtSignature: 'AAAA' })], /not the model’s/],
    ['thought that is no boolean', [USER, model({ text: 'x', thought: 'yes' })], /thought: no boolean/],
    ['a signature that is no base64', [USER, model({ text: 'x', thoughtSignature: '?' })], /thoughtSignature: no base64/],
    ['a call of the user', [user(CALL), user(RESPONSE)], /functionCall where/],
    ['a response of the model', [USER, CALLS, model(RESPONSE)], /functionResponse where/],
    ['calls without responses', [USER, CALLS], /end: 1 calls without responses/],
    ['calls followed by text', [USER, CALLS, USER], /0 responses for 1 calls/],
    ['a missing response', [USER, model(CALL, CALL), ANSWER], /1 responses for 2 calls/],
    ['a response without a call', [user(RESPONSE)], /1 responses for 0 calls/],
    ['responses in another order', [USER, model(CALL, { functionCall: { name: 'g' } }), user({ functionResponse: { name: 'g', response: {} } }, RESPONSE)], /response 0 is named "g"/],
    ['a response with another id', [USER, CALLS, user({ functionResponse: { name: 'f', id: 'x', response: {} } })], /another id/],
    ['responses behind text', [USER, CALLS, user({ text: 'x' }, RESPONSE)], /do not come first/],
    ['an illegal name of a call and its response', [USER, model({ functionCall: { name: '1' } }), user({ functionResponse: { name: '1', response: {} } })], /call’s illegal name[^]*response’s illegal name/],
    ['a call that is no object', [USER, model({ functionCall: 'f' })], /functionCall: no object/],
    ['args that are no object', [USER, model({ functionCall: { name: 'f', args: '{}' } }), ANSWER], /args that are no object/],
    ['a field of a call that is not known', [USER, model({ functionCall: { name: 'f', arguments: {} } }), ANSWER], /unknown field arguments/],
    ['a response that is no object', [USER, CALLS, user({ functionResponse: { name: 'f', response: 'r' } })], /response that is no object/],
    ['a functionResponse that is no object', [USER, CALLS, user({ functionResponse: 'r' })], /functionResponse: no object/],
    ['media of another type', [user({ inlineData: { mimeType: 'image/svg+xml', data: 'AAAA' } })], /media type/],
    ['media in capitals', [user({ inlineData: { mimeType: 'IMAGE/PNG', data: 'AAAA' } })], /media type/],
    ['media that is no base64', [user({ inlineData: { mimeType: 'image/png', data: 'data:x' } })], /inlineData: no base64/],
    ['media that is no object', [user({ inlineData: 'AAAA' })], /inlineData: no object/],
    ['a file without an address', [user({ fileData: { fileUri: '' } })], /no address/],
    ['a file that is no object', [user({ fileData: 'x' })], /fileData: no object/],
    ['a file of another type', [user({ fileData: { fileUri: 'x', mimeType: 'x/y' } })], /media type/],
    ['a lone surrogate', [user({ text: 'a\ud83d' })], /unsafe text/],
  ])('%s', (_name, contents, rule) => {
    expect(broken(...contents)).toMatch(rule);
  });
});

describe('refuses in the rest of the body', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['an unknown field', { system_instruction: {} }, /unknown field system_instruction/],
    ['a system prompt that is text', { systemInstruction: 's' }, /systemInstruction: no object/],
    ['a system prompt without parts', { systemInstruction: { parts: [] } }, /systemInstruction: no parts/],
    ['a blank system prompt', { systemInstruction: { parts: [{ text: '' }] } }, /systemInstruction: blank/],
    ['a tool of no kind', { tools: [{}] }, /tools\[0\]: empty/],
    ['an unknown tool', { tools: [{ name: 'f' }] }, /unknown field name/],
    ['an empty list of functions', { tools: [{ functionDeclarations: [] }] }, /empty list of functions/],
    ['a function twice', { tools: [{ functionDeclarations: [DECLARED] }, { functionDeclarations: [DECLARED] }] }, /name twice/],
    ['an illegal name', { tools: [{ functionDeclarations: [{ name: 'a/b' }] }] }, /illegal name/],
    ['a name that is too long', { tools: [{ functionDeclarations: [{ name: 'a'.repeat(65) }] }] }, /illegal name/],
    ['a field of a function that is not known', { tools: [{ functionDeclarations: [{ name: 'f', inputSchema: {} }] }] }, /unknown field inputSchema/],
    ['a description that is no text', { tools: [{ functionDeclarations: [{ name: 'f', description: 1 }] }] }, /description/],
    ['two schemas', { tools: [{ functionDeclarations: [{ ...DECLARED, parametersJsonSchema: { type: 'object' } }] }] }, /both parameters and/],
    ['a JSON schema that is no object', { tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { type: 'string' } }] }] }, /schema that is no object/],
    ['parameters that are no object', declared({ type: 'STRING' }), /parameters that are no object/],
    ['parameters that are nothing', declared(null), /parameters: no object/],
    ['an object without properties', declared({ type: 'OBJECT', properties: {} }), /object without properties/],
    ['a keyword that is not known', declared({ ...DECLARED.parameters, additionalProperties: false }), /unknown field additionalProperties/],
    ['a required property that is not there', declared({ ...DECLARED.parameters, required: ['b'] }), /required property/],
    ['a list of types', property({ type: ['string', 'null'] }), /unknown type/],
    ['no type', property({ description: 'd' }), /type: missing/],
    ['an array without items', property({ type: 'ARRAY' }), /array without items/],
    ['a keyword further in', property({ type: 'ARRAY', items: { type: 'STRING', const: 'x' } }), /parameters.a.items: unknown field const/],
    ['a keyword in a union', property({ anyOf: [{ type: 'STRING', $ref: 'x' }] }), /unknown field \$ref/],
    ['an empty union', property({ anyOf: [] }), /anyOf: not a list/],
    ['an enum of numbers', property({ type: 'INTEGER', enum: [1] }), /enum of another type[^]*not a list of texts/],
    ['a format that is not known', property({ type: 'STRING', format: 'uri' }), /format of text/],
    ['a config that is no object', { toolConfig: 'AUTO' }, /toolConfig: no object/],
    ['a calling config that is no object', { toolConfig: { functionCallingConfig: 'AUTO' } }, /functionCallingConfig: no object/],
    ['an unknown mode', { toolConfig: { functionCallingConfig: { mode: 'auto' } } }, /unknown mode/],
    ['a forced call without functions', { toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, /ANY without functions/],
    ['names beside another mode', { tools: TOOLS, toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['f'] } } }, /another mode than ANY/],
    ['a name that is not declared', { tools: TOOLS, toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['g'] } } }, /not declared/],
    ['a generation config that is no object', { generationConfig: 1 }, /generationConfig: no object/],
    ['an unknown field of it', { generationConfig: { max_tokens: 1 } }, /unknown field max_tokens/],
    ['output of nothing', { generationConfig: { maxOutputTokens: 0 } }, /maxOutputTokens/],
    ['a high temperature', { generationConfig: { temperature: 3 } }, /temperature/],
    ['a high topP', { generationConfig: { topP: 2 } }, /topP/],
    ['six stop sequences', { generationConfig: { stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] } }, /stopSequences/],
    ['an unknown mime type', { generationConfig: { responseMimeType: 'application/xml' } }, /unknown responseMimeType/],
    ['a schema without a mime type', { generationConfig: { responseSchema: { type: 'STRING' } } }, /without a responseMimeType/],
    ['two response schemas', { generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'STRING' }, responseJsonSchema: {} } }, /both responseSchema/],
    ['a response schema of another kind', { generationConfig: { responseMimeType: 'application/json', responseSchema: { $ref: 'x' } } }, /unknown field \$ref/],
    ['a JSON response schema that is no object', { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: true } }, /responseJsonSchema: no object/],
    ['thinking that is no object', { generationConfig: { thinkingConfig: true } }, /thinkingConfig: no object/],
    ['an unknown field of thinking', { generationConfig: { thinkingConfig: { budget: 1 } } }, /unknown field budget/],
    ['a budget of half a token', { generationConfig: { thinkingConfig: { thinkingBudget: 0.5 } } }, /thinkingBudget/],
    ['budget and level', { generationConfig: { thinkingConfig: { thinkingBudget: 1, thinkingLevel: 'LOW' } } }, /both thinkingBudget/],
    ['an unknown level', { generationConfig: { thinkingConfig: { thinkingLevel: 'MAX' } } }, /unknown thinkingLevel/],
    ['a cache beside tools', { cachedContent: 'c', tools: TOOLS }, /cachedContent: beside tools/],
  ])('%s', (_name, fields, rule) => {
    expect(brokenBody(fields)).toMatch(rule);
  });

  it('what is no body', () => {
    expect(checkGenerateContentRequest([])).not.toStrictEqual([]);
  });
});
