import { defineTool } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { scriptedLLM, toolCall } from 'turnloop/testing';

const weather = defineTool({
  name: 'weather',
  description: 'Says what the weather is like in a city.',
  readOnly: true,
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: async ({ city }) => `18 °C and dry in ${String(city)}`,
});

// Any model goes here; this one plays a script, so that the program runs without a key.
const llm = scriptedLLM([toolCall('weather', { city: 'Oslo' }), 'Take no umbrella.']);

const agent = createAgent({ llm, tools: [weather] });
const turn = agent.run('Do I need an umbrella in Oslo?');
for await (const event of turn) {
  if (event.type === 'tool.result') console.log(`[${event.name}]`);
  if (event.type === 'text.delta') process.stdout.write(event.text);
}
const { stopReason, steps } = await turn.result;
console.log(`\n${stopReason} after ${steps} steps`);
