/**
 * Model call: one request to an AI SDK model under a watch.
 *
 * - A model that heeds neither its signal nor its stream's end still lets go: every wait is raced. Streams may be of any
 *   make, and their `cancel` may do nothing, give nothing or throw.
 * - However it ends, the stream is read to its end or cancelled, and the model's signal tells which.
 */
import { LLMError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { Runtime } from '../../core/runtime.ts';
import { createWatch, type Watch } from '../shared/watch.ts';
import type { AiSdkConfig } from './options.ts';
import type { ReplyReader } from './reply-reader.ts';

/** The surroundings of a call. */
export interface ModelCallOptions {
  /** The caller's signal. */
  readonly signal: AbortSignal;
  /** Clock and timers. */
  readonly runtime: Runtime;
  /** When the request began. */
  readonly startedAt: number;
}

/** A call under way. */
export interface ModelCall {
  /** Why it is over before its time; undefined as long as it is not. */
  interruption(): LLMError | undefined;
  /** Waits for something of the model's. */
  wait<Value>(promise: PromiseLike<Value> | Value): Promise<Value>;
  /** Asks the model and reads its reply. */
  run(options: object, reply: ReplyReader): Promise<void>;
  /** Ends the call; nothing is left of it. */
  end(): void;
}

// A model whose reply is over closes its stream at once.
const DRAIN_MS = 100;

/** Starts a call; an aborted signal interrupts it at once. */
export function startModelCall({ model, provider, timeouts, isStreamed }: AiSdkConfig, { signal, runtime, startedAt }: ModelCallOptions): ModelCall {
  const controller = new AbortController();
  let reader: ReadableStreamDefaultReader<unknown> | undefined;
  let isOver = false;
  const watch = createWatch({ signal, runtime, origin: provider, release });
  if (watch.interruption() === undefined) watch.limit('connect', Math.min(timeouts.connectMs, timeouts.firstTokenMs), startedAt);

  function release(): void {
    if (isOver) return;
    isOver = true;
    if (reader !== undefined) cancel(reader);
    controller.abort();
  }

  async function run(options: object, reply: ReplyReader): Promise<void> {
    throwIf(watch.interruption());
    const callOptions = { ...options, abortSignal: controller.signal };
    if (!isStreamed) {
      watch.limit('first_token', timeouts.firstTokenMs, startedAt);
      const result = await watch.wait(ask(() => model.doGenerate(callOptions)));
      isOver = true;
      reply.readResult(result);
      return;
    }
    const result: unknown = await watch.wait(ask(() => model.doStream(callOptions)), discard);
    reader = readerOf(isRecord(result) ? result['stream'] : undefined, provider);
    watch.limit('first_token', timeouts.firstTokenMs, startedAt);
    await readParts(reader, reply);
  }

  async function readParts(parts: ReadableStreamDefaultReader<unknown>, reply: ReplyReader): Promise<void> {
    let progress = reply.progress;
    try {
      for (;;) {
        // Cancelling settles this at once, but not in streams of every make.
        const { done, value } = await watch.wait(ask(() => parts.read()));
        throwIf(watch.interruption());
        if (done) break;
        reply.readPart(value);
        if (reply.progress === progress) continue;
        keepUp(watch, { isFirst: progress === 0, isFinished: reply.isFinished });
        progress = reply.progress;
      }
      isOver = true;
    } catch (thrown) {
      // The reply was complete: how its stream ended matters no more, unless the caller ended it.
      if (!reply.isFinished || watch.interruption()?.kind === 'aborted') throw thrown;
    }
  }

  function keepUp(limits: Watch, { isFirst, isFinished }: { readonly isFirst: boolean; readonly isFinished: boolean }): void {
    if (isFinished) limits.limit('rest', DRAIN_MS);
    else if (isFirst) limits.limit('between_tokens', timeouts.betweenTokensMs);
    else limits.touch();
  }

  return {
    interruption: () => watch.interruption(),
    wait: (promise) => watch.wait(Promise.resolve(promise)),
    run,
    end() {
      watch.end();
      release();
    },
  };
}

function throwIf(error: LLMError | undefined): void {
  if (error !== undefined) throw error;
}

/** What a model throws at once is rejected with as well. */
async function ask<Result>(call: () => PromiseLike<Result>): Promise<Result> {
  return call();
}

function readerOf(stream: unknown, provider: string): ReadableStreamDefaultReader<unknown> {
  if (isStream(stream)) return stream.getReader();
  const message = `${provider} gave no stream; is it a language model of the AI SDK?`;
  throw new LLMError({ kind: 'malformed_response', message });
}

/** A stream that comes too late. */
function discard(result: unknown): void {
  const stream = isRecord(result) ? result['stream'] : undefined;
  if (isStream(stream)) cancel(stream);
}

/** Failing to cancel what is being thrown away concerns nobody. */
function cancel(stream: { cancel(): PromiseLike<unknown> }): void {
  ask(() => stream.cancel()).catch(() => undefined);
}

/** Not by class: a stream may be of a library or of another realm. */
function isStream(value: unknown): value is ReadableStream<unknown> {
  return isRecord(value) && typeof value['getReader'] === 'function';
}
