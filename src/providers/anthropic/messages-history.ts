/**
 * Messages history: a history as the inside of the request's `messages` array.
 *
 * The sides alternate, a user first. The last reply is held back until a user's turn follows, since how a turn may end
 * depends on what comes after it:
 *
 * - No turn of the model's ends with thinking, and no request with white space.
 * - A call of a tool that the provider runs may lack its result while the reply is gone on with: at the end of the
 *   request, or beside calls whose results the host brings. Before any other user's turn it is left out, and a result
 *   without its call always is.
 */
import type { AssistantMessage } from '../../core/message.ts';
import type { HistoryFormat, HistorySink } from '../shared/history-writer.ts';
import { CONVERSATION_BEGINS } from '../shared/model-texts.ts';
import { createTurnList, type TurnEnd, type WrittenBlocks } from '../shared/turn-list.ts';
import { COMMON_IDS, type IdRules } from '../shared/wire-ids.ts';
import { type CacheMarks, markBlock } from './cache-marks.ts';
import type { Container, ContainerState } from './container.ts';
import { type ReplyBlock, type WireTarget, withLegalEnd, withoutOpenCalls, withoutThinkingEnd, writeAssistant, writeTool, type WrittenMessage, writeUser } from './message-wire.ts';

/** The `messages` of one request. */
export interface RenderedMessages extends ContainerState {
  /** JSON of the messages, separated by commas. */
  readonly json: string;
  /** Whether the last reply is still in work and does not start with thinking. */
  readonly hasBareReply: boolean;
}

/** The `messages` of one conversation. */
export interface MessagesHistory extends HistorySink<WrittenMessage> {
  /** @param turns - The cache marks of the last user turns. */
  render(tail: readonly WrittenMessage[], turns: CacheMarks['turns']): RenderedMessages;
}

/** The protocol's own ids have 30 characters; it takes 64. */
const MESSAGES_IDS: IdRules = { legal: /^[a-zA-Z0-9_-]{1,64}$/, derive: COMMON_IDS.derive };

/** Stands for the user where a history begins with a reply. A model reads it. */
const BEGINNING: WrittenBlocks = { role: 'user', blocks: [JSON.stringify({ type: 'text', text: CONVERSATION_BEGINS })] };

/** How this protocol writes histories. @param replyTarget - Asked at each reply that is written for the first time. */
export function messagesHistory(
  target: WireTarget,
  replyTarget: (message: AssistantMessage) => WireTarget,
): HistoryFormat<WrittenMessage, MessagesHistory> {
  return {
    idRules: MESSAGES_IDS,
    user: (message) => writeUser(message, target),
    assistant: (message, wireIds) => writeAssistant(message, wireIds, replyTarget(message)),
    tool: (message, wireId) => writeTool(message, wireId, target),
    createSink,
  };
}

function createSink(): MessagesHistory {
  const turns = createTurnList('content');
  /** The last turn, if it is the model's; several messages, where one was gone on with. */
  let open: readonly ReplyBlock[] = [];
  let isEmpty = true;
  let container: Container | undefined;
  /** The last of the model's turns that is in the list. */
  let lastReply: readonly ReplyBlock[] = [];
  /** Of the calls of the provider's tools that are in the list. */
  const serverIds = new Set<string | undefined>();

  function closeReply(): void {
    const closed = closedReply(withoutStrayResults(open, serverIds));
    open = [];
    if (closed.length === 0) return;
    turns.add(toTurn(closed));
    lastReply = closed;
    for (const { kind, serverId } of closed) if (kind === 'server_call') serverIds.add(serverId);
  }

  return {
    add(_message, written) {
      if (written === undefined) return;
      if (isEmpty && written.role === 'assistant') turns.add(BEGINNING);
      isEmpty = false;
      if (written.role === 'assistant') {
        open = [...open, ...written.blocks];
        container = written.container ?? container;
        return;
      }
      closeReply();
      turns.add(written);
    },
    render(tail, marks) {
      const isLast = tail.length === 0;
      const blocks = withoutStrayResults(open, serverIds);
      const reply = isLast ? withLegalEnd(blocks) : closedReply(blocks);
      const users = tail.filter((written) => written.role === 'user');
      const json = turns.render([...(reply.length === 0 ? [] : [toTurn(reply)]), ...users], (turn) => mark(turn, marks));
      const last = reply.length === 0 ? lastReply : reply;
      const isInWork = hasCalls(last) || (isLast && reply.length > 0);
      return { json, isInWork, hasBareReply: isInWork && last[0]?.kind !== 'thinking', container };
    },
  };
}

function mark({ role, block, fromEnd }: TurnEnd, marks: CacheMarks['turns']): string {
  return role === 'user' ? markBlock(block, marks[fromEnd] ?? '') : block;
}

function toTurn(blocks: readonly ReplyBlock[]): WrittenBlocks {
  return { role: 'assistant', blocks: blocks.map(({ json }) => json) };
}

/** A reply that a user's turn follows. */
function closedReply(blocks: readonly ReplyBlock[]): readonly ReplyBlock[] {
  return withoutThinkingEnd(hasCalls(blocks) ? blocks : withoutOpenCalls(blocks));
}

/** @param known - Of the calls in earlier turns: what they gave may come later. */
function withoutStrayResults(blocks: readonly ReplyBlock[], known: ReadonlySet<string | undefined>): readonly ReplyBlock[] {
  if (!blocks.some(({ kind }) => kind === 'server_result')) return blocks;
  const here = new Set(blocks.map(({ kind, serverId }) => (kind === 'server_call' ? serverId : undefined)));
  return blocks.filter(({ kind, serverId }) => kind !== 'server_result' || here.has(serverId) || known.has(serverId));
}

function hasCalls(blocks: readonly ReplyBlock[]): boolean {
  return blocks.some(({ kind }) => kind === 'call');
}
