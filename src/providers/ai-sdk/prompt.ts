/**
 * Prompt: a history as the list of messages that the AI SDK's models take.
 *
 * - Results that follow one another are one `tool` message, in the order of the calls. Neighbouring user messages stay
 *   apart: each provider's package joins them where its protocol wants that.
 * - What was handed out once is handed out again, the same objects: a request's prompt begins with the prompt of the one
 *   before it. Models must not change it, and nothing here does.
 */
import type { Message } from '../../core/message.ts';
import type { HistoryFormat, HistorySink } from '../shared/history-writer.ts';
import { type PromptTarget, writeAssistant, writeTool, writeUser } from './message-prompt.ts';
import type { PromptMessage, PromptPart, WrittenMessage } from './prompt-types.ts';

/** The prompt of one conversation. */
export interface Prompt extends HistorySink<WrittenMessage> {
  /** The messages, in a list of the caller's own. @param tail - Messages of this request alone. */
  render(tail: readonly WrittenMessage[]): PromptMessage[];
}

/** How histories are written for a model. @param target - Asked at each message that is written for the first time. */
export function promptFormat(target: () => PromptTarget): HistoryFormat<WrittenMessage, Prompt> {
  return {
    idRules: target().idRules,
    user: (message) => asMessage('user', writeUser(message, target())),
    assistant: (message, wireIds) => asMessage('assistant', writeAssistant(message, wireIds, target())),
    tool: (message, wireId) => writeTool(message, wireId, target()),
    createSink: createPrompt,
  };
}

function asMessage(role: 'user' | 'assistant', content: readonly PromptPart[]): WrittenMessage | undefined {
  return content.length === 0 ? undefined : { message: { role, content } };
}

function createPrompt(): Prompt {
  const settled: PromptMessage[] = [];
  let results: PromptPart[] = [];
  let media: PromptPart[] = [];
  /** What the open run of results is as messages; made anew when it grows. */
  let run: readonly PromptMessage[] | undefined = [];

  function openRun(): readonly PromptMessage[] {
    run ??= [
      { role: 'tool', content: [...results] },
      ...(media.length > 0 ? [{ role: 'user', content: [...media] } as const] : []),
    ];
    return run;
  }

  function closeRun(): void {
    settled.push(...openRun());
    results = [];
    media = [];
    run = [];
  }

  return {
    add({ role }: Message, written) {
      if (role !== 'tool') closeRun();
      if (written === undefined) return;
      if ('message' in written) {
        settled.push(written.message);
        return;
      }
      results.push(written.result);
      media.push(...written.media);
      run = undefined;
    },
    render(tail) {
      return [...settled, ...openRun(), ...tail.flatMap((written) => ('message' in written ? [written.message] : []))];
    },
  };
}
