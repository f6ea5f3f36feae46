/**
 * Script: what the model of the kill test says. A pure function of the history it is sent, so that it says the same after a
 * resume, whatever process asks.
 *
 * Sixty steps in four turns. Each asks for two to four calls of tools that append, put and probe; some dispatch sub-agents,
 * one inside another, some have the host queue an input or steer the turn. A call's `providerId` is its label, unique in
 * the session: by it two runs are compared.
 */
import { textOf, toUsage, type LLM, type LLMRequest, type LLMResponse, type ReplyPart, type ReplyToolCall, type Usage } from 'turnloop';

export const STEPS = 60;
export const STEPS_OF_TURN = 15;
export const TURNS: number = STEPS / STEPS_OF_TURN;
export const FIRST_INPUT = 'Begin.';
/** What a resume tells the model of a call that must not run again and may have run. */
export const UNKNOWN = /not known whether it took effect/;

/** Tokens of each reply: sums tell how many were counted. */
const REPLY_USAGE: Usage = toUsage({ inputTokens: 10, outputTokens: 1 });

/** What the model says next. */
function nextReply({ messages }: Pick<LLMRequest, 'messages'>): readonly ReplyPart[] {
  const prompt = textOf(messages.find(({ role }) => role === 'user'));
  const replies = messages.filter(({ role }) => role === 'assistant').length;
  const [, kind, name] = /^(task|nest) (.+)$/.exec(prompt) ?? [];
  if (kind === undefined || name === undefined) return mainReply(replies);
  return kind === 'task' ? taskReply(name, replies) : nestReply(name, replies);
}

function mainReply(index: number): readonly ReplyPart[] {
  const label = `s${index}`;
  const place = index % STEPS_OF_TURN;
  if (place === STEPS_OF_TURN - 1) return [{ type: 'text', text: `Turn of ${label} is over.` }];
  const tools = ['append', 'put', 'probe'] as const;
  const calls = Array.from({ length: 2 + (index % 3) }, (_, at) =>
    // In some steps all calls write the same, and run one after the other.
    call(tools[(index + at) % 3]!, `${label}.${at}`, { resource: index % 4 === 0 ? label : `${label}.${at}` }),
  );
  const extra = extraCalls(label, index);
  const kept = calls.slice(0, Math.max(1, 4 - extra.length));
  return [{ type: 'text', text: `Step ${label}.` }, ...kept, ...extra];
}

function extraCalls(label: string, index: number): readonly ReplyToolCall[] {
  const turn = Math.floor(index / STEPS_OF_TURN);
  switch (index % STEPS_OF_TURN) {
    case 3:
      return turn % 2 === 0 ? [call('queue', `remark-${label}`, { steer: true })] : [];
    case 5:
      return [dispatch(`task ${label}d`)];
    case 7:
      return turn % 2 === 1 || turn === 0 ? [call('steer', `steer-${label}`)] : [];
    case 9:
      return [dispatch(`task ${label}d`), dispatch(`task ${label}e`)];
    case 11:
      return turn === 1 ? [dispatch(`nest ${label}d`)] : [];
    case 12:
      // The second and third turn are queued together, the fourth by itself.
      if (turn === 0) return [call('queue', `input-${label}a`, { resource: 'queue' }), call('queue', `input-${label}b`, { resource: 'queue' })];
      return turn === 2 ? [call('queue', `input-${label}a`)] : [];
    default:
      return [];
  }
}

/** A sub-agent that writes. */
function taskReply(name: string, replies: number): readonly ReplyPart[] {
  if (replies === 0) return [call('append', `${name}.0`), call('put', `${name}.1`), call('probe', `${name}.2`)];
  if (replies === 1) return [call('append', `${name}.3`)];
  return [{ type: 'text', text: `Task ${name} is done.` }];
}

/** A sub-agent that has another do a part. */
function nestReply(name: string, replies: number): readonly ReplyPart[] {
  if (replies === 0) return [dispatch(`task ${name}-deep`), call('put', `${name}.0`)];
  return [{ type: 'text', text: `Nest ${name} is done.` }];
}

function call(name: string, label: string, input: Readonly<Record<string, string | boolean>> = {}): ReplyToolCall {
  return { type: 'tool_call', name, providerId: label, inputText: JSON.stringify({ label, ...input }) };
}

function dispatch(prompt: string): ReplyToolCall {
  return { type: 'tool_call', name: 'dispatch_agent', providerId: prompt, inputText: JSON.stringify({ prompt, type: 'writer' }) };
}

/** The model: streams its reply in two pieces with pauses. */
export function scriptModel({ pause, onReply }: { readonly pause: () => Promise<void>; readonly onReply: (request: LLMRequest) => void }): LLM {
  return {
    provider: 'script',
    modelId: 'script-1',
    systemPrompt: 'Play.',
    async chat(request: LLMRequest): Promise<LLMResponse> {
      const content = nextReply(request);
      await pause();
      let callIndex = -1;
      for (const part of content) {
        if (part.type === 'text') request.onDelta?.({ type: 'text', text: part.text });
        if (part.type === 'tool_call') {
          callIndex += 1;
          request.onDelta?.({ type: 'tool_call', callIndex, name: part.name, providerId: part.providerId, inputText: part.inputText });
        }
      }
      await pause();
      request.signal.throwIfAborted();
      onReply(request);
      const hasCalls = content.some(({ type }) => type === 'tool_call');
      return { content, stopReason: hasCalls ? 'tool_use' : 'end_turn', usage: REPLY_USAGE };
    },
  };
}
