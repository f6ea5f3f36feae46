/**
 * Cases about aborts and about requests side by side: whenever the signal aborts, chat rejects soon, is silent from then
 * on, lets go of its connection, and disturbs nobody.
 */
import type { LLMResponse, ReplyPart } from '../../core/llm.ts';
import type { CasesOf } from './llm-conformance-case.ts';
import { expectContent, expectEqual, fail, shown } from './llm-conformance-checks.ts';
import {
  answer,
  call,
  finish,
  openEnded,
  partsOfSteps,
  refusal,
  SCENE_USAGE,
  START,
  stepsOf,
  text,
  type LLMSceneStep,
} from './llm-conformance-scene.ts';
import type { Exchange, Trial } from './llm-conformance-trial.ts';

const WHY = 'the signal was aborted';

/** Aborts, and expects the end: soon, and silent. */
async function expectAborted(trial: Trial, exchange: Exchange): Promise<void> {
  const before = exchange.deltas.length;
  exchange.controller.abort();
  await exchange.rejection(WHY);
  await trial.quiet();
  expectEqual(exchange.deltas.slice(before), [], 'fragments after the abort');
}

const STALLED: readonly LLMSceneStep[] = [...stepsOf(text('Still here.')), { type: 'stall' }];

/** Cases about aborts and concurrency. */
export const abortCases: CasesOf<'abort' | 'reuse'> = {
  'abort.before': {
    title: 'a signal that is aborted already rejects soon, and nothing is sent (needs `requests()`)',
    async run(trial) {
      const subject = await trial.open([answer(stepsOf(text('Never asked.')))]);
      const controller = new AbortController();
      controller.abort();
      await subject.send({ signal: controller.signal }).rejection(WHY);
      await trial.quiet();
      expectEqual(subject.requests('body'), [], 'what was sent');
    },
  },
  'abort.waiting': {
    title: 'an abort before the answer begins rejects soon',
    async run(trial) {
      const { step, reached } = trial.checkpoint();
      const subject = await trial.open([[step, ...answer(stepsOf(text('Too late.')))]]);
      const exchange = subject.send();
      await trial.within(reached, 'the request (the server never came to the `wait` step of the scene)');
      await expectAborted(trial, exchange);
    },
  },
  'abort.headers': {
    title: 'an abort between the begin of the answer and its first fragment rejects soon',
    async run(trial) {
      const { step, reached, release } = trial.checkpoint();
      const subject = await trial.open([[START, step, ...stepsOf(text('Too late.')), finish()]]);
      const exchange = subject.send();
      await trial.within(reached, 'the request (the server never came to the `wait` step of the scene)');
      await trial.quiet();
      exchange.controller.abort();
      await exchange.rejection(WHY);
      release();
      await trial.quiet();
      expectEqual(exchange.deltas, [], 'fragments after the abort');
    },
  },
  'abort.midway': {
    title: 'an abort within the reply rejects soon, and what the server still sends goes nowhere',
    async run(trial) {
      const { step, release } = trial.checkpoint();
      const steps = stepsOf(text('One, ', 'two.'));
      const subject = await trial.open([[START, ...steps.slice(0, 2), step, ...steps.slice(2), finish()]]);
      const exchange = subject.send();
      await trial.heard('One, ');
      const before = exchange.deltas.length;
      exchange.controller.abort();
      await exchange.rejection(WHY);
      release();
      await trial.quiet();
      expectEqual(exchange.deltas.slice(before), [], 'fragments after the abort');
    },
  },
  'abort.in_delta': {
    title: 'an abort from within `onDelta` rejects soon, and that fragment was the last',
    async run(trial) {
      const subject = await trial.open([answer(stepsOf(text('One, ', 'two, ', 'three.')))]);
      const exchange = subject.send({}, ({ controller }) => controller.abort());
      await exchange.rejection(WHY);
      await trial.quiet();
      expectEqual(exchange.deltas.length, 1, 'how many fragments came');
    },
  },
  'abort.stalled': {
    title: 'an answer that stands still does not hold an abort up',
    async run(trial) {
      const subject = await trial.open([[START, ...STALLED]]);
      const exchange = subject.send();
      await trial.heard('Still here.');
      if (exchange.isSettled) fail('chat settled though the answer had not ended');
      await expectAborted(trial, exchange);
    },
  },
  'abort.connection': {
    title: 'an abort lets go of the connection (needs `letGo`)',
    async run(trial) {
      const { step, reached } = trial.checkpoint();
      const subject = await trial.open([[step, { type: 'stall' }], [START, ...STALLED]]);
      const first = subject.send();
      await trial.within(reached, 'the request (the server never came to the `wait` step of the scene)');
      await expectAborted(trial, first);
      const second = subject.send();
      await trial.heard('Still here.');
      await expectAborted(trial, second);
      const connections = subject.requests('letGo');
      expectEqual(connections.length, 2, 'how many requests the server got');
      await trial.within(Promise.all(connections), 'letting go of the connection');
    },
  },
  'abort.others': {
    title: 'an abort ends one request, and no other of the same LLM',
    async run(trial) {
      const { step, release } = trial.checkpoint();
      const steps = stepsOf(text('One, ', 'two.'));
      const reply = [START, ...steps.slice(0, 2), step, ...steps.slice(2), finish()];
      const subject = await trial.open([reply, reply]);
      const [aborted, other] = [subject.send(), subject.send()];
      await trial.heardIn(2);
      aborted.controller.abort();
      await aborted.rejection(WHY);
      release();
      expectContent((await other.response()).content, partsOfSteps(steps));
    },
  },
  'abort.listeners': {
    title: 'nothing is left on the signal, however the request ended: it lives as long as the turn',
    async run(trial) {
      const refused = refusal('server', 'Something went wrong here.');
      const subject = await trial.open([answer(stepsOf(text('Done.'))), refused, [START, ...STALLED]]);
      const replied = subject.send();
      await replied.response();
      const failed = subject.send();
      await failed.error();
      const aborted = subject.send();
      await trial.heard('Still here.');
      await expectAborted(trial, aborted);
      const left = [replied, failed, aborted].map(({ controller }) => controller.listenerCount);
      const hint = '`fetch` itself leaves one on the signal it is given: give it one of your own';
      expectEqual(left, [0, 0, 0], `listeners on the signals after a reply, a failure and an abort (${hint})`);
    },
  },

  'reuse.error': {
    title: 'after a failure the LLM is as good as before',
    async run(trial) {
      await expectUsable(trial, refusal('server', 'Something went wrong here.'));
    },
  },
  'reuse.cut': {
    title: 'after an answer that broke off the LLM is as good as before, and knows nothing of it',
    async run(trial) {
      await expectUsable(trial, [START, ...openEnded(stepsOf(text('Half'), call('look_up', ['{"ci']))), { type: 'cut' }]);
    },
  },
  'reuse.abort': {
    title: 'after an abort the LLM is as good as before',
    async run(trial) {
      const steps = stepsOf(text('Anew.'));
      const subject = await trial.open([[START, ...STALLED], answer(steps)]);
      const first = subject.send();
      await trial.heard('Still here.');
      await expectAborted(trial, first);
      expectContent((await subject.send().response()).content, partsOfSteps(steps));
    },
  },
  'reuse.concurrent': {
    title: 'requests side by side do not mix',
    async run(trial) {
      const names = ['alpha', 'bravo', 'charlie'];
      const withinText = trial.meeting(names.length);
      const withinArguments = trial.meeting(names.length);
      const answers = names.map((name, at) => {
        const parts = stepsOf(text(`${name} `, `${name}.`), call(name, ['{"of":', `"${name}"}`]));
        const steps = [...parts.slice(0, 2), withinText, ...parts.slice(2, 6), withinArguments, ...parts.slice(6)];
        return answer(steps, finish('tool_use', { ...SCENE_USAGE, outputTokens: 100 + at }));
      });
      const subject = await trial.open(answers);
      const exchanges = names.map(() => subject.send());
      const responses = await Promise.all(exchanges.map((exchange) => exchange.response()));
      // Which request comes first at the server is not said.
      const expected = names.map((name, at) => `${name} ${name}. ${name}({"of":"${name}"}) ${100 + at}`);
      expectEqual(responses.map(told).sort(), expected, 'the replies');
    },
  },
};

async function expectUsable(trial: Trial, first: readonly LLMSceneStep[]): Promise<void> {
  const subject = await trial.open([first, answer(stepsOf(text('All'), call('note', ['{}'])), finish('tool_use'))]);
  await subject.send().error();
  const { content } = await subject.send().response();
  if (content.length !== 2) fail(`the reply to the second request has ${content.length} parts, not 2: ${shown(content)}`);
}

/** A reply in one line. */
function told({ content, usage }: LLMResponse): string {
  return [...content.map(say), usage.outputTokens].join(' ');
}

function say(part: ReplyPart): string {
  if (part.type === 'tool_call') return `${part.name}(${part.inputText})`;
  return part.type === 'text' ? part.text : shown(part);
}
