/**
 * Error patterns: the words by which servers are understood when a status says too little.
 *
 * Only what a server is known to write stands here, each family with the servers it was seen at. Codes are looked up in
 * a `Map`: they are a provider's words, and may be `constructor`.
 */
import type { LLMErrorKind } from '../../core/errors.ts';

/** A host's own wording for a failure. Asked before all else, in order. */
export interface ErrorPattern {
  /** Tested on the server's message, code and type, joined by newlines. */
  readonly pattern: RegExp;
  /** What a match means. */
  readonly kind: LLMErrorKind;
  /** Only for this HTTP status. @defaultValue any */
  readonly status?: number | undefined;
  /** @defaultValue what the kind says */
  readonly retryable?: boolean | undefined;
}

/** Codes and types that mean one thing, whatever the status. */
export const CODE_KINDS: ReadonlyMap<string, LLMErrorKind> = new Map<string, LLMErrorKind>([
  // OpenAI, Groq, Cerebras, Azure · Copilot · llama.cpp · Mistral · Perplexity · gateways
  ['context_length_exceeded', 'context_overflow'],
  ['model_max_prompt_tokens_exceeded', 'context_overflow'],
  ['exceed_context_size_error', 'context_overflow'],
  ['invalid_request_prompt_too_long', 'context_overflow'],
  ['too_many_prompt_tokens', 'context_overflow'],
  ['context_window_exceeded', 'context_overflow'],
  ['model_context_window_exceeded', 'context_overflow'],
  ['prompt_too_long', 'context_overflow'],
  // OpenAI, Anthropic, Moonshot, DashScope, OpenRouter, DeepSeek. Texts about quota mean a mere rate limit at some servers.
  ['insufficient_quota', 'quota'],
  ['billing_error', 'quota'],
  ['billing_hard_limit_reached', 'quota'],
  ['billing_not_active', 'quota'],
  ['exceeded_current_quota_error', 'quota'],
  ['insufficient_balance', 'quota'],
  ['insufficient_credits', 'quota'],
  ['insufficient_user_quota', 'quota'],
  ['Arrearage', 'quota'],
  ['rate_limit_exceeded', 'rate_limit'],
  ['rate_limit_error', 'rate_limit'],
  ['rate_limit_reached_error', 'rate_limit'],
  ['too_many_requests', 'rate_limit'],
  ['RESOURCE_EXHAUSTED', 'rate_limit'],
  ['ThrottlingException', 'rate_limit'],
  ['Throttling', 'rate_limit'],
  ['overloaded_error', 'overloaded'],
  ['engine_overloaded_error', 'overloaded'],
  ['engine_overloaded', 'overloaded'],
  ['server_overloaded', 'overloaded'],
  ['server_busy', 'overloaded'],
  ['UNAVAILABLE', 'overloaded'],
  // Z.ai, whose text speaks of trying again later.
  ['1305', 'overloaded'],
  ['invalid_api_key', 'auth'],
  ['authentication_error', 'auth'],
  ['invalid_authentication_error', 'auth'],
  ['UNAUTHENTICATED', 'auth'],
  ['API_KEY_INVALID', 'auth'],
  ['permission_error', 'permission'],
  ['PERMISSION_DENIED', 'permission'],
  ['model_not_found', 'not_found'],
  ['not_found_error', 'not_found'],
  ['DeploymentNotFound', 'not_found'],
  // Google's reasons for ending a reply, or for being unable to
  ['DEADLINE_EXCEEDED', 'timeout'],
  ['CANCELLED', 'server'],
  ['MALFORMED_FUNCTION_CALL', 'malformed_response'],
  ['UNEXPECTED_TOOL_CALL', 'malformed_response'],
  ['MALFORMED_RESPONSE', 'malformed_response'],
  ['MISSING_THOUGHT_SIGNATURE', 'invalid_history'],
  ['content_filter', 'content_filter'],
  ['content_policy_violation', 'content_filter'],
  ['ResponsibleAIPolicyViolation', 'content_filter'],
  ['data_inspection_failed', 'content_filter'],
  ['DataInspectionFailed', 'content_filter'],
  ['request_too_large', 'request_too_large'],
  ['invalid_image_format', 'media_rejected'],
  ['image_parse_error', 'media_rejected'],
  ['invalid_image_url', 'media_rejected'],
  // OpenAI Responses, in a response that failed
  ['invalid_image', 'media_rejected'],
  ['invalid_base64_image', 'media_rejected'],
  ['invalid_image_mode', 'media_rejected'],
  ['unsupported_image_media_type', 'media_rejected'],
  ['empty_image_file', 'media_rejected'],
  ['failed_to_download_image', 'media_rejected'],
  ['image_file_not_found', 'media_rejected'],
  ['image_too_small', 'media_rejected'],
  ['image_too_large', 'request_too_large'],
  ['image_file_too_large', 'request_too_large'],
  ['image_content_policy_violation', 'content_filter'],
  ['bio_policy', 'content_filter'],
  ['vector_store_timeout', 'timeout'],
]);

/** Words that only say something where no status does: errors inside a stream. */
export const STREAM_CODE_KINDS: ReadonlyMap<string, LLMErrorKind> = new Map<string, LLMErrorKind>([
  ['invalid_request_error', 'invalid_request'],
  ['BadRequestError', 'invalid_request'],
  ['tool_use_failed', 'invalid_request'],
  ['invalid_prompt', 'invalid_request'],
  ['data_residency_mismatch', 'invalid_request'],
  ['unsupported_parameter', 'invalid_request'],
  ['INVALID_ARGUMENT', 'invalid_request'],
  ['FAILED_PRECONDITION', 'invalid_request'],
  ['NOT_FOUND', 'not_found'],
  ['timeout', 'timeout'],
  ['timeout_error', 'timeout'],
]);

/** Throttling, which a destructive compaction would not help: "tokens per min (TPM)", "Too many tokens, please wait". */
export const THROTTLING: RegExp =
  /rate.?limit|too many requests|throttl|please wait|\b[TR]P[MD]\b|per[ _-](?:min|minute|day|hour|second)\b|try again (?:in|later)/i;

/** The prompt does not fit the model's window. */
export const OVERFLOW: readonly RegExp[] = [
  // OpenAI, Azure, DeepSeek, OpenRouter, vLLM, Mistral, Fireworks, NVIDIA NIM, SGLang, Together
  /max(?:imum)? context length/i,
  // OpenAI Responses, MiniMax, LM Studio
  /(?:exceeds?|exceeded|over|beyond|larger than|greater than|longer than)\b.{0,40}\bcontext (?:window|length|size|limit)/i,
  /context (?:window|length|size|limit)\b.{0,30}(?:exceed|overflow|too (?:small|long))/i,
  // Anthropic, Fireworks, Ollama, Bedrock, Baidu
  /(?:prompt|input|messages?|conversation|request)s?(?: tokens)?(?: is| are)? too long\b(?! for)/i,
  /input is too long for (?:the )?requested model/i,
  /input length and `?max_tokens`? exceed/i,
  // Perplexity
  /total length of all messages is too long/i,
  // Groq, Cerebras
  /reduce the length of the (?:messages|prompt|input)/i,
  // Google
  /input token count.{0,40}exceeds the maximum/i,
  /exceeds? the maximum (?:number of )?(?:input |prompt )?tokens?/i,
  /input token count is \d+ but (?:the )?model only supports/i,
  // Amazon Nova
  /number of input tokens exceeds/i,
  // Doubao, SiliconFlow
  /total tokens of .{1,40} exceed max message tokens/i,
  /length of prompt_tokens \(\d+\) must be less than max_seq_len/i,
  // xAI, TensorRT
  /maximum (?:prompt|input|model|sequence) length (?:is|of)\b.{0,60}/i,
  /(?:prompt|input) length.{0,40}exceeds? (?:the )?max(?:imum)?/i,
  // Copilot
  /(?:prompt )?token count.{0,30}exceeds?/i,
  // Moonshot
  /exceed(?:s|ed)? (?:the )?model(?:'s)? token limit/i,
  // LM Studio
  /tokens to keep from the initial prompt is greater/i,
  /trying to keep the first \d+ tokens/i,
  // Hugging Face TGI
  /inputs` must have less than \d+ tokens/i,
  /inputs` tokens \+ `max_new_tokens` must be <=/i,
  // Zhipu, DashScope
  /prompt exceeds max length/i,
  /range of input length should be/i,
  // Cohere
  /total number of tokens.{0,60}cannot exceed/i,
  // AI21, generic
  /too many (?:input |prompt )?tokens/i,
  /longer than the (?:maximum )?model(?:'s)? (?:context )?length/i,
];

/** Calls and results do not pair up, roles do not follow one another, or a message is empty. */
export const INVALID_HISTORY: readonly RegExp[] = [
  /tool_call_ids? did not have response messages/i,
  /must be followed by tool messages/i,
  /messages? with role ['"`]?tool['"`]? must (?:be a response|follow)/i,
  /`?tool_use`? ids? were found without `?tool_result`?/i,
  /unexpected `?tool_(?:use_id|result|call_id)`?/i,
  /`?tool_result`? block\(s\) provided when/i,
  /each `?tool_use`? must have a single result/i,
  /unexpected tool call id/i,
  /no tool (?:call|output) found for/i,
  /tool[ _]call[ _]id\b.{0,80}\bnot found/i,
  /tool_use_id.{0,80}not found/i,
  /tool[ _](?:use|call)`?[ _]ids? must be unique/i,
  /duplicate.{0,30}tool[ _](?:call|use)/i,
  /not the same number of function calls and responses/i,
  /number of function response parts/i,
  /function (?:call|response) turn comes immediately after/i,
  /requests? alternate between user and model/i,
  /contents?\.parts must not be empty/i,
  /missing a `?thought_?signature/i,
  /(?:corrupted|invalid) thought[ _]?signature/i,
  /(?:unexpected|expected last) role\b/i,
  /roles must alternate/i,
  /first message must (?:use the|be|have).{0,20}user/i,
  /text content blocks must (?:be non-empty|contain non-whitespace)/i,
  /messages? must have non-empty content/i,
  /message at position \d+.{0,40}must not be empty/i,
  /assistant message must have either content or tool_calls/i,
  // Anthropic: a tool of its own, thinking that is not as it was given, how a history ends
  /(?:\b|_)tool[ _]?(?:use|call)s?\b.{0,80}\bwithout\b.{0,60}(?:result|output|response)/i,
  /`?signature`?.{0,20}`?thinking`?.{0,20}block/i,
  /`?thinking`?.{0,40}blocks?\b.{0,60}(?:cannot|can't|must not) be (?:modified|changed|edited)/i,
  /expected `?thinking`?.{0,40}\bfound\b/i,
  /must start with a `?thinking`? block/i,
  /at least one message is required/i,
  /(?:conversation|messages) must end with a user/i,
  /(?:assistant|model).{0,20}cannot end with trailing whitespace/i,
];

/** What was asked or answered is not to be said. */
export const CONTENT_FILTER: readonly RegExp[] = [
  // Anthropic, Azure, Google
  /\bblocked by\b.{0,40}(?:content|safety|filter|polic)/i,
  /content (?:filtering|management|safety) (?:polic|system)/i,
  // OpenAI
  /(?:flagged|rejected)\b.{0,60}(?:usage polic|safety system|moderation)/i,
  // DeepSeek
  /content exists risk/i,
  // DashScope
  /data may contain inappropriate content/i,
];

/** The media itself was refused: unreadable, or of a type the server does not take. */
export const MEDIA_REJECTED: readonly RegExp[] = [
  /could not process (?:the )?(?:image|input image|file|pdf)/i,
  /(?:invalid|unsupported|unrecogni[sz]ed|corrupt(?:ed)?|malformed|unknown) (?:or (?:unsupported|corrupt(?:ed)?) )?(?:image|media|audio|video|pdf|file|mime)(?: (?:data|type|format|file|content|url))?\b/i,
  /(?:image|audio|video|media|pdf|document|file)(?: \w+){0,3} (?:is|was|appears to be) (?:not a valid|not valid|invalid|corrupt)/i,
  /\bpdfs?\b.{0,40}(?:password|encrypted|damaged|corrupt)/i,
  /(?:failed to|cannot|can't|unable to|error while) (?:decode|load|download|fetch|process|identify|parse|read|open) (?:the |an? )?(?:\w+ )?(?:image|audio|media|file|pdf)/i,
  /you uploaded an unsupported image/i,
  // Google
  /cannot fetch content from the provided url/i,
  /the document has no pages/i,
  /does not match the provided (?:image )?media type/i,
  /image (?:data|format|type|mime).{0,40}(?:not supported|unsupported|invalid)/i,
];

/**
 * The model takes no media of the kind at all: whatever the status, since some servers say so with 404 (nothing routes
 * there) or 500 (a model without its vision part).
 */
export const MEDIA_UNSUPPORTED: readonly RegExp[] = [
  // OpenAI
  /image_url is only supported by certain models/i,
  // DeepSeek, and other servers that know text parts only
  /unknown variant `?(?:image_url|input_audio|input_image|file)`?/i,
  // Google
  /(?:image|audio|video|document|pdf) input modality is not enabled/i,
  // OpenRouter
  /no endpoints found that support (?:image|audio|video|file) input/i,
  // llama.cpp, vLLM, Ollama, LM Studio, Anthropic
  /(?:image|audio|video|vision|multimodal|pdf|media)s?(?: input| inputs| content)?\b.{0,20} (?:is|are) not supported\b/i,
  /(?:does not|doesn't|do not|cannot) (?:support|accept|process|take) (?:image|audio|video|vision|multimodal|pdf|media)s?\b/i,
  /is not a (?:multimodal|vision) model/i,
  /at most 0 (?:image|audio|video)\(?s?\)? may be provided/i,
];

/** Too much of it, in bytes or in number: "image exceeds 5 MB maximum", "too many images". */
export const TOO_LARGE: readonly RegExp[] = [
  /(?:image|file|media|audio|pdf|attachment)s?\b.{0,60}(?:exceeds?|larger than|above|over) .{0,30}(?:\d|maximum|limit|size)/i,
  /too many (?:images|files|attachments|media|documents|(?:pdf )?pages)/i,
  // Anthropic, vLLM
  /\b(?:at most|maximum of|no more than|up to|limit of) \d+ (?:\w+ )?(?:image|page|file|document|video|audio|attachment|media)/i,
  // Google
  /payload size exceeds the limit/i,
  /(?:request|payload|body|entity)(?: body| entity)? (?:is )?too large\b/i,
];
