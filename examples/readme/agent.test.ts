import { expect, it } from 'vitest';
import { LLMError } from 'turnloop';
import { withRetry } from 'turnloop/policies';
import { echoTool, failingTool, runScripted, startScripted, toolCall } from 'turnloop/testing';

it('apologises when the weather service is down', async () => {
  const tools = [failingTool({ name: 'weather', error: new Error('service down') })];
  const replies = [toolCall('weather', { city: 'Oslo' }), 'Sorry, I could not find out.'];

  const { result, llm, recorded } = await runScripted({ input: 'Weather in Oslo?', tools, replies });

  expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Sorry, I could not find out.' });
  expect(recorded.find((event) => event.type === 'tool.result')?.result.isError).toBe(true);
  llm.assertDone();
});

it('runs the tool once a person has agreed', async () => {
  const scene = { tools: [echoTool()], hooks: [{ name: 'ask', authorizeToolCall: () => ({ action: 'suspend' }) as const }] };
  const { result, transcript, runtime } = await runScripted({ ...scene, replies: [toolCall('echo', { text: 'hello' })] });
  const decisions = (result.pending ?? []).map(({ toolCallId }) => ({ toolCallId, action: 'allow' }) as const);

  // The same runtime: ids of a second one would count from 1 again.
  const resumed = await runScripted({ ...scene, transcript, runtime, resume: { decisions }, replies: ['It said hello.'] });

  expect(resumed.result).toMatchObject({ stopReason: 'end_turn', text: 'It said hello.' });
});

it('asks again after a while when the server is busy', async () => {
  const busy = new LLMError({ kind: 'overloaded', message: 'Busy.' });
  const turn = startScripted({ replies: [busy, 'Hello.'], decorate: (llm) => withRetry(llm) });

  await turn.runtime.flush(); // All that can happen while the clock stands still.
  expect(turn.llm.callCount).toBe(1);
  await turn.runtime.advance(1_000);
  expect(turn.llm.callCount).toBe(2);
  expect((await turn.finish()).result.text).toBe('Hello.');
});
