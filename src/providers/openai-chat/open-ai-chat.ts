/** Chat Completions as an LLM: one request, one answer, no retries. */
import type { LLM } from '../../core/llm.ts';
import { createHttpLLM } from '../shared/http-llm.ts';
import { type OpenAIChatOptions, resolveOptions } from './options.ts';
import { createReplyReader, type ChatReplyReader } from './reply-reader.ts';
import { createRequestWriter } from './request.ts';
import type { ThinkingField } from './thinking.ts';

/**
 * Makes an LLM of a server that speaks Chat Completions: OpenAI, and all that are compatible with it.
 *
 * Dialects are recognised from the answers, so a server needs no profile. Thinking is read from wherever it stands and
 * goes back to the same provider and model as it came.
 *
 * @throws TypeError for options that are missing or wrong.
 * @example
 * ```ts
 * const llm = openAIChat({ model: 'gpt-4.1-mini', apiKey: process.env.OPENAI_API_KEY, systemPrompt: 'Be brief.' });
 * ```
 */
export function openAIChat(options: OpenAIChatOptions): LLM {
  const config = resolveOptions(options);
  const { provider, model, dialect } = config;
  let learnedField: ThinkingField | undefined;
  const requests = createRequestWriter(config, () => ({
    provider,
    model,
    dialect,
    field: options.thinkingField ?? learnedField,
    mediaTypes: options.capabilities?.mediaTypes,
    thinkingHistory: options.thinkingHistory ?? 'keep',
  }));

  return createHttpLLM(config, {
    fixed: [],
    authorize: (key) => [['authorization', `Bearer ${key}`]],
    write(request) {
      const { body, toolName } = requests.write(request);
      let reply: ChatReplyReader | undefined;
      return {
        body,
        createReader(outlet) {
          reply = createReplyReader({ ...outlet, provider, model, toolName });
          return reply;
        },
        onResponse() {
          learnedField = reply?.thinkingField ?? learnedField;
        },
      };
    },
  });
}
