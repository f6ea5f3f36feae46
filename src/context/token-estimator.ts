/** Token estimator: PROVISIONAL, to build the other layers against. */
import type { LLM, ToolDefinition } from '../core/llm.ts';
import type { Message } from '../core/message.ts';

/** The model that an estimate is for. Every {@link index.LLM | LLM} is one. */
export interface EstimatedModel {
  /** `LLM.provider`. */
  readonly provider: string;
  /** `LLM.modelId`. */
  readonly modelId: string;
}

/** What of a request costs tokens. Every {@link index.LLMRequest | LLMRequest} is one. */
export interface EstimatedRequest {
  /** The system prompt. */
  readonly systemPrompt: string;
  /** The tools offered. */
  readonly tools: readonly ToolDefinition[];
  /** The history, oldest first. */
  readonly messages: readonly Message[];
}

/** Says how many tokens something will cost, and learns from what it did cost. */
export interface TokenEstimator {
  /** Tokens of a text, before calibration. */
  estimateText(text: string): number;
  /** Tokens of a message, before calibration; counted once for each message object. */
  estimateMessage(message: Message): number;
  /** Tokens of a whole request, calibrated for the model. */
  estimateRequest(request: EstimatedRequest, model: EstimatedModel): number;
  /** What estimates are multiplied with for a model; 1 as long as nothing is known of it. */
  factorOf(model: EstimatedModel): number;
  /** Learns what a request did cost: input, cache reads and cache writes together. */
  observe(request: EstimatedRequest, model: EstimatedModel, inputTokens: number): void;
  /** Learns that a request was refused as larger than the window. */
  observeOverflow(request: EstimatedRequest, model: EstimatedModel): void;
  /** Tokens that fit into the model's window: as observed, else as declared; undefined if neither is known. */
  windowOf(llm: LLM): number | undefined;
}

/** Makes an estimator. */
export function createTokenEstimator(): TokenEstimator {
  const windows = new Map<string, number>();
  const key = ({ provider, modelId }: EstimatedModel): string => `${provider}\n${modelId}`;
  const estimateText = (text: string): number => Math.ceil(text.length / 4);
  const estimateMessage = (message: Message): number => estimateText(JSON.stringify(message.content));
  const estimateRequest = ({ systemPrompt, tools, messages }: EstimatedRequest): number =>
    estimateText(systemPrompt) +
    estimateText(JSON.stringify(tools.map(({ name, description, inputSchema }) => [name, description, inputSchema]))) +
    messages.reduce((sum, message) => sum + estimateMessage(message), 0);
  return {
    estimateText,
    estimateMessage,
    estimateRequest,
    factorOf: () => 1,
    observe: () => undefined,
    observeOverflow: (request, model) => {
      windows.set(key(model), estimateRequest(request));
    },
    windowOf: (llm) => windows.get(key(llm)) ?? llm.capabilities?.contextWindow,
  };
}
