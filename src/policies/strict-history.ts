/**
 * Strict history: what to do when a provider says that calls and results do not pair up.
 *
 * Owns when the strict projection is used, and that it gives the same objects from step to step; what it repairs is core's
 * `projection.ts`. Sent at most once per step, since the loop tries a recovery at most once: a provider that still
 * refuses ends the turn with its second answer.
 */
import type { Recovery } from '../core/hooks.ts';
import type { Message, MessagePart } from '../core/message.ts';
import { projectMessages } from '../core/projection.ts';

/**
 * Recovery from `invalid_history`: sends the history again, repaired by the strictest rules any provider has. Leading
 * messages that are not a user's are dropped, neighbouring assistant messages merged, calls whose id was used before
 * dropped with their results.
 *
 * Without a difference to what was refused nothing is sent again. The transcript stays as it is.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, recoveries: [strictHistory()] });
 * ```
 */
export function strictHistory(): Recovery {
  return {
    name: 'strictHistory',
    kinds: ['invalid_history'],
    apply: (request, context) => {
      const { messages } = projectMessages(request.messages, { strict: true });
      if (messages === request.messages) return undefined;
      const last = context.state.get(LAST);
      const stable = last instanceof Projected ? withObjectsOf(last.messages, messages) : messages;
      context.state.set(LAST, new Projected(stable));
      return { ...request, messages: stable };
    },
  };
}

const LAST = 'projected';

/** The last projection of the turn; a class so that it is recognised among the notes, which are `unknown`. */
class Projected {
  readonly messages: readonly Message[];
  constructor(messages: readonly Message[]) {
    this.messages = messages;
  }
}

/**
 * The messages, with the earlier object wherever it says the same: a repair makes a new object each time, and adapters
 * keep the wire form of a message by its identity.
 */
function withObjectsOf(earlier: readonly Message[], messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    const known = earlier[index];
    return known !== undefined && saysTheSame(known, message) ? known : message;
  });
}

function saysTheSame(left: Message, right: Message): boolean {
  if (left === right) return true;
  if (left.role !== right.role || left.id !== right.id || left.content.length !== right.content.length) return false;
  return left.content.every((part, index) => isSamePart(part, right.content[index]));
}

/** Repairs keep the parts of a message; only texts that stand in for something missing are made anew. */
function isSamePart(left: MessagePart, right: MessagePart | undefined): boolean {
  return left === right || (left.type === 'text' && right?.type === 'text' && left.text === right.text);
}
