/** Cases about whole replies: fragments, text, thinking, calls, usage, stop reasons, and replies that hold nothing. */
import type { LLMDelta } from '../../core/llm.ts';
import { userMessage } from '../../core/message.ts';
import type { StepStopReason } from '../../core/stop-reason.ts';
import type { Usage } from '../../core/usage.ts';
import type { CaseDefinition } from './conformance-case.ts';
import type { CasesOf } from './llm-conformance-case.ts';
import { expectContent, expectEqual, expectNoSecret, fail, shown } from './llm-conformance-checks.ts';
import { asMessage, resultOf, TOOLS } from './llm-conformance-history.ts';
import {
  alternatingSteps,
  answer,
  call,
  finish,
  openEnded,
  partsOfSteps,
  SCENE_USAGE,
  SIGNATURE,
  stepsOf,
  text,
  thought,
  type LLMSceneFinish,
  type LLMSceneStep,
} from './llm-conformance-scene.ts';
import { SCENE_KEY, type Replied, type Trial } from './llm-conformance-trial.ts';
import { pause } from './llm-conformance-wait.ts';

// Characters of two, three and four bytes, and what JSON and line protocols escape.
const AWKWARD = ['Grüße, 世界 🌍🌎🌏🌐', ' — "quoted" \\ and\r\nnew lines\n\ndata: {"a":1}'];
// Of four characters of four bytes in a row one is cut at least. Smaller pieces would show no more, and take longer.
const CUTTING_BYTES = 7;
const SLOW_MS = 60;

async function expectReply(trial: Trial, steps: readonly LLMSceneStep[], end?: LLMSceneFinish): Promise<Replied> {
  const replied = await trial.reply(answer(steps, end));
  expectContent(replied.response.content, partsOfSteps(steps));
  return replied;
}

function expectDeltas(deltas: readonly LLMDelta[], type: LLMDelta['type']): void {
  if (deltas.some((delta) => delta.type === type)) return;
  fail(`no fragment of type \`${type}\` came, though the server streams: call \`onDelta\` as they arrive`);
}

function usageCase(title: string, usage: Partial<Usage>): CaseDefinition<Trial> {
  return {
    title,
    async run(trial) {
      const expected = { ...SCENE_USAGE, inputTokens: 120, outputTokens: 34, ...usage };
      const { response } = await expectReply(trial, stepsOf(text('Counted.')), finish('end_turn', expected));
      expectEqual(response.usage, expected, '`usage`, whose first four counters are disjoint');
    },
  };
}

function stopCase(stopReason: StepStopReason, title: string, steps = stepsOf(text('So far.'))): CaseDefinition<Trial> {
  return {
    title,
    async run(trial) {
      const { response } = await expectReply(trial, steps, finish(stopReason));
      expectEqual(response.stopReason, stopReason, '`stopReason`');
    },
  };
}

function emptyCase(title: string, steps: readonly LLMSceneStep[]): CaseDefinition<Trial> {
  return {
    title,
    async run(trial) {
      const { kind, code, retryable, usage } = await trial.failure(answer(steps));
      expectEqual({ kind, code, retryable }, { kind: 'malformed_response', code: 'empty', retryable: true }, 'the error');
      expectEqual(usage, SCENE_USAGE, '`usage` of the error: the reply was paid for');
    },
  };
}

/** Cases about whole replies. */
export const replyCases: CasesOf<'llm' | 'text' | 'thinking' | 'parts' | 'reply' | 'calls' | 'usage' | 'stop' | 'empty'> = {
  'llm.metadata': {
    title: 'the LLM names its provider and its model, and has a system prompt, empty or not',
    async run(trial) {
      const { provider, modelId, systemPrompt } = (await trial.open([])).llm;
      for (const [name, value] of Object.entries({ provider, modelId })) {
        if (typeof value !== 'string' || value === '') fail(`\`${name}\` is ${shown(value)}`);
      }
      if (typeof systemPrompt !== 'string') fail(`\`systemPrompt\` is ${shown(systemPrompt)}: a text, empty for none`);
    },
  },
  'llm.secrets': {
    title: 'the LLM shows its key to nobody who prints it',
    async run(trial) {
      expectNoSecret((await trial.open([])).llm, SCENE_KEY, 'the LLM');
    },
  },

  'text.stream': {
    title: 'text comes in fragments that add up to the reply',
    async run(trial) {
      const { deltas } = await expectReply(trial, stepsOf(text('Hello', ', ', 'world', '.')));
      expectDeltas(deltas, 'text');
    },
  },
  'text.live': {
    title: 'a fragment is handed on before the next one comes',
    async run(trial) {
      let wasHeard = false;
      const until = async (): Promise<void> => {
        wasHeard = await trial.heard('Early');
      };
      const [begin, first, second, end] = stepsOf(text('Early', ', late.')) as [LLMSceneStep, LLMSceneStep, LLMSceneStep, LLMSceneStep];
      await expectReply(trial, [begin, first, { type: 'wait', until }, second, end]);
      if (!wasHeard) fail('`onDelta` was not called while the reply was still coming');
    },
  },
  'text.bytes': {
    title: 'a reply reads the same when it comes in small pieces, which cut lines and characters',
    async run(trial) {
      const steps = stepsOf(text(...AWKWARD), call('note', ['{"text":"世界 🌍"}']));
      for (const chunkBytes of [CUTTING_BYTES, undefined]) {
        const subject = await trial.open([answer(steps, finish('tool_use'))], chunkBytes);
        const { content } = await subject.send().response();
        expectContent(content, partsOfSteps(steps));
      }
    },
  },
  'text.slow': {
    title: 'a server that takes its time is waited for',
    async run(trial) {
      const wait: LLMSceneStep = { type: 'wait', until: () => pause(SLOW_MS) };
      const steps = stepsOf(text('Slowly', ' but surely.')).flatMap((step) => [wait, step]);
      const subject = await trial.open([[wait, ...answer(steps)]]);
      expectContent((await subject.send().response()).content, partsOfSteps(steps));
    },
  },

  'thinking.stream': {
    title: 'thinking is kept apart from text, and comes in fragments of its own',
    async run(trial) {
      const { deltas } = await expectReply(trial, stepsOf(thought(['First this', ', then that.']), text('The answer.')));
      expectDeltas(deltas, 'thinking');
    },
  },
  'thinking.signature': {
    title: 'what signs thinking stays with it',
    async run(trial) {
      const { response } = await expectReply(trial, stepsOf(thought(['Signed.'], SIGNATURE), text('The answer.')));
      const signatures = response.content.flatMap((part) => (part.type === 'thinking' ? [part.signature] : []));
      expectEqual(signatures, [SIGNATURE], '`signature` of the thinking part');
    },
  },

  'parts.order': {
    title: 'text and calls stand in the order in which they came',
    async run(trial) {
      await expectReply(trial, stepsOf(text('Before.'), call('look_up', ['{"a":1}']), text('After.')), finish('tool_use'));
    },
  },

  'reply.metadata': {
    title: 'what the server says of its reply is told: its id, the model, its own word for the end (needs `replied`)',
    async run(trial) {
      const { response, subject } = await expectReply(trial, stepsOf(text('Named.')));
      const [said = {}] = subject.requests('replied');
      const { responseId, modelId = subject.llm.modelId, rawStopReason } = response;
      const told = Object.entries({ responseId, modelId, rawStopReason }).filter(([name]) => said[name as keyof typeof said] !== undefined);
      if (told.length === 0) fail('`replied` says nothing: give what the server says of its reply, or skip the case with a reason');
      expectEqual(Object.fromEntries(told), said, 'what is told of the reply besides its content');
    },
  },

  'calls.single': {
    title: 'a call is put together from its fragments, and told as they come',
    async run(trial) {
      const { deltas } = await expectReply(trial, stepsOf(call('look_up', ['{"ci', 'ty":"Os', 'lo"}'])), finish('tool_use'));
      expectDeltas(deltas, 'tool_call');
    },
  },
  'calls.parallel': {
    title: 'several calls stay apart, also of one tool with the same arguments',
    async run(trial) {
      const twice = call('look_up', ['{"city":', '"Oslo"}']);
      await expectReply(trial, stepsOf(text('Both.'), twice, twice, call('note', ['{"n":1}'])), finish('tool_use'));
    },
  },
  'calls.interleaved': {
    title: 'calls whose fragments alternate are told apart',
    async run(trial) {
      const steps = alternatingSteps(call('look_up', ['{"city":', '"Oslo"}']), call('note', ['{"n"', ':', '2}']));
      await expectReply(trial, steps, finish('tool_use'));
    },
  },
  'calls.exact': {
    title: 'arguments are kept, and go back, byte for byte, white space and escapes included (needs `calls`)',
    async run(trial) {
      const pieces = ['{ "b": 1e2,\n\t"a"', ': "\\u00e9 é 🌍 \\"x\\" \\/"', ', "b" : -0.0 }'];
      const steps = stepsOf(call('look_up', pieces));
      const subject = await trial.open([answer(steps, finish('tool_use')), answer(stepsOf(text('Fine.')))]);
      const response = await subject.send({ tools: TOOLS }).response();
      expectContent(response.content, partsOfSteps(steps));
      const messages = [userMessage('Look.', { id: 'm1' }), asMessage(response, subject.llm), resultOf('call_1')];
      await subject.send({ tools: TOOLS, messages }).response();
      expectEqual(subject.requests('calls')[1]?.map(({ inputText }) => inputText), [pieces.join('')], 'the arguments that were sent back');
    },
  },
  'calls.broken': {
    title: 'arguments that are no JSON are kept as they are',
    async run(trial) {
      await expectReply(trial, stepsOf(call('note', ['{"city": "Os', 'lo", }{'])), finish('tool_use'));
    },
  },
  'calls.no_arguments': {
    title: 'a call without arguments is a call',
    async run(trial) {
      const { response } = await trial.reply(answer(stepsOf(call('now', [])), finish('tool_use')));
      const calls = response.content.flatMap((part) => (part.type === 'tool_call' ? [part] : []));
      expectEqual(calls.map(({ name }) => name), ['now'], 'the names of the calls');
      if (!['', '{}'].includes(calls[0]?.inputText ?? '?')) fail(`\`inputText\` is ${shown(calls[0]?.inputText)}: empty, or an empty object`);
    },
  },
  'calls.provider_ids': {
    title: "what the server calls a call is its `providerId`, from the first fragment on",
    async run(trial) {
      const steps = stepsOf(call('look_up', ['{}'], 'ALPHA0001'), call('look_up', ['{}'], 'BRAVO0002'));
      const { response, deltas } = await expectReply(trial, steps, finish('tool_use'));
      const ids = response.content.flatMap((part) => (part.type === 'tool_call' ? [part.providerId] : []));
      expectEqual(ids, ['ALPHA0001', 'BRAVO0002'], '`providerId` of the calls');
      const first = [0, 1].map((index) => deltas.find((delta) => delta.type === 'tool_call' && delta.callIndex === index));
      if (deltas.length === 0) return;
      const told = first.map((delta) => delta?.type === 'tool_call' && delta.providerId);
      expectEqual(told, ids, '`providerId` of their first fragments');
    },
  },

  'usage.counts': usageCase('tokens in and out are counted', {}),
  'usage.cache_read': usageCase('what was read from a cache is no part of `inputTokens`', { cacheReadTokens: 1000 }),
  'usage.cache_write': usageCase('what was written to a cache is no part of `inputTokens`', { cacheWriteTokens: 700 }),
  'usage.thinking': usageCase('thinking is a part of `outputTokens`', { outputTokens: 90, thinkingTokens: 56 }),

  'stop.end_turn': stopCase('end_turn', 'a reply that the model ended is `end_turn`'),
  'stop.tool_use': stopCase('tool_use', 'a reply with calls is `tool_use`', stepsOf(call('look_up', ['{}']))),
  'stop.max_tokens': stopCase('max_tokens', 'a reply that the output limit cut is `max_tokens`'),
  'stop.max_tokens_in_call': stopCase(
    'max_tokens',
    'a reply that the output limit cut within a call is a reply: the call keeps what came of its arguments',
    openEnded(stepsOf(call('note', ['{"text":"Once', ' upon a']))),
  ),
  'stop.stop_sequence': stopCase('stop_sequence', 'a reply that a stop sequence ended is `stop_sequence`'),
  'stop.filtered': stopCase('filtered', 'a reply that a filter cut is `filtered`'),

  'empty.reply': emptyCase('a reply that holds nothing is `malformed_response`, code `empty`', []),
  'empty.thinking': emptyCase('a reply that holds thinking alone is empty too', stepsOf(thought(['Hm.']))),
  'empty.max_tokens': stopCase('max_tokens', 'a reply of which the output limit left nothing is no failure', []),
  'empty.filtered': stopCase('filtered', 'a reply of which a filter left nothing is no failure', []),
};
