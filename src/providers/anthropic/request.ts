/**
 * Request: the body of a request, as text.
 *
 * What changes from step to step stands last, so that request n+1 begins with all of request n up to the end of its
 * messages, cache marks aside: settings, tools, system prompt, messages, then what is only this request's. A field that
 * the host gives itself takes the place of ours.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { LLMRequest, ToolDefinition } from '../../core/llm.ts';
import type { AssistantMessage, Message } from '../../core/message.ts';
import { systemRuntime } from '../../core/runtime.ts';
import { assertMessages } from '../shared/assert-messages.ts';
import { createHistoryWriter, type HistoryWriter } from '../shared/history-writer.ts';
import { cleanJson, cleanText, isBlank } from '../shared/wire-text.ts';
import { markBlock, planCacheMarks } from './cache-marks.ts';
import { isOpenContainer, toContainerField } from './container.ts';
import { assertChoice, type MessageTools, toWireChoice, writeTools } from './message-tools.ts';
import type { WireTarget, WrittenMessage } from './message-wire.ts';
import { type MessagesHistory, messagesHistory, type RenderedMessages } from './messages-history.ts';
import type { AnthropicConfig } from './options.ts';
import { toOutputSchema } from './output-schema.ts';
import { toThinkingBlock } from './thinking-block.ts';

/** A request's text. */
export interface RequestText {
  /** JSON text. */
  readonly body: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Writes the requests of one adapter. */
export interface RequestWriter {
  /**
   * Writes a request; costs what is new in it.
   *
   * @throws {@link index.LLMError | LLMError} for a history that says nothing, a call forced upon a model that refuses it, and
   * a response schema that cannot be sent.
   * @param dropsUnbound - Whether to tell the server to leave out thinking of another conversation.
   */
  write(request: LLMRequest, dropsUnbound: boolean): RequestText;
  /** Leaves the thinking of these messages out from now on. @returns Whether the request is another one without it. */
  leaveOutThinking(messages: readonly Message[]): boolean;
}

/** A request whose messages are written. */
interface Written {
  readonly request: LLMRequest;
  readonly messages: RenderedMessages;
  readonly dropsUnbound: boolean;
}

/** Makes a writer. */
export function createRequestWriter(config: AnthropicConfig, target: WireTarget): RequestWriter {
  const { options, thinking } = config;
  const { body = {}, serverTools = [], parallelTools = true, eagerInput = false } = options;
  // What the conversation adds to it changes.
  const { container: givenContainer, ...otherFields } = config.fixedFields;
  const openContainer = isOpenContainer(givenContainer) ? givenContainer : undefined;
  const namesContainer = openContainer !== undefined || !Object.hasOwn(body, 'container');
  // A container is a server tool's: without one there is nothing that could use it.
  const mayUseContainer = serverTools.length > 0 || Object.hasOwn(body, 'tools');
  // Without its closing brace: fields follow.
  const head = JSON.stringify(cleanJson(openContainer === undefined ? config.fixedFields : otherFields)).slice(0, -1);
  const marks = planCacheMarks({ promptCache: options.promptCache ?? '5m', serverTools, body });
  const bareTarget: WireTarget = { ...target, thinkingHistory: 'drop' };
  /** Whose thinking was refused. All of a request's: one that stands between others may not be missing. */
  const bare = new WeakSet<Message>();
  /** Whether the server is known to refuse a reply in work that does not start with thinking, while it is to think. */
  let refusesBareReplies = config.isClaude;
  let history = createHistory();
  const writtenTools = new WeakMap<readonly ToolDefinition[], MessageTools>();

  function createHistory(): HistoryWriter<WrittenMessage, MessagesHistory> {
    return createHistoryWriter(messagesHistory(target, (message) => (bare.has(message) ? bareTarget : target)));
  }

  function hasThinking(message: Message): message is AssistantMessage {
    if (message.role !== 'assistant') return false;
    return message.content.some((part) => part.type === 'thinking' && toThinkingBlock(part, message.source, target) !== undefined);
  }

  function toolsOf(tools: readonly ToolDefinition[]): MessageTools {
    const known = writtenTools.get(tools);
    if (known !== undefined) return known;
    const written = writeTools(tools, { serverTools, eagerInput, mark: marks.tools });
    writtenTools.set(tools, written);
    return written;
  }

  function systemJson(systemPrompt: string): string {
    if (isBlank(systemPrompt)) return '';
    return `[${markBlock(JSON.stringify({ type: 'text', text: cleanText(systemPrompt) }), marks.system)}]`;
  }

  function containerField(messages: RenderedMessages, { scope }: LLMRequest): JsonObject {
    if (!namesContainer) return {};
    const known = mayUseContainer ? messages : { ...messages, container: undefined };
    const field = toContainerField(known, openContainer, (scope?.runtime ?? systemRuntime).now());
    return field === undefined ? {} : { container: field };
  }

  function tailFields({ request, messages, dropsUnbound }: Written, { json, names }: MessageTools): JsonObject {
    const { toolChoice = 'auto', responseSchema } = request;
    const hasBareReply = refusesBareReplies && messages.hasBareReply;
    const hasTools = json !== '';
    if (hasTools && !config.takesForcedCalls && !Object.hasOwn(body, 'tool_choice')) assertChoice(toolChoice, config.model);
    const maxTokens = Math.max(1, Math.min(request.maxOutputTokens ?? options.maxOutputTokens ?? Infinity, config.outputCeiling));
    const fields = thinking.fieldsFor({ maxTokens, toolChoice: hasTools ? toolChoice : 'auto', hasBareReply, dropsUnbound });
    const own = ownFields({
      thinking: fields.thinking,
      temperature: thinking.takesTemperature(fields) ? options.temperature : undefined,
      tool_choice: hasTools ? toWireChoice(toolChoice, parallelTools, names) : undefined,
      output_config: outputConfig(fields.effort, responseSchema),
      max_tokens: maxTokens,
    });
    return { ...own, ...containerField(messages, request) };
  }

  /** The fields that are there, and that the host does not give itself. */
  function ownFields(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
    const entries = Object.entries(fields).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined && !Object.hasOwn(body, entry[0]));
    return Object.fromEntries(entries);
  }

  function listField(name: string, json: string): string {
    return json === '' || Object.hasOwn(body, name) ? '' : `,"${name}":${json}`;
  }

  return {
    write(request, dropsUnbound) {
      const tools = toolsOf(request.tools);
      const { sink, tail } = history.write(request.messages);
      const messages = sink.render(tail, marks.turns);
      if (!Object.hasOwn(body, 'messages')) assertMessages(messages.json, config.provider);
      const last = JSON.stringify(tailFields({ request, messages, dropsUnbound }, tools)).slice(1);
      const lists = listField('tools', tools.json) + listField('system', systemJson(request.systemPrompt)) + listField('messages', `[${messages.json}]`);
      return { body: `${head}${lists}${last === '}' ? '' : ','}${last}`, toolName: tools.names.fromWire };
    },
    leaveOutThinking(messages) {
      const refused = messages.filter((message) => hasThinking(message) && !bare.has(message));
      for (const message of refused) bare.add(message);
      // What was written of them is written anew.
      if (refused.length > 0) history = createHistory();
      const isNew = refused.length > 0 || !refusesBareReplies;
      refusesBareReplies = true;
      return isNew;
    },
  };
}

function outputConfig(effort: string | undefined, responseSchema: LLMRequest['responseSchema']): JsonObject | undefined {
  if (effort === undefined && responseSchema === undefined) return undefined;
  return {
    ...(effort !== undefined && { effort }),
    ...(responseSchema !== undefined && { format: { type: 'json_schema', schema: toOutputSchema(responseSchema) } }),
  };
}
