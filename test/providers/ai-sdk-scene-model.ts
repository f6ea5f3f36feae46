/**
 * Scenes of the LLM conformance kit on a model of the AI SDK: its stream has the parts that the steps tell of, in the
 * words of a specification. It ends as those of the SDK's packages do, and refuses as a strict one would.
 */
import { APICallError } from 'ai';
import type { StepStopReason, Usage } from 'turnloop';
import type { AiSdkModel } from 'turnloop/providers/ai-sdk';
import type { LLMScene, LLMSceneFailure, LLMSceneFinish, LLMScenePart, LLMSceneReplied, LLMSceneRequest, LLMSceneStep } from 'turnloop/testing/conformance';
import { chatProtocol } from '../support/scene-server-chat.ts';
import type { SentMessage, StreamPart, Version } from './ai-sdk-models.ts';
import { checkPrompt } from './ai-sdk-rules.ts';

/** A model that plays a scene. */
export interface SceneModel {
  readonly model: AiSdkModel;
  requests(): readonly LLMSceneRequest[];
}

interface Asked {
  readonly prompt: readonly SentMessage[];
  readonly abortSignal: AbortSignal;
}

const ID = 'resp_1';
const MODEL = 'fake-model-2025';

/** Makes a model. It has no bytes, so pieces of them make no difference. */
export function sceneModel({ answers }: LLMScene, version: Version): SceneModel {
  const requests: LLMSceneRequest[] = [];
  const model: AiSdkModel = {
    specificationVersion: version,
    provider: 'fake.chat',
    modelId: 'fake-model',
    doGenerate: () => Promise.reject(new Error('the scene streams')),
    doStream(options) {
      const { abortSignal, ...asked } = options as Asked;
      const steps = answers[requests.length] ?? [];
      const answer = new Answer(version);
      const letGo = new Promise<void>((resolve) => {
        answer.onCancel = resolve;
        abortSignal.addEventListener('abort', () => resolve());
      });
      requests.push({ body: JSON.stringify(asked), letGo, replied: repliedBy(steps, version), ...read(asked.prompt) });
      const broken = checkPrompt(asked.prompt, version);
      if (broken.length > 0) return Promise.reject(apiError({ kind: 'invalid_request', message: broken.join('; ') }));
      void answer.play(steps);
      return answer.begun;
    },
  };
  return { model, requests: () => requests };
}

/** One answer under way. */
class Answer {
  readonly begun: Promise<{ readonly stream: ReadableStream<unknown> }>;
  onCancel = (): void => {};
  readonly #version: Version;
  readonly #stream: ReadableStream<unknown>;
  #controller!: ReadableStreamDefaultController<unknown>;
  #begin!: (value: { readonly stream: ReadableStream<unknown> }) => void;
  #refuse!: (reason: unknown) => void;
  #isBegun = false;
  #isOpen = true;

  constructor(version: Version) {
    this.#version = version;
    this.begun = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#refuse = reject;
    });
    this.#stream = new ReadableStream<unknown>({
      start: (controller) => void (this.#controller = controller),
      cancel: () => {
        this.#isOpen = false;
        this.onCancel();
      },
    });
  }

  async play(steps: readonly LLMSceneStep[]): Promise<void> {
    for (const step of steps) {
      if (step.type === 'wait') await step.until();
      else this.#take(step);
    }
  }

  #take(step: Exclude<LLMSceneStep, { type: 'wait' }>): void {
    switch (step.type) {
      case 'start':
        this.#isBegun = true;
        this.#begin({ stream: this.#stream });
        return this.#send({ type: 'stream-start', warnings: [] }, { type: 'response-metadata', id: ID, modelId: MODEL, timestamp: new Date(0) });
      case 'part.begin':
        return this.#send(...beginning(step.part));
      case 'part.delta':
        return this.#send({ type: `${NAMES[step.part.type]}-delta`, id: idOf(step.part), delta: step.text });
      case 'part.end':
        return this.#send(...ending(step.part));
      case 'finish':
        return this.#end({ type: 'finish', finishReason: toReason(step.stopReason, this.#version), usage: toUsage(step.usage, this.#version) });
      case 'refuse':
        return this.#refuse(apiError(step.failure));
      case 'fail':
        return this.#send({ type: 'error', error: errorOf(step.failure) });
      case 'cut': {
        const reset = new TypeError(this.#isBegun ? 'terminated' : 'fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });
        this.#refuse(reset);
        if (this.#isOpen) this.#controller.error(reset);
        return;
      }
      case 'close':
        // The SDK's packages end every stream that just ends, as if the model had.
        return this.#end({ type: 'finish', finishReason: this.#version === 'v2' ? 'unknown' : { unified: 'other', raw: undefined }, usage: {} });
      case 'stall':
        return;
    }
  }

  #send(...parts: readonly StreamPart[]): void {
    if (this.#isOpen) for (const part of parts) this.#controller.enqueue(part);
  }

  #end(finish: StreamPart): void {
    this.#send(finish);
    if (this.#isOpen) this.#controller.close();
    this.#isOpen = false;
  }
}

const NAMES = { text: 'text', thinking: 'reasoning', tool_call: 'tool-input' } as const;

function idOf(part: LLMScenePart): string {
  return part.type === 'tool_call' ? part.providerId : String(part.index);
}

function beginning(part: LLMScenePart): readonly StreamPart[] {
  return [{ type: `${NAMES[part.type]}-start`, id: idOf(part), ...(part.type === 'tool_call' && { toolName: part.name }) }];
}

function ending(part: LLMScenePart): readonly StreamPart[] {
  const end = { type: `${NAMES[part.type]}-end`, id: idOf(part) };
  if (part.type === 'tool_call') return [end, { type: 'tool-call', toolCallId: part.providerId, toolName: part.name, input: part.inputText }];
  return [part.type === 'thinking' && part.signature !== undefined ? { ...end, providerMetadata: { fake: { signature: part.signature } } } : end];
}

/** Each in the SDK's word, and in the provider's. */
const REASONS: Readonly<Partial<Record<StepStopReason, readonly [unified: string, raw: string]>>> = {
  end_turn: ['stop', 'end'],
  tool_use: ['tool-calls', 'calls'],
  max_tokens: ['length', 'limit'],
  stop_sequence: ['stop', 'stop_sequence'],
  filtered: ['content-filter', 'filter'],
};

function toReason(stopReason: StepStopReason, version: Version): unknown {
  const [unified, raw] = REASONS[stopReason] ?? ['other', 'other'];
  return version === 'v2' ? unified : { unified, raw };
}

function repliedBy(steps: readonly LLMSceneStep[], version: Version): LLMSceneReplied {
  const end = steps.find((step): step is LLMSceneFinish => step.type === 'finish');
  return { responseId: ID, modelId: MODEL, rawStopReason: end && REASONS[end.stopReason]?.[version === 'v2' ? 0 : 1] };
}

function toUsage({ inputTokens: noCache, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite, outputTokens, thinkingTokens: reasoning }: Usage, version: Version): object {
  const total = noCache + cacheRead + cacheWrite;
  if (version === 'v2') return { inputTokens: total, outputTokens, totalTokens: total + outputTokens, reasoningTokens: reasoning, cachedInputTokens: cacheRead };
  return { inputTokens: { total, noCache, cacheRead, cacheWrite }, outputTokens: { total: outputTokens, text: outputTokens - reasoning, reasoning } };
}

/** What a package throws for an answer that is no success, here of an OpenAI-like server. */
function apiError(failure: LLMSceneFailure): APICallError {
  const { status: statusCode, headers: responseHeaders = {}, body: responseBody } = chatProtocol.refuse(failure);
  return new APICallError({ message: failure.message, url: 'https://api.example.com/v1/chat', requestBodyValues: {}, statusCode, responseHeaders: { ...responseHeaders }, responseBody });
}

function errorOf(failure: LLMSceneFailure): unknown {
  return (JSON.parse(chatProtocol.refuse(failure).body) as { readonly error: unknown }).error;
}

interface PromptPart {
  readonly type: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  readonly output?: { readonly value: unknown };
}

function read(prompt: readonly SentMessage[]): Pick<Required<LLMSceneRequest>, 'calls' | 'results'> {
  const parts = prompt.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly PromptPart[]) : []));
  return {
    calls: parts.flatMap(({ type, toolCallId: id = '', toolName: name = '', input }) => (type === 'tool-call' ? [{ id, name, inputText: JSON.stringify(input) }] : [])),
    results: parts.flatMap(({ type, toolCallId: id = '', output }) => (type === 'tool-result' ? [{ id, text: String(output?.value) }] : [])),
  };
}
