/**
 * Proves that the model says here what it says under llama.cpp, for each conversation of `oracle.json`:
 * the same prompt, the same tokens one by one, and of them the same text and calls.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { textOf } from 'turnloop';
import { renderPrompt } from '../chat-template.ts';
import { toChat } from '../chat.ts';
import { generateTokens, keepCommonPrefix } from '../decoding.ts';
import { readGguf } from '../gguf.ts';
import { createReplyBuilder } from '../reply-builder.ts';
import { encodePrompt } from '../tokenizer.ts';
import { advance, createSequence, createTransformer, readLogits, type Sequence } from '../transformer.ts';
import { oracleCases, toRequest } from './oracle.ts';

const transformer = createTransformer(readGguf(readFileSync(new URL('../tiny-coder.gguf', import.meta.url))));

async function generate(sequence: Sequence, prompt: readonly number[]): Promise<readonly number[]> {
  const tokens: number[] = [];
  for await (const token of generateTokens(sequence, prompt)) tokens.push(token);
  return tokens;
}

describe.each(oracleCases)('$name', (oracle) => {
  it('is rendered to the same prompt', () => {
    const prompt = renderPrompt(toChat({ ...toRequest(oracle), signal: new AbortController().signal }));

    expect(prompt).toBe(oracle.prompt);
    expect(encodePrompt(prompt)).toStrictEqual(oracle.prompt_tokens);
  });

  it('is answered with the same tokens', async () => {
    const tokens = await generate(createSequence(transformer), oracle.prompt_tokens);

    expect(tokens).toStrictEqual(oracle.output_tokens);
  });

  it('is read as the same text and calls', () => {
    const reply = createReplyBuilder(() => undefined);

    oracle.output_tokens.forEach((token) => reply.read(token));
    reply.end();

    expect(textOf(reply.content.filter((part) => part.type === 'text'))).toBe(oracle.text);
    expect(reply.content.flatMap((part) => (part.type === 'tool_call' ? [{ name: part.name, arguments: JSON.parse(part.inputText) }] : []))).toStrictEqual(oracle.tool_calls);
  });
});

describe('all cases', () => {
  it.each(oracleCases.filter((oracle) => oracle.first_step_top5_logits !== undefined))(
    'computes the logits of $name to three digits',
    ({ prompt_tokens: prompt, first_step_top5_logits: expected = [] }) => {
      const sequence = createSequence(transformer);

      prompt.forEach((token) => advance(sequence, token));
      const logits = readLogits(sequence);

      for (const { id, logit } of expected) expect(logits[id]).toBeCloseTo(logit, 3);
    },
  );

  it('give the same tokens when each continues from the one before', async () => {
    const conversation = oracleCases.filter(({ name }) => /^(two-step|edit-run)-/.test(name));
    const sequence = createSequence(transformer);
    let keptTokens = 0;

    for (const { prompt_tokens: prompt, output_tokens: output } of conversation) {
      keptTokens += keepCommonPrefix(sequence, prompt);
      expect(await generate(sequence, prompt)).toStrictEqual(output);
    }

    expect(keptTokens).toBeGreaterThan(1_000);
  });
});
