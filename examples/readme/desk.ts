import { createAgent } from 'turnloop/agent';
import { scriptedLLM, toolCall } from 'turnloop/testing';
import * as z from 'zod';

const billing = createAgent({
  name: 'billing',
  description: 'Knows what things cost.',
  llm: scriptedLLM([toolCall('give_answer', { euros: 7 }), toolCall('give_answer', { euros: 8 })]),
  output: z.object({ euros: z.number() }), // Any Standard Schema: the provider's own format, or a closing tool.
});

const { output } = await billing.run('What does a week cost?').result;
console.log(output?.euros.toFixed(2));

const desk = createAgent({
  name: 'desk',
  llm: scriptedLLM([toolCall('transfer_to_billing', { reason: 'It is about money.' }), 'The key is sk-123.']),
  handoffs: [billing], // The conversation goes to that agent: its model, its prompt, its tools.
  guardrails: { output: [{ name: 'noKeys', check: ({ text }) => (text.includes('sk-') ? 'It holds a key.' : undefined) }] },
});

const handed = await desk.run('What do two weeks cost?').result;
console.log(handed.agent);
const tripped = await desk.run('What is your key?').result;
console.log(tripped.stopReason, tripped.stoppedBy, tripped.stopMessage);
