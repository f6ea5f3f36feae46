import { createAgent, emptyTurnsView, reduceTurnsView, turnsOf, turnsView } from 'turnloop/agent';
import { fileSessionStore } from 'turnloop/sessions';
import { scriptedLLM } from 'turnloop/testing';

const sessions = fileSessionStore('.turnloop/sessions');
const agent = createAgent({ llm: scriptedLLM(['Hello.', 'One.', 'Two.', 'Three.', 'Four.']), sessions });
const session = await agent.openSession({ metadata: { title: 'Counting' } });

let view = emptyTurnsView(); // What a UI draws: text as it grows, calls, tokens.
session.subscribe((event) => (view = reduceTurnsView(view, event)));

const turn = session.run('Hi.');
void turn.steer('In one word.'); // Into the running turn, before its next request.
await session.followUp('Count.'); // A turn of its own, behind this one.
await session.idle();
console.log(turnsOf(view).map(({ stopReason }) => stopReason));

await session.run('Go on.').result;
const { undone } = await session.undo(); // The history forgets the last question and its answer; the events stay.
const fork = await agent.openSession({ fork: { sessionId: session.sessionId } }); // `afterTurn` forks further back.
await fork.run('Go on.').result;
console.log(undone, session.messages().length, fork.messages().length);

await session.close();
await fork.close();
for (const { sessionId, metadata } of await sessions.list()) {
  const { events } = await sessions.read(sessionId); // After a reload the view is the same.
  console.log(metadata?.['title'] ?? 'a fork', turnsOf(turnsView(events)).length);
}
