import { describe, expect, it } from 'vitest';
import { createAgent, type AgentTurnEvent } from 'turnloop/agent';
import { echoTool, scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';

describe('session', () => {
  it('runs a turn and hands out its events and its result', async () => {
    const agent = createAgent({ llm: scriptedLLM([toolCall('echo', { text: 'a' }), 'Done.']), tools: [echoTool()], runtime: virtualRuntime() });
    const session = await agent.openSession();
    const turn = session.run('Hello.');
    const events: AgentTurnEvent[] = [];
    for await (const event of turn) events.push(event);

    expect(await turn.result).toMatchObject({ stopReason: 'end_turn', text: 'Done.', agent: 'agent' });
    expect(events.map(({ type }) => type).filter((type) => !type.endsWith('delta'))).toEqual([
      'turn.begin', 'message', 'step.begin', 'usage', 'tool.call', 'tool.start', 'tool.finished', 'tool.result', 'step.end',
      'step.begin', 'usage', 'content.part', 'step.end', 'turn.end',
    ]);
    expect(session.status).toBe('idle');
    await session.close();
  });
});
