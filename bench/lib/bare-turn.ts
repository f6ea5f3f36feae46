/**
 * Bare turn: the least that does the work of a turn. A loop over an async generator, a map of tools, a hand-written check
 * of the arguments, and the list of messages that the next request needs. No events, no record, no abort, no failure.
 */
import { argumentsOf, FINAL_TEXT, PROMPT, providerIdOf, TOOL_NAME, TOOL_OUTPUT, type TurnCounts, type TurnShape } from './scenario.ts';

type BareEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly inputText: string };

type BareMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly calls: readonly BareEvent[] }
  | { readonly role: 'tool'; readonly id: string; readonly content: string };

async function* model(step: number, { steps, calls, gate }: TurnShape): AsyncGenerator<BareEvent> {
  if (gate !== undefined) await gate(step);
  if (step === steps - 1) {
    yield { type: 'text', text: FINAL_TEXT };
    return;
  }
  for (let index = 0; index < calls; index += 1) {
    yield { type: 'call', id: providerIdOf(step, index), name: TOOL_NAME, inputText: argumentsOf(step) };
  }
}

function checkArguments(value: unknown): { readonly n: number } {
  if (typeof value !== 'object' || value === null || !('n' in value)) throw new Error('bad arguments');
  for (const key in value) if (key !== 'n') throw new Error('unknown argument');
  const { n } = value;
  if (typeof n !== 'number' || !Number.isInteger(n)) throw new Error('bad arguments');
  return { n };
}

/** Runs a turn of this shape. */
export async function bareTurn(shape: TurnShape): Promise<TurnCounts> {
  let ran = 0;
  const tools = new Map([
    [
      TOOL_NAME,
      async (_input: { readonly n: number }): Promise<string> => {
        ran += 1;
        return TOOL_OUTPUT;
      },
    ],
  ]);
  const messages: BareMessage[] = [{ role: 'user', content: PROMPT }];
  for (let step = 0; ; step += 1) {
    let text = '';
    const calls: Extract<BareEvent, { type: 'call' }>[] = [];
    for await (const event of model(step, shape)) {
      if (event.type === 'text') text += event.text;
      else calls.push(event);
    }
    messages.push({ role: 'assistant', content: text, calls });
    if (calls.length === 0) return { text, calls: ran };
    const outputs = await Promise.all(calls.map((call) => tools.get(call.name)!(checkArguments(JSON.parse(call.inputText)))));
    calls.forEach((call, index) => messages.push({ role: 'tool', id: call.id, content: outputs[index]! }));
  }
}
