/**
 * Turnloop turn: a turn as a host runs it (a transcript that records, a listener), with a model that costs as little as the
 * interface allows: it announces each call in one delta and returns the reply.
 */
import {
  createEventDispatcher,
  createTranscript,
  runTurn,
  ToolAccesses,
  type AnyTool,
  type LLM,
  type LLMRequest,
  type LLMResponse,
  type LoopEvent,
  type ReplyPart,
  type Usage,
} from 'turnloop';
import { argumentsOf, FINAL_TEXT, PROMPT, providerIdOf, TOOL_NAME, TOOL_OUTPUT, type TurnCounts, type TurnShape } from './scenario.ts';
import { expectEqual } from './timing.ts';

/** Tokens of every reply. */
export const USAGE: Usage = { inputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 20, thinkingTokens: 0 };

/** A model out of its `chat`. */
export function benchModel(chat: LLM['chat']): LLM {
  return { provider: 'bench', modelId: 'bench', systemPrompt: '', chat };
}

/** Runs a turn with a transcript of its own. @returns The text of its last reply. */
export async function runToEnd(
  llm: LLM,
  options: { readonly tools?: readonly AnyTool[]; readonly listener?: (event: LoopEvent) => void } = {},
): Promise<string> {
  const { tools = [], listener = ignore } = options;
  const transcript = createTranscript();
  const result = await runTurn({
    llm,
    tools,
    input: PROMPT,
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({ record: transcript.record, emit: listener }),
  });
  expectEqual('stop reason', result.stopReason, 'end_turn');
  return result.text;
}

function ignore(): void {
  // A listener that is there and minds nothing.
}

/** Runs a turn of this shape. */
export async function turnloopTurn(shape: TurnShape): Promise<TurnCounts> {
  let calls = 0;
  const tool: AnyTool = {
    name: TOOL_NAME,
    description: 'Counts.',
    inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
    // Calls of a step overlap, as those of the bare loop do; none is `readOnly`, so each start is recorded.
    accesses: () => ToolAccesses.none(),
    execute: async () => {
      calls += 1;
      return TOOL_OUTPUT;
    },
  };
  const text = await runToEnd(scriptedModel(shape), { tools: [tool] });
  return { text, calls };
}

function scriptedModel({ steps, calls, gate }: TurnShape): LLM {
  let next = 0;
  return benchModel(async ({ onDelta }: LLMRequest): Promise<LLMResponse> => {
    const step = next;
    next += 1;
    if (gate !== undefined) await gate(step);
    if (step === steps - 1) {
      onDelta?.({ type: 'text', text: FINAL_TEXT });
      return { content: [{ type: 'text', text: FINAL_TEXT }], stopReason: 'end_turn', usage: USAGE };
    }
    const content: ReplyPart[] = [];
    for (let index = 0; index < calls; index += 1) {
      const call = { name: TOOL_NAME, inputText: argumentsOf(step), providerId: providerIdOf(step, index) };
      onDelta?.({ type: 'tool_call', callIndex: index, ...call });
      content.push({ type: 'tool_call', ...call });
    }
    return { content, stopReason: 'tool_use', usage: USAGE };
  });
}
