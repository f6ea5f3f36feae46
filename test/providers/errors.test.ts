/** Error classes: which answer means what. Tables of what servers write, through the classifier that all adapters use. */
import { describe, expect, it } from 'vitest';
import type { LLMError } from 'turnloop';
import { errorFromBody, errorFromResponse } from '../../src/providers/shared/errors.ts';
import { createRedactor } from '../../src/providers/shared/redact.ts';
import { parseDuration, retryAfterFromHeaders, retryAfterFromText } from '../../src/providers/shared/retry-after.ts';

const context = { provider: 'test', redact: createRedactor().redact, patterns: [] };

function classify(status: number, body: unknown, headers: Record<string, string> = {}): LLMError {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return errorFromResponse({ status, headers: new Headers(headers) }, text, context);
}

function said(message: string): unknown {
  return { error: { message } };
}

describe('EE1: by status', () => {
  it.each([
    [400, 'invalid_request', false],
    [401, 'auth', false],
    [402, 'quota', false],
    [403, 'permission', false],
    [404, 'not_found', false],
    [405, 'invalid_request', false],
    [408, 'timeout', true],
    [409, 'server', true],
    [413, 'request_too_large', false],
    [422, 'invalid_request', false],
    [429, 'rate_limit', true],
    [500, 'server', true],
    [502, 'server', true],
    [503, 'overloaded', true],
    [504, 'timeout', true],
    [529, 'overloaded', true],
  ] as const)('%d is %s', (status, kind, retryable) => {
    expect(classify(status, '')).toMatchObject({ kind, retryable, status });
  });

  it('BR-095 A: says what a page says, in at most 1 KB', () => {
    const error = classify(502, `<html><head><style>b{}</style></head><body><h1>Bad gateway</h1>${'x'.repeat(9999)}</body></html>`);

    expect(error).toMatchObject({ kind: 'server', retryable: true, message: expect.stringContaining('502: Bad gateway') });
    expect(error.message.length).toBeLessThan(1024);
  });

  it('keeps long messages under 1 KB, also in UTF-8', () => {
    const { message } = classify(400, said('漢'.repeat(2000)));

    expect(new TextEncoder().encode(message).length).toBeLessThanOrEqual(1024);
    expect(message).not.toContain('\ufffd');
  });
});

describe('EE3: overflow', () => {
  const wordings: readonly (readonly [server: string, message: string])[] = [
    ['OpenAI', "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens."],
    ['OpenAI Responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
    ['Anthropic', 'prompt is too long: 213462 tokens > 200000 maximum'],
    ['Anthropic with output', 'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000'],
    ['Bedrock', 'Input is too long for requested model.'],
    ['Google', 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).'],
    ['Mistral', 'Prompt 264620 > 262144 maximum context length'],
    ['Groq', 'Please reduce the length of the messages or completion.'],
    ['Cerebras', 'Please reduce the length of the messages or completion. Current length is 10000 while limit is 8192'],
    ['xAI', "This model's maximum prompt length is 131072 but the request contains 149617 tokens."],
    ['OpenRouter', "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens"],
    ['Copilot', 'prompt token count of 138898 exceeds the limit of 64000'],
    ['llama.cpp', 'request (17993 tokens) exceeds the available context size (16384 tokens), try increasing it'],
    ['llama.cpp, older', 'the request exceeds the available context size. try increasing the context size or enable context shift'],
    ['LM Studio', 'The number of tokens to keep from the initial prompt is greater than the context length.'],
    ['Ollama', 'prompt too long; exceeded max context length by 1119046 tokens'],
    ['Ollama embeddings', 'the input length exceeds the context length'],
    ['vLLM', "This model's maximum context length is 32768 tokens. However, you requested 32818 tokens in the messages"],
    ['vLLM engine', 'The decoder prompt (length 9000) is longer than the maximum model length of 8192.'],
    ['SGLang', "The input (9000 tokens) is longer than the model's context length (8192 tokens)."],
    ['Perplexity', 'The total length of all messages is too long.'],
    ['TGI', '`inputs` must have less than 4095 tokens. Given: 5000'],
    ['Moonshot', 'Your request exceeded model token limit: 131072'],
    ['MiniMax', 'invalid params, context window exceeds limit'],
    ['DashScope', 'Range of input length should be [1, 30720]'],
    ['Zhipu', 'Prompt exceeds max length'],
    ['Cohere', 'too many tokens: total number of tokens in the prompt cannot exceed 4081'],
    ['Fireworks', 'The prompt is too long: 40000, model maximum context length: 32767'],
    ['LM Studio, loaded small', 'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.'],
    ['TGI with output', 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1895 `inputs` tokens and 512 `max_new_tokens`'],
    ['Vertex AI', 'Unable to submit request because the input token count is 1048577 but model only supports up to 1048576. Reduce the input token count and try again.'],
    ['Amazon Nova', 'Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.'],
    ['Doubao', 'Total tokens of image and text exceed max message tokens. Request id: 02'],
    ['SiliconFlow', 'length of prompt_tokens (40000) must be less than max_seq_len (32768).'],
    ['TensorRT', 'Prompt length (9000) exceeds maximum input length (8192).'],
  ];

  it('knows at least 17 servers', () => {
    expect(wordings.length).toBeGreaterThanOrEqual(17);
  });

  it.each(wordings)('knows the words of %s', (_server, message) => {
    for (const status of [400, 413, 422]) expect(classify(status, said(message)).kind).toBe('context_overflow');
    expect(classify(400, { object: 'error', message, code: 400 }).kind).toBe('context_overflow');
  });

  it('knows an overflow that comes as 500, and one that a gateway quotes', () => {
    expect(classify(500, said('Context size has been exceeded.'))).toMatchObject({ kind: 'context_overflow', retryable: false });
    expect(classify(400, { error: { message: 'Provider returned error', metadata: { raw: 'prompt is too long: 9 > 8' } } }).kind).toBe('context_overflow');
  });

  it.each([
    ['bytes', 'Request Entity Too Large', 'request_too_large'],
    ['tokens', 'Too many tokens in the request', 'context_overflow'],
    ['nothing', '', 'request_too_large'],
  ])('EE3: 413 about %s', (_what, message, kind) => {
    expect(classify(413, said(message)).kind).toBe(kind);
  });

  it.each([
    [429, 'ThrottlingException: Too many tokens, please wait before trying again.'],
    [400, 'Too many tokens, please wait before trying again.'],
    [429, 'Rate limit reached for gpt-4 on tokens per min (TPM): Limit 30000, Requested 31000'],
    [413, 'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size'],
  ])('BR-127: throttling with %d is no overflow', (status, message) => {
    expect(classify(status, said(message))).toMatchObject({ kind: 'rate_limit', retryable: true });
  });

  it.each([
    [400, "Unsupported value: 'messages[0].role' does not support 'developer' with this model."],
    [400, 'max_tokens is too large: 99999. This model supports at most 16384 completion tokens'],
    [401, 'maximum context length'],
    [404, 'The model with a context window of 8k does not exist'],
    [503, 'maximum context length unknown'],
  ])('is not seen in other failures (%d)', (status, message) => {
    expect(classify(status, said(message)).kind).not.toBe('context_overflow');
  });
});

describe('EE2: rate limits and quota', () => {
  it('believes a code about quota, not a text', () => {
    const message = 'You exceeded your current quota, please check your plan and billing details.';

    expect(classify(429, said(message))).toMatchObject({ kind: 'rate_limit', retryable: true });
    expect(classify(429, { error: { message, code: 'insufficient_quota' } })).toMatchObject({ kind: 'quota', retryable: false, code: 'insufficient_quota' });
    expect(classify(400, said('Your credit balance is too low')).kind).toBe('invalid_request');
  });

  it('EE6: reads whole seconds and milliseconds from headers, and no dates', () => {
    expect(classify(429, '', { 'retry-after': '7' }).retryAfterMs).toBe(7000);
    expect(classify(429, '', { 'retry-after-ms': '1500', 'retry-after': '7' }).retryAfterMs).toBe(1500);
    for (const value of ['Wed, 21 Oct 2026 07:28:00 GMT', '1.5', '-1', 'soon', '']) {
      expect(retryAfterFromHeaders(new Headers({ 'retry-after': value }))).toBeUndefined();
    }
  });

  it('reads a delay that only the body tells', () => {
    expect(retryAfterFromText('Please try again in 1m2.5s.')).toBe(62_500);
    expect(retryAfterFromText('Please try again in 120ms. Visit')).toBe(120);
    expect(retryAfterFromText('Please retry in 48.9s')).toBe(48_900);
    expect(retryAfterFromText('try again in 20 seconds')).toBe(20_000);
    expect(retryAfterFromText('try again later')).toBeUndefined();
    expect(parseDuration('1h')).toBe(3_600_000);
    expect(parseDuration('x')).toBeUndefined();
  });

  it('BR-094: gives 30 days as 30 days; capping is the policy\'s', () => {
    expect(classify(429, '', { 'retry-after': '2592000' }).retryAfterMs).toBe(2_592_000_000);
  });

  it('EE6: carries the id of the request', () => {
    expect(classify(500, '', { 'x-request-id': 'req_1' }).requestId).toBe('req_1');
  });
});

describe('EE4: broken histories', () => {
  it.each([
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    'messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1',
    'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1',
    'No tool output found for function call call_1.',
    'tool_call_id call_1 is not found in the history',
    '`tool_use` ids must be unique',
    'Duplicate tool_call id',
    'Not the same number of function calls and responses',
    "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    "Unexpected role 'user' after role 'tool'",
    'roles must alternate between "user" and "assistant"',
    'messages: first message must use the "user" role',
    'messages: text content blocks must be non-empty',
    'all messages must have non-empty content except for the optional final assistant message',
    'the message at position 3 with role assistant must not be empty',
    'Assistant message must have either content or tool_calls, but not none.',
    'messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block',
    'messages.3: `mcp_tool_use` call was found without its `mcp_tool_result`',
    'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    'messages.3.content.0: Invalid `signature` in `thinking` block',
    'messages.5: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.',
    'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.',
    'When thinking is enabled, a final assistant message must start with a thinking block.',
    'This model does not support assistant message prefill. The conversation must end with a user message.',
    'messages: at least one message is required',
    'messages: final assistant content cannot end with trailing whitespace',
  ])('knows %s', (message) => {
    expect(classify(400, said(message)).kind).toBe('invalid_history');
    expect(classify(401, said(message)).kind).toBe('auth');
  });

  it('are no overflow', () => {
    expect(classify(400, said('prompt is too long, and roles must alternate')).kind).toBe('context_overflow');
  });
});

describe('what is not to be said', () => {
  it.each([
    'Output blocked by content filtering policy',
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
    'Your request was rejected as a result of our safety system.',
    'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
    'Content Exists Risk',
    'Output data may contain inappropriate content.',
  ])('knows %s', (message) => {
    expect(classify(400, said(message))).toMatchObject({ kind: 'content_filter', retryable: false });
    expect(errorFromBody({ error: { type: 'invalid_request_error', message } }, context, { headers: new Headers() }).kind).toBe('content_filter');
  });

  it.each(['Request blocked by the firewall', 'content must be a string', 'tools.0: content is too risky a name'])('is not seen in %s', (message) => {
    expect(classify(400, said(message)).kind).toBe('invalid_request');
  });
});

describe('EE5: media', () => {
  it.each([
    'Could not process image',
    'You uploaded an unsupported image. Please make sure your image is valid.',
    'Invalid image data',
    'Unsupported image type',
    'Failed to decode image',
    'The image data you provided does not represent a valid image: cannot identify image file',
    'Image does not match the provided media type image/png',
    'messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.',
    'The PDF specified is password protected.',
    'Invalid PDF file',
    'The video is corrupt',
  ])('knows %s', (message) => {
    expect(classify(400, said(message)).kind).toBe('media_rejected');
  });

  it.each([
    ['size', 'messages.1.content.1.image.source.base64: image exceeds 5 MB maximum: 5588788 bytes > 5242880 bytes', 'request_too_large'],
    ['number', 'too many images in request: 30', 'request_too_large'],
    ['pages', 'messages.0.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.', 'request_too_large'],
    ['other pages', 'The document has too many pages', 'request_too_large'],
    ['number, as vLLM says it', 'At most 4 image(s) may be provided in one prompt.', 'request_too_large'],
    ['dimensions', 'At least one of the image dimensions exceed max allowed size: 8000 pixels', 'request_too_large'],
    ['a limit that is none of media', 'A maximum of 4 blocks with cache_control may be provided.', 'invalid_request'],
    ['something else', 'Invalid value for temperature', 'invalid_request'],
  ])('takes complaints about %s for something else', (_about, message, kind) => {
    expect(classify(400, said(message)).kind).toBe(kind);
  });
});

describe('media that a model does not take at all', () => {
  it.each([
    [400, 'Invalid content type. image_url is only supported by certain models.'],
    [400, 'Image input modality is not enabled for models/gemma-3-1b-it'],
    [400, 'Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`'],
    [404, 'No endpoints found that support image input'],
    [500, 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'],
    [400, 'This model does not support image input'],
    [400, 'gpt-x is not a multimodal model'],
    [400, 'At most 0 image(s) may be provided in one prompt.'],
  ])('EE5, BR-002: %d %s is a matter for the recovery that takes media out', (status, message) => {
    expect(classify(status, said(message))).toMatchObject({ kind: 'media_rejected', retryable: false });
  });

  it.each([
    [404, 'The model `image-x` does not exist', 'not_found'],
    [400, 'tools are not supported', 'invalid_request'],
    [500, 'image service crashed', 'server'],
    [401, 'This key does not support image input', 'auth'],
  ])('is not seen in %d %s', (status, message, kind) => {
    expect(classify(status, said(message)).kind).toBe(kind);
  });
});

describe('words and shapes', () => {
  it.each([
    [404, { error: { code: 'DeploymentNotFound', message: 'x' } }, 'not_found'],
    [400, { error: { code: 'content_filter', message: 'x' } }, 'content_filter'],
    [400, { error: { code: 'x', innererror: { code: 'ResponsibleAIPolicyViolation' }, message: 'x' } }, 'content_filter'],
    [400, { error: { code: 'invalid_api_key', message: 'x' } }, 'auth'],
    [400, [{ error: { code: 400, status: 'PERMISSION_DENIED', message: 'x' } }], 'permission'],
    [500, { error: { type: 'overloaded_error', message: 'x' } }, 'overloaded'],
    [400, { error: { code: 'constructor', type: '__proto__', message: 'toString' } }, 'invalid_request'],
  ] as const)('%d %j is %s', (status, body, kind) => {
    expect(classify(status, body).kind).toBe(kind);
  });

  it.each([
    [{ error: { message: 'm' } }],
    [{ error: 'm' }],
    [{ message: 'm' }],
    [{ detail: 'm' }],
    [{ errors: [{ message: 'm' }] }],
    [[{ error: { message: 'm' } }]],
    ['m'],
  ])('finds the message in %j', (body) => {
    expect(classify(400, body).message).toBe('test answered 400: m');
  });

  it('quotes a list of details', () => {
    expect(classify(422, { detail: [{ loc: ['body'], msg: 'field required' }] }).message).toContain('field required');
  });

  it('EE9: says which option sets a refused effort', () => {
    expect(classify(400, said("Unsupported value: 'reasoning_effort' does not support 'xhigh'")).message).toContain('thinkingEffort');
  });

  it('B6: asks a host\'s patterns first', () => {
    const patterns = [{ pattern: /kontext voll/gi, kind: 'context_overflow' as const }, { pattern: /busy/, kind: 'server' as const, status: 400, retryable: false }];
    const asked = (message: string, status: number): LLMError =>
      errorFromResponse({ status, headers: new Headers() }, JSON.stringify(said(message)), { ...context, patterns });

    expect([asked('Kontext voll', 400), asked('Kontext voll', 400)].map((error) => error.kind)).toStrictEqual(['context_overflow', 'context_overflow']);
    expect(asked('busy', 400)).toMatchObject({ kind: 'server', retryable: false });
    expect(asked('busy', 401).kind).toBe('auth');
  });

  it('takes the status that an error in a stream names', () => {
    const error = errorFromBody({ error: { code: 429, message: 'slow down' } }, context, { headers: new Headers() });

    expect(error).toMatchObject({ kind: 'rate_limit', status: 429 });
  });

  const inStream = (error: unknown): LLMError => errorFromBody({ error }, context, { headers: new Headers() });

  it.each([
    ['{"error":{"code":429,"message":"slow down"}}', { kind: 'rate_limit', status: 429 }, 'slow down'],
    ['{"error":{"code":"context_length_exceeded","message":"too much"}}', { kind: 'context_overflow' }, 'too much'],
    ['{"error":{"type":"overloaded_error","message":"Overloaded"}}', { kind: 'overloaded' }, 'Overloaded'],
    ['{"detail":"prompt is too long"}', { kind: 'context_overflow' }, 'prompt is too long'],
  ])('OR6: an error that a gateway quotes as JSON is read: %s', (message, expected, said_) => {
    for (const code of ['server_error', 500, undefined]) {
      const error = inStream({ code, message });

      expect(error).toMatchObject(code === 500 ? { kind: expected.kind } : expected);
      expect(error.message).toMatch(new RegExp(`: ${said_}$`));
    }
  });

  it.each([
    ['Error code: 429 - try later', 'rate_limit', 429],
    ['upstream failed with status 503', 'overloaded', 503],
    ['HTTP/1.1 502 from upstream', 'server', 502],
    ['HTTP 404 while the image was fetched', 'server', undefined],
    ['{"error": not JSON, status 529', 'overloaded', 529],
    ['{"hint":"nothing"}', 'server', undefined],
  ] as const)('OR6: a status within a text counts if nothing else names one: %s', (message, kind, status) => {
    expect(inStream({ message })).toMatchObject({ kind, status });
  });

  it('OR6: the words of a response that failed', () => {
    const kinds = ['invalid_prompt', 'bio_policy', 'image_too_large', 'failed_to_download_image', 'vector_store_timeout', 'server_error', 'rate_limit_exceeded'];

    expect(kinds.map((code) => inStream({ code, message: 'x' }).kind)).toStrictEqual([
      'invalid_request',
      'content_filter',
      'request_too_large',
      'media_rejected',
      'timeout',
      'server',
      'rate_limit',
    ]);
  });
});
