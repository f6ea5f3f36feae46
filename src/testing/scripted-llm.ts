/**
 * Scripted LLM: a model that plays a list of replies and remembers what it was asked.
 *
 * - Each request takes the next reply of the list, a failed one too.
 * - A request that finds no reply fails loudly, and `assertDone` fails if replies are left: a test never passes
 *   because the model said something by default.
 * - It keeps the contract of `LLM`: rejects soon when aborted, and leaves nothing behind on the signal.
 */
import { assertOptions } from '../core/assert.ts';
import { LLMError, type PartialReplyPart } from '../core/errors.ts';
import type { LLM, LLMCapabilities, LLMRequest, LLMResponse, ReplyPart } from '../core/llm.ts';
import { textOf } from '../core/message.ts';
import { sleep, type Runtime } from '../core/runtime.ts';
import { toUsage, type Usage } from '../core/usage.ts';
import { arrivedParts, fragmentsOf, type Fragment } from './reply-stream.ts';
import {
  partsOf,
  resolveReply,
  StreamCut,
  type ChunkSize,
  type ScriptedReply,
} from './reply.ts';
import { ScriptCursor, type Script } from './script-cursor.ts';
import { createUsageSimulator, type UsageSimulator } from './simulated-usage.ts';

/** Options of {@link scriptedLLM}. */
export interface ScriptedLLMOptions {
  /** @defaultValue `'scripted'` */
  readonly provider?: string | undefined;
  /** @defaultValue `'scripted-model'` */
  readonly modelId?: string | undefined;
  /** @defaultValue empty */
  readonly systemPrompt?: string | undefined;
  /** @defaultValue none */
  readonly capabilities?: LLMCapabilities | undefined;
  /** Characters per fragment. @defaultValue one fragment a part */
  readonly chunk?: ChunkSize | undefined;
  /** Whether it streams at all. @defaultValue true */
  readonly streams?: boolean | undefined;
  /** Tokens of each reply that does not say its own. @defaultValue derived from sizes, four characters to a token */
  readonly usage?: Partial<Usage> | ((request: LLMRequest, content: readonly ReplyPart[]) => Partial<Usage>) | undefined;
  /** Whether what a request repeats of the one before counts as read from a cache. @defaultValue false */
  readonly cache?: boolean | undefined;
  /** Clock for delays of requests without a `scope`; the turn's own comes first. */
  readonly runtime?: Runtime | undefined;
  /** Whether requests are kept, each with its own list of messages. @defaultValue true */
  readonly keepRequests?: boolean | undefined;
}

/** A model that plays a script. Made by {@link scriptedLLM}. */
export interface ScriptedLLM extends LLM {
  /** The requests so far, each as it was when it came: its list of messages is a copy. */
  readonly requests: readonly LLMRequest[];
  /** How many requests came. */
  readonly callCount: number;
  /** How many requests have not settled. */
  readonly runningCount: number;
  /** How many replies of the list nobody has asked for; endless ones count as none. */
  readonly repliesLeft: number;
  /** Throws if replies are left, or if there were requests without a reply. */
  assertDone(): void;
}

/**
 * Makes a model that plays a script.
 *
 * @param script - Replies in order, or a function of the request for an endless model.
 * @throws TypeError for what is no script or no reply, and for options that do not exist.
 * @example
 * ```ts
 * const llm = scriptedLLM([toolCall('echo', { text: 'hi' }), 'done']);
 * ```
 */
export function scriptedLLM(script: Script, options: ScriptedLLMOptions = {}): ScriptedLLM {
  return new PlayedLLM(script, options);
}

const EXAMPLE = "scriptedLLM(['hello'], { chunk: 5 })";

const OPTIONS: Readonly<Record<keyof ScriptedLLMOptions, true>> = {
  provider: true,
  modelId: true,
  systemPrompt: true,
  capabilities: true,
  chunk: true,
  streams: true,
  usage: true,
  cache: true,
  runtime: true,
  keepRequests: true,
};

function assertChunk(chunk: ChunkSize | undefined): void {
  const sizes: readonly unknown[] = typeof chunk === 'object' ? chunk : [chunk ?? 1];
  if (sizes.every((size) => typeof size === 'number' && size >= 1)) return;
  throw new TypeError(`scriptedLLM: \`chunk\` is a size in characters, at least 1, or a list of sizes, not ${JSON.stringify(chunk)}. For example: ${EXAMPLE}.`);
}

class PlayedLLM implements ScriptedLLM {
  readonly provider: string;
  readonly modelId: string;
  readonly systemPrompt: string;
  readonly capabilities?: LLMCapabilities;
  readonly requests: LLMRequest[] = [];
  callCount = 0;
  runningCount = 0;
  readonly #options: ScriptedLLMOptions;
  readonly #usage: UsageSimulator;
  readonly #script: ScriptCursor;
  #unanswered = 0;

  constructor(script: Script, options: ScriptedLLMOptions) {
    assertOptions(options, OPTIONS, { taker: 'scriptedLLM', example: EXAMPLE });
    assertChunk(options.chunk);
    this.provider = options.provider ?? 'scripted';
    this.modelId = options.modelId ?? 'scripted-model';
    this.systemPrompt = options.systemPrompt ?? '';
    if (options.capabilities !== undefined) this.capabilities = options.capabilities;
    this.#options = options;
    this.#usage = usageOf(options);
    this.#script = new ScriptCursor(script);
  }

  get repliesLeft(): number {
    return this.#script.left;
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    const callIndex = this.callCount;
    this.callCount += 1;
    if (this.#options.keepRequests !== false) this.requests.push({ ...request, messages: [...request.messages] });
    request.signal.throwIfAborted();
    const entry = this.#script.next();
    if (entry === undefined) {
      this.#unanswered += 1;
      throw outOfReplies(this.#script.total, callIndex, request);
    }
    this.runningCount += 1;
    try {
      const reply = await untilAborted(resolveReply(entry, request, callIndex), request.signal);
      return await this.#play(reply, request);
    } finally {
      this.runningCount -= 1;
    }
  }

  assertDone(): void {
    const { left, total } = this.#script;
    if (left > 0) throw new Error(`scriptedLLM: ${left} of ${total} replies were not asked for, after ${this.callCount} requests.`);
    if (this.#unanswered > 0) {
      throw new Error(`scriptedLLM: ${this.#unanswered} of ${this.callCount} requests found no reply; there were ${total}.`);
    }
  }

  async #play(reply: ScriptedReply, request: LLMRequest): Promise<LLMResponse> {
    const parts = partsOf(reply.content);
    const fragments = reply.deltas?.map((delta): Fragment => ({ delta, partIndex: 0 }))
      ?? fragmentsOf(parts, reply.chunk ?? this.#options.chunk ?? Infinity);
    const count = Math.min(reply.deltaCount ?? Infinity, fragments.length);

    if (reply.delayMs !== undefined) await this.#wait(reply.delayMs, reply, request);
    if (this.#options.streams !== false) await this.#stream(fragments.slice(0, count), reply, request);
    if (reply.ignoresAbort !== true) request.signal.throwIfAborted();

    if (reply.hangs === true) await untilAborted(new Promise(() => undefined), reply.ignoresAbort === true ? undefined : request.signal);
    if (reply.error !== undefined) throw thrownBy(reply.error, () => arrivedParts(parts, fragments, count));
    return this.#response(reply, parts, request);
  }

  async #stream(fragments: readonly Fragment[], reply: ScriptedReply, request: LLMRequest): Promise<void> {
    for (const { delta } of fragments) {
      if (reply.deltaDelayMs !== undefined) await this.#wait(reply.deltaDelayMs, reply, request);
      if (reply.ignoresAbort !== true) request.signal.throwIfAborted();
      request.onDelta?.(delta);
    }
  }

  #wait(delayMs: number, reply: ScriptedReply, request: LLMRequest): Promise<void> {
    const runtime = request.scope?.runtime ?? this.#options.runtime;
    if (runtime === undefined) {
      throw new TypeError('A delayed reply needs a clock: scriptedLLM(replies, { runtime: virtualRuntime() }).');
    }
    return sleep(delayMs, { runtime, signal: reply.ignoresAbort === true ? undefined : request.signal });
  }

  #response(reply: ScriptedReply, content: readonly ReplyPart[], request: LLMRequest): LLMResponse {
    const { rawStopReason, responseId, modelId, provider, timing } = reply;
    const hasCalls = content.some((part) => part.type === 'tool_call');
    return {
      content,
      stopReason: reply.stopReason ?? (hasCalls ? 'tool_use' : 'end_turn'),
      usage: reply.usage === undefined ? this.#usage(request, content) : toUsage(reply.usage),
      ...(rawStopReason !== undefined && { rawStopReason }),
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
      ...(provider !== undefined && { provider }),
      ...(timing !== undefined && { timing }),
    };
  }
}

function thrownBy(error: unknown, arrived: () => readonly PartialReplyPart[]): unknown {
  return error instanceof StreamCut ? error.toError(arrived()) : error;
}

function usageOf(options: ScriptedLLMOptions): UsageSimulator {
  const { usage } = options;
  if (usage === undefined) return createUsageSimulator(options.cache === true);
  return (request, content) => toUsage(typeof usage === 'function' ? usage(request, content) : usage);
}

function outOfReplies(total: number, callIndex: number, request: LLMRequest): LLMError {
  const last = request.messages.at(-1);
  const lastText = last === undefined ? '' : `, the last from "${last.role}": ${JSON.stringify(textOf(last).slice(0, 80))}`;
  const tools = request.tools.map((tool) => tool.name).join(', ');
  return new LLMError({
    kind: 'unknown',
    code: 'out_of_replies',
    retryable: false,
    message:
      `scriptedLLM ran out of replies: there were ${total}, and this is request ${callIndex + 1}. It had ` +
      `${request.messages.length} messages${lastText}; tools: ${tools === '' ? 'none' : tools}. ` +
      'Add a reply, or end the list with repeat(reply).',
  });
}

/** Waits for a promise, but no longer than until the signal aborts. */
function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
