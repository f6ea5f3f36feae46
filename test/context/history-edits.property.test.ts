/** What a layer of the host's own makes of a history is what the record has afterwards, whatever it leaves out and adds where. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Message, userMessage } from 'turnloop';
import { createContextPolicy, type TrimLayer } from 'turnloop/context';
import { layersOf, longHistory, noticesOf, runWith, sessionModel, transcriptOf, windowFor } from './sessions.ts';

const RUNS = Math.min(300, Number(process.env['FC_RUNS'] ?? 300));
const HISTORY = longHistory({ exchanges: 12 });
const WINDOW = windowFor(HISTORY, 0.9);

/** For the task, each exchange and the input: whether it stays, and how many notes come before it. */
const plans = fc.array(fc.record({ stays: fc.boolean(), notes: fc.nat({ max: 2 }) }), { minLength: 15, maxLength: 15 });

/** The task, the exchanges and the input, each as a whole. */
function groupsOf(messages: readonly Message[]): readonly (readonly Message[])[] {
  const groups: Message[][] = [];
  for (const message of messages) {
    if (message.role === 'tool') groups.at(-1)?.push(message);
    else groups.push([message]);
  }
  return groups;
}

describe('the edits of a host’s own layer', () => {
  it('D7 make the history that it gave, in order, with every note where it was put', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        let given: readonly Message[] = [];
        let notes = 0;
        const note = (): Message => {
          notes += 1;
          return userMessage(`Note ${notes}.`, { id: `note_${notes}`, origin: 'reminder' });
        };
        const trim: TrimLayer = (messages) => {
          const groups = groupsOf(messages);
          given = [...groups, []].flatMap((group, index) => {
            const { stays = true, notes: before = 0 } = plan[index] ?? {};
            // The input is the turn's own: no layer takes it away.
            const isKept = stays || index >= groups.length - 1;
            return [...Array.from({ length: before }, note), ...(isKept ? group : [])];
          });
          return { edits: [], messages: given, tokensBefore: 0, tokensAfter: 0 };
        };
        const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim, window: WINDOW });
        const transcript = transcriptOf(HISTORY);

        const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript, check: false });

        expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
        if (layersOf(outcome).length === 0) return;
        expect(transcript.buildMessages().slice(0, -1)).toStrictEqual(given);
      }),
      { numRuns: RUNS },
    );
  });
});
