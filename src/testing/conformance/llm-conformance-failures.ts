/** Cases about failures: what the server reports, before or within an answer, and answers that break off. */
import { LLMError, type LLMErrorKind } from '../../core/errors.ts';
import type { CaseDefinition } from './conformance-case.ts';
import type { CasesOf } from './llm-conformance-case.ts';
import { expectEqual, fail } from './llm-conformance-checks.ts';
import {
  answer,
  call,
  openEnded,
  refusal,
  SIGNATURE,
  START,
  stepsOf,
  text,
  thought,
  type LLMSceneFailure,
  type LLMSceneStep,
} from './llm-conformance-scene.ts';
import { SCENE_KEY, type Trial } from './llm-conformance-trial.ts';

const RETRY_AFTER_MS = 7000;

function kindCase(kind: LLMErrorKind, message: string): CaseDefinition<Trial> {
  const { retryable } = new LLMError({ kind, message });
  return {
    title: `a failure that is \`${kind}\` is told as that, ${retryable ? 'worth' : 'not worth'} a retry`,
    async run(trial) {
      const error = await trial.failure(refusal(kind, message));
      expectEqual({ kind: error.kind, retryable: error.retryable }, { kind, retryable }, `the error (${error.message})`);
    },
  };
}

async function expectCut(trial: Trial, steps: readonly LLMSceneStep[]): Promise<LLMError> {
  const error = await trial.failure(steps);
  const { kind, retryable, message } = error;
  expectEqual({ kind, retryable }, { kind: 'network', retryable: true }, `the error of an answer that broke off (${message})`);
  return error;
}

/** The text and thinking that an error says had arrived. */
function arrived({ partial = [] }: LLMError): readonly unknown[] {
  return partial.flatMap((part): unknown[] => {
    if (part.type === 'text') return [{ type: part.type, text: part.text }];
    return part.type === 'thinking' ? [{ type: part.type, text: part.text, signature: part.signature }] : [];
  });
}

const HALF = openEnded(stepsOf(text('Half a sentence')));

/** Cases about failures. */
export const failureCases: CasesOf<'errors' | 'cut' | 'deltas'> = {
  'errors.rate_limit': kindCase('rate_limit', 'Too many requests.'),
  'errors.overloaded': kindCase('overloaded', 'The model is overloaded.'),
  'errors.server': kindCase('server', 'Something went wrong here.'),
  'errors.auth': kindCase('auth', 'This key is not known.'),
  'errors.permission': kindCase('permission', 'This key may not use the model.'),
  'errors.not_found': kindCase('not_found', 'There is no such model.'),
  'errors.quota': kindCase('quota', 'The account has no credit left.'),
  'errors.invalid_request': kindCase('invalid_request', 'A field has a value that it cannot have.'),
  'errors.invalid_history': kindCase('invalid_history', 'Calls and results do not pair up.'),
  'errors.context_overflow': kindCase('context_overflow', 'The prompt is longer than the context window.'),
  'errors.request_too_large': kindCase('request_too_large', 'The request has too many bytes.'),
  'errors.media_rejected': kindCase('media_rejected', 'The image cannot be read.'),
  'errors.content_filter': kindCase('content_filter', 'The prompt was blocked.'),

  'errors.retry_after': {
    title: 'how long the server asks to wait is told in milliseconds',
    async run(trial) {
      const error = await trial.failure(refusal('rate_limit', 'Too many requests.', { retryAfterMs: RETRY_AFTER_MS }));
      expectEqual(error.retryAfterMs, RETRY_AFTER_MS, '`retryAfterMs`');
    },
  },
  'errors.in_stream': {
    title: 'a failure that the server reports within its answer is a failure, and no end of the reply',
    async run(trial) {
      const failure: LLMSceneFailure = { kind: 'overloaded', message: 'The model is overloaded.' };
      const error = await trial.failure([START, ...HALF, trial.untilHeard('Half a sentence'), { type: 'fail', failure }, { type: 'close' }]);
      expectEqual({ kind: error.kind, retryable: error.retryable }, { kind: 'overloaded', retryable: true }, `the error (${error.message})`);
    },
  },
  'errors.connection': {
    title: 'after a failure within the answer nothing more is waited for, and the connection is let go of (needs `letGo`)',
    async run(trial) {
      const failure: LLMSceneFailure = { kind: 'server', message: 'Something went wrong here.' };
      const subject = await trial.open([[START, ...HALF, { type: 'fail', failure }, { type: 'stall' }]]);
      await subject.send().error();
      await trial.within(Promise.all(subject.requests('letGo')), 'letting go of the connection');
    },
  },
  'errors.secrets': {
    title: 'no error shows the key, though the server quotes it',
    async run(trial) {
      const message = `Incorrect API key provided: ${SCENE_KEY}. Check ${SCENE_KEY}.`;
      // Every error of a trial is searched for the key.
      await trial.failure(refusal('auth', message));
      await trial.failure([START, ...HALF, { type: 'fail', failure: { kind: 'server', message } }, { type: 'close' }]);
    },
  },

  'cut.start': {
    title: 'a connection that breaks before the answer is `network`',
    async run(trial) {
      await expectCut(trial, [{ type: 'cut' }]);
    },
  },
  'cut.text': {
    title: 'a connection that breaks within the text is `network`, and no end of the reply',
    async run(trial) {
      await expectCut(trial, [START, ...HALF, trial.untilHeard('Half a sentence'), { type: 'cut' }]);
    },
  },
  'cut.close': {
    title: 'an answer that ends in good order, but without its end, is `network`, and no end of the reply',
    async run(trial) {
      await expectCut(trial, [START, ...HALF, { type: 'close' }]);
    },
  },
  'cut.call': {
    title: 'an answer that breaks off behind a call is `network`: the call never runs',
    async run(trial) {
      await expectCut(trial, [START, ...stepsOf(call('look_up', ['{"city":', '"Oslo"}'])), { type: 'close' }]);
      await expectCut(trial, [START, ...openEnded(stepsOf(call('look_up', ['{"city":']))), { type: 'close' }]);
    },
  },
  'cut.partial': {
    title: '`partial` of the error holds the text that had come, and no call',
    async run(trial) {
      const steps = openEnded(stepsOf(text('I look.'), call('look_up', ['{"ci'])));
      const error = await expectCut(trial, [START, ...steps, trial.untilHeard('I look.'), { type: 'cut' }]);
      expectEqual(arrived(error), [{ type: 'text', text: 'I look.' }], '`partial`');
    },
  },
  'cut.thinking': {
    title: '`partial` of the error holds thinking that was whole, with its signature',
    async run(trial) {
      const steps = openEnded(stepsOf(thought(['All thought.'], SIGNATURE), text('I say')));
      const error = await expectCut(trial, [START, ...steps, trial.untilHeard('I say'), { type: 'close' }]);
      const expected = [{ type: 'thinking', text: 'All thought.', signature: SIGNATURE }, { type: 'text', text: 'I say' }];
      expectEqual(arrived(error), expected, '`partial`');
    },
  },

  'deltas.late': {
    title: 'no fragment comes after chat has settled',
    async run(trial) {
      const subject = await trial.open([answer(stepsOf(text('One, ', 'two.'))), [START, ...HALF, { type: 'close' }]]);
      const exchanges = [subject.send()];
      await exchanges[0]?.response();
      exchanges.push(subject.send());
      await exchanges[1]?.error();
      await trial.quiet();
      const problem = exchanges.find((exchange) => exchange.problem !== undefined)?.problem;
      if (problem !== undefined) fail(problem);
    },
  },
};
