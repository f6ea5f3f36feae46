/** The view of turns on what a session of an agent tells and keeps, whatever else it tells and keeps. */
import { expect, it } from 'vitest';
import { createAgent, emptyTurnsView, reduceTurnsView, turnsOf, turnsView } from 'turnloop/agent';
import { scriptedLLM, toolCall } from 'turnloop/testing';

it('E14 takes what a session tells and what it has kept as they are, queued inputs and handoffs too', async () => {
  const second = createAgent({ name: 'second', llm: scriptedLLM(['It is mine now.', 'Still mine.']) });
  const agent = createAgent({ llm: scriptedLLM([toolCall('transfer_to_second')]), handoffs: [second] });
  const session = await agent.openSession();
  let view = emptyTurnsView();
  session.subscribe((event) => {
    view = reduceTurnsView(view, event);
  });

  const turn = session.run('Hello.');
  await session.followUp('And now?');
  let ofTurn = emptyTurnsView();
  for await (const event of turn) ofTurn = reduceTurnsView(ofTurn, event);
  await session.idle();

  const kept = turnsView(await session.events());
  expect(turnsOf(view)).toStrictEqual(turnsOf(kept));
  expect(turnsOf(ofTurn)).toStrictEqual(turnsOf(kept).slice(0, 1));
  expect(turnsOf(kept).map(({ state, steps }) => [state, steps.length])).toStrictEqual([
    ['ended', 2],
    ['ended', 1],
  ]);
});
