/**
 * Fake model: plays the attempts of a scenario. Which one is a function of the step and of how often that step's request
 * was sent, so that a turn that is resumed meets the same model.
 */
import {
  attemptChat,
  decorateLLM,
  isLLMError,
  type LLM,
  type LLMDelta,
  LLMError,
  type LLMRequest,
  type LLMResponse,
  type PartialReplyPart,
  type ReplyPart,
  toUsage,
} from 'turnloop';
import type { AttemptEnd, AttemptSpec, PartSpec, Scenario } from './scenario.ts';
import type { World } from './world.ts';

/** A request that the fake model got. */
export interface SeenRequest {
  readonly request: LLMRequest;
  readonly stepId: string;
  /** JSON of its messages when it came. */
  readonly json: string;
}

const DONE: AttemptSpec = {
  pace: 'sync',
  deltas: 'whole',
  lateDelta: false,
  usage: { inputTokens: 1, outputTokens: 1 },
  end: { kind: 'reply', parts: [{ kind: 'text', text: 'done' }], stopReason: 'auto' },
};

/** Makes the model of a scenario; every request goes to `seen`. */
export function fakeModel(scenario: Scenario, world: World, seen: SeenRequest[]): LLM {
  const tries = new Map<string, number>();
  const model: LLM = {
    provider: 'fake',
    modelId: 'fake-1',
    systemPrompt: 'You are fake.',
    chat: (request) => {
      const { step, stepId } = request.scope!;
      const attempt = tries.get(stepId) ?? 0;
      tries.set(stepId, attempt + 1);
      seen.push({ request, stepId, json: JSON.stringify(request.messages) });
      const script = scenario.steps[step - 1] ?? [DONE];
      return playAttempt(script[Math.min(attempt, script.length - 1)]!, request, world);
    },
  };
  return scenario.retries === 0 ? model : retrying(model, scenario.retries, world);
}

function playAttempt(spec: AttemptSpec, request: LLMRequest, world: World): Promise<LLMResponse> {
  if (spec.end.kind === 'throws' && spec.end.sync) throw thrown(spec.end.value);
  return (async () => {
    stream(spec, request);
    // Behind the reply if it is quick, else while it still hangs, possibly behind the turn.
    if (spec.lateDelta) for (const ms of [1, 30, 200]) world.runtime.setTimer(ms, () => request.onDelta?.({ type: 'text', text: 'late' }));
    return world.take(spec.pace, request.signal, () => outcome(spec, world));
  })();
}

function stream(spec: AttemptSpec, request: LLMRequest): void {
  if (spec.deltas === 'none') return;
  const parts = spec.end.kind === 'reply' ? spec.end.parts : spec.end.kind === 'error' ? (spec.end.partial ?? []) : [];
  let calls = 0;
  for (const part of parts) {
    const callIndex = part.kind === 'call' ? calls++ : 0;
    for (const delta of deltasOf(part, callIndex, spec.deltas === 'letters')) request.onDelta?.(delta);
  }
}

function deltasOf(part: PartSpec, callIndex: number, letters: boolean): readonly LLMDelta[] {
  const cut = (text: string): readonly string[] => (letters ? Array.from(text) : [text]);
  switch (part.kind) {
    case 'text':
    case 'blank':
      return cut(part.text).map((text) => ({ type: 'text', text }));
    case 'thinking':
      return cut(part.text).map((text) => ({ type: 'thinking', text }));
    case 'call':
      return ['', ...cut(part.inputText)].map((text, index) => ({
        type: 'tool_call',
        callIndex,
        inputText: text,
        ...(index === 0 && { name: part.tool, ...(part.providerId !== undefined && { providerId: part.providerId }) }),
      }));
    default:
      return [];
  }
}

function outcome(spec: AttemptSpec, world: World): LLMResponse {
  const { end } = spec;
  const usage = toUsage(spec.usage);
  const tell = (certain: boolean): void => {
    world.told.push({ usage, at: world.runtime.now(), certain });
  };
  switch (end.kind) {
    case 'reply': {
      tell(true);
      const content = end.parts.map(replyPart);
      const hasCalls = content.some((part) => part.type === 'tool_call');
      const stopReason = end.stopReason === 'auto' ? (hasCalls ? 'tool_use' : 'end_turn') : end.stopReason;
      // As told, with counters that are no counts: the loop has to mend them.
      return { content, stopReason, usage: { ...usage, ...spec.usage } };
    }
    case 'error':
      if (end.tellsUsage) tell(true);
      throw new LLMError({
        kind: end.error,
        message: `fake ${end.error}`,
        ...(end.tellsUsage && { usage }),
        ...(end.partial !== undefined && { partial: end.partial.map(replyPart) as PartialReplyPart[] }),
        ...(end.stopReason !== undefined && { stopReason: end.stopReason }),
      });
    case 'throws':
      throw thrown(end.value);
    case 'garbage':
      return garbage(end.value, usage, tell);
  }
}

function garbage(
  value: (AttemptEnd & { kind: 'garbage' })['value'],
  usage: LLMResponse['usage'],
  tell: (certain: boolean) => void,
): LLMResponse {
  switch (value) {
    case 'nothing':
      return undefined as unknown as LLMResponse;
    case 'no_content':
      tell(false);
      return { stopReason: 'end_turn', usage } as unknown as LLMResponse;
    case 'bad_call':
      tell(false);
      return { content: [{ type: 'tool_call', name: 'read' }], stopReason: 'tool_use', usage } as unknown as LLMResponse;
    case 'empty':
      tell(true);
      return { content: [], stopReason: 'end_turn', usage };
  }
}

function thrown(value: (AttemptEnd & { kind: 'throws' })['value']): unknown {
  switch (value) {
    case 'error':
      return new Error('fake failure');
    case 'abort_error':
      return new DOMException('Looks like an abort.', 'AbortError');
    case 'string':
      return 'a string';
    case 'nothing':
      return undefined;
  }
}

function replyPart(part: PartSpec): ReplyPart {
  switch (part.kind) {
    case 'text':
    case 'blank':
      return { type: 'text', text: part.text };
    case 'thinking':
      return { type: 'thinking', text: part.text, ...(part.signed && { signature: 'signed' }) };
    case 'media':
      return { type: 'media', mediaType: 'image/png', data: 'AAAA' };
    case 'provider':
      return { type: 'provider', provider: 'fake', data: { block: 1 } };
    case 'call':
      return {
        type: 'tool_call',
        name: part.tool,
        inputText: part.inputText,
        ...(part.providerId !== undefined && { providerId: part.providerId }),
      };
  }
}

/** A plain decorator that tries again after passing failures: what every retry policy comes down to. */
function retrying(llm: LLM, retries: number, world: World): LLM {
  return decorateLLM(llm, async (request) => {
    for (let left = retries; ; left -= 1) {
      try {
        return await attemptChat(llm, request);
      } catch (error) {
        if (left === 0 || !isLLMError(error) || !error.retryable || request.signal.aborted) throw error;
        await request.onAttemptFailed?.({ error, delayMs: 1 });
        await world.sleep(1, request.signal);
      }
    }
  });
}
