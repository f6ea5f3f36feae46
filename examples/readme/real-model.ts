import { createEventDispatcher, createTranscript, runTurn } from 'turnloop';
import { reduceMedia } from 'turnloop/context';
import { maxSteps, strictHistory, withRetry } from 'turnloop/policies';
import { openAIChat } from 'turnloop/providers/openai-chat';

const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl } = process.env;
const llm = withRetry(openAIChat({ model: 'gpt-5-mini', apiKey, baseUrl, systemPrompt: 'Be brief.' }));

const transcript = createTranscript();
const result = await runTurn({
  llm,
  input: 'Say hello.',
  stopWhen: maxSteps(25),
  recoveries: [strictHistory(), ...reduceMedia()],
  buildMessages: transcript.buildMessages,
  dispatchEvent: createEventDispatcher({ record: transcript.record }),
});
console.log(result.stopReason, result.error?.message ?? result.text);
if (result.stopReason !== 'end_turn') process.exitCode = 1;
