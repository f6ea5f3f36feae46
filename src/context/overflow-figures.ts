/**
 * Overflow figures: the tokens and the window that a refusal names. Only wordings are read whose numbers are beyond doubt;
 * of any other nothing is known, and the estimate has to do.
 */
import type { OverflowFigures } from './token-estimator.ts';

const NUMBER = String.raw`(\d[\d,]*)`;

const WINDOW = [
  // OpenAI and the many servers that copy it.
  `maximum context length (?:is|of) ${NUMBER}`,
  // Anthropic: the prompt alone, or with the room for the reply.
  `tokens > ${NUMBER} maximum`,
  String.raw`context limit: [\d,]+ \+ [\d,]+ > ${NUMBER}`,
  // Gemini.
  String.raw`maximum number of tokens allowed \(?${NUMBER}`,
  // llama.cpp.
  String.raw`available context size \(${NUMBER}`,
].map((pattern) => new RegExp(pattern, 'i'));

const TOKENS = [
  String.raw`\(${NUMBER} in the messages`,
  `prompt is too long: ${NUMBER} tokens`,
  String.raw`context limit: ${NUMBER} \+`,
  String.raw`token count \(?${NUMBER}\)? exceeds`,
  String.raw`request \(${NUMBER} tokens\) exceeds`,
].map((pattern) => new RegExp(pattern, 'i'));

/** Less is no window, but a number of something else. */
const LEAST = 256;

/** What the words of a refusal tell. */
export function overflowFigures(message: string): OverflowFigures {
  return { window: find(WINDOW, message), tokens: find(TOKENS, message) };
}

function find(patterns: readonly RegExp[], message: string): number | undefined {
  for (const pattern of patterns) {
    const number = Number(pattern.exec(message)?.[1]?.replaceAll(',', ''));
    if (number >= LEAST) return number;
  }
  return undefined;
}
