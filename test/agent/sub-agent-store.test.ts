/**
 * Sub-agents of a session whose store fails once, at any event of any depth: the turn ends, and goes on where all of them
 * were. That a sub-agent was stopped by the failure is not what became of it.
 */
import { expect, it } from 'vitest';
import { textOf } from 'turnloop';
import { checkTranscript, recordingTool, type Reply, type ScriptedLLMOptions, toolCall } from 'turnloop/testing';
import { crashingStore, turnEvents, type CrashingStoreOptions } from './support/crashing-store.ts';
import { said, startAgent, type Started } from './support/session-kit.ts';

const dispatch = (prompt: string): ReturnType<typeof toolCall> => toolCall('dispatch_agent', { prompt, type: 'writer' });
const write = (path: string): ReturnType<typeof toolCall> => toolCall('write', { path });

const TASKS: Readonly<Record<string, readonly Reply[]>> = {
  go: [[dispatch('left'), dispatch('right'), write('own')], write('last'), 'All done.'],
  left: [write('l1'), [write('l2'), write('l3')], 'Left done.'],
  right: [[dispatch('deep'), write('r1')], 'Right done.'],
  deep: [write('d1'), 'Deep done.'],
};
const WRITTEN = ['d1', 'l1', 'l2', 'l3', 'last', 'own', 'r1'];

/** A session with sub-agents that write, and what they wrote, each for a key once. */
async function start(options: CrashingStoreOptions): Promise<Started & { readonly written: () => readonly string[]; readonly store: ReturnType<typeof crashingStore> }> {
  const written = new Map<string, string>();
  const tool = recordingTool({
    name: 'write',
    replay: 'idempotent',
    accesses: () => [],
    execute: ({ path }, { idempotencyKey }) => {
      written.set(idempotencyKey, String(path));
      return 'ok';
    },
  });
  const store = crashingStore(options);
  const llmOptions: ScriptedLLMOptions = { usage: { inputTokens: 1 } };
  const started = await startAgent(
    ({ messages }) => {
      const replies = messages.filter(({ role }) => role === 'assistant').length;
      return TASKS[textOf(messages[0])]?.[replies] ?? 'Nothing.';
    },
    { llmOptions, sessions: store, tools: [tool], subAgents: { types: { writer: { description: 'Writes.', tools: [tool] } }, maxDepth: 2, accesses: () => [] } },
  );
  return { ...started, store, written: () => [...written.values()].sort() };
}

/** A call of a reply that was not wholly written has another id when it is asked for again. */
function withoutIds(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.replace(/call_\d+/, 'call'));
}

it('E13 TD20 law-9 go on where they were, whichever event could not be written', { timeout: 60_000 }, async () => {
  const whole = await start({});
  expect(await whole.session.run('go').result).toMatchObject({ stopReason: 'end_turn', text: 'All done.' });
  expect(whole.written()).toStrictEqual(WRITTEN);
  const history = withoutIds(said(whole.session));
  const count = whole.store.appended.length;
  expect(count).toBeGreaterThan(80);

  for (let at = 1; at <= count; at += 1) {
    let asked = 0;
    const { session, store, written } = await start({ at: () => (asked += 1) === at, mode: 'fails' });
    expect(await session.run('go').result, `failed at event ${at}`).toMatchObject({ stopReason: 'fatal_error', error: { code: 'store_failed' } });
    if (session.openTurn() === undefined) {
      // Not even its input was written.
      expect(at).toBeLessThanOrEqual(2);
      continue;
    }
    expect(await session.resume().result, `failed at event ${at}`).toMatchObject({ stopReason: 'end_turn', text: 'All done.' });
    expect(withoutIds(said(session)), `failed at event ${at}`).toStrictEqual(history);
    expect(written(), `failed at event ${at}`).toStrictEqual(WRITTEN);
    const events = turnEvents(await session.events());
    expect(checkTranscript(events, { complete: true }), `failed at event ${at}`).toStrictEqual([]);
    expect(session.usage.inputTokens).toBe(events.reduce((sum, event) => (event.type === 'usage' ? sum + event.usage.inputTokens : sum), 0));
    expect(store.appended.filter((event) => event.type === 'turn.end').map((event) => event.type === 'turn.end' && event.stopReason)).toStrictEqual(Array.from({ length: 4 }, () => 'end_turn'));
  }
});
