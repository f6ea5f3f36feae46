import { createEventDispatcher, createTranscript, runTurn } from 'turnloop';
import { maxSteps, reduceMedia, strictHistory, withRetry } from 'turnloop/policies';
import { openAIChat } from 'turnloop/providers/openai-chat';

const llm = withRetry(openAIChat({ model: 'gpt-5-mini', apiKey: process.env['OPENAI_API_KEY'] ?? '' }));

const transcript = createTranscript();
const result = await runTurn({
  llm,
  input: 'Say hello.',
  stopWhen: maxSteps(25),
  recoveries: [strictHistory(), ...reduceMedia()],
  buildMessages: transcript.buildMessages,
  dispatchEvent: createEventDispatcher({ record: transcript.record }),
});
console.log(result.text);
