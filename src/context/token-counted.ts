/**
 * Token counted: the requests of which a provider told the tokens, so that a later request of the same conversation shows
 * what its new messages alone had.
 *
 * A request is found by its last message. It counts as the beginning of a later one only if system prompt, tools and
 * messages up to there come to the very same estimate, class by class: after a compaction they do not.
 */
import type { Message } from '../core/message.ts';
import type { CountedRequest } from './token-calibration.ts';
import type { EstimatedRequest, RequestCounter } from './token-history.ts';

/** As many messages as a step with many calls adds; what lies further back is not looked for. */
const LOOK_BACK = 64;

/** The requests of one model that were counted. Holds them as long as their last message lives. */
export class CountedRequests {
  readonly #byLastMessage = new WeakMap<Message, CountedRequest>();

  /** Remembers a request. */
  add({ messages }: EstimatedRequest, counted: CountedRequest): void {
    const last = messages.at(-1);
    if (last !== undefined) this.#byLastMessage.set(last, counted);
  }

  /** The newest request that was counted and that this one begins with. */
  before(request: EstimatedRequest, counter: RequestCounter): CountedRequest | undefined {
    const { messages } = request;
    for (let length = messages.length - 1; length > Math.max(0, messages.length - LOOK_BACK); length -= 1) {
      const last = messages[length - 1];
      const counted = last === undefined ? undefined : this.#byLastMessage.get(last);
      if (counted === undefined) continue;
      const counts = counter.ofRequest(request, length);
      return counts.every((count, kind) => count === counted.counts[kind]) ? counted : undefined;
    }
    return undefined;
  }
}
