/**
 * Fields: what Gemini's answers are read by. Servers of protocol buffers write a field in camel case, proxies before
 * them also in snake case.
 */

const SNAKE_CASE = {
  finishReason: 'finish_reason',
  finishMessage: 'finish_message',
  usageMetadata: 'usage_metadata',
  promptFeedback: 'prompt_feedback',
  blockReason: 'block_reason',
  blockReasonMessage: 'block_reason_message',
  responseId: 'response_id',
  modelVersion: 'model_version',
  functionCall: 'function_call',
  partialArgs: 'partial_args',
  willContinue: 'will_continue',
  jsonPath: 'json_path',
  stringValue: 'string_value',
  numberValue: 'number_value',
  boolValue: 'bool_value',
  inlineData: 'inline_data',
  mimeType: 'mime_type',
  thoughtSignature: 'thought_signature',
  groundingMetadata: 'grounding_metadata',
  urlContextMetadata: 'url_context_metadata',
  citationMetadata: 'citation_metadata',
  promptTokenCount: 'prompt_token_count',
  cachedContentTokenCount: 'cached_content_token_count',
  toolUsePromptTokenCount: 'tool_use_prompt_token_count',
  candidatesTokenCount: 'candidates_token_count',
  thoughtsTokenCount: 'thoughts_token_count',
  totalTokenCount: 'total_token_count',
} as const;

/** The value of a field, by either of its names. */
export function fieldOf(object: Readonly<Record<string, unknown>>, name: keyof typeof SNAKE_CASE): unknown {
  return object[name] ?? object[SNAKE_CASE[name]];
}
