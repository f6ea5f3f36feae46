/** What strict servers of Gemini's `generateContent` refuse in one part, wherever it stands. */
import { checkFields, isBase64, isBlank, isObject, listOf, type Say, type Wire } from './rule-check.ts';

/** Where a part stands. */
export interface PartPlace {
  readonly role: unknown;
  readonly generation: 2 | 3;
}

const LEGAL_NAME = /^[a-zA-Z_][\w.:-]{0,63}$/;
/** One of them makes the part. */
const KINDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'] as const;
const EXTRAS = 'thought thoughtSignature partMetadata videoMetadata mediaResolution';
/** Kinds that only one side may say. */
const SIDES: Readonly<Record<string, string>> = {
  functionCall: 'model',
  executableCode: 'model',
  codeExecutionResult: 'model',
  toolCall: 'model',
  toolResponse: 'model',
  functionResponse: 'user',
};
const MEDIA_TYPE = /^(?:image\/(?:png|jpeg|webp|heic|heif)|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+|application\/pdf|text\/[a-z0-9.+-]+)$/;

/** The rules of one part. */
export function checkGeminiPart(part: Wire, place: PartPlace, say: Say): void {
  checkFields(part, `| ${KINDS.join(' ')} ${EXTRAS}`, say);
  const kinds = KINDS.filter((kind) => part[kind] !== undefined);
  if (kinds.length !== 1) say(`a part of ${kinds.length} kinds`);
  const { thought, thoughtSignature: signature } = part;
  for (const kind of kinds) if (SIDES[kind] !== undefined && SIDES[kind] !== place.role) say(`${kind} where it may not stand`);
  if (place.role !== 'model' && (thought !== undefined || signature !== undefined)) say('thinking that is not the model’s');
  if (thought !== undefined && typeof thought !== 'boolean') say('thought: no boolean');
  // Servers of protocol buffers take both alphabets, and Google's word for a missing signature is of the second.
  if (signature !== undefined && !isBase64(typeof signature === 'string' ? signature.replaceAll('_', '/').replaceAll('-', '+') : signature)) say('thoughtSignature: no base64');
  if (part['text'] !== undefined) {
    if (typeof part['text'] !== 'string') say('text: no text');
    // An empty text may carry a signature.
    else if (isBlank(part['text']) && signature === undefined) say('a blank text');
  }
  if (part['inlineData'] !== undefined) checkInline(part['inlineData'], say);
  if (part['fileData'] !== undefined) checkFile(part['fileData'], say);
  if (part['functionCall'] !== undefined) checkCall(part['functionCall'], say);
  if (part['functionResponse'] !== undefined) checkResponse(part['functionResponse'], place, say);
}

function checkInline(data: unknown, say: Say): void {
  if (!isObject(data)) {
    say('inlineData: no object');
    return;
  }
  checkFields(data, 'mimeType data |', say);
  checkMediaType(data['mimeType'], say);
  if (!isBase64(data['data'])) say('inlineData: no base64');
}

function checkFile(file: unknown, say: Say): void {
  if (!isObject(file)) {
    say('fileData: no object');
    return;
  }
  checkFields(file, 'fileUri | mimeType', say);
  if (isBlank(file['fileUri'])) say('fileData: no address');
  if (file['mimeType'] !== undefined) checkMediaType(file['mimeType'], say);
}

function checkMediaType(type: unknown, say: Say): void {
  if (typeof type !== 'string' || !MEDIA_TYPE.test(type)) say(`a media type that is not taken: ${JSON.stringify(type)}`);
}

function checkCall(call: unknown, say: Say): void {
  if (!isObject(call)) {
    say('functionCall: no object');
    return;
  }
  checkFields(call, 'name | args id', say);
  if (typeof call['name'] !== 'string' || !LEGAL_NAME.test(call['name'])) say(`a call’s illegal name: ${JSON.stringify(call['name'])}`);
  if (call['args'] !== undefined && !isObject(call['args'])) say('args that are no object');
}

function checkResponse(response: unknown, { generation }: PartPlace, say: Say): void {
  if (!isObject(response)) {
    say('functionResponse: no object');
    return;
  }
  checkFields(response, 'name response | id parts scheduling willContinue', say);
  if (typeof response['name'] !== 'string' || !LEGAL_NAME.test(response['name'])) say(`a response’s illegal name: ${JSON.stringify(response['name'])}`);
  if (!isObject(response['response'])) say('a response that is no object');
  if (response['parts'] === undefined) return;
  if (generation < 3) say('a response with media');
  for (const part of listOf(response['parts'], 'parts', say)) {
    checkFields(part, '| inlineData fileData', say);
    if (part['inlineData'] !== undefined) checkInline(part['inlineData'], say);
  }
}
