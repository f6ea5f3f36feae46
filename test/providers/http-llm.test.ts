/** One request said in other ways: how often, and what is told of it. Uses the mechanism itself: no protocol offers so many. */
import { expect, it } from 'vitest';
import { createHttpLLM, type WrittenRequest } from '../../src/providers/shared/http-llm.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';

it('tries another way of saying a request a few times, and then gives the error', async () => {
  const server = fakeServer({ status: 400, body: '{"error":{"message":"not so"}}' });
  const written: WrittenRequest = {
    body: '{}',
    createReader: () => {
      throw new Error('no reply to read');
    },
    instead: () => written,
  };
  const url = new URL('https://h.example/v1');
  const timeouts = { connectMs: 1000, firstTokenMs: 1000, betweenTokensMs: 1000 };
  const config = { options: { model: 'm', fetch: server.fetch }, provider: 'p', model: 'm', url, isStreamed: true, timeouts };
  const llm = createHttpLLM(config, { fixed: [], authorize: () => [], write: () => written });
  let told = 0;
  const error = await errorOf(llm.chat(request(undefined, { onAttemptFailed: () => void (told += 1) })));

  expect(error).toMatchObject({ kind: 'invalid_request', status: 400 });
  expect(server.sent).toHaveLength(5);
  expect(told).toBe(4);
});
