/** Model texts: what adapters themselves say to a model, where a protocol wants words and there are none. */
import { cleanText } from './wire-text.ts';

/** In place of a tool's output that says nothing. */
export const NO_OUTPUT = '(no output)';

/** In place of a tool's output that only holds media, where these come from a user. */
export const MEDIA_FOLLOWS = '(the output follows below, after the tool results)';

/** In place of a user's first message, where a history begins with a reply. */
export const CONVERSATION_BEGINS = '(the conversation begins)';

/** Before the media of a tool's output, where these come from a user. */
export function outputTitle(toolName: string): string {
  return `Output of the tool ${cleanText(toolName)}:`;
}
