/**
 * Projection: a history that every protocol accepts, out of any list of messages.
 *
 * - P1 Directly after an assistant message with calls stands exactly one result for each, in the order of the calls.
 * - P2 No result without a call, no empty message, no blank text.
 * - P3 Pure and idempotent; a list that needs no repair is returned as it is, by reference.
 * - P4 Every repair is reported as a finding.
 *
 * Strict projection does more than any provider should need; it is for the one that still refuses.
 */
import type { RecordedToolResult } from './events.ts';
import type { AssistantMessage, AssistantPart, Message, ToolMessage, ToolResultPart, UserMessage } from './message.ts';

/** What a repair did. */
export type FindingKind =
  | 'result_moved'
  | 'result_synthesized'
  | 'result_text_added'
  | 'orphan_result_dropped'
  | 'empty_message_dropped'
  | 'blank_text_dropped'
  | 'void_reply_dropped'
  | 'part_misplaced'
  | 'edit_not_applied'
  | 'leading_message_dropped'
  | 'assistants_merged'
  | 'duplicate_call_dropped';

/** A repair, and where. */
export interface Finding {
  /** What was done. */
  readonly kind: FindingKind;
  /** Id of the message it is about; for a void reply the step's id. */
  readonly messageId: string;
  /** Id of the call it is about, where it is about one. */
  readonly toolCallId?: string | undefined;
}

/** A history and the repairs it took. */
export interface Projection {
  /** The history. */
  readonly messages: readonly Message[];
  /** The repairs it took. */
  readonly findings: readonly Finding[];
}

/** Options of {@link projectMessages}. */
export interface ProjectionOptions {
  /**
   * Also drops leading messages that are not a user's, merges neighbouring assistant messages, and drops calls whose id
   * was used before. @defaultValue false
   */
  readonly strict?: boolean | undefined;
}

/** First line of a failed call's text: models read it, and some protocols have no other way to say it. */
export const TOOL_ERROR_STATUS = 'Error: the tool call failed.';
const EMPTY_ERROR = 'Error: the tool call failed and gave no output.';
const EMPTY_RESULT = '(The tool gave no output.)';
const MEDIA_ONLY = '(The tool returned the media below.)';
const NOT_STARTED = 'This call was not executed: the turn was interrupted before it started.';
const NO_RESULT = 'The result of this call is not known: it was interrupted before a result was recorded.';

/**
 * What the model sees of a result: an error starts with a line that says so, an empty one says that it is, media never
 * stands alone, and the note comes last, unchanged.
 */
export function renderToolResult(result: RecordedToolResult): readonly ToolResultPart[] {
  const parts: ToolResultPart[] = result.content.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  const hasText = parts.some((part) => part.type === 'text');
  const [first] = parts;
  if (result.isError === true) {
    if (first === undefined) parts.push({ type: 'text', text: EMPTY_ERROR });
    else if (first.type === 'text' && parts.length === 1) parts[0] = { ...first, text: `${TOOL_ERROR_STATUS}\n${first.text}` };
    else parts.unshift({ type: 'text', text: TOOL_ERROR_STATUS });
  } else if (first === undefined) {
    parts.push({ type: 'text', text: EMPTY_RESULT });
  } else if (!hasText) {
    parts.unshift({ type: 'text', text: MEDIA_ONLY });
  }
  if (result.note !== undefined && result.note !== '') {
    const last = parts.at(-1);
    if (last?.type === 'text') parts[parts.length - 1] = { ...last, text: `${last.text}\n${result.note}` };
    else parts.push({ type: 'text', text: result.note });
  }
  return parts;
}

/** The message that answers a call with a recorded result. */
export function resultMessage(toolCallId: string, name: string, result: RecordedToolResult): ToolMessage {
  const content = renderToolResult(result);
  const base = { role: 'tool', id: `result_${toolCallId}`, toolCallId, name, content } as const;
  return result.isError === true ? { ...base, isError: true } : base;
}

/** The message that stands in for a result nobody recorded. */
export function missingResultMessage(toolCallId: string, name: string, started = true): ToolMessage {
  const text = started ? NO_RESULT : NOT_STARTED;
  return resultMessage(toolCallId, name, { content: [{ type: 'text', text }], isError: true });
}

/**
 * An assistant message without blank texts; undefined if nothing is left that a provider would take: no text, no call, no
 * media, no provider part, and no thinking that has text or a signature.
 */
export function cleanAssistant(
  message: AssistantMessage,
  report: (finding: Finding) => void,
): AssistantMessage | undefined {
  const content = message.content.filter(isSubstance);
  if (!content.some((part) => part.type !== 'thinking' || isRealThinking(part))) {
    report({ kind: 'empty_message_dropped', messageId: message.id });
    return undefined;
  }
  if (content.length === message.content.length) return message;
  report({ kind: 'blank_text_dropped', messageId: message.id });
  return { ...message, content };
}

function isSubstance(part: AssistantPart): boolean {
  return part.type !== 'text' || part.providerData !== undefined || part.text.trim() !== '';
}

function isRealThinking(part: AssistantPart): boolean {
  if (part.type !== 'thinking') return false;
  return part.text.trim() !== '' || part.signature !== undefined || part.redactedData !== undefined || part.providerData !== undefined;
}

/** A user message without blank texts; undefined if nothing is left. */
export function cleanUser(message: UserMessage, report: (finding: Finding) => void): UserMessage | undefined {
  const content = message.content.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  if (content.length === message.content.length && content.length > 0) return message;
  report({ kind: content.length === 0 ? 'empty_message_dropped' : 'blank_text_dropped', messageId: message.id });
  return content.length === 0 ? undefined : { ...message, content };
}

/**
 * Makes a history valid for every protocol, by the least change.
 *
 * @param messages - Any list of messages, oldest first; not changed.
 */
export function projectMessages(messages: readonly Message[], options: ProjectionOptions = {}): Projection {
  const findings: Finding[] = [];
  const report = (finding: Finding): void => {
    findings.push(finding);
  };
  const source = options.strict === true ? dropDuplicateCalls(messages, report) : messages;
  const results = resultsByCall(source);
  const projected: Message[] = [];

  source.forEach((message, index) => {
    if (message.role === 'user') {
      const clean = cleanUser(message, report);
      if (clean !== undefined) projected.push(clean);
    } else if (message.role === 'assistant') {
      const clean = cleanAssistant(message, report);
      if (clean !== undefined) projected.push(clean, ...takeResults({ assistant: clean, index, end: endOfResults(source, index) }, results, report));
    }
  });
  // What nobody took answers no call, or answers one a second time.
  for (const [toolCallId, left] of results) {
    for (const { message } of left) report({ kind: 'orphan_result_dropped', messageId: message.id, toolCallId });
  }

  const final = options.strict === true ? mergeAssistants(dropLeading(projected, report), report) : projected;
  return { messages: sameList(final, messages) ? messages : final, findings };
}

interface PlacedResult {
  /** The message. */
  readonly message: ToolMessage;
  readonly index: number;
}

function resultsByCall(messages: readonly Message[]): Map<string, PlacedResult[]> {
  const results = new Map<string, PlacedResult[]>();
  messages.forEach((message, index) => {
    if (message.role !== 'tool') return;
    const list = results.get(message.toolCallId);
    if (list === undefined) results.set(message.toolCallId, [{ message, index }]);
    else list.push({ message, index });
  });
  return results;
}

/** Index behind the results that follow a message directly. */
function endOfResults(messages: readonly Message[], index: number): number {
  let end = index + 1;
  while (messages[end]?.role === 'tool') end += 1;
  return end;
}

function takeResults(
  { assistant, index, end }: { readonly assistant: AssistantMessage; readonly index: number; readonly end: number },
  results: Map<string, PlacedResult[]>,
  report: (finding: Finding) => void,
): ToolMessage[] {
  const calls = assistant.content.filter((part) => part.type === 'tool_call');
  return calls.map((call) => {
    const found = results.get(call.id)?.shift();
    if (found === undefined) {
      report({ kind: 'result_synthesized', messageId: assistant.id, toolCallId: call.id });
      return missingResultMessage(call.id, call.name);
    }
    // Parallel results may stand in any order directly behind their message: that is no repair worth telling.
    const isAdjacent = found.index > index && found.index < end;
    if (!isAdjacent) report({ kind: 'result_moved', messageId: found.message.id, toolCallId: call.id });
    return cleanResult(found.message, report);
  });
}

function cleanResult(message: ToolMessage, report: (finding: Finding) => void): ToolMessage {
  const { id: messageId, toolCallId } = message;
  const content = message.content.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  if (!content.some((part) => part.type === 'text')) {
    report({ kind: 'result_text_added', messageId, toolCallId });
    return { ...message, content: renderToolResult(message) };
  }
  if (content.length === message.content.length) return message;
  report({ kind: 'blank_text_dropped', messageId, toolCallId });
  return { ...message, content };
}

function dropLeading(messages: readonly Message[], report: (finding: Finding) => void): readonly Message[] {
  const first = messages.findIndex((message) => message.role === 'user');
  const start = first === -1 ? messages.length : first;
  for (const message of messages.slice(0, start)) report({ kind: 'leading_message_dropped', messageId: message.id });
  return start === 0 ? messages : messages.slice(start);
}

function mergeAssistants(messages: readonly Message[], report: (finding: Finding) => void): readonly Message[] {
  const merged: Message[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (message.role === 'assistant' && last?.role === 'assistant') {
      report({ kind: 'assistants_merged', messageId: message.id });
      merged[merged.length - 1] = { ...last, content: [...last.content, ...message.content] };
    } else {
      merged.push(message);
    }
  }
  return merged;
}

/** Keeps the first call of each id; a later result serves it if it had none of its own. */
function dropDuplicateCalls(messages: readonly Message[], report: (finding: Finding) => void): readonly Message[] {
  const calls = new Set<string>();
  const results = new Set<string>();
  return messages.flatMap((message): Message[] => {
    if (message.role === 'assistant') {
      const content = message.content.filter((part) => {
        if (part.type !== 'tool_call') return true;
        if (!calls.has(part.id)) return calls.add(part.id);
        report({ kind: 'duplicate_call_dropped', messageId: message.id, toolCallId: part.id });
        return false;
      });
      return content.length === message.content.length ? [message] : content.length === 0 ? [] : [{ ...message, content }];
    }
    if (message.role !== 'tool') return [message];
    if (results.has(message.toolCallId)) {
      report({ kind: 'orphan_result_dropped', messageId: message.id, toolCallId: message.toolCallId });
      return [];
    }
    results.add(message.toolCallId);
    return [message];
  });
}

function sameList(left: readonly Message[], right: readonly Message[]): boolean {
  return left.length === right.length && left.every((message, index) => message === right[index]);
}
