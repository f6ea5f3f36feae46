import { appendFile, readFile } from 'node:fs/promises';
import { defineTool } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { createMemory, fileMemoryStore } from 'turnloop/memory';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { fileSessionStore } from 'turnloop/sessions';

const readNotes = defineTool({
  name: 'read_notes',
  description: 'Reads all notes.',
  readOnly: true,
  input: { type: 'object', properties: {} },
  execute: () => readFile('notes.txt', { encoding: 'utf8', flag: 'a+' }),
});
const addNote = defineTool({
  name: 'add_note',
  description: 'Adds a note.',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  execute: ({ text }) => appendFile('notes.txt', `${String(text)}\n`).then(() => 'Added.'),
});

const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl } = process.env;
const llm = openAIChat({ model: 'gpt-5-mini', apiKey, baseUrl });
const memory = createMemory({ store: fileMemoryStore('.turnloop/memory'), llm }); // With `llm` it learns from each turn.
const sessions = fileSessionStore('.turnloop/sessions');
const agent = createAgent({ llm, systemPrompt: 'You keep my notes.', tools: [readNotes, addNote], memory, sessions });

// Both ids: the session is gone on with if there is one, and made if not.
const session = await agent.openSession({ sessionId: 'notes', resumeSessionId: 'notes' });
const input = process.argv[2] ?? 'What did I note?';
if (session.status === 'interrupted') await session.resume().result; // The process died in the middle of a turn.
const turn = session.run(input);
for await (const event of turn) if (event.type === 'text.delta') process.stdout.write(event.text);
const { stopReason, error } = await turn.result;
console.log(`\n${stopReason}`, error?.message ?? '');
await session.close();
