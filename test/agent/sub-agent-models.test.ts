import { describe, expect, it } from 'vitest';
import { LLMError, totalTokens } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { createBudget } from 'turnloop/policies';
import { scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';

describe('models of sub-agents', () => {
  it('E13 have the budget and the retries of the agent, also those of a type', async () => {
    const runtime = virtualRuntime();
    const busy = new LLMError({ kind: 'overloaded', message: 'Busy.' });
    const small = scriptedLLM([busy, 'Found.'], { modelId: 'small' });
    const budget = createBudget({ maxTokens: 1_000_000 });
    const llm = scriptedLLM([toolCall('dispatch_agent', { prompt: 'Look.', type: 'scout' }), 'Done.']);
    const agent = createAgent({ llm, budget, runtime, subAgents: { types: { scout: { description: 'Looks.', llm: small } } } });
    const session = await agent.openSession();
    const turn = session.run('Go.');
    await runtime.advance(60_000);
    const { usage, stopReason } = await turn.result;

    expect(stopReason).toBe('end_turn');
    expect(small.callCount).toBe(2);
    expect(budget.spent.tokens).toBe(totalTokens(usage));
    expect([...budget.spent.usageByModel.keys()]).toContain('small');
    await session.close();
  });
});
