/**
 * Laws of withFallback in a turn, over whatever models fail, with whatever, wherever in their reply, streaming or not,
 * with retries inside, and whenever the turn is aborted: an independent reading of the scenario says who is asked, who
 * pays, and what is shown.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { createEventDispatcher, createTranscript, decorateLLM, type LLM, LLMError, type LLMErrorKind, type LLMResponse, NO_USAGE, type RecordedEvent, runTurn, sleep, userMessage } from 'turnloop';
import { withFallback, withRetry } from 'turnloop/policies';
import { recordEvents, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { law } from '../properties/law.ts';

interface Attempt {
  readonly kind: LLMErrorKind | 'ok';
  /** What it says before it fails, or in all. */
  readonly texts: readonly string[];
  readonly streams: boolean;
  /** Before each piece, and before the end. */
  readonly takesMs: number;
  /** Tokens that it tells of; 0 for none. */
  readonly tokens: number;
  /** Whether a failure tells of what had arrived, with a signature. */
  readonly tellsPartial: boolean;
  /** Whether it heeds its signal. */
  readonly isDeaf: boolean;
}

interface Scenario {
  /** What each model does, attempt by attempt; after the last it answers. */
  readonly models: readonly (readonly Attempt[])[];
  /** Attempts of each model. */
  readonly maxAttempts: number;
  readonly mode: 'always' | 'beforeFirstDelta';
  readonly abortAtMs: number | undefined;
  /** How long the record of an event takes: telling of a failure waits for that of its tokens. */
  readonly recordMs: number;
}

const PASSING = new Set<LLMErrorKind | 'ok'>(['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response']);

const attempt: fc.Arbitrary<Attempt> = fc.record({
  kind: fc.constantFrom<Attempt['kind']>('ok', 'overloaded', 'server', 'network', 'timeout', 'rate_limit', 'malformed_response', 'auth', 'quota', 'unknown'),
  texts: fc.array(fc.constantFrom('a', 'bc', 'def'), { maxLength: 4 }),
  streams: fc.boolean(),
  takesMs: fc.constantFrom(0, 1, 7, 20),
  tokens: fc.integer({ min: 0, max: 9 }),
  tellsPartial: fc.boolean(),
  isDeaf: fc.boolean(),
});

const scenario: fc.Arbitrary<Scenario> = fc.record({
  models: fc.array(fc.array(attempt, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  mode: fc.constantFrom<Scenario['mode']>('always', 'always', 'beforeFirstDelta'),
  abortAtMs: fc.option(fc.integer({ min: 0, max: 150 }), { nil: undefined, freq: 2 }),
  recordMs: fc.constantFrom(0, 0, 5, 30),
});

const LAST: Attempt = { kind: 'ok', texts: ['last'], streams: true, takesMs: 0, tokens: 1, tellsPartial: false, isDeaf: false };

function attemptOf({ models }: Scenario, model: number, count: number): Attempt {
  return models[model]?.[count] ?? LAST;
}

/** A reply has to say something. */
function saidBy({ kind, texts }: Attempt): string {
  return texts.length === 0 && kind === 'ok' ? 'silence' : texts.join('');
}

/** Who is asked in a turn that is not aborted, in order, attempt by attempt. */
function expectedAttempts(given: Scenario): readonly { readonly model: number; readonly attempt: Attempt }[] {
  const asked: { readonly model: number; readonly attempt: Attempt }[] = [];
  for (let model = 0; model < given.models.length; model += 1) {
    for (let count = 0; count < given.maxAttempts; count += 1) {
      const attempt = attemptOf(given, model, count);
      asked.push({ model, attempt });
      const wasShown = attempt.streams && saidBy(attempt) !== '';
      if (!PASSING.has(attempt.kind) || (wasShown && given.mode === 'beforeFirstDelta')) return asked;
    }
  }
  return asked;
}

interface Played {
  readonly asked: { readonly model: number; readonly at: number; readonly afterAbort: boolean }[];
  /** What each model told of, by its name. */
  readonly told: Map<string, number>;
  /** Failures that were told of though the turn was aborted. */
  lateTold: number;
}

/** Sees which failures are told of, and when. */
function overheard(llm: LLM, played: Played): LLM {
  return decorateLLM(llm, (request) =>
    llm.chat({
      ...request,
      onAttemptFailed: (failed) => {
        if (request.signal.aborted) played.lateTold += 1;
        return request.onAttemptFailed?.(failed);
      },
    }),
  );
}

function playedLLM(given: Scenario, model: number, { runtime, played }: { readonly runtime: VirtualRuntime; readonly played: Played }): LLM {
  let count = 0;
  const modelId = `m${model}`;
  const chat: LLM['chat'] = async ({ signal, onDelta }): Promise<LLMResponse> => {
    played.asked.push({ model, at: runtime.now(), afterAbort: signal.aborted });
    const attempt = attemptOf(given, model, count);
    count += 1;
    const { kind, streams, takesMs, tokens, tellsPartial, isDeaf } = attempt;
    const pieces = attempt.texts.length === 0 && kind === 'ok' ? ['silence'] : attempt.texts;
    for (const text of pieces) {
      await sleep(takesMs, { runtime, signal: isDeaf ? undefined : signal });
      if (streams) onDelta?.({ type: 'text', text });
    }
    await sleep(takesMs, { runtime, signal: isDeaf ? undefined : signal });
    played.told.set(modelId, (played.told.get(modelId) ?? 0) + tokens);
    const usage = { ...NO_USAGE, outputTokens: tokens };
    if (kind === 'ok') return { content: [{ type: 'text', text: saidBy(attempt) }], stopReason: 'end_turn', usage };
    const signed = { type: 'thinking', text: '', signature: `of ${modelId}` } as const;
    const partial = streams && pieces.length > 0 ? [signed, { type: 'text', text: pieces.join('') } as const] : [signed];
    throw new LLMError({ kind, message: `${kind}.`, ...(tokens > 0 && { usage }), ...(tellsPartial && { partial }) });
  };
  return { provider: `p${model}`, modelId, systemPrompt: '', chat };
}

async function play(given: Scenario) {
  const { models, maxAttempts, mode, abortAtMs, recordMs } = given;
  const runtime = virtualRuntime();
  const played: Played = { asked: [], told: new Map(), lateTold: 0 };
  const llms = models.map((_attempts, model) => withRetry(playedLLM(given, model, { runtime, played }), { maxAttempts, mode, baseDelayMs: 10 }));
  const listener = recordEvents();
  const transcript = createTranscript();
  const controller = new AbortController();
  const record = async (event: RecordedEvent): Promise<void> => {
    if (recordMs > 0) await sleep(recordMs, { runtime });
    transcript.record(event);
  };
  if (abortAtMs !== undefined) {
    runtime.setTimer(abortAtMs, () => {
      controller.abort();
    });
  }
  const result = await runtime.settle(
    runTurn({
      llm: overheard(withFallback(llms, { mode }), played),
      input: [userMessage('Hello')],
      buildMessages: () => transcript.buildMessages(),
      dispatchEvent: createEventDispatcher({ record, emit: listener.emit }),
      signal: controller.signal,
      runtime,
    }),
  );
  await runtime.runUntilIdle();
  return { result, listener, transcript, played };
}

/** What somebody sees who takes back what `step.retrying` takes back. */
function viewOf(listener: ReturnType<typeof recordEvents>): string {
  let view = '';
  for (const event of listener.events) {
    if (event.type === 'step.retrying') view = '';
    if (event.type === 'text.delta') view += event.text;
  }
  return view;
}

law('C3 asks the models in order, as often as they may be asked, and nobody after an abort', scenario, async (given) => {
  const { result, listener, played } = await play(given);
  const expected = expectedAttempts(given).map(({ model }) => model);
  const asked = played.asked.map(({ model }) => model);

  if (result.stopReason === 'aborted') expect(asked).toStrictEqual(expected.slice(0, asked.length));
  else expect(asked).toStrictEqual(expected);
  expect(played.asked.filter(({ at, afterAbort }) => afterAbort || (result.stopReason === 'aborted' && at > Number(given.abortAtMs)))).toStrictEqual([]);
  // One is told of before each further attempt: only an abort may come between telling and asking.
  const told = listener.of('step.retrying').map(({ modelId }) => modelId);
  expect(told.slice(0, asked.length - 1)).toStrictEqual(asked.slice(0, -1).map((model) => `m${model}`));
  expect(told.length).toBeLessThanOrEqual(result.stopReason === 'aborted' ? asked.length : Math.max(0, asked.length - 1));
  expect(played.lateTold).toBe(0);
});

law('C3 U3 books all tokens that were told of under the model that spent them', scenario, async (given) => {
  const { result, listener, played } = await play(given);
  const booked = new Map<string, number>();
  for (const { modelId, usage } of listener.of('usage')) booked.set(modelId, (booked.get(modelId) ?? 0) + usage.outputTokens);
  const spent = [...played.told].filter(([, tokens]) => tokens > 0);

  expect([...booked].filter(([, tokens]) => tokens > 0)).toStrictEqual(spent);
  expect(result.usage.outputTokens).toBe(spent.reduce((sum, [, tokens]) => sum + tokens, 0));
});

law('C3 BR-010 shows, to whoever takes back what is taken back, what is kept, under the name of who wrote it', scenario, async (given) => {
  const { result, listener, transcript } = await play(given);
  const last = expectedAttempts(given).at(-1);
  const kept = transcript.buildMessages().findLast(({ role }) => role === 'assistant');
  const keptText = kept?.content.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';
  const view = viewOf(listener);

  // Nothing was shown of a reply that was not streamed.
  if (view !== '' || keptText === '') expect(view).toBe(keptText);
  if (given.mode === 'beforeFirstDelta') {
    const isTakenBack = listener.events.some(({ type }, index) => type === 'step.retrying' && listener.events.slice(0, index).some((event) => event.type === 'text.delta'));
    expect(isTakenBack).toBe(false);
  }
  if (result.stopReason === 'aborted') return;
  const source = { provider: `p${last?.model}`, modelId: `m${last?.model}` };
  if (kept !== undefined) expect(kept).toMatchObject({ source });
  if (result.error !== undefined) expect(result.error).toMatchObject(source);
  if (last?.attempt.kind === 'ok') expect(result).toMatchObject({ stopReason: 'end_turn', text: saidBy(last.attempt) });
  else if (last?.attempt.tellsPartial === true) expect(kept?.content[0]).toMatchObject({ signature: `of m${last.model}` });
});
