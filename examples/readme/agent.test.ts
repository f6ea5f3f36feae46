import { expect, it } from 'vitest';
import { failingTool, runScripted, toolCall } from 'turnloop/testing';

it('apologises when the weather service is down', async () => {
  const weather = failingTool({ name: 'weather', error: new Error('service down') });

  const { result, llm, recorded } = await runScripted({
    input: 'Weather in Oslo?',
    tools: [weather],
    replies: [toolCall('weather', { city: 'Oslo' }), 'Sorry, I could not find out.'],
  });

  expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Sorry, I could not find out.' });
  expect(recorded.find((event) => event.type === 'tool.result')?.result.isError).toBe(true);
  llm.assertDone();
});
