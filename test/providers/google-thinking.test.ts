/** How much Gemini's models are asked to think, by their generation. Black-box. */
import { describe, expect, it } from 'vitest';
import type { GoogleOptions } from 'turnloop/providers/google';
import { checkGenerateContentRequest } from '../support/gemini-rules.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';
import { bodyOf, geminiOn, OK } from './google-support.ts';

type Config = Readonly<Record<string, unknown>> | undefined;

async function thinkingOf(options: Partial<GoogleOptions>): Promise<Config> {
  const fake = fakeServer(OK);
  await geminiOn(fake, options).chat(request());
  const body = bodyOf(fake.sent[0]);
  expect(checkGenerateContentRequest(body, { generation: /gemini-(?:3|flash-latest)/.test(options.model ?? '') ? 3 : 2 })).toStrictEqual([]);
  return body.generationConfig?.['thinkingConfig'] as Config;
}

describe('thinking', () => {
  it.each([
    ['gemini-2.5-flash', 'off', { thinkingBudget: 0, includeThoughts: false }],
    ['gemini-2.5-pro', 'off', { thinkingBudget: 128, includeThoughts: false }],
    ['gemini-2.5-flash-lite', 'minimal', { thinkingBudget: 1024, includeThoughts: true }],
    ['gemini-2.5-flash', 'low', { thinkingBudget: 1024, includeThoughts: true }],
    ['models/gemini-2.5-flash', 'medium', { thinkingBudget: 8192, includeThoughts: true }],
    ['gemini-2.5-pro', 'high', { thinkingBudget: 24_576, includeThoughts: true }],
    ['gemini-3-flash-preview', 'off', { thinkingLevel: 'MINIMAL', includeThoughts: false }],
    ['gemini-3-flash-preview', 'minimal', { thinkingLevel: 'MINIMAL', includeThoughts: true }],
    ['gemini-3-pro-preview', 'off', { thinkingLevel: 'LOW', includeThoughts: false }],
    ['gemini-3.1-pro-preview', 'minimal', { thinkingLevel: 'LOW', includeThoughts: true }],
    ['gemini-3-pro-preview', 'low', { thinkingLevel: 'LOW', includeThoughts: true }],
    ['publishers/google/models/gemini-3.5-flash', 'medium', { thinkingLevel: 'MEDIUM', includeThoughts: true }],
    ['gemini-flash-latest', 'high', { thinkingLevel: 'HIGH', includeThoughts: true }],
  ])('GG5: %s, effort %s', async (model, thinkingEffort, expected) => {
    expect(await thinkingOf({ model, thinkingEffort })).toStrictEqual(expected);
  });

  it.each([
    ['gemini-2.5-flash', {}, undefined],
    ['gemini-2.5-flash', { showThinking: true }, { includeThoughts: true }],
    ['gemini-2.5-flash', { thinkingBudget: 512 }, { thinkingBudget: 512, includeThoughts: true }],
    ['gemini-2.5-flash', { thinkingBudget: -1, showThinking: false }, { thinkingBudget: -1, includeThoughts: false }],
    ['gemini-2.5-flash', { thinkingBudget: 0 }, { thinkingBudget: 0, includeThoughts: false }],
    ['gemini-3-flash-preview', { thinkingBudget: 512 }, { thinkingBudget: 512, includeThoughts: true }],
    ['gemini-3-flash-preview', { thinkingEffort: 'high', showThinking: false }, { thinkingLevel: 'HIGH', includeThoughts: false }],
    ['gemini-3-flash-preview', { showThinking: false }, { includeThoughts: false }],
  ])('GG5: %s with %j', async (model, options, expected) => {
    expect(await thinkingOf({ model, ...options })).toStrictEqual(expected);
  });

  it('goes without MINIMAL where a model refuses it, and remembers', async () => {
    const refusal = { status: 400, body: JSON.stringify({ error: { code: 400, message: 'Thinking level MINIMAL is not supported for this model.', status: 'INVALID_ARGUMENT' } }) };
    const fake = fakeServer(refusal, OK);
    const llm = geminiOn(fake, { model: 'gemini-3.8-flash', thinkingEffort: 'off' });
    const failures: string[] = [];
    await llm.chat(request(undefined, { onAttemptFailed: ({ error }) => void failures.push(error.kind) }));
    await llm.chat(request());

    const levels = fake.sent.map((sent) => (bodyOf(sent).generationConfig!['thinkingConfig'] as { thinkingLevel: string }).thinkingLevel);
    expect(levels).toStrictEqual(['MINIMAL', 'LOW', 'LOW']);
    expect(failures).toStrictEqual(['invalid_request']);
  });

  it('sends nothing twice for any other refusal', async () => {
    const refuse = async (message: string, options: Partial<GoogleOptions>): Promise<number> => {
      const fake = fakeServer({ status: 400, body: JSON.stringify({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }) });
      expect(await errorOf(geminiOn(fake, { model: 'gemini-3-flash-preview', ...options }).chat(request()))).toMatchObject({ kind: 'invalid_request', code: 'INVALID_ARGUMENT' });
      return fake.sent.length;
    };

    expect(await refuse('Thinking level MINIMAL is not supported for this model.', { thinkingEffort: 'high' })).toBe(1);
    expect(await refuse('Unknown name "x".', { thinkingEffort: 'off' })).toBe(1);
    // Refused again, it stays refused.
    expect(await refuse('Thinking level MINIMAL is not supported for this model.', { thinkingEffort: 'off' })).toBe(2);
  });
});
