/**
 * A scripted model that plays scenes, with a small wire form of its requests: the in-process adapter that the kit's
 * own tests run on, and that `llm-conformance-faults.ts` breaks.
 */
import {
  LLMError,
  type LLM,
  type LLMDelta,
  type LLMRequest,
  type LLMResponse,
  type Message,
  type PartialReplyPart,
  type ReplyPart,
  type Runtime,
  systemRuntime,
  textOf,
} from 'turnloop';
import { scriptedLLM, type ScriptedReply } from 'turnloop/testing';
import { type LLMScene, type LLMScenePart, type LLMSceneRequest, type LLMSceneStep, type LLMSentCall, type LLMSentResult, type LLMUnderTest } from 'turnloop/testing/conformance';

/** Writes a request as a server is to get it. */
export type WireWriter = (request: LLMRequest) => LLMSceneRequest;

/** What there is of a reply besides its content. */
const REPLIED = { responseId: 'reply_1', modelId: 'scripted-model-1', rawStopReason: 'the end' };

/** A scripted model on a scene. */
export function scriptedOnScene(scene: LLMScene, write: WireWriter = toWire): LLMUnderTest {
  const requests: LLMSceneRequest[] = [];
  const llm: LLM = {
    provider: 'scripted',
    modelId: 'scripted-model',
    systemPrompt: '',
    async chat(request) {
      request.signal.throwIfAborted();
      const steps = scene.answers[requests.length] ?? [];
      let onLetGo = (): void => {};
      const letGo = new Promise<void>((resolve) => (onLetGo = resolve));
      requests.push({ letGo, replied: REPLIED, ...write(request) });
      try {
        return { ...(await play(steps, scene, request)), ...REPLIED };
      } catch (thrown) {
        onLetGo();
        throw thrown;
      }
    },
  };
  return { llm, requests: () => requests };
}

function play(steps: readonly LLMSceneStep[], { apiKey }: LLMScene, request: LLMRequest): Promise<LLMResponse> {
  // With a clock that runs the scene's waits, each fragment waits for its own.
  const llm = scriptedLLM([toReply(steps, apiKey)], { runtime: pacedBy(steps) });
  return llm.chat(request);
}

function toReply(steps: readonly LLMSceneStep[], apiKey: string): ScriptedReply {
  const content = steps.flatMap((step) => (step.type === 'part.begin' ? [toReplyPart(step.part)] : []));
  const deltas = steps.flatMap(toDeltas);
  const reply = { content, deltas, delayMs: 1, deltaDelayMs: 1 };
  const end = steps.find((step) => ['finish', 'refuse', 'fail', 'cut', 'close', 'stall'].includes(step.type));
  switch (end?.type) {
    case 'finish': {
      const { stopReason, usage } = end;
      const mayBeEmpty = stopReason === 'filtered' || stopReason === 'max_tokens';
      const error = new LLMError({ kind: 'malformed_response', code: 'empty', message: 'The reply is empty.', usage });
      return mayBeEmpty || content.some((part) => part.type !== 'thinking') ? { ...reply, stopReason, usage } : { ...reply, error };
    }
    case 'refuse':
    case 'fail': {
      const { kind, message, retryAfterMs } = end.failure;
      return { ...reply, error: new LLMError({ kind, message: message.replaceAll(apiKey, '***'), retryAfterMs }) };
    }
    case 'cut':
    case 'close':
      return { ...reply, error: new LLMError({ kind: 'network', message: 'The connection broke.', partial: partialOf(content) }) };
    default:
      return { ...reply, hangs: true };
  }
}

function toReplyPart(part: LLMScenePart): ReplyPart {
  const { index: _index, ...rest } = part;
  if (rest.type !== 'tool_call') return rest;
  const { callIndex: _callIndex, ...call } = rest;
  return call;
}

function toDeltas(step: LLMSceneStep): LLMDelta[] {
  if (step.type === 'part.begin' && step.part.type === 'tool_call') {
    const { type, callIndex, name, providerId } = step.part;
    return [{ type, callIndex, name, providerId, inputText: '' }];
  }
  if (step.type !== 'part.delta') return [];
  const { part, text } = step;
  return [part.type === 'tool_call' ? { type: part.type, callIndex: part.callIndex, inputText: text } : { type: part.type, text }];
}

function partialOf(content: readonly ReplyPart[]): readonly PartialReplyPart[] {
  return content.filter((part): part is PartialReplyPart => part.type !== 'tool_call');
}

/** A clock on which each timer lasts as long as the scene's steps before the next fragment. */
function pacedBy(steps: readonly LLMSceneStep[]): Runtime {
  const left = [...steps];
  let isBegun = false;
  return {
    ...systemRuntime,
    setTimer(_delayMs, callback) {
      let isCancelled = false;
      void (async () => {
        await Promise.resolve();
        // The first timer is the one before the answer; each later one is that of a fragment.
        for (let step = left[0]; step !== undefined && toDeltas(step).length === 0; step = left[0]) {
          left.shift();
          if (step.type === 'wait') await step.until();
        }
        if (isBegun) left.shift();
        isBegun = true;
        if (!isCancelled) callback();
      })();
      return () => {
        isCancelled = true;
      };
    },
  };
}

/** A wire form with all that requests have to keep: ids that pair up, arguments that are objects, nothing of strangers. */
export function toWire({ systemPrompt, tools, messages, toolChoice, maxOutputTokens, responseSchema }: LLMRequest): LLMSceneRequest {
  const calls: LLMSentCall[] = [];
  const results: LLMSentResult[] = [];
  const wireIds = new Map<string, string>();
  const history = messages.map((message) => {
    if (message.role === 'tool') {
      results.push({ id: wireIds.get(message.toolCallId) ?? '', text: textOf(message) });
      return { ...results.at(-1), isError: message.isError };
    }
    if (message.role === 'user') return textOf(message);
    return message.content.map((part) => {
      if (part.type === 'thinking') return isOwn(message) ? part : undefined;
      if (part.type !== 'tool_call') return part.type === 'text' ? part.text : undefined;
      const ids = [part.providerId, part.id].filter((id) => id !== undefined && /^\w{1,40}$/.test(id));
      const id = ids.find((each) => calls.every((call) => call.id !== each)) ?? part.id;
      wireIds.set(part.id, id);
      calls.push({ id: id, name: part.name, inputText: objectText(part.inputText) });
      return calls.at(-1);
    });
  });
  return { body: JSON.stringify({ systemPrompt, tools, history, toolChoice, maxOutputTokens, responseSchema }), calls, results };
}

function isOwn(message: Message): boolean {
  return message.role === 'assistant' && message.source?.provider === 'scripted';
}

function objectText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? text : '{}';
  } catch {
    return '{}';
  }
}
