import { describe, expect, it } from 'vitest';
import { createAgent, searchConversations } from 'turnloop/agent';
import { createMemory, inProcessMemoryStore } from 'turnloop/memory';
import { inProcessSessionStore } from 'turnloop/sessions';
import { scriptedLLM, toolCall } from 'turnloop/testing';

describe('searching conversations', () => {
  it('E6 recall_memory finds what was said in other sessions that may be seen', async () => {
    const sessions = inProcessSessionStore();
    const memory = createMemory({
      store: inProcessMemoryStore(),
      searchConversations: searchConversations(sessions, {
        maySee: ({ metadata }, { owners }) => owners.some(({ scopeId }) => scopeId === metadata?.['user']),
      }),
    });
    const llm = scriptedLLM(['Noted.', 'Noted.', toolCall('recall_memory', { query: 'name of the boat' }), 'Done.']);
    const agent = createAgent({ llm, sessions, memory });
    for (const [user, boat] of [['ada', 'Lovelace'], ['bob', 'Secret']] as const) {
      const session = await agent.openSession({ sessionId: user, metadata: { user } });
      await session.run(`My boat is named ${boat}.`).result;
      await session.close();
    }

    const session = await agent.openSession({ metadata: { user: 'ada' }, memoryOwners: [{ scope: 'user', scopeId: 'ada' }] });
    await session.run('What is my boat called?').result;

    const told = JSON.stringify(session.messages());
    expect(told).toContain('Lovelace');
    expect(told).not.toContain('Secret');
    await session.close();
  });

  it('E6 says whose sessions may be searched, or is refused', () => {
    expect(() => searchConversations(inProcessSessionStore(), {} as never)).toThrow(/maySee/);
  });
});
