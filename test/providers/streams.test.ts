/**
 * Recorded answers of real servers, over HTTP and in any chunking: the reading is the one that the case says is right.
 * Black-box.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ReplayServer, startReplayServer } from '../support/replay-server.ts';
import { CHUNKINGS, checkStreamCase, isReadable, loadStreamCases } from '../support/stream-cases.ts';

const cases = loadStreamCases('test/fixtures/streams').filter(isReadable);
let server: ReplayServer;

beforeAll(async () => {
  server = await startReplayServer();
});

afterAll(() => server.close());

describe.each(CHUNKINGS)('recorded answers, %s', (chunking) => {
  it.each(cases.map((streamCase) => [streamCase.name, streamCase] as const))('reads %s', async (_name, streamCase) => {
    expect(await checkStreamCase(streamCase, chunking, server)).toStrictEqual([]);
  });
});

it('has every recorded chat completion', () => {
  const chat = cases.filter(({ protocol }) => protocol === 'chat-completions');

  expect(chat).toHaveLength(73);
});

it.each([
  ['text', { text: 'x' }],
  ['calls', { toolCalls: [] }],
  ['finish reason', { finishReason: 'length' }],
  ['prompt tokens', { usage: { prompt_tokens: 1, total_tokens: 1 } }],
  ['read as complete', { outcome: 'cut' as const }],
  ['read as complete', { outcome: 'error' as const }],
])('sees a wrong %s', async (difference, wrong) => {
  const good = cases.find(({ name }) => name.endsWith('/openai-tools-parallel'))!;
  const differences = await checkStreamCase({ ...good, expected: { ...good.expected, ...wrong } }, 'whole', server);

  expect(differences.join('\n')).toContain(difference);
});
