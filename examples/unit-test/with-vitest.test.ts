/** The help desk, tested with vitest. */
import { expect, it } from 'vitest';
import { LLMError } from 'turnloop';
import { finishTurn, toolCall } from 'turnloop/testing';
import { matchers } from 'turnloop/testing/vitest';
import { afterCrash, allowAll, never, scene } from './scene.ts';

expect.extend(matchers);

const FIND = toolCall('find_order', { order: 'A1' });
const REFUND = toolCall('refund', { order: 'A1' });

it('pays back what was lost, once a person has agreed', async () => {
  const { desk, llm, runtime, refunds } = scene([FIND, REFUND, 'You have your money back.']);
  const session = await desk.openSession();

  expect(await finishTurn(session.run('Where is A1?'), runtime)).toEndWith('suspended');
  expect(refunds).toEqual([]);
  expect(await finishTurn(session.resume(allowAll(session)), runtime)).toEndWith('end_turn');

  expect(await session.events()).toHaveCalledTool('find_order', { order: 'A1' });
  expect(await session.events()).toFollowLaws();
  expect(refunds).toEqual(['A1']);
  llm.assertDone(); // No reply is left over, and no request came without one.
});

it('tells the model when the shop does not answer', async () => {
  const { desk, llm, runtime } = scene([FIND, 'I cannot look it up now.'], { find: () => Promise.reject(new Error('no answer')) });

  expect(await finishTurn(desk.run('Where is A1?'), runtime)).toEndWith('end_turn');
  expect(llm.requests[1]?.messages.at(-1)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('no answer') as string }] });
});

it('makes room in a full window and goes on', async () => {
  const full = new LLMError({ kind: 'context_overflow', message: 'The prompt is too long.' });
  const { desk, llm, runtime } = scene([FIND, full, 'It is lost.'], { find: async () => 'It was seen. '.repeat(10_000) });

  expect(await finishTurn(desk.run('Where is A1?'), runtime)).toEndWith('end_turn');
  expect(JSON.stringify(llm.requests[2]).length).toBeLessThan(JSON.stringify(llm.requests[1]).length);
});

it('stops when the customer leaves', async () => {
  const { desk, llm, runtime } = scene([FIND], { find: never });
  const turn = desk.run('Where is A1?');
  await runtime.flush(); // All that can happen while the clock stands still: the tool runs now.
  turn.abort();

  expect(await finishTurn(turn, runtime)).toEndWith('aborted');
  llm.assertDone();
});

it('does not pay twice after a crash', async () => {
  const died = await afterCrash(scene([REFUND], { refund: never }));
  const { desk, llm, runtime, refunds } = scene(['Please check whether you have your money.'], {}, died);

  expect(await finishTurn((await desk.openSession({ resumeSessionId: 'chat' })).resume(), runtime)).toEndWith('end_turn');
  expect(llm.requests[0]?.messages.at(-1)).toMatchObject({ name: 'refund', isError: true });
  expect(refunds).toEqual([]);
});
