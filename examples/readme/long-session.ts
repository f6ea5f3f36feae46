import { createEventDispatcher, createTranscript, runTurn, type LoopEvent } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { anyOf, createBudget, finalAnswer, loopGuard, maxBudget, maxSteps, strictHistory, withBudget, withCircuitBreaker, withRetry } from 'turnloop/policies';
import { openAIChat } from 'turnloop/providers/openai-chat';

const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl } = process.env;
const model = openAIChat({ model: 'gpt-5-mini', apiKey, baseUrl, capabilities: { maxInputTokens: 272_000, maxOutputTokens: 128_000 } });
const budget = createBudget({ maxTokens: 5_000_000 }); // One for all turns, retries and summaries.
const llm = withCircuitBreaker(withRetry(withBudget(model, budget), { maxAttempts: 4 }));
const context = createContextPolicy();
const transcript = createTranscript();

function show(event: LoopEvent): void {
  if (event.type === 'notice') console.log(event.name, event.data);
  if (event.type === 'step.retrying') console.log(`${event.error.message} Asking ${event.nextModelId ?? 'again'} in ${event.delayMs ?? 0} ms.`);
}

for (const input of ['Say hello.', 'Say goodbye.']) {
  const result = await runTurn({
    llm,
    input,
    hooks: [loopGuard(), ...context.hooks, finalAnswer()],
    stopWhen: anyOf(maxSteps(25), maxBudget(budget)),
    recoveries: [strictHistory(), ...context.recoveries],
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({ record: transcript.record, emit: show }),
  });
  console.log(result.stopReason, result.error?.message ?? result.text);
}
