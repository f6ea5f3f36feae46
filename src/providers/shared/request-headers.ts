/**
 * Request headers: the key, asked for at each request, and what the host adds.
 *
 * Every value that is secret is made known to the redactor before it goes anywhere.
 */
import { isLLMError, LLMError } from '../../core/errors.ts';
import type { ProviderConfig, ProviderOptions } from './options.ts';
import { addHeaderSecrets, addUrlSecrets, type Redactor } from './redact.ts';

/** Headers that a protocol sends. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What a protocol has to say in headers. */
export interface HeaderRules {
  /** How the key is sent. */
  readonly authorize: (key: string) => HeaderList;
  /** What else is always sent. */
  readonly fixed: HeaderList;
}

/**
 * Makes the headers of a request.
 *
 * @throws {@link index.LLMError | LLMError} of kind `auth` if there is no key to be had, or a header cannot be sent.
 */
export async function makeHeaders(config: ProviderConfig, rules: HeaderRules, redactor: Redactor): Promise<Headers> {
  const { options, provider, url, isStreamed } = config;
  addUrlSecrets(redactor, url);
  const key = await resolveKey(options.apiKey, provider);
  redactor.add(key);
  const given = Object.entries(options.headers ?? {});
  addHeaderSecrets(redactor, given);
  try {
    const headers = new Headers({ 'content-type': 'application/json', accept: isStreamed ? 'text/event-stream' : 'application/json' });
    for (const [name, value] of rules.fixed) headers.set(name, value);
    if (key !== undefined) for (const [name, value] of rules.authorize(key)) headers.set(name, value);
    for (const [name, value] of given) headers.set(name, value);
    return headers;
  } catch {
    // The runtime's message quotes the value.
    const message = `${provider}: the API key or a header holds characters that a header cannot carry.`;
    throw new LLMError({ kind: 'auth', code: 'invalid_header', message });
  }
}

async function resolveKey(apiKey: ProviderOptions['apiKey'], provider: string): Promise<string | undefined> {
  if (typeof apiKey !== 'function') return cleanKey(apiKey);
  try {
    return cleanKey(await apiKey());
  } catch (thrown) {
    if (isLLMError(thrown)) throw thrown;
    // What was thrown may hold what the key is made from.
    throw new LLMError({ kind: 'auth', code: 'api_key_failed', message: `${provider}: the \`apiKey\` function failed, so nothing was sent.` });
  }
}

/** A key read from a file ends in a line break. */
function cleanKey(key: string | undefined): string | undefined {
  const trimmed = key?.trim();
  return trimmed === '' ? undefined : trimmed;
}
