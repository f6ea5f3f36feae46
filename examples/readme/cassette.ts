import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAgent } from 'turnloop/agent';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { createCassette } from 'turnloop/testing/cassette';

void test('says hello', async () => {
  // The first run records the real server, every later one replays the file: no network, no key.
  const cassette = await createCassette('test/cassettes/hello.json');
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl } = process.env;
  const llm = openAIChat({ model: 'gpt-5-mini', apiKey, baseUrl, fetch: cassette.fetch });

  const { text, error } = await createAgent({ llm }).run('Say hello.').result;

  assert.match(text, /hello/i, error?.message);
  cassette.assertDone();
  await cassette.close(); // Not in a `finally`: what a failed test recorded is better not kept.
});
