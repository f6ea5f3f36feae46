/**
 * Cases about requests: what of an `LLMRequest` arrives at the server. The kit knows no protocol, so it looks for words
 * in the body, and at the calls and results that the fake server found in it. A fake server that refuses what the real
 * one would refuse makes these cases stronger: a request that is refused fails its case.
 */
import { isLLMError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { LLMRequest } from '../../core/llm.ts';
import { assistantMessage, toolMessage, userMessage, type Message } from '../../core/message.ts';
import type { CasesOf } from './llm-conformance-case.ts';
import { expectContent, expectEqual, fail, shown } from './llm-conformance-checks.ts';
import { asMessage, FOREIGN_STEPS, historyCall, resultOf, STRANGER, TOOLS } from './llm-conformance-history.ts';
import {
  answer,
  call,
  finish,
  partsOfSteps,
  SIGNATURE,
  START,
  stepsOf,
  text,
  thought,
  type LLMSceneStep,
  type LLMSentCall,
  type LLMSentResult,
} from './llm-conformance-scene.ts';
import type { Subject, Trial } from './llm-conformance-trial.ts';
import { expectDistinct } from './llm-conformance-settings.ts';
import { countingRuntime } from './llm-conformance-wait.ts';

const OK: readonly LLMSceneStep[] = answer(stepsOf(text('Fine.')));

/** Sends one request after the other to an LLM whose server answers each. */
async function sendAll(trial: Trial, ...requests: readonly Partial<LLMRequest>[]): Promise<Subject> {
  const subject = await trial.open(requests.map(() => OK));
  for (const request of requests) await subject.send({ tools: TOOLS, ...request }).response();
  return subject;
}

/** Positions of words in a text; fails if one is missing. */
function placesOf(words: readonly string[], body: string): readonly number[] {
  return words.map((word) => {
    const place = body.indexOf(word);
    return place === -1 ? fail(`${word} is not in the request: ${shown(body)}`) : place;
  });
}

function expectInOrder(words: readonly string[], body: string): void {
  const places = placesOf(words, body);
  expectEqual([...places].sort((left, right) => left - right), places, `the places of ${words.join(', ')} in the request`);
}

function expectAbsent(words: readonly string[], body: string, why: string): void {
  const found = words.find((word) => body.includes(word));
  if (found !== undefined) fail(`${found} is in the request: ${why}`);
}

function expectPaired(calls: readonly LLMSentCall[], results: readonly LLMSentResult[]): void {
  const ids = calls.map(({ id }) => id);
  expectEqual(ids.length, new Set(ids).size, `how many different ids the calls have (${shown(ids)})`);
  if (ids.some((id) => id === '')) fail(`a call has an empty id: ${shown(ids)}`);
  expectEqual(results.map(({ id }) => id), ids, 'the ids that the results name, which are those of their calls');
}

function objectOf({ inputText }: LLMSentCall): unknown {
  try {
    const value: unknown = JSON.parse(inputText);
    return isRecord(value) ? value : fail(`arguments are sent as ${shown(inputText)}, which is no object`);
  } catch {
    return fail(`arguments are sent as ${shown(inputText)}, which is no JSON: servers refuse it in every later request of the conversation`);
  }
}

/** Cases about requests. */
export const requestCases: CasesOf<'request'> = {
  'request.content': {
    title: "the request's system prompt, tools and messages arrive, in their order (needs `requests()`)",
    async run(trial) {
      const lastParts = ['WORDS-3', 'WORDS-4'].map((words) => ({ type: 'text', text: words }) as const);
      const messages = [userMessage('WORDS-1', { id: 'm1' }), assistantMessage('WORDS-2', { id: 'm2' }), userMessage(lastParts, { id: 'm3' })];
      const subject = await sendAll(trial, { systemPrompt: 'SYSTEM-PROMPT', messages });
      const [body = ''] = subject.requests('body');
      placesOf(['SYSTEM-PROMPT', 'look_up', 'TOOL-DESCRIPTION', 'tool_property', 'note'], body);
      expectInOrder(['WORDS-1', 'WORDS-2', 'WORDS-3', 'WORDS-4'], body);
      const { systemPrompt } = subject.llm;
      if (systemPrompt !== '') expectAbsent([systemPrompt], body, "adapters send the request's system prompt, not their own");
    },
  },
  'request.prefix': {
    title: 'a longer history begins with the bytes of the shorter one but for marks of a cache, so that prompt caches hit (needs `requests()`)',
    async run(trial) {
      const shared = { systemPrompt: 'SYSTEM-PROMPT', tools: TOOLS };
      const step = assistantMessage([historyCall('call_e', '{}', 'SAME00001')], { id: 'step_3', source: STRANGER });
      const longer = [...FOREIGN_STEPS, step, resultOf('call_e'), userMessage('LAST-WORDS', { id: 'm9' })];
      const subject = await sendAll(trial, { ...shared, messages: FOREIGN_STEPS }, { ...shared, messages: longer });
      const [first = '', second = ''] = subject.bodies();
      const last = 'RESULT-OF-call_d';
      const [end = 0] = placesOf([last], first);
      placesOf(['LAST-WORDS'], second);
      const length = end + last.length;
      if (second.slice(0, length) === first.slice(0, length)) return;
      let at = 0;
      while (first[at] === second[at]) at += 1;
      const [told, expected] = [second, first].map((body) => shown(body.slice(at, at + 80)));
      fail(`the second request differs from the first at character ${at}: ${told} instead of ${expected}`);
    },
  },
  'request.pairs': {
    title: 'calls and results of another provider pair up, each call with an id of its own (needs `calls` and `results`)',
    async run(trial) {
      const subject = await sendAll(trial, { messages: FOREIGN_STEPS });
      const [calls = []] = subject.requests('calls');
      const [results = []] = subject.requests('results');
      expectEqual(calls.map(({ name }) => name), ['look_up', 'look_up', 'look_up', 'look_up'], 'the names of the calls');
      expectEqual(calls.map(objectOf), ['a', 'b', 'c', 'd'].map((value) => ({ tool_property: value })), 'the arguments of the calls');
      expectPaired(calls, results);
      for (const [at, id] of ['call_a', 'call_b', 'call_c', 'call_d'].entries()) placesOf([`RESULT-OF-${id}`], results[at]?.text ?? '');
    },
  },
  'request.broken_arguments': {
    title: 'arguments of the history that are no object are sent as an empty one (needs `calls`)',
    async run(trial) {
      const calls = ['{"tool_property":"Os', '', '[1]'].map((inputText, at) => historyCall(`call_${at + 1}`, inputText));
      const messages = [userMessage('Go.', { id: 'm1' }), assistantMessage(calls, { id: 'step_1' }), ...calls.map(({ id }) => resultOf(id, true))];
      const subject = await sendAll(trial, { messages });
      expectEqual(subject.requests('calls')[0]?.map(objectOf), [{}, {}, {}], 'the arguments of the calls');
    },
  },
  'request.result_error': {
    title: 'the server can tell a result that is an error from one that is none (needs `requests()`)',
    async run(trial) {
      const messages = (isError: boolean): readonly Message[] => [
        userMessage('Go.', { id: 'm1' }),
        assistantMessage([historyCall('call_1', '{}')], { id: 'step_1' }),
        resultOf('call_1', isError),
      ];
      await expectDistinct(trial, { 'a result': { messages: messages(false) }, 'an error': { messages: messages(true) } });
    },
  },
  'request.round_trip': {
    title: "a reply goes back as it came: calls and results by the server's own ids (needs `calls` and `results`)",
    async run(trial) {
      const steps = stepsOf(text('I look.'), call('look_up', ['{"tool_property":', '"Oslo"}']), call('look_up', ['{}']));
      const subject = await trial.open([answer(steps, finish('tool_use')), OK]);
      const question = userMessage('Look.', { id: 'm1' });
      const response = await subject.send({ tools: TOOLS, messages: [question] }).response();
      expectContent(response.content, partsOfSteps(steps));
      const message = asMessage(response, subject.llm);
      await subject.send({ tools: TOOLS, messages: [question, message, resultOf('call_1'), resultOf('call_2')] }).response();

      const [, calls = []] = subject.requests('calls');
      const [, results = []] = subject.requests('results');
      expectPaired(calls, results);
      const given = message.content.flatMap((part) => (part.type === 'tool_call' ? [part] : []));
      expectEqual(calls.map(({ inputText }) => inputText), given.map(({ inputText }) => inputText), 'the arguments of the calls');
      for (const [at, { providerId }] of given.entries()) {
        if (providerId !== undefined) expectEqual(calls[at]?.id, providerId, 'the id of a call that the server itself had named');
      }
    },
  },
  'request.signature': {
    title: 'signed thinking goes back to the provider it came from, and to no other (needs `requests()`)',
    async run(trial) {
      const steps = stepsOf(thought(['Signed.'], SIGNATURE), call('look_up', ['{}']));
      const subject = await trial.open([answer(steps, finish('tool_use')), OK, OK]);
      const question = userMessage('Think.', { id: 'm1' });
      const message = asMessage(await subject.send({ tools: TOOLS, messages: [question] }).response(), subject.llm);
      for (const reply of [message, { ...message, source: STRANGER }]) {
        await subject.send({ tools: TOOLS, messages: [question, reply, resultOf('call_1')] }).response();
      }
      const [, own = '', foreign = ''] = subject.requests('body');
      placesOf([SIGNATURE], own);
      expectAbsent([SIGNATURE], foreign, 'a signature is worth something to the provider that made it alone');
    },
  },
  'request.foreign': {
    title: "what another provider attached, and its own blocks, are left out (needs `requests()`)",
    async run(trial) {
      const reply = assistantMessage(
        [
          { type: 'thinking', text: 'Hm.', signature: 'FOREIGN-1', providerData: { mark: 'FOREIGN-2' } },
          { type: 'provider', provider: STRANGER.provider, data: { mark: 'FOREIGN-3' } },
          { type: 'text', text: 'FOREIGN-WORDS', providerData: { mark: 'FOREIGN-4' } },
          { ...historyCall('call_1', '{}'), providerData: { mark: 'FOREIGN-5' } },
        ],
        { id: 'step_1', source: STRANGER },
      );
      const subject = await sendAll(trial, { messages: [userMessage('Go.', { id: 'm1' }), reply, resultOf('call_1')] });
      const [body = ''] = subject.requests('body');
      placesOf(['FOREIGN-WORDS', 'RESULT-OF-call_1'], body);
      expectAbsent(['FOREIGN-1', 'FOREIGN-2', 'FOREIGN-3', 'FOREIGN-4', 'FOREIGN-5'], body, 'it belongs to another provider');
    },
  },
  'request.media': {
    title: 'media that cannot be sent is replaced, or refused as `media_rejected`: a recovery takes it out then',
    async run(trial) {
      const media = { type: 'media', mediaType: 'application/x-conformance', data: 'AAECAw==' } as const;
      const histories: readonly (readonly Message[])[] = [
        [userMessage([{ type: 'text', text: 'Look at this.' }, media], { id: 'm1' })],
        [
          userMessage('Fetch it.', { id: 'm1' }),
          assistantMessage([historyCall('call_1', '{}')], { id: 'step_1' }),
          toolMessage([{ type: 'text', text: 'Here it is.' }, media], { id: 'm2', toolCallId: 'call_1', name: 'look_up' }),
        ],
      ];
      for (const messages of histories) {
        const subject = await trial.open([OK]);
        await subject
          .send({ tools: TOOLS, messages })
          .response()
          .catch((thrown: unknown) => {
            if (!isLLMError(thrown) || thrown.kind !== 'media_rejected') throw thrown;
          });
      }
    },
  },
  'request.unchanged': {
    title: 'nothing of the request is changed: messages are shared, and keep their identity',
    async run(trial) {
      const request = deepFreeze<Partial<LLMRequest>>({
        systemPrompt: 'SYSTEM-PROMPT',
        messages: FOREIGN_STEPS,
        tools: TOOLS,
        toolChoice: 'auto',
        maxOutputTokens: 1000,
      });
      const before = JSON.stringify(request);
      await sendAll(trial, request, request);
      expectEqual(JSON.stringify(request), before, 'the request');
    },
  },
  'request.without_listener': {
    title: 'a request without `onDelta` is answered as one with',
    async run(trial) {
      const steps = stepsOf(text('Nobody ', 'listens.'), call('note', ['{"n"', ':1}']));
      const subject = await trial.open([answer(steps, finish('tool_use'))]);
      expectContent((await subject.send({ onDelta: undefined }).response()).content, partsOfSteps(steps));
    },
  },
  'request.scope': {
    title: "a request with a scope is answered as one without, and leaves no timer on the scope's clock",
    async run(trial) {
      const { runtime, pendingTimers } = countingRuntime();
      const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime, notify: () => undefined };
      const steps = stepsOf(text('In scope.'));
      const subject = await trial.open([answer(steps), [START, ...stepsOf(text('Still here.')), { type: 'stall' }]]);
      const first = subject.send({ scope });
      expectContent((await first.response()).content, partsOfSteps(steps));
      const second = subject.send({ scope });
      await trial.heard('Still here.');
      second.controller.abort();
      await second.rejection('the signal was aborted');
      expectEqual(pendingTimers(), 0, 'timers left after a reply and an abort');
    },
  },
};

function deepFreeze<Value extends object>(value: Value): Value {
  for (const child of Object.values(value) as readonly unknown[]) if (typeof child === 'object' && child !== null) deepFreeze(child);
  return Object.freeze(value);
}
