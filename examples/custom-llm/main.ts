/**
 * One turn with one tool on the adapter of this folder: `npx tsx examples/custom-llm/main.ts`.
 *
 * The server is the local one, and its model two lines of code: it asks for the weather of the last word it was told,
 * and repeats what it hears.
 */
import { createEventDispatcher, createTranscript, defineTool, runTurn } from 'turnloop';
import { quillLLM } from './index.ts';
import type { QuillPart } from './protocol.ts';
import { startQuillServer, type QuillExchange } from './server.ts';

const COST = { read: 120, recalled: 80, stored: 0, written: 12, mused: 0 };

async function model({ request, send, end }: QuillExchange): Promise<void> {
  const last = request.talk.at(-1);
  const heard = last?.parts.map((part: QuillPart) => ('say' in part ? part.say : '')).join('') ?? '';
  await send({ event: 'hello', answer: `answer-${request.talk.length}`, model: request.model });
  if (last?.who === 'tool') {
    for (const text of [heard, ', I hear.']) await send({ event: 'say', text });
    await send({ event: 'bye', why: 'done', cost: COST });
  } else {
    await send({ event: 'ask', slot: 0, ref: 'q1', tool: 'weather' });
    for (const text of ['{"city":', JSON.stringify(/\w+(?=\W*$)/.exec(heard)?.[0] ?? ''), '}']) await send({ event: 'with', slot: 0, text });
    await send({ event: 'bye', why: 'asked', cost: COST });
  }
  end();
}

const weather = defineTool({
  name: 'weather',
  description: 'Weather of a city.',
  readOnly: true,
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }) => `18 °C in ${String(city)}`,
});

const server = await startQuillServer(model);
const transcript = createTranscript();
const { stopReason, steps, usage } = await runTurn({
  llm: quillLLM({ url: server.url, apiKey: 'none' }),
  tools: [weather],
  input: 'What is the weather in Oslo?',
  buildMessages: transcript.buildMessages,
  dispatchEvent: createEventDispatcher({
    record: transcript.record,
    emit(event) {
      if (event.type === 'tool.call.delta') process.stdout.write(event.name === undefined ? event.inputText : `[${event.name}] ${event.inputText}`);
      if (event.type === 'tool.result') process.stdout.write('\n');
      if (event.type === 'text.delta') process.stdout.write(event.text);
    },
  }),
});
await server.close();
console.log(`\n${stopReason} after ${steps} steps, ${usage.cacheReadTokens} of ${usage.inputTokens + usage.cacheReadTokens} tokens from the cache`);
if (stopReason !== 'end_turn') process.exitCode = 1;
