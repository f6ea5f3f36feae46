import { defineTool } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { inProcessSessionStore } from 'turnloop/sessions';
import { scriptedLLM, toolCall } from 'turnloop/testing';

/** @type {import('turnloop/testing/simulation').Scenario} */
export const refund = {
  name: 'refund',
  build: () => {
    // What outlives a process: a store, and the bank.
    const store = inProcessSessionStore();
    const paid = /** @type {string[]} */ ([]);
    return {
      // One life of the process; after each simulated death the next one begins here.
      live: async (life) => {
        const pay = defineTool({ name: 'pay', description: 'Pays back.', input: { type: 'object' }, execute: (_, { toolCallId }) => `Paid, no. ${paid.push(toolCallId)}.` });
        // A function of the history, as real models are: whoever asks again gets the same.
        const llm = scriptedLLM(({ messages }) => (messages.at(-1)?.role === 'user' ? toolCall('pay') : 'Done.'));
        const agent = createAgent({ llm: life.llm(llm), tools: [life.tool(pay)], sessions: life.sessions(store), runtime: life.runtime });
        const session = await agent.openSession({ sessionId: 's', resumeSessionId: 's' });
        session.subscribe(life.listener());
        const { signal } = life;
        if (session.openTurn() !== undefined) await session.resume({ signal }).result;
        else if (session.messages().length === 0) await session.run('I want my money back.', { signal }).result;
        await session.close();
      },
      check: () => {
        if (paid.length > 1) throw new Error(`paid back ${paid.length} times`);
      },
    };
  },
};
