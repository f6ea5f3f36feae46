/** Model: which one answers, by what the environment and the command line say. */
import type { LLM } from 'turnloop';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { tinyLLM } from '../tiny-llm/index.ts';

const DEFAULT_MODEL = 'gpt-4.1-mini';

const SYSTEM_PROMPT = `You are a coding agent that works on the files of one folder with the tools you have.
All paths are relative to the root of that folder. Look at files before you speak of them or change them, make the smallest edit that does what was asked, and run the tests after a change if there are any.
Call several tools at once where they don't depend on each other. Answer in a few plain sentences, without markdown.`;

export interface ChosenModel {
  readonly llm: LLM;
  /** It takes only what it was trained on: five tools, and a few sentences. */
  readonly isTiny: boolean;
  /** One line for people: which model it is. */
  readonly notice: string;
}

/**
 * Chooses the model: the server's if there is a key or an address (servers of one's own often want no key), else the
 * embedded one.
 *
 * @throws Error if a model is named that no server can be asked for.
 */
export function chooseModel(environment: NodeJS.ProcessEnv, modelId: string | undefined): ChosenModel {
  // An empty variable is one that was switched off.
  const apiKey = environment['OPENAI_API_KEY'] || undefined;
  const baseUrl = environment['OPENAI_BASE_URL'] || undefined;
  if (apiKey === undefined && baseUrl === undefined) {
    if (modelId !== undefined) throw new Error('--model needs OPENAI_API_KEY: it names a model of that server.');
    const notice = 'Model: tiny-coder (embedded, very small, knows few requests). OPENAI_API_KEY gets you another.';
    return { llm: tinyLLM(), isTiny: true, notice };
  }
  const model = modelId ?? (environment['OPENAI_MODEL'] || DEFAULT_MODEL);
  const llm = openAIChat({ model, apiKey, baseUrl, systemPrompt: SYSTEM_PROMPT });
  return { llm, isTiny: false, notice: `Model: ${model} at ${baseUrl ?? 'OpenAI'}.` };
}
