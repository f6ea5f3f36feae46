/**
 * Request size: what the next request of a conversation will cost, and what is remembered of the one before.
 *
 * The figure is the estimate, or what the provider counted last time plus an estimate of what came since, whichever is
 * more. A count is used only as long as the request still begins with the very messages that were counted: after a
 * compaction it says nothing.
 *
 * All of it is memory that may be lost: after a restart the estimate alone counts.
 */
import type { LLM } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import type { AnyTool } from '../core/tool.ts';
import { answeringModel } from './answering-model.ts';
import { isRecorded } from './history-edits.ts';
import type { EstimatedModel, EstimatedRequest, TokenEstimator } from './token-estimator.ts';

/** What is remembered of a conversation. */
export interface Conversation {
  /** The last request that was counted, and its count. */
  counted: { readonly request: EstimatedRequest; readonly model: EstimatedModel; readonly tokens: number } | undefined;
  /** When the last reply was there: until then the provider has held what it keeps of the request. */
  lastReplyAt: number | undefined;
  /** Summaries that failed in a row. */
  failures: number;
  /** How many occasions for a summary are still to pass without one. */
  pause: number;
  /** True once a compaction was recorded and the history stayed as it was: no more are. */
  isStuck: boolean;
  /** True once it was told that messages have the same id. */
  toldEqualIds: boolean;
  /** The tools of the last step. */
  tools: readonly AnyTool[];
  /** Layers that found nothing worth a change, and when: they look at the whole history, so not at each step anew. */
  readonly idle: Map<string, IdleLayer>;
}

/** When a layer found nothing. */
interface IdleLayer {
  /** Tokens of the request then. */
  readonly tokens: number;
  /** What it was to gain at least. */
  readonly minGain: number;
}

/** So many messages a turn may begin with, behind the last reply that was seen. */
const LOOK_BACK = 64;

/**
 * Remembers conversations: by their turn, and from turn to turn by their newest reply, which they have and no other has. A
 * fork goes on from a reply that its origin has too: it shares what the provider keeps of their past, and nothing else. A
 * turn that ended before its reply is known by what was said in it.
 */
export class Conversations {
  readonly #byTurn = new WeakMap<AbortSignal, Conversation>();
  readonly #byReply = new WeakMap<Message, Conversation>();
  readonly #newest = new WeakMap<Conversation, Message>();
  /** What was said in a turn that went on from the newest reply, and has no reply of its own yet. */
  readonly #unanswered = new WeakMap<Conversation, Message>();

  /** What is remembered of the conversation of a turn. */
  of(signal: AbortSignal, messages: readonly Message[]): Conversation {
    const conversation = this.#byTurn.get(signal) ?? this.#before(messages);
    this.#byTurn.set(signal, conversation);
    return conversation;
  }

  /** A conversation has got a reply. */
  answered(conversation: Conversation, reply: Message): void {
    this.#byReply.set(reply, conversation);
    this.#newest.set(conversation, reply);
    this.#unanswered.delete(conversation);
  }

  #before(messages: readonly Message[]): Conversation {
    const fresh: Conversation = { counted: undefined, lastReplyAt: undefined, failures: 0, pause: 0, isStuck: false, toldEqualIds: false, tools: [], idle: new Map() };
    const reply = messages.slice(-LOOK_BACK).findLast((message) => this.#byReply.has(message));
    const known = reply === undefined ? undefined : this.#byReply.get(reply);
    if (known === undefined) return fresh;
    const { counted, lastReplyAt } = known;
    if (this.#newest.get(known) !== reply) return { ...fresh, counted, lastReplyAt };
    const unanswered = this.#unanswered.get(known);
    // Whoever goes on from the reply without what was said since is a fork.
    if (unanswered !== undefined && !messages.includes(unanswered)) return { ...fresh, counted, lastReplyAt };
    const said = messages.findLast(isRecorded);
    if (said === undefined || said === reply) this.#newest.delete(known);
    else this.#unanswered.set(known, said);
    return known;
  }
}

/** What a request will cost. */
export interface RequestSize {
  /** The request. */
  readonly request: EstimatedRequest;
  /** Tokens of it. */
  readonly tokens: number;
  /** Tokens for each token of the estimator: its calibration, and what the last count says beyond it. */
  readonly scale: number;
  /** Tokens of the same request with another history. */
  readonly with: (messages: readonly Message[]) => number;
}

/** Measures a request. */
export function requestSize(
  request: EstimatedRequest,
  llm: LLM,
  { estimator, conversation }: { readonly estimator: TokenEstimator; readonly conversation?: Conversation | undefined },
): RequestSize {
  const model = answeringModel(llm);
  const estimate = Math.max(1, estimator.estimateRequest(request, model));
  const tokens = Math.max(estimate, countedTokens(request, model, { estimator, conversation, estimate }));
  const ratio = tokens / estimate;
  return {
    request,
    tokens: Math.ceil(tokens),
    scale: ratio * estimator.factorOf(model),
    with: (messages) => Math.ceil(ratio * estimator.estimateRequest({ ...request, messages }, model)),
  };
}

function countedTokens(
  request: EstimatedRequest,
  model: EstimatedModel,
  { estimator, conversation, estimate }: { readonly estimator: TokenEstimator; readonly conversation: Conversation | undefined; readonly estimate: number },
): number {
  const counted = conversation?.counted;
  if (counted === undefined || !isSameModel(counted.model, model)) return 0;
  const { messages } = counted.request;
  if (!messages.every((message, index) => message === request.messages[index])) return 0;
  return counted.tokens + estimate - estimator.estimateRequest(counted.request, model);
}

function isSameModel(left: EstimatedModel, right: EstimatedModel): boolean {
  return left.provider === right.provider && left.modelId === right.modelId;
}
