import { createAgent } from 'turnloop/agent';
import { fileSessionStore } from 'turnloop/sessions';
import { echoTool, scriptedLLM, toolCall } from 'turnloop/testing';

const agent = createAgent({
  llm: scriptedLLM([toolCall('echo', { text: 'hello' }), 'It said hello.']),
  tools: [echoTool()],
  approval: { rules: [{ tool: 'echo', decision: 'ask', reason: 'It is loud.' }] },
  sessions: fileSessionStore('.turnloop/sessions'),
});

const session = await agent.openSession();
const { stopReason, pending } = await session.run('Say hello.').result;
console.log(stopReason, pending?.map(({ name, input, reason }) => `${name} ${JSON.stringify(input)} ${reason ?? ''}`));
await session.close();

// Days later, in another process:
const again = await agent.openSession({ resumeSessionId: session.sessionId });
const decisions = again.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' }) as const);
const result = await again.resume({ decisions }).result;
console.log(result.stopReason, result.text);
await again.close();
