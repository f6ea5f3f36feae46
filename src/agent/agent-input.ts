/** Agent input: what a turn, a queue or a running turn is given, looked at before anything is recorded. */
import { isUserMessage, type UserMessage } from '../core/message.ts';
import { inputOf } from '../core/turn-options.ts';
import { SessionError } from '../sessions/session-store.ts';
import type { AgentInput } from './session.ts';

/** @throws TypeError for what is no text, user message or list of them, for one with nothing in it, and for two messages of one id. */
export function assertInput(input: unknown, example: string): asserts input is AgentInput {
  const messages: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (typeof input !== 'string' && (messages.length === 0 || !messages.every(isUserMessage))) {
    throw new TypeError(`The input is not a text, a user message or a list of them. For example: ${example}.`);
  }
  const given = inputOf(input as AgentInput); // It was looked at above.
  if (given.some(isBlank)) throw new TypeError(`The input is blank: there is nothing to answer. Give it a text or media, for example: ${example}.`);
  const ids = given.map(({ id }) => id).filter((id) => id !== '');
  const double = ids.find((id, index) => ids.indexOf(id) < index);
  if (double !== undefined) throw new TypeError(`Two messages of the input have the id "${double}". Give each its own, or none: userMessage(text).`);
}

/** @throws TypeError for what is no text or one user message. */
export function assertOneInput(input: unknown, example: string): asserts input is string | UserMessage {
  if (Array.isArray(input)) throw new TypeError(`The input is a list; it takes one text or user message. For example: ${example}.`);
  assertInput(input, example);
}

/** @throws {@link sessions.SessionError | SessionError} `message_exists` for a message that the history has. */
export function assertNew(input: AgentInput, history: readonly { readonly id: string }[], sessionId: string): void {
  const given = new Set(inputOf(input).flatMap(({ id }) => (id === '' ? [] : [id])));
  const known = given.size === 0 ? undefined : history.find(({ id }) => given.has(id));
  if (known === undefined) return;
  throw new SessionError('message_exists', `Message "${known.id}" is in session "${sessionId}" already, and was not given again. Give a new message an id of its own, or none.`);
}

function isBlank({ content }: UserMessage): boolean {
  return content.every((part) => part.type === 'text' && part.text.trim() === '');
}
