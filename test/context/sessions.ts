/** Sessions for the context policy: long histories, and a model that is asked for steps and for summaries. */
import {
  type AnyTool,
  assistantMessage,
  createTranscript,
  type LLMRequest,
  type Message,
  textOf,
  toolMessage,
  type Transcript,
  type UserMessage,
  userMessage,
} from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import {
  recordingTool,
  type RepeatedReply,
  type Reply,
  runScripted,
  type RunScriptedOptions,
  scriptedLLM,
  type ScriptedLLM,
  type ScriptedLLMOptions,
  type ScriptedOutcome,
} from 'turnloop/testing';
import { eventsOf } from './histories.ts';

export const TASK = 'Find out why the tests fail, and mend it.';

/** A reading of a file, and what stood in it. */
export function exchange(index: number, characters = 400): readonly Message[] {
  const inputText = JSON.stringify({ path: `src/file-${index}.ts` });
  const call = { type: 'tool_call', id: `call_${index}`, name: 'read', inputText, input: JSON.parse(inputText) as unknown } as const;
  return [
    assistantMessage([{ type: 'text', text: `I look at file ${index}.` }, call], { id: `reply_${index}` }),
    toolMessage(`line ${index} of it `.repeat(characters).slice(0, characters), { toolCallId: call.id, name: 'read', id: `result_call_${index}` }),
  ];
}

export interface LongHistory {
  /** @defaultValue 40 */
  readonly exchanges?: number;
  /** Of each result. @defaultValue 400 */
  readonly characters?: number;
  /** Messages of the person, in front of the exchange of that number. @defaultValue the task alone */
  readonly said?: Readonly<Record<number, UserMessage>>;
}

/** A task and what was done for it. */
export function longHistory({ exchanges = 40, characters = 400, said = {} }: LongHistory = {}): readonly Message[] {
  const messages: Message[] = [userMessage(TASK, { id: 'task' })];
  for (let index = 1; index <= exchanges; index += 1) {
    const words = said[index];
    messages.push(...(words === undefined ? [] : [words]), ...exchange(index, characters));
  }
  return messages;
}

/** A transcript whose turns are over, with this history. */
export function transcriptOf(messages: readonly Message[]): Transcript {
  return createTranscript(eventsOf(messages));
}

/** A tool that may run any number of times, and returns so many characters. */
export function readTool(characters = 400): AnyTool {
  return recordingTool({ name: 'read', readOnly: true, execute: () => 'text '.repeat(Math.ceil(characters / 5)) });
}

/** A window of which a request with this history takes about a share. */
export function windowFor(messages: readonly Message[], share: number, tools: readonly AnyTool[] = []): number {
  const model = { provider: 'scripted', modelId: 'scripted-model' };
  const tokens = createContextPolicy().estimator.estimateRequest({ systemPrompt: '', tools, messages }, model);
  return Math.round(tokens / share);
}

export interface SessionModel extends ScriptedLLM {
  readonly stepRequests: () => readonly LLMRequest[];
  readonly summaryRequests: () => readonly LLMRequest[];
}

/** A model with one list of replies for steps and another for summaries. */
export function sessionModel(
  { steps, summaries = [] }: { readonly steps: readonly Reply[]; readonly summaries?: readonly (Reply | RepeatedReply)[] },
  options: ScriptedLLMOptions = {},
): SessionModel {
  const left = { steps: [...steps], summaries: [...summaries] };
  const llm = scriptedLLM((request) => {
    const list = isSummaryRequest(request) ? left.summaries : left.steps;
    const [next] = list;
    if (next === undefined) throw new Error(`The ${isSummaryRequest(request) ? 'summaries' : 'steps'} ran out.`);
    if (isRepeated(next)) return next.reply;
    list.shift();
    return next;
    // A model that tells no counts: the figures are the estimates then, and stay what they are.
  }, { usage: {}, ...options });
  return Object.assign(llm, {
    stepRequests: () => llm.requests.filter((request) => !isSummaryRequest(request)),
    summaryRequests: () => llm.requests.filter(isSummaryRequest),
  });
}

function isRepeated(reply: Reply | RepeatedReply): reply is RepeatedReply {
  return typeof reply === 'object' && !(reply instanceof Error) && 'kind' in reply;
}

export function isSummaryRequest({ messages }: LLMRequest): boolean {
  return messages.length === 1 && textOf(messages[0]).includes('<conversation>');
}

/** The summaries of a history. */
export function summariesOf(messages: readonly Message[]): readonly string[] {
  return messages.filter((message) => message.role === 'user' && message.origin === 'summary').map(textOf);
}

/** Layers of the compactions that a turn recorded, in order. */
export function layersOf({ recorded }: Pick<ScriptedOutcome, 'recorded'>): readonly string[] {
  return recorded.flatMap((event) => (event.type === 'compaction' ? [event.layer] : []));
}

/** Data of the notices of a name. */
export function noticesOf({ events }: Pick<ScriptedOutcome, 'events'>, name: string): readonly unknown[] {
  return events.flatMap((event) => (event.type === 'notice' && event.name === name ? [event.data] : []));
}

/** Runs a turn under a context policy. */
export async function runWith(
  policy: { readonly hooks: RunScriptedOptions['hooks']; readonly recoveries: RunScriptedOptions['recoveries'] },
  options: RunScriptedOptions,
): Promise<ScriptedOutcome> {
  return runScripted({ hooks: policy.hooks, recoveries: policy.recoveries, ...options });
}
