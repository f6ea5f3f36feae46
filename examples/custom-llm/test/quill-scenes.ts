/**
 * Scenes of the conformance kit on a Quill server: each step in the words of the protocol. This is all that the kit
 * needs to know of it.
 */
import type { LLMErrorKind, StepStopReason } from 'turnloop';
import type { LLMScene, LLMSceneFailure, LLMScenePart, LLMSceneReplied, LLMSceneRequest, LLMSceneStep, LLMUnderTest } from 'turnloop/testing/conformance';
import { quillLLM } from '../index.ts';
import type { QuillEvent, QuillPart, QuillTrouble } from '../protocol.ts';
import { startQuillServer, type QuillExchange } from '../server.ts';

/** The adapter on a server that plays the scene. */
export async function quillOnScene({ answers, apiKey, chunkBytes }: LLMScene): Promise<LLMUnderTest> {
  const server = await startQuillServer(async (exchange) => {
    const steps = answers[exchange.index];
    if (steps === undefined) exchange.refuse(500, { word: 'broken', text: 'The scene has no answer to this request.' });
    else for (const step of steps) await play(step, exchange, chunkBytes);
  });
  return {
    llm: quillLLM({ url: server.url, apiKey }),
    requests: () => server.exchanges.map((exchange) => ({ ...toSceneRequest(exchange), replied: repliedBy(answers[exchange.index] ?? []) })),
    close: () => server.close(),
  };
}

const HELLO = { answer: 'answer-1', model: 'quill-1-0429' };

/** What the server says of a reply besides its content. */
function repliedBy(steps: readonly LLMSceneStep[]): LLMSceneReplied {
  const end = steps.find((step) => step.type === 'finish');
  return { responseId: HELLO.answer, modelId: HELLO.model, rawStopReason: end && WHY[end.stopReason] };
}

async function play(step: LLMSceneStep, exchange: QuillExchange, chunkBytes: number | undefined): Promise<void> {
  const send = (event: QuillEvent): Promise<void> => exchange.send(event, chunkBytes);
  switch (step.type) {
    case 'start':
      exchange.open();
      return send({ event: 'hello', ...HELLO });
    case 'part.begin':
      if (step.part.type !== 'tool_call') return;
      return send({ event: 'ask', slot: slotOf(step.part), ref: step.part.providerId, tool: step.part.name });
    case 'part.delta':
      if (step.part.type === 'tool_call') return send({ event: 'with', slot: slotOf(step.part), text: step.text });
      return send({ event: step.part.type === 'text' ? 'say' : 'muse', text: step.text });
    case 'part.end':
      if (step.part.type !== 'thinking' || step.part.signature === undefined) return;
      return send({ event: 'seal', text: step.part.signature });
    case 'finish': {
      const { inputTokens, cacheReadTokens: recalled, cacheWriteTokens: stored, outputTokens: written, thinkingTokens: mused } = step.usage;
      const cost = { read: inputTokens + recalled + stored, recalled, stored, written, mused };
      await send({ event: 'bye', why: WHY[step.stopReason] ?? '', cost });
      exchange.end();
      return;
    }
    case 'refuse':
      exchange.refuse(400, toTrouble(step.failure));
      return;
    case 'fail':
      return send({ event: 'trouble', trouble: toTrouble(step.failure) });
    case 'wait':
      return step.until();
    case 'cut':
      exchange.cut();
      return;
    case 'close':
      exchange.end();
      return;
    case 'stall':
      return;
  }
}

/** Slots are the server's own affair: they begin anywhere. */
function slotOf(part: LLMScenePart): number {
  return part.index + 7;
}

const WHY: Readonly<Partial<Record<StepStopReason, string>>> = {
  end_turn: 'done',
  tool_use: 'asked',
  max_tokens: 'limit',
  stop_sequence: 'stop_word',
  filtered: 'withheld',
};

const WORDS: Readonly<Partial<Record<LLMErrorKind, string>>> = {
  rate_limit: 'slow_down',
  overloaded: 'busy',
  server: 'broken',
  auth: 'who_are_you',
  permission: 'not_for_you',
  not_found: 'no_such_model',
  quota: 'no_credit',
  invalid_request: 'unclear',
  invalid_history: 'bad_talk',
  context_overflow: 'long_talk',
  request_too_large: 'too_big',
  media_rejected: 'bad_picture',
  content_filter: 'improper',
};

function toTrouble({ kind, message, retryAfterMs }: LLMSceneFailure): QuillTrouble {
  return { word: WORDS[kind] ?? kind, text: message, ...(retryAfterMs !== undefined && { wait: retryAfterMs / 1000 }) };
}

function toSceneRequest({ body, request, letGo }: QuillExchange): LLMSceneRequest {
  const asks = request.talk.flatMap(({ parts }) => parts.flatMap((part) => ('ask' in part ? [part] : [])));
  const results = request.talk.flatMap(({ who, ref = '', parts }) => (who === 'tool' ? [{ id: ref, text: saidIn(parts) }] : []));
  return { body, letGo, calls: asks.map(({ ask: name, ref: id, with: inputText }) => ({ id, name, inputText })), results };
}

function saidIn(parts: readonly QuillPart[]): string {
  return parts.map((part) => ('say' in part ? part.say : '')).join('');
}
