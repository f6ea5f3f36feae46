import { LLMError, textOf, toUsage, type LLM } from 'turnloop';

/** A model that repeats what it hears, as an example of an adapter. */
export function parrotLLM(): LLM {
  return {
    provider: 'parrot',
    modelId: 'parrot-1',
    systemPrompt: '',
    async chat({ messages, signal, onDelta }) {
      const words = textOf(messages.at(-1)).split(' ');
      for (const word of words) {
        if (signal.aborted) throw new LLMError({ kind: 'aborted', message: 'The parrot was interrupted.' });
        onDelta?.({ type: 'text', text: `${word} ` });
        await Promise.resolve(); // Here a real adapter waits for its server.
      }
      return {
        content: [{ type: 'text', text: `${words.join(' ')} ` }],
        stopReason: 'end_turn',
        usage: toUsage({ inputTokens: words.length, outputTokens: words.length }),
      };
    },
  };
}
