/**
 * One session on many models: it moves from protocol to protocol, with tools, thinking and images, and every server takes
 * the history of the others. The servers are local and strict. Black-box.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type AnyTool,
  createEventDispatcher,
  createTranscript,
  defineTool,
  type LLM,
  type RecordedEvent,
  runTurn,
  type Transcript,
  type TurnResult,
  userMessage,
} from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { checkTranscript, virtualRuntime } from 'turnloop/testing';
import { startStrictServer, type StrictProtocol, type StrictServer } from '../support/strict-server.ts';
import type { ScriptedReply } from '../support/strict-server-replies.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==';
const IMAGE = { type: 'media', mediaType: 'image/png', data: PNG } as const;

/** A model of each protocol; Responses in both of its ways. */
const MODELS = {
  chat: ['openai-chat', (baseUrl: string): LLM => openAIChat({ model: 'deepseek-reasoner', provider: 'deepseek', baseUrl, apiKey: 'k' })],
  claude: ['anthropic', (baseUrl: string): LLM => anthropic({ model: 'claude-sonnet-4-5', baseUrl, apiKey: 'k', thinkingBudget: 2048 })],
  responses: ['openai-responses', (baseUrl: string): LLM => openAIResponses({ model: 'gpt-5-mini', baseUrl, apiKey: 'k', state: 'incremental' })],
  stateless: ['openai-responses', (baseUrl: string): LLM => openAIResponses({ model: 'gpt-5-mini', baseUrl, apiKey: 'k', state: 'stateless' })],
  gemini: ['google', (baseUrl: string): LLM => google({ model: 'gemini-3-pro', baseUrl, apiKey: 'k' })],
} as const satisfies Record<string, readonly [StrictProtocol, (baseUrl: string) => LLM]>;

type ModelName = keyof typeof MODELS;
const NAMES = Object.keys(MODELS) as readonly ModelName[];

const servers = new Map<StrictProtocol, StrictServer>();
let llms: Readonly<Record<ModelName, LLM>>;

beforeAll(async () => {
  for (const protocol of ['openai-chat', 'anthropic', 'openai-responses', 'google'] as const) {
    servers.set(protocol, await startStrictServer(protocol));
  }
});

afterAll(async () => {
  for (const server of servers.values()) await server.close();
});

beforeEach(() => {
  llms = connectAll();
});

function connectAll(): Record<ModelName, LLM> {
  const entries = NAMES.map((name) => [name, MODELS[name][1](serverOf(name).baseUrl)] as const);
  return Object.fromEntries(entries) as Record<ModelName, LLM>;
}

function serverOf(name: ModelName): StrictServer {
  return servers.get(MODELS[name][0])!;
}

const look = defineTool({
  name: 'take picture/v2',
  description: 'Takes a picture.',
  input: { type: 'object', properties: { of: { type: 'string' } }, required: ['of'] },
  readOnly: true,
  execute: () => [{ type: 'text', text: 'A picture:' }, IMAGE],
});
const fail = defineTool({
  name: 'fail',
  description: 'Fails.',
  input: { type: 'object', properties: {} },
  readOnly: true,
  execute: () => {
    throw new Error('no luck');
  },
});
const tools: readonly AnyTool[] = [look, fail];

interface Session {
  readonly transcript: Transcript;
  readonly runtime: ReturnType<typeof virtualRuntime>;
}

function newSession(events: readonly RecordedEvent[] = []): Session {
  return { transcript: createTranscript(events), runtime: virtualRuntime() };
}

/** What a model says in a turn; the tools' names are as that server saw them. */
type Script = (wireNames: readonly string[]) => readonly ScriptedReply[];

const THOUGHTFUL: Script = ([picture = '', failing = '']) => [
  { thinking: 'I have to look.', text: 'Let me look.', calls: [{ name: picture, input: { of: 'a cat' } }, { name: failing, input: {} }] },
  { thinking: 'Once more.', calls: [{ name: picture, input: { of: 'a "dog" 🐕' } }] },
  { thinking: 'Done.', text: 'A cat and a dog.' },
];

async function turn(session: Session, name: ModelName, script: Script = THOUGHTFUL): Promise<TurnResult> {
  const { transcript } = session;
  serverOf(name).script(...script(wireNames(name)));
  return runTurn({
    llm: llms[name],
    tools,
    input: userMessage([{ type: 'text', text: `What is on this, ${name}?` }, IMAGE]),
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({ record: transcript.record }),
  });
}

/** Names of the tools as a server gets to know them: these were legal or mapped the same way everywhere. */
function wireNames(name: ModelName): readonly string[] {
  return known.get(name) ?? [];
}
const known = new Map<ModelName, readonly string[]>();

/** Asks each model once, to see what the tools are called there. */
async function learnNames(): Promise<void> {
  for (const name of NAMES) {
    const session = newSession();
    await turn(session, name, () => [{ text: 'Hello.' }]);
    known.set(name, namesIn(serverOf(name).requests.at(-1)?.body['tools']));
  }
}

function namesIn(list: unknown): readonly string[] {
  const declared = JSON.stringify(list).matchAll(/"name":"([^"]*)"/g);
  return Array.from(declared, ([, name]) => name ?? '').filter((name) => /picture|fail/.test(name));
}

function refusals(): readonly string[] {
  return NAMES.flatMap((name) => serverOf(name).refusals.map((rule) => `${name}: ${rule}`));
}

describe('a session that moves from model to model', () => {
  beforeAll(async () => {
    llms = connectAll();
    await learnNames();
  });

  it('B4, XC2: Chat, Anthropic, Responses, Gemini and back, with tools, thinking and images, is taken by each', async () => {
    const session = newSession();
    for (const name of ['chat', 'claude', 'responses', 'gemini', 'stateless', 'chat', 'gemini', 'claude', 'responses', 'responses', 'chat'] as const) {
      const result = await turn(session, name);

      expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3, text: 'A cat and a dog.' });
    }

    expect(refusals()).toStrictEqual([]);
    expect(checkTranscript(session.transcript.events)).toStrictEqual([]);
  });

  it('B4: is the same after a save and a load between any two turns', async () => {
    let session = newSession();
    for (const name of ['claude', 'gemini', 'responses', 'chat', 'claude', 'stateless', 'gemini'] as const) {
      session = newSession(JSON.parse(JSON.stringify(session.transcript.events)) as RecordedEvent[]);
      llms = connectAll();

      expect(await turn(session, name)).toMatchObject({ stopReason: 'end_turn' });
    }

    expect(refusals()).toStrictEqual([]);
  });

  it('B4: sends signatures and thinking back to whom they came from, and to nobody else', async () => {
    const session = newSession();
    const before = serverOf('claude').requests.length;
    await turn(session, 'claude');
    const secrets = /sig_\d+|I have to look|Once more/;
    for (const name of ['chat', 'responses', 'gemini'] as const) {
      await turn(session, name, () => [{ text: 'Hello.' }]);

      expect(JSON.stringify(serverOf(name).requests.at(-1)?.body)).not.toMatch(secrets);
    }
    await turn(session, 'claude', () => [{ text: 'Hello.' }]);

    const last = JSON.stringify(serverOf('claude').requests.at(-1)?.body);
    expect(serverOf('claude').requests.length - before).toBe(4);
    expect(last).toMatch(/I have to look/);
    expect(last).toMatch(/sig_\d+/);
  });

  it('B4: keeps the pictures of tools in sight on every protocol', async () => {
    const session = newSession();
    for (const name of NAMES) {
      await turn(session, name);

      expect(JSON.stringify(serverOf(name).requests.at(-1)?.body)).toContain(PNG);
    }
  });

  it('XC3: any order of models, each with calls or without, is taken by each', { timeout: 60_000 }, async () => {
    const step = fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom<Script>(THOUGHTFUL, () => [{ text: 'Yes.' }], ([picture = '']) => [{ calls: [{ name: picture, input: { of: 'x' } }] }, { text: 'Well.' }]));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        const session = newSession();
        for (const [name, script] of steps) {
          const { stopReason, error } = await turn(session, name, script);
          if (stopReason !== 'end_turn') throw new Error(`${name}: ${stopReason} ${String(error)}`);
        }
        expect(refusals()).toStrictEqual([]);
      }),
      { numRuns: 40 },
    );
  });
});
