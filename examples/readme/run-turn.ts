import { createEventDispatcher, createTranscript, defineTool, runTurn } from 'turnloop';
import { scriptedLLM, toolCall } from 'turnloop/testing';

const weather = defineTool({
  name: 'weather',
  description: 'Says what the weather is like in a city.',
  readOnly: true,
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: async ({ city }) => `18 °C and dry in ${String(city)}`,
});

// Any LLM goes here; this one plays a script, so that the program runs without a key.
const llm = scriptedLLM([toolCall('weather', { city: 'Oslo' }), 'Take no umbrella.']);

const transcript = createTranscript();
const result = await runTurn({
  llm,
  tools: [weather],
  input: 'Do I need an umbrella in Oslo?',
  buildMessages: transcript.buildMessages,
  dispatchEvent: createEventDispatcher({
    record: transcript.record,
    emit: (event) => {
      if (event.type === 'text.delta') process.stdout.write(event.text);
      if (event.type === 'tool.result') console.log(`[${event.name}]`);
    },
  }),
});
console.log(`\n${result.stopReason} after ${result.steps} steps`);
