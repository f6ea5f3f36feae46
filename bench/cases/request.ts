/**
 * request: whether a request costs more to build the longer the conversation is.
 *
 * Measured: a conversation of single calls and their results, about 500 characters each, through each adapter, up to
 * 2,000 messages; time from `chat` to the adapter's call of `fetch`, which has the body by then. The median of 40 requests
 * up to message 2,000 over that of 40 around message 200; of several conversations the median again. The time is that on
 * the wall, since processor time is not told in steps as fine: medians keep out what else the machine does.
 *
 * Limit: 1, what is new in a request being the same in each. A little more is the price of making sure that the history is
 * the one that was written before: a comparison of references. Not in it: what `fetch` does, whose work is the bytes.
 */
import { assistantMessage, type LLM, type Message, toolMessage, userMessage } from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import type { BenchCase, Figure, Numbers } from '../lib/bench-case.ts';
import { median } from '../lib/statistics.ts';
import { expectEqual } from '../lib/timing.ts';

const EARLY = 200;
const LATE = 2000;
const WINDOW = 40;
const WARM_CONVERSATIONS = 2;
const CONVERSATIONS = 7;
const TEXT_LENGTH = 500;

type Connect = (options: { readonly model: string; readonly apiKey: string; readonly fetch: typeof globalThis.fetch }) => LLM;

const ADAPTERS: Readonly<Record<string, Connect>> = {
  'openai-chat': openAIChat,
  'openai-responses': (options) => openAIResponses({ ...options, state: 'stateless' }),
  anthropic,
  google,
};

const NAMES = Object.keys(ADAPTERS);

export const request: BenchCase = {
  name: 'request',
  repetitions: 3,
  measurements: [{ name: 'turnloop', measure }],
  figures: [figure('', 'worst'), ...NAMES.map((name) => figure(`${name}-`, name))],
};

function figure(prefix: string, name: string): Figure {
  return {
    metric: `${prefix}us-per-request-2000`,
    unit: 'us',
    value: ['turnloop', `${name} late`],
    ratio: { metric: `${prefix}ratio-2000-200`, to: ['turnloop', `${name} early`], label: 'at message 200' },
  };
}

async function measure(): Promise<Numbers> {
  const numbers: Record<string, number> = {};
  let worst = 0;
  for (const name of NAMES) {
    const costs: Cost[] = [];
    for (let count = 0; count < WARM_CONVERSATIONS; count += 1) await costOf(ADAPTERS[name]!);
    for (let count = 0; count < CONVERSATIONS; count += 1) costs.push(await costOf(ADAPTERS[name]!));
    const [early, late] = [median(costs.map((cost) => cost.early)), median(costs.map((cost) => cost.late))];
    Object.assign(numbers, { [`${name} early`]: early, [`${name} late`]: late });
    if (late / early <= worst) continue;
    worst = late / early;
    Object.assign(numbers, { 'worst early': early, 'worst late': late });
  }
  return numbers;
}

interface Cost {
  readonly early: number;
  readonly late: number;
}

/** Microseconds of a request at both places of one conversation. */
async function costOf(connect: Connect): Promise<Cost> {
  let sentAt = 0;
  let sent = 0;
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    sentAt = performance.now();
    sent += (init?.body as string).length;
    throw new TypeError('Nothing is sent.');
  };
  const llm = connect({ model: 'bench', apiKey: 'sk-bench', fetch: fetch });
  const { signal } = new AbortController();
  const messages: Message[] = [userMessage('Begin.')];
  const costs: number[] = [];
  while (messages.length < LATE) {
    messages.push(...exchange(messages.length, llm));
    const list = [...messages];
    const startedAt = performance.now();
    await llm.chat({ systemPrompt: 'Be brief.', messages: list, tools: [], signal }).catch(() => undefined);
    costs.push((sentAt - startedAt) * 1000);
  }
  expectEqual('requests that said something', sent > TEXT_LENGTH * LATE, true);
  const early = EARLY / 2;
  return { early: median(costs.slice(early - WINDOW / 2, early + WINDOW / 2)), late: median(costs.slice(-WINDOW)) };
}

function exchange(at: number, { provider, modelId }: LLM): Message[] {
  const id = `call_${at}`;
  const text = `${at} `.repeat(TEXT_LENGTH).slice(0, TEXT_LENGTH);
  const call = { type: 'tool_call', id, name: 'look', inputText: JSON.stringify({ at, text }) } as const;
  return [assistantMessage([call], { source: { provider, modelId } }), toolMessage(text, { toolCallId: id, name: 'look' })];
}
