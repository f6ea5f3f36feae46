/**
 * Server results: what tools that a server runs itself leave in an answer: `annotations` (OpenAI), `executed_tools`
 * (Groq), `citations` and `search_results` (Perplexity, xAI).
 *
 * They become one provider part, for hosts to show. The protocol has no place for them in a request, so none goes back.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { ProviderPart } from '../../core/message.ts';

/** Collects the results of one reply. */
export interface ServerResults {
  /** Looks for results in a chunk, a delta or a message. @returns Whether there were any that are new. */
  read(holder: Readonly<Record<string, unknown>>): boolean;
  /** The part; undefined if there was nothing. */
  toPart(provider: string): ProviderPart | undefined;
}

/** Makes a collection for one reply. */
export function createServerResults(): ServerResults {
  let whole: JsonObject = {};
  const annotations: JsonValue[] = [];

  return {
    read(holder) {
      const { annotations: notes, citations, search_results, executed_tools } = holder;
      // Runs for every delta.
      if (notes === undefined && citations === undefined && search_results === undefined && executed_tools === undefined) return false;
      annotations.push(...listOf(notes));
      let isNew = listOf(notes).length > 0;
      for (const [field, value] of Object.entries({ citations, search_results, executed_tools })) {
        const list = listOf(value);
        if (list.length === 0) continue;
        // Each stands for all before it: Perplexity repeats its lists with every chunk.
        isNew ||= list.length !== listOf(whole[field]).length;
        whole = { ...whole, [field]: list };
      }
      return isNew;
    },
    toPart(provider) {
      const data = annotations.length === 0 ? whole : { ...whole, annotations };
      return Object.keys(data).length === 0 ? undefined : { type: 'provider', provider, data };
    },
  };
}

function listOf(value: unknown): readonly JsonValue[] {
  // It came out of JSON.
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}
