/**
 * Models: requests fail, break off, hang and are slow, and each is looked at.
 *
 * Law 2: what is sent is a history that every protocol accepts. Law 11: within a turn a request begins with the one before it,
 * between compactions, as long as it is not resumed.
 */
import { attemptChat } from '../../core/attempt-chat.ts';
import { LLMError } from '../../core/errors.ts';
import { decorateLLM, type LLM, type LLMRequest, type LLMResponse } from '../../core/llm.ts';
import type { Message } from '../../core/message.ts';
import { findBrokenMessages } from './check-messages.ts';
import type { SimulatedProcess, Passage } from './simulated-process.ts';

/** Failures of a request that the same request may not meet again, and one that it will. */
const ERROR_KINDS = ['server', 'rate_limit', 'network', 'unknown'] as const;

/** The model requests of one process. */
export class ModelWatch {
  readonly #process: SimulatedProcess;
  readonly #before = new Map<string, SentRequest>();

  constructor(process: SimulatedProcess) {
    this.#process = process;
  }

  watch(llm: LLM): LLM {
    return decorateLLM(llm, (request) => {
      this.#look(llm, request);
      return this.#process.pass('model', request.signal, (passage) => answer({ process: this.#process, llm, request }, passage));
    });
  }

  #look({ modelId }: LLM, request: LLMRequest): void {
    const { world } = this.#process;
    if (this.#process.isDead) return;
    const { messages, scope } = request;
    world.tell('model', `${modelId} is asked with ${messages.length} messages, the last ${describe(messages.at(-1))}`);
    for (const problem of findBrokenMessages(messages)) world.report(`a request to ${modelId} has a broken history: ${problem}`, 2);
    // Without tools a turn has one step, and what asks more than once is a summary or the like.
    if (scope === undefined || request.tools.length === 0) return;
    const key = `${modelId} ${scope.turnId}`;
    const before = this.#before.get(key);
    const changes = this.#changes(scope.turnId);
    const now: SentRequest = { request, changes, step: scope.step };
    this.#before.set(key, now);
    if (before === undefined || before.changes !== changes) return;
    const difference = findChange(before.request, request);
    if (difference !== undefined) world.report(`the request of step ${scope.step} of ${scope.turnId} does not begin with that of step ${before.step}: ${difference}`, 11);
  }

  /** How often the history of a turn was changed, or what is remembered was looked up anew, as far as it was kept. */
  #changes(turnId: string): number {
    let count = 0;
    for (const events of this.#process.world.logs.values()) {
      for (const event of events) if ((event.type === 'compaction' || event.type === 'turn.resume') && event.turnId === turnId) count += 1;
    }
    return count;
  }
}

interface SentRequest {
  readonly request: LLMRequest;
  readonly changes: number;
  readonly step: number;
}

/** Where a request does not go on from the one before; undefined if it does. */
function findChange(before: LLMRequest, now: LLMRequest): string | undefined {
  if (before.tools !== now.tools && JSON.stringify(before.tools) !== JSON.stringify(now.tools)) return undefined;
  if (before.systemPrompt !== now.systemPrompt) return 'the system prompt is another';
  const index = before.messages.findIndex((message, at) => !isSame(message, now.messages[at]));
  return index === -1 ? undefined : `message ${index} was ${describe(before.messages[index])}, and is ${describe(now.messages[index])}`;
}

function isSame(before: Message, now: Message | undefined): boolean {
  return before === now || JSON.stringify(before) === JSON.stringify(now);
}

function describe(message: Message | undefined): string {
  return message === undefined ? 'nothing' : `${message.role} ${JSON.stringify(message.content)}`;
}

interface Asked {
  readonly process: SimulatedProcess;
  readonly llm: LLM;
  readonly request: LLMRequest;
}

async function answer(asked: Asked, { fault, dice }: Passage): Promise<LLMResponse> {
  const { process, llm, request } = asked;
  if (fault === 'stall') return process.stall(request.signal);
  if (fault === 'deaf') return process.deaf();
  if (fault === 'error') {
    const kind = ERROR_KINDS[Math.floor(dice * ERROR_KINDS.length)] ?? 'server';
    throw new LLMError({ kind, message: `simulated: the request fails with ${kind}` });
  }
  if (fault === 'cut') return cut(asked, dice);
  const response = await attemptChat(llm, request);
  process.world.tell('model', `${llm.modelId} answers ${JSON.stringify(response.content)} (${response.stopReason})`);
  return response;
}

/** The first fragments come, then the connection breaks. */
async function cut({ process, llm, request }: Asked, dice: number): Promise<never> {
  const { onDelta } = request;
  let left = Math.floor(dice * 6);
  const some = (delta: Parameters<NonNullable<typeof onDelta>>[0]): void => {
    if (left > 0) onDelta?.(delta);
    left -= 1;
  };
  await process.alive(llm.chat({ ...request, onDelta: some }));
  throw new LLMError({ kind: 'network', message: 'simulated: the connection broke in the middle of the reply' });
}
