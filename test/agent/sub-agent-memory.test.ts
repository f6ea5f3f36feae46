/** What is left of sub-agents that ended (BR-131): their results, and nothing else. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, decorateLLM, runTurn } from 'turnloop';
import { dispatchAgent, type OpenSubAgentLog } from 'turnloop/agent';
import { approval, loopGuard } from 'turnloop/policies';
import { recordingTool, scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';
import { Disk, dispatchCall, taskLLM } from './sub-agent-support.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const STEPS = 10;
const CHILDREN = 50;
const RESULT_CHARACTERS = 200_000;

it.each(['in memory', 'in a log that forgets'])('BR-131 after 500 sub-agents with large results, whose events were %s, only their answers are reachable', { timeout: 60_000 }, async (where) => {
  const read = recordingTool({ name: 'read', readOnly: true });
  // A recording tool keeps its contexts.
  const tools = [{ ...read, execute: () => String.fromCharCode(97 + (count % 26)).repeat(RESULT_CHARACTERS) + String(count) }];
  const histories: WeakRef<object>[] = [];
  let count = 0;
  const child = taskLLM(() => [toolCall('read'), `answer${'!'.repeat(100)}`], { keepRequests: false });
  const watched = decorateLLM(child, (request) => {
    count += 1;
    if (request.messages.length > 1) histories.push(new WeakRef(request.messages), new WeakRef(request.messages.at(-1)!));
    return child.chat(request);
  });
  const hooks = [approval(), loopGuard()];
  const openLog: OpenSubAgentLog = (toolCallId, context) => new Disk().openLog(toolCallId, context);
  const dispatch = dispatchAgent({ llm: watched, tools, hooks, ...(where !== 'in memory' && { openLog }) });
  const llm = scriptedLLM([...Array.from({ length: STEPS }, (_, step) => Array.from({ length: CHILDREN }, (__, index) => dispatchCall(`${step}.${index}`))), 'done'], { keepRequests: false });
  const transcript = createTranscript();
  const runtime = virtualRuntime();

  const { stopReason } = await runtime.settle(
    runTurn({
      llm,
      tools: [dispatch],
      hooks: [approval()],
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({ record: transcript.record }),
      runtime,
      input: 'go',
    }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  collect();

  expect(stopReason).toBe('end_turn');
  expect(histories).toHaveLength(2 * STEPS * CHILDREN);
  expect(histories.filter((history) => history.deref() !== undefined).length).toBeLessThanOrEqual(0.05 * histories.length);
  expect(transcript.buildMessages()).toHaveLength(1 + STEPS * (1 + CHILDREN) + 1);
  expect(JSON.stringify(transcript.events).length).toBeLessThan(STEPS * CHILDREN * 3_000);
});
