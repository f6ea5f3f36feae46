/** The help desk, tested with what Node has: `npx tsx --test examples/unit-test/with-node-test.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LLMError } from 'turnloop';
import { checkTranscript, finishTurn, toolCall, toolCallsOf } from 'turnloop/testing';
import { afterCrash, allowAll, never, scene } from './scene.ts';

const FIND = toolCall('find_order', { order: 'A1' });
const REFUND = toolCall('refund', { order: 'A1' });

void test('pays back what was lost, once a person has agreed', async () => {
  const { desk, llm, runtime, refunds } = scene([FIND, REFUND, 'You have your money back.']);
  const session = await desk.openSession();

  assert.equal((await finishTurn(session.run('Where is A1?'), runtime)).result.stopReason, 'suspended');
  assert.deepEqual(refunds, []);
  assert.equal((await finishTurn(session.resume(allowAll(session)), runtime)).result.stopReason, 'end_turn');

  const events = await session.events();
  assert.deepEqual(toolCallsOf(events).map(({ name, output }) => [name, output]), [['find_order', 'lost in the mail'], ['refund', 'Refunded.']]);
  assert.deepEqual(checkTranscript(events), []);
  assert.deepEqual(refunds, ['A1']);
  llm.assertDone(); // No reply is left over, and no request came without one.
});

void test('tells the model when the shop does not answer', async () => {
  const { desk, runtime } = scene([FIND, 'I cannot look it up now.'], { find: () => Promise.reject(new Error('no answer')) });

  const outcome = await finishTurn(desk.run('Where is A1?'), runtime);

  assert.equal(outcome.result.text, 'I cannot look it up now.');
  assert.match(toolCallsOf(outcome)[0]?.output ?? '', /no answer/);
});

void test('makes room in a full window and goes on', async () => {
  const full = new LLMError({ kind: 'context_overflow', message: 'The prompt is too long.' });
  const { desk, llm, runtime } = scene([FIND, full, 'It is lost.'], { find: async () => 'It was seen. '.repeat(10_000) });

  assert.equal((await finishTurn(desk.run('Where is A1?'), runtime)).result.stopReason, 'end_turn');
  assert.ok(JSON.stringify(llm.requests[2]).length < JSON.stringify(llm.requests[1]).length);
});

void test('stops when the customer leaves', async () => {
  const { desk, runtime } = scene([FIND], { find: never });
  const turn = desk.run('Where is A1?');
  await runtime.flush(); // All that can happen while the clock stands still: the tool runs now.
  turn.abort();

  assert.equal((await finishTurn(turn, runtime)).result.stopReason, 'aborted');
});

void test('does not pay twice after a crash', async () => {
  const { desk, runtime, refunds } = scene(['Please check whether you have your money.'], {}, await afterCrash(scene([REFUND], { refund: never })));

  assert.equal((await finishTurn((await desk.openSession({ resumeSessionId: 'chat' })).resume(), runtime)).result.stopReason, 'end_turn');
  assert.deepEqual(refunds, []);
});
