/** Growing histories of one kind of text, and of a kind that changes. */
import { assistantMessage, type Message, type ToolDefinition, toolMessage, userMessage } from 'turnloop';
import type { EstimatedRequest } from 'turnloop/context';
import { seededRandom } from './seeded-random.ts';
import { type Kind, textSources } from './texts.ts';

/** Requests of a history. */
const REQUESTS = 200;

const SYSTEM_PROMPT = `You are an assistant in a small company that sells hardware. You answer briefly, in the language of the person who asks, and you look things up rather than guess.
- Read a file before you change it, and change as little as possible.
- Never send anything to a customer without being asked to.
- Amounts are in euro unless the record says otherwise.`;

const TOOLS: readonly ToolDefinition[] = [
  tool('read_file', 'Reads a file of the workspace and returns its text.', { path: text('Path from the root of the workspace.'), offset: { type: 'integer', minimum: 1 } }),
  tool('query_orders', 'Finds orders by customer, state or date, newest first.', { customer: text('Name or number.'), state: { type: 'string', enum: ['open', 'paid', 'shipped'] }, limit: { type: 'integer', default: 20 } }),
  tool('run_command', 'Runs a shell command and returns what it printed. Long output is cut in the middle.', { command: text('The command line.'), timeoutMs: { type: 'number' } }),
  tool('search', 'Searches the texts of all files.', { pattern: text('A regular expression.'), folder: text('Where to search.') }),
];

function text(description: string): { readonly type: 'string'; readonly description: string } {
  return { type: 'string', description };
}

function tool(name: string, description: string, properties: Record<string, object>): ToolDefinition {
  return { name, description, inputSchema: JSON.parse(JSON.stringify({ type: 'object', properties, required: Object.keys(properties).slice(0, 1), additionalProperties: false })) };
}

/** What is added to a history before each of its requests. */
export type Steps = readonly (readonly Message[])[];

/** The steps of a history of one kind: people's messages, thinking, calls and results as the kind has them. */
export function stepsOf(kind: Kind, seed: number): Steps {
  const random = seededRandom(seed ^ 0x5eed);
  const sources = textSources(seed);
  return Array.from({ length: REQUESTS }, (_, step) => {
    const length = 300 + Math.floor(random() ** 2 * 3_500);
    const is = kind === 'mixed' ? (['english', 'code', 'json', 'chinese', 'code'] as const)[Math.floor(random() * 5)]! : kind;
    const content = sources[is](length);
    if (is === 'english' || is === 'chinese') {
      const thinking = { type: 'thinking', text: sources[is](120) } as const;
      return [userMessage(content, { id: `user_${step}` }), assistantMessage([thinking, { type: 'text', text: sources[is](300) }], { id: `reply_${step}` })];
    }
    const input = is === 'code' ? { path: `src/handlers/file-${step}.ts`, offset: 1 + step } : { customer: `C-${step * 37}`, state: 'open' };
    const call = { type: 'tool_call', id: `call_${step}`, name: is === 'code' ? 'read_file' : 'query_orders', inputText: JSON.stringify(input), input } as const;
    return [assistantMessage([call], { id: `reply_${step}` }), toolMessage(content, { toolCallId: call.id, name: call.name, id: `result_${step}` })];
  });
}

/** How a history goes from one kind to another, half way. */
export type Switch = 'grows' | 'replaced';

/** The requests of a history: all of one kind, or with a second kind from the middle on. */
export function requestsOf(first: Steps, second: Steps = first, how: Switch = 'grows'): readonly EstimatedRequest[] {
  const half = REQUESTS / 2;
  const steps = second === first ? first : [...first.slice(0, half), ...second.slice(0, half)];
  return Array.from({ length: REQUESTS }, (_, index) => {
    const isReplaced = how === 'replaced' && index >= half;
    const messages = (isReplaced ? second.slice(0, index + 1) : steps.slice(0, index + 1)).flat();
    return { systemPrompt: SYSTEM_PROMPT, tools: TOOLS, messages };
  });
}
