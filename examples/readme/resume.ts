import { createEventDispatcher, createTranscript, runTurn, type Hook, type RecordedEvent } from 'turnloop';
import { echoTool, scriptedLLM, toolCall } from 'turnloop/testing';

const askFirst: Hook = {
  name: 'ask-first',
  authorizeToolCall: () => ({ action: 'suspend', reason: 'A person has to agree.' }),
};
const options = { llm: scriptedLLM([toolCall('echo', { text: 'hello' }), 'It said hello.']), tools: [echoTool()], hooks: [askFirst] };

// One process: the turn ends suspended. To keep it, keep its events.
const before = createTranscript();
const suspended = await runTurn({
  ...options,
  input: 'Say hello.',
  buildMessages: before.buildMessages,
  dispatchEvent: createEventDispatcher({ record: before.record }),
});
const stored = JSON.stringify(before.events);
console.log(suspended.stopReason, suspended.pending?.map((call) => `${call.name} ${JSON.stringify(call.input)}`));

// Days later, another process: the same events, and a decision for each pending call.
const after = createTranscript(JSON.parse(stored) as RecordedEvent[]);
const turn = after.openTurn();
if (turn === undefined) throw new Error('There is no turn to go on with.');
const pending = turn.step?.calls.flatMap((call) => call.suspended?.pending ?? []) ?? [];
const result = await runTurn({
  ...options,
  resume: { turn, decisions: pending.map(({ toolCallId }) => ({ toolCallId, action: 'allow' })) },
  buildMessages: after.buildMessages,
  dispatchEvent: createEventDispatcher({ record: after.record }),
});
console.log(result.stopReason, result.text);
