/**
 * Checks a history as a model is sent it: what every protocol asks for (law 2). A protocol's own rules, such as who may speak
 * first, are its adapter's business.
 */
import type { Message } from '../../core/message.ts';

/** What is wrong with a history; empty if nothing is. */
export function findBrokenMessages(messages: readonly Message[]): readonly string[] {
  const found: string[] = [];
  const ids = new Set<string>();
  let open = new Map<string, boolean>();
  const close = (before: string): void => {
    for (const [toolCallId, isAnswered] of open) if (!isAnswered) found.push(`call ${toolCallId} has no result before ${before}`);
    open = new Map();
  };
  messages.forEach((message, index) => {
    const place = `message ${index} (${message.role} ${message.id})`;
    if (ids.has(message.id)) found.push(`two messages have the id ${message.id}`);
    ids.add(message.id);
    if (message.content.length === 0 && message.role !== 'tool') found.push(`${place} is empty`);
    if (message.role === 'tool') {
      const isAnswered = open.get(message.toolCallId);
      if (isAnswered === undefined) found.push(`${place} is a result of ${message.toolCallId}, which the reply before did not call`);
      else if (isAnswered) found.push(`call ${message.toolCallId} has two results`);
      open.set(message.toolCallId, true);
      return;
    }
    close(place);
    if (message.role === 'assistant') for (const part of message.content) if (part.type === 'tool_call') open.set(part.id, false);
  });
  close('the end');
  return found;
}
