import { describe, expectTypeOf, it } from 'vitest';
import { type AnyTool, type LLM, type LoopEvent, type OpenTurn, type PendingCall, type StandardSchema, type TurnControl, type TurnResult, type Usage } from 'turnloop';
import {
  type Agent,
  type AgentOptions,
  type AgentTurnEvent,
  type AgentTurnResult,
  createAgent,
  type OpenSessionOptions,
  type QueuedInput,
  type RunOptions,
  type Session,
  type SessionStatus,
  type Turn,
} from 'turnloop/agent';
import { fileSessionStore, inProcessSessionStore, type HandoffEvent, type SessionEvent, type SessionStore } from 'turnloop/sessions';

declare const llm: LLM;
declare const tool: AnyTool;
declare const agent: Agent;
declare const session: Session;
declare const turn: Turn;
declare const schema: StandardSchema<{ city: string }>;

describe('SH1 agent', () => {
  it('SH1 needs a model, and nothing else', () => {
    expectTypeOf(createAgent({ llm })).toEqualTypeOf<Agent>();
    // @ts-expect-error Without a model there is no agent.
    createAgent({ tools: [tool] });
    // @ts-expect-error An option that does not exist.
    createAgent({ llm, tool });
    expectTypeOf<keyof AgentOptions>().toEqualTypeOf<
      | 'name' | 'description' | 'llm' | 'systemPrompt' | 'tools' | 'deferredTools' | 'maxSteps' | 'stopWhen' | 'retry' | 'timeouts' | 'context'
      | 'loopGuard' | 'thinkTags' | 'continuePaused' | 'approval' | 'budget' | 'guardrails' | 'hooks' | 'recoveries' | 'request' | 'output' | 'memory' | 'subAgents' | 'handoffs'
      | 'sessions' | 'learned' | 'followUps' | 'deadlineMs' | 'graceMs' | 'maxParallelTools' | 'runtime' | 'onProblem'
    >();
  });

  it('SH1 what it is made with can be switched off', () => {
    createAgent({ llm, retry: false, timeouts: false, context: false, loopGuard: false, maxSteps: 0 });
  });

  it('E15 the schema of the answer is the type of the output', async () => {
    const typed = createAgent({ llm, output: schema });
    expectTypeOf(typed).toEqualTypeOf<Agent<{ city: string }>>();
    const { output } = await (await typed.openSession()).run('Where?').result;
    expectTypeOf(output).toEqualTypeOf<{ city: string } | undefined>();
    const { output: none } = await turn.result;
    // An agent without a schema may hand over to one that has any.
    expectTypeOf(none).toEqualTypeOf<unknown>();
  });

  it('E16 agents of any answer are handed over to', () => {
    createAgent({ llm, handoffs: [createAgent({ llm, output: schema }), agent] });
    createAgent({ llm, handoffs: () => [agent] });
  });

  it('SH1 opens sessions and runs single turns', () => {
    expectTypeOf(agent.openSession).toEqualTypeOf<(options?: OpenSessionOptions) => Promise<Session>>();
    expectTypeOf(agent.run('Hello.')).toEqualTypeOf<Turn>();
    expectTypeOf(agent.sessions).toEqualTypeOf<SessionStore>();
    expectTypeOf<keyof OpenSessionOptions>().toEqualTypeOf<'sessionId' | 'resumeSessionId' | 'fork' | 'memoryOwners' | 'metadata'>();
  });
});

describe('SH1 session', () => {
  it('SH1 runs turns, one at a time', () => {
    expectTypeOf(session.run('Hello.')).toEqualTypeOf<Turn>();
    expectTypeOf(session.resume({ decisions: [{ toolCallId: 'call', action: 'allow' }] })).toEqualTypeOf<Turn>();
    expectTypeOf(session.followUp('And then?')).toEqualTypeOf<Promise<QueuedInput>>();
    expectTypeOf(session.status).toEqualTypeOf<SessionStatus>();
    expectTypeOf(session.openTurn()).toEqualTypeOf<OpenTurn | undefined>();
    expectTypeOf(session.pending()).toEqualTypeOf<readonly PendingCall[]>();
    expectTypeOf(session.usage).toEqualTypeOf<Usage>();
    expectTypeOf(session.events()).toEqualTypeOf<Promise<readonly SessionEvent[]>>();
    // @ts-expect-error An input is a text or messages.
    session.run(1);
    // @ts-expect-error Decisions are about calls.
    session.resume({ decisions: [{ action: 'allow' }] });
    expectTypeOf<keyof RunOptions>().toEqualTypeOf<'signal' | 'deadlineMs' | 'host' | 'skill' | 'metadata' | 'denyPending'>();
  });
});

describe('SH1 turn', () => {
  it('SH1 is a control, has a result, and is iterated over', async () => {
    expectTypeOf(turn).toExtend<TurnControl>();
    expectTypeOf(turn.result).toEqualTypeOf<Promise<AgentTurnResult>>();
    expectTypeOf<AgentTurnResult>().toExtend<TurnResult>();
    for await (const event of turn) expectTypeOf(event).toEqualTypeOf<AgentTurnEvent>();
    expectTypeOf<AgentTurnEvent>().toEqualTypeOf<LoopEvent | HandoffEvent>();
  });
});

describe('SH1 session stores', () => {
  it('SH1 are made by functions', () => {
    expectTypeOf(fileSessionStore('./sessions')).toExtend<SessionStore>();
    expectTypeOf(inProcessSessionStore()).toExtend<SessionStore>();
  });
});
