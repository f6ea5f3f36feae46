/**
 * Contents: a history as the inside of the request's `contents` array, a user's turn first.
 *
 * The results of a reply's calls stand together, in the order of the calls, directly behind the reply; what of them only
 * goes beside a result follows them. The server tells results apart by their order, so one that is missing, or too many,
 * is refused before anything is sent.
 */
import { LLMError } from '../../core/errors.ts';
import type { Message } from '../../core/message.ts';
import type { HistoryFormat, HistorySink } from '../shared/history-writer.ts';
import { CONVERSATION_BEGINS } from '../shared/model-texts.ts';
import { createTurnList, type WrittenBlocks } from '../shared/turn-list.ts';
import { COMMON_IDS } from '../shared/wire-ids.ts';
import { type WireTarget, writeAssistant, writeTool, writeUser, type WrittenMessage } from './message-wire.ts';

/** The `contents` of one conversation. */
export interface GeminiContents extends HistorySink<WrittenMessage> {
  /**
   * JSON of the contents, separated by commas.
   *
   * @throws {@link index.LLMError | LLMError} of kind `invalid_history` if calls and results do not pair up.
   */
  render(tail: readonly WrittenMessage[]): string;
}

/** Stands for the user where a history begins with a reply. A model reads it. */
const BEGINNING: WrittenBlocks = { role: 'user', blocks: [JSON.stringify({ text: CONVERSATION_BEGINS })] };

/** How Gemini's protocol writes histories. */
export function geminiHistory(target: WireTarget): HistoryFormat<WrittenMessage, GeminiContents> {
  return {
    idRules: COMMON_IDS,
    user: (message) => writeUser(message, target),
    assistant: (message, wireIds) => writeAssistant(message, wireIds, target),
    tool: (message, wireId) => writeTool(message, wireId, target),
    createSink,
  };
}

function createSink(): GeminiContents {
  const list = createTurnList('parts');
  let isEmpty = true;
  /** The calls of the last reply, and their results so far. */
  let calls: ReadonlySet<string> = new Set();
  let results = new Map<string, WrittenMessage>();
  let problem: string | undefined;

  function addResult(callId: string, written: WrittenMessage): void {
    if (!calls.has(callId)) problem ??= `the result of the call ${callId} does not follow that call`;
    if (results.has(callId)) problem ??= `the call ${callId} has two results`;
    results.set(callId, written);
  }

  function findMissing(): string | undefined {
    for (const id of calls) if (!results.has(id)) return `the call ${id} has no result`;
    return undefined;
  }

  function resultBlocks(): readonly WrittenBlocks[] {
    const inOrder = [...calls].flatMap((id) => results.get(id) ?? []);
    if (inOrder.length === 0) return [];
    return [{ role: 'user', blocks: [...inOrder.flatMap(({ blocks }) => blocks), ...inOrder.flatMap(({ media }) => media)] }];
  }

  return {
    add(message: Message, written) {
      if (message.role === 'tool') {
        if (written !== undefined) addResult(message.toolCallId, written);
        return;
      }
      problem ??= findMissing();
      for (const blocks of resultBlocks()) list.add(blocks);
      results = new Map();
      const ids = message.role === 'user' ? [] : message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));
      calls = new Set(ids);
      if (calls.size < ids.length) problem ??= 'two calls of one reply have the same id';
      if (written === undefined) return;
      if (isEmpty && written.role === 'model') list.add(BEGINNING);
      isEmpty = false;
      list.add(written);
    },
    render(tail) {
      const wrong = problem ?? findMissing();
      if (wrong !== undefined) {
        throw new LLMError({ kind: 'invalid_history', code: 'unpaired_results', message: `The history cannot be sent: ${wrong}.` });
      }
      return list.render([...resultBlocks(), ...tail]);
    },
  };
}
