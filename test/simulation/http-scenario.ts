/**
 * Scenario: an agent on each of the adapters that speak HTTP, with a server in memory that refuses what breaks its protocol, and
 * requests that are refused, cut and slow.
 */
import type { LLM, StepStopReason } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { inProcessSessionStore } from 'turnloop/sessions';
import type { LLMScenePart } from 'turnloop/testing/conformance';
import type { Scenario, SimulatedLife } from 'turnloop/testing/simulation';
import { anthropicProtocol } from '../support/scene-server-anthropic.ts';
import { chatProtocol } from '../support/scene-server-chat.ts';
import { geminiProtocol } from '../support/scene-server-google.ts';
import { responsesProtocol } from '../support/scene-server-responses.ts';
import type { SceneProtocol, SpokenStep } from '../support/scene-server.ts';
import type { PlannedTurn } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

type Fetch = typeof globalThis.fetch;

interface Adapter {
  readonly protocol: SceneProtocol;
  readonly create: (fetch: Fetch) => LLM;
}

const ORIGIN = 'http://127.0.0.1:1';
const ADAPTERS: readonly Adapter[] = [
  { protocol: chatProtocol, create: (fetch) => openAIChat({ baseUrl: ORIGIN, model: 'test-model', apiKey: 'k', fetch }) },
  { protocol: responsesProtocol, create: (fetch) => openAIResponses({ baseUrl: ORIGIN, model: 'test-model', apiKey: 'k', fetch }) },
  { protocol: anthropicProtocol, create: (fetch) => anthropic({ baseUrl: ORIGIN, model: 'test-model', apiKey: 'k', fetch }) },
  { protocol: geminiProtocol, create: (fetch) => google({ baseUrl: ORIGIN, model: 'test-model', apiKey: 'k', fetch }) },
];

export const httpScenario: Scenario = {
  name: 'http',
  build: (world) => {
    const adapter = world.pick(ADAPTERS);
    const turns = plannedTurns(world, { turns: 2, steps: 3, calls: 3 });
    const pieceBytes = world.pick([7, 64, 100_000]);
    const effects: Effect[] = [];
    const refused: string[] = [];
    const store = inProcessSessionStore();
    return {
      live: async (life) => {
        const fetch = life.fetch(serverOf({ adapter, turns, pieceBytes, refused, life }));
        const agent = createAgent({ llm: life.llm(adapter.create(fetch)), tools: plannedTools(life, effects), sessions: life.sessions(store), runtime: life.runtime });
        await useSession(life, agent, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted }) => {
        if (refused.length > 0) throw new Error(`the server refuses a request: ${refused.join('; ')}`);
        assertOnce(effects);
        if (fired.length === 0 && !isAborted) assertAll(effects, turns);
      },
    };
  },
};

interface Server {
  readonly adapter: Adapter;
  readonly turns: readonly PlannedTurn[];
  readonly pieceBytes: number;
  readonly refused: string[];
  readonly life: SimulatedLife;
}

/** Answers as the plan says, in the words of the protocol. */
function serverOf({ adapter: { protocol }, turns, pieceBytes, refused, life }: Server): Fetch {
  return async (_url, init) => {
    const body: unknown = JSON.parse(init?.body as string);
    refused.push(...protocol.check(body));
    const text = new TextEncoder().encode(replyText(protocol, nextSteps(turns, body)));
    return new Response(inPieces(text, pieceBytes, life), { headers: protocol.headers });
  };
}

/** What the model says next: the last planned prompt in the history says which turn it is, its step how many replies follow. */
function nextSteps(turns: readonly PlannedTurn[], body: unknown): readonly SpokenStep[] {
  const json = JSON.stringify(body);
  const turn = turns.findLast(({ prompt }) => json.includes(`"${prompt}"`));
  const said = turn === undefined ? '' : json.slice(json.lastIndexOf(`"${turn.prompt}"`));
  // Each reply of a turn begins with the same words.
  const calls = turn?.steps[said.split('I will see.').length - 1] ?? [];
  const id = json.length;
  const text: LLMScenePart = { type: 'text', index: 0, text: calls.length === 0 ? `Done with ${turn?.prompt ?? 'it'}` : 'I will see.' };
  const parts: LLMScenePart[] = [
    text,
    ...calls.map(({ tool, input }, callIndex): LLMScenePart => ({ type: 'tool_call', index: callIndex + 1, callIndex, name: tool, providerId: `call_${id}_${callIndex}`, inputText: JSON.stringify(input) })),
  ];
  const stopReason: StepStopReason = calls.length === 0 ? 'end_turn' : 'tool_use';
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, thinkingTokens: 0 };
  return [{ type: 'start' }, ...parts.flatMap(partSteps), { type: 'finish', stopReason, usage }];
}

function partSteps(part: LLMScenePart): readonly SpokenStep[] {
  const text = part.type === 'tool_call' ? part.inputText : part.text;
  const middle = Math.ceil(text.length / 2);
  return [{ type: 'part.begin', part }, { type: 'part.delta', part, text: text.slice(0, middle) }, { type: 'part.delta', part, text: text.slice(middle) }, { type: 'part.end', part }];
}

function replyText(protocol: SceneProtocol, steps: readonly SpokenStep[]): string {
  const write = protocol.createWriter();
  return steps.map((step) => write(step)).join('');
}

/** Bytes that come in pieces, with a pause before each. */
function inPieces(bytes: Uint8Array, size: number, life: SimulatedLife): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull: async (controller) => {
      if (at > 0 && at < bytes.length) await life.pause(1);
      if (at < bytes.length) controller.enqueue(bytes.slice(at, at + size));
      else controller.close();
      at += size;
    },
  });
}
