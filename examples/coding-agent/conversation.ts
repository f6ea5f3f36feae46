/** Conversation: turns that know of each other. All there is to embedding the loop is here. */
import {
  createEventDispatcher,
  createTranscript,
  runTurn,
  type AnyTool,
  type LLM,
  type LoopEvent,
  type TurnControl,
  type TurnResult,
} from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { finalAnswer, loopGuard, maxSteps, strictHistory } from 'turnloop/policies';

/** A model that is still at it after so many steps is not getting there. */
const MAX_STEPS = 50;

export interface ConversationOptions {
  readonly llm: LLM;
  readonly tools: readonly AnyTool[];
  /** Told of every event. */
  readonly show: (event: LoopEvent) => void;
}

export interface Conversation {
  /** Runs a turn to its end. Turns of one conversation follow each other. */
  ask(question: string, control?: TurnControl): Promise<TurnResult>;
}

export function createConversation({ llm, tools, show }: ConversationOptions): Conversation {
  // What happened so far: the turns record it, and each step's history is made of it.
  const transcript = createTranscript();
  // Keeps it inside the model's window, however long it gets.
  const context = createContextPolicy();
  const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: show });
  return {
    ask: (question, control) =>
      runTurn({
        llm,
        tools,
        buildMessages: transcript.buildMessages,
        dispatchEvent,
        input: question,
        hooks: [loopGuard(), ...context.hooks, finalAnswer()],
        stopWhen: maxSteps(MAX_STEPS),
        recoveries: [strictHistory(), ...context.recoveries],
        control,
      }),
  };
}
