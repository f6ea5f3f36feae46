/**
 * Request headers: the key, and what the host adds.
 *
 * Every value that is secret is made known to the redactor before it goes anywhere.
 */
import { LLMError } from '../../core/errors.ts';
import type { ProviderConfig } from './options.ts';
import { addHeaderSecrets, addUrlSecrets, type Redactor } from './redact.ts';
import type { RequestKey } from './request-key.ts';

/** Headers that a protocol sends. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What a protocol has to say in headers. */
export interface HeaderRules {
  /** How the key is sent. */
  readonly authorize: (key: string) => HeaderList;
  /** What else is always sent. */
  readonly fixed: HeaderList;
}

/** What a request must not tell. */
export interface RequestSecrets {
  readonly key: RequestKey;
  /** Is told of every secret before it goes anywhere. */
  readonly redactor: Redactor;
}

/**
 * Makes the headers of a request.
 *
 * @throws {@link index.LLMError | LLMError} of kind `auth` if there is no key to be had, or a header cannot be sent.
 */
export async function makeHeaders(config: ProviderConfig, rules: HeaderRules, secrets: RequestSecrets): Promise<Headers> {
  const { options, provider, url, isStreamed } = config;
  const { redactor } = secrets;
  addUrlSecrets(redactor, url);
  const key = await secrets.key.get();
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
