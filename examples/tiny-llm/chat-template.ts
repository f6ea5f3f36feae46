/**
 * A conversation as the prompt text the model was trained on.
 *
 * Owns every character of that text. It is the same as the Jinja template inside the
 * model file renders, except that texts which look like a mark are broken up: a file
 * can't end its own message. How turnloop's messages become a `Chat` is in `chat.ts`.
 */
import type { JsonObject, JsonValue } from 'turnloop';
import { MARKS, withoutMarks } from './tokenizer.ts';

/** A call as the template needs it. */
export interface ChatCall {
  readonly name: string;
  /** Its arguments, in the order in which the call gave them. */
  readonly input: JsonObject;
}

/** A message as the template needs it. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ChatCall[] }
  /** One for each call of the assistant message before, in the order of the calls. */
  | { readonly role: 'tool'; readonly text: string };

/** All that goes into a prompt. */
export interface Chat {
  /** Names of the tools on offer: the model knows what they do. */
  readonly toolNames: readonly string[];
  readonly messages: readonly ChatMessage[];
}

/** The prompt for the assistant's next reply. */
export function renderPrompt({ toolNames, messages }: Chat): string {
  const tools = toolNames.length === 0 ? '' : renderMessage('system', withoutMarks(['Tools:', ...toolNames].join(' ')));
  let calls: readonly ChatCall[] = [];
  let resultCount = 0;
  const rendered = messages.map((message) => {
    switch (message.role) {
      case 'system':
      case 'user':
        return renderMessage(message.role, withoutMarks(message.text));
      case 'assistant':
        calls = message.calls;
        resultCount = 0;
        return renderMessage('assistant', withoutMarks(message.text) + calls.map(renderCall).join(''));
      case 'tool': {
        const call = calls[resultCount];
        resultCount += 1;
        return renderResult(message.text, { call, number: resultCount });
      }
    }
  });
  return `${tools}${rendered.join('')}${MARKS.messageStart.text}assistant\n`;
}

function renderMessage(role: string, body: string): string {
  return `${MARKS.messageStart.text}${role}\n${body}${MARKS.messageEnd.text}\n`;
}

function renderCall({ name, input }: ChatCall): string {
  const json = `{"name": "${name}", "arguments": ${toSpacedJson(input)}}`;
  return `${MARKS.callStart.text}\n${withoutMarks(json)}\n${MARKS.callEnd.text}`;
}

/** A result repeats the arguments of its call, and counts: it helps so small a model to tell results apart. */
function renderResult(text: string, { call, number }: { call: ChatCall | undefined; number: number }): string {
  const head = call === undefined ? '' : ` ${withoutMarks(toSpacedJson(call.input))}`;
  return `${MARKS.messageStart.text}tool${head} ${number}${MARKS.result.text}${withoutMarks(text)}${MARKS.messageEnd.text}\n`;
}

/**
 * JSON with a space after each `,` and `:`, as Python and llama.cpp write it.
 *
 * The model has seen no other form; `JSON.stringify` can't write this one on one line.
 */
export function toSpacedJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(toSpacedJson).join(', ')}]`;
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${toSpacedJson(member)}`);
  return `{${members.join(', ')}}`;
}

/** `Array.isArray`, which on its own does not tell a readonly array from an object. */
function isList(value: JsonObject | readonly JsonValue[]): value is readonly JsonValue[] {
  return Array.isArray(value);
}
