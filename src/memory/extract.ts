/**
 * Extract: asks a model what of a turn is worth remembering, and reads its answer.
 *
 * Owns the request and the answer's form; what becomes of the entries is the session's business. What the answer holds is a
 * model's word: what is no entry is left out, never a failure.
 */
import { attemptChat } from '../core/attempt-chat.ts';
import { type LLMError, toLLMError } from '../core/errors.ts';
import { isRecord, type JsonSchema } from '../core/json.ts';
import type { LLM, LLMRequest } from '../core/llm.ts';
import { type Message, textOf, type TextPart, userMessage } from '../core/message.ts';
import { toUsage, type Usage } from '../core/usage.ts';
import { cleanText } from './clean-text.ts';
import type { ExtractionSettings } from './extraction-options.ts';
import type { MemoryEntry, MemoryKind, MemoryScope } from './memory-store.ts';

/** Something a model wants remembered. */
export interface Finding {
  /** The statement. */
  readonly text: string;
  /** Never `working`: that does not last. */
  readonly kind: MemoryKind;
  /** Whose it is, if the model said and may. */
  readonly scope: MemoryScope | undefined;
  /** From 0 to 1. */
  readonly importance: number;
  /** The entry that it corrects or completes. */
  readonly replaces: MemoryEntry | undefined;
}

/** What a model is asked about. */
export interface ExtractionQuestion {
  /** The turn. */
  readonly messages: readonly Message[];
  /** Entries that are like what was said: not to be repeated. */
  readonly known: readonly MemoryEntry[];
  /** Scopes that an entry may have. */
  readonly scopes: readonly MemoryScope[];
  /** Tokens of a text. */
  readonly estimate: (text: string) => number;
  /** Ends the request. */
  readonly signal: AbortSignal;
  /** Told what was spent, also by what failed, before anything else is done. */
  readonly onUsage: (usage: Usage, modelId: string) => void;
}

const DEFAULT_IMPORTANCE = 0.5;
/** Longer statements are documents. */
const MAX_TEXT = 1_000;
/** Characters of one message that are shown: enough for what was said, too few for a file. */
const MAX_MESSAGE = 4_000;

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    entries: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          text: { type: 'string' },
          kind: { type: 'string', enum: ['fact', 'experience'] },
          scope: { type: 'string' },
          importance: { type: 'number' },
          replaces: { type: ['integer', 'null'] },
        },
        required: ['text', 'kind', 'scope', 'importance', 'replaces'],
        additionalProperties: false,
      },
    },
  },
  required: ['entries'],
  additionalProperties: false,
};

/** What a turn says, as text: the latest that fits; empty if it says nothing. Memory and what was built for a request are left out. */
export function conversationText(messages: readonly Message[], maxTokens: number, estimate: (text: string) => number): string {
  const lines: string[] = [];
  let tokens = 0;
  for (const message of [...messages].reverse()) {
    const line = messageLine(message);
    if (line === undefined) continue;
    tokens += estimate(line);
    if (tokens > maxTokens && lines.length > 0) break;
    lines.push(line);
  }
  return lines.reverse().join('\n');
}

/**
 * Asks the model.
 *
 * @returns What it wants remembered, at most as much as the settings say.
 * @throws whatever the model throws; an `Error` for an answer without JSON.
 */
export async function askForEntries(llm: LLM, question: ExtractionQuestion, settings: ExtractionSettings): Promise<readonly Finding[]> {
  const { known, scopes } = question;
  const answer = await ask(llm, toRequest(llm, question, settings), question.onUsage);
  const findings = entriesIn(answer).map((item) => toFinding(item, known, scopes));
  return findings.filter((finding) => finding !== undefined).slice(0, settings.maxEntries);
}

/** The text of the answer. */
async function ask(llm: LLM, request: LLMRequest, onUsage: ExtractionQuestion['onUsage']): Promise<string> {
  const tellFailed = ({ usage, modelId }: LLMError): void => {
    if (usage !== undefined) onUsage(usage, modelId ?? llm.modelId);
  };
  try {
    const response = await attemptChat(llm, { ...request, onAttemptFailed: ({ error }) => tellFailed(error) });
    onUsage(toUsage(response.usage), response.modelId ?? llm.modelId);
    return textOf(response.content.filter((part): part is TextPart => part.type === 'text'));
  } catch (thrown) {
    const error = toLLMError(thrown);
    tellFailed(error);
    throw error;
  }
}

function toRequest(llm: LLM, { messages, known, scopes, estimate, signal }: ExtractionQuestion, settings: ExtractionSettings): LLMRequest {
  const knownLines = known.map(({ text }, index) => `${index + 1}. ${cleanText(text).slice(0, MAX_TEXT)}`);
  const prompt = [
    `<scopes>${scopes.join(', ')}</scopes>`,
    `<known>\n${knownLines.join('\n')}\n</known>`,
    `<conversation>\n${conversationText(messages, settings.maxInputTokens, estimate)}\n</conversation>`,
  ].join('\n\n');
  return {
    systemPrompt: settings.instructions,
    messages: [userMessage(prompt, { id: 'memory_extraction', origin: 'host' })],
    tools: [],
    signal,
    maxOutputTokens: settings.maxOutputTokens,
    ...(llm.capabilities?.structuredOutput === true && { responseSchema: SCHEMA }),
  };
}

/** What a person or the model said; tool results are seldom about anyone, and long. */
function messageLine(message: Message): string | undefined {
  if (message.role === 'tool') return undefined;
  if (message.role === 'user' && (message.transient === true || message.origin === 'memory' || message.origin === 'reminder')) return undefined;
  const text = cleanText(textOf(message)).slice(0, MAX_MESSAGE);
  if (text === '') return undefined;
  const who = message.role === 'user' && message.origin !== 'user' && message.origin !== 'steering' ? 'note' : message.role;
  return `${who}: ${text}`;
}

/** The list in an answer, whatever stands around the JSON. */
function entriesIn(answer: string): readonly unknown[] {
  const start = answer.indexOf('{');
  const end = answer.lastIndexOf('}');
  const value: unknown = start === -1 || end < start ? undefined : parse(answer.slice(start, end + 1));
  if (isRecord(value) && Array.isArray(value['entries'])) return value['entries'];
  throw new Error('the answer is not the JSON that was asked for');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toFinding(item: unknown, known: readonly MemoryEntry[], scopes: readonly MemoryScope[]): Finding | undefined {
  if (!isRecord(item) || typeof item['text'] !== 'string') return undefined;
  const text = item['text'].trim();
  if (text === '' || text.length > MAX_TEXT) return undefined;
  const { importance, replaces } = item;
  return {
    text,
    kind: item['kind'] === 'experience' ? 'experience' : 'fact',
    scope: scopes.find((scope) => scope === item['scope']),
    importance: typeof importance === 'number' && importance >= 0 && importance <= 1 ? importance : DEFAULT_IMPORTANCE,
    replaces: typeof replaces === 'number' ? known[replaces - 1] : undefined,
  };
}
