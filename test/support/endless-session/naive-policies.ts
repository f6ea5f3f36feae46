/**
 * Naive policies: what agents do that have no context policy worth the name, to hold ours against. Both cut large results as
 * they come, estimate four characters to a token, take a window that is not declared for the 32k that it is, and act at 85 %
 * of it. A refused request costs them the turn, and a tenth of what they take for the window.
 *
 * - Tail trim drops the oldest messages before each step until the rest fits. Calls and their results go together, the
 *   newest message of the person stays.
 * - Summarise always has the model summarise everything but the last few messages; if that fails, they are gone.
 */
import { textOf, userMessage, type AnyTool, type CompactionEdit, type Hook, type HookContext, type LLM, type Message, type Recovery } from 'turnloop';
import type { SessionPolicy } from './play-session.ts';
import { WINDOW } from './world.ts';

const SHARE = 0.85;
const SHRINK = 0.9;
const CHARS_PER_TOKEN = 4;
const MAX_RESULT = 8_192;
const KEPT_END = 3_000;
const KEPT_MESSAGES = 4;

export function tailTrim(): SessionPolicy {
  const windows = createWindows();
  return {
    hooks: [
      cutResults(),
      {
        name: 'tailTrim',
        beforeStep: async (context) => {
          const budget = SHARE * windows.of(context.llm) - headTokens(context);
          const messages = await context.messages();
          const newest = messages.findLast(isFromPerson);
          const groups = groupsOf(messages);
          let tokens = tokensOf(messages);
          const edits: CompactionEdit[] = [];
          for (const group of groups.slice(0, -1)) {
            if (tokens <= budget) break;
            if (group[0] === newest) continue;
            tokens -= tokensOf(group);
            edits.push({ from: group[0]!.id, to: group.at(-1)!.id, messages: [] });
          }
          if (edits.length > 0) await context.record({ type: 'compaction', layer: 'tail-trim', edits, tokensBefore: tokensOf(messages), tokensAfter: tokens });
        },
      },
    ],
    recoveries: [windows.shrinkOnOverflow],
  };
}

export function summariseAlways(): SessionPolicy {
  const windows = createWindows();
  return {
    hooks: [
      cutResults(),
      {
        name: 'summariseAlways',
        beforeStep: async (context) => {
          const messages = await context.messages();
          if (tokensOf(messages) + headTokens(context) <= SHARE * windows.of(context.llm)) return;
          const groups = groupsOf(messages);
          let kept = groups.length;
          for (let size = 0; kept > 1 && size + groups[kept - 1]!.length <= KEPT_MESSAGES; kept -= 1) size += groups[kept - 1]!.length;
          const head = groups.slice(0, Math.min(kept, groups.length - 1)).flat();
          if (head.length === 0) return;
          const summary = await summarise(context, head);
          const edits = [{ from: head[0]!.id, to: head.at(-1)!.id, messages: summary }];
          await context.record({ type: 'compaction', layer: 'summary', edits, tokensBefore: tokensOf(messages), tokensAfter: 0 });
        },
      },
    ],
    recoveries: [windows.shrinkOnOverflow],
  };
}

async function summarise({ llm, signal, runtime, record }: HookContext, head: readonly Message[]): Promise<readonly Message[]> {
  const messages = [...head, userMessage('Summarise the conversation so far, so that you can go on with it.')];
  try {
    const { content, usage } = await llm.chat({ systemPrompt: llm.systemPrompt, messages, tools: [], signal });
    await record({ type: 'usage', purpose: 'compaction', modelId: llm.modelId, usage });
    return [userMessage(`What happened so far:\n${textOf(content.filter((part) => part.type === 'text'))}`, { id: runtime.createId('message'), origin: 'summary' })];
  } catch {
    return [];
  }
}

/** What it takes for the window of each model. */
function createWindows(): { of(llm: LLM): number; readonly shrinkOnOverflow: Recovery } {
  const windows = new Map<string, number>();
  const of = ({ modelId, capabilities }: LLM): number => windows.get(modelId) ?? capabilities?.contextWindow ?? WINDOW;
  return {
    of,
    shrinkOnOverflow: {
      name: 'shrinkOnOverflow',
      kinds: ['context_overflow'],
      apply: (_request, { llm }) => {
        windows.set(llm.modelId, of(llm) * SHRINK);
        return undefined;
      },
    },
  };
}

function cutResults(): Hook {
  return {
    name: 'cutResults',
    finalizeToolResult: (_context, _call, result) => {
      const text = textOf(result.content);
      if (text.length <= MAX_RESULT) return undefined;
      const omitted = text.length - 2 * KEPT_END;
      return { ...result, content: `${text.slice(0, KEPT_END)}\n[${omitted} characters left out]\n${text.slice(-KEPT_END)}` };
    },
  };
}

/** Messages that belong together: a reply with the results of its calls, anything else alone. */
function groupsOf(messages: readonly Message[]): readonly (readonly Message[])[] {
  const groups: Message[][] = [];
  for (const message of messages) {
    if (message.role === 'tool') groups.at(-1)?.push(message);
    else groups.push([message]);
  }
  return groups;
}

function isFromPerson(message: Message): boolean {
  return message.role === 'user' && message.origin === 'user';
}

const lengths = new WeakMap<Message, number>();

function tokensOf(messages: readonly Message[]): number {
  let length = 0;
  for (const message of messages) {
    const known = lengths.get(message) ?? JSON.stringify(message.content).length;
    lengths.set(message, known);
    length += known;
  }
  return length / CHARS_PER_TOKEN;
}

const toolLengths = new WeakMap<readonly AnyTool[], number>();

function headTokens({ llm, tools }: HookContext): number {
  const length = toolLengths.get(tools) ?? JSON.stringify(tools).length;
  toolLengths.set(tools, length);
  return (llm.systemPrompt.length + length) / CHARS_PER_TOKEN;
}
