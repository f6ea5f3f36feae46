/**
 * Request key: the key of one request, asked for whenever it is sent, and asked for anew once if the server refuses it.
 *
 * - A key that is a text, or a function that has no other to give, is refused for good: nothing is sent again with it.
 * - Keys are held as long as the request runs, nowhere else.
 */
import { isLLMError, LLMError } from '../../core/errors.ts';
import type { LLMRequest } from '../../core/llm.ts';
import { systemRuntime } from '../../core/runtime.ts';
import type { ProviderConfig } from './options.ts';
import { createWatch } from './watch.ts';

/** The key of one request. */
export interface RequestKey {
  /**
   * The key to send with.
   *
   * @throws {@link index.LLMError | LLMError}: what the function threw, if it is one; else of kind `auth`.
   */
  get(): Promise<string | undefined>;
  /**
   * Asks for another key if this failure is a refusal of the one that was sent, and none was asked for before.
   *
   * @returns Whether there is one: the request may be sent again.
   * @throws {@link index.LLMError | LLMError} as `get`, or if the request is aborted or the function takes too long.
   */
  renew(failure: LLMError, request: LLMRequest): Promise<boolean>;
}

/** Makes the key of one request. */
export function createRequestKey({ options, provider, url, timeouts }: ProviderConfig): RequestKey {
  const { apiKey } = options;
  let sent: string | undefined;
  let renewed: string | undefined;
  let isRefused = false;

  async function ask(refresh: boolean): Promise<string | undefined> {
    if (typeof apiKey !== 'function') return cleanKey(apiKey);
    try {
      return cleanKey(await apiKey({ refresh }));
    } catch (thrown) {
      if (isLLMError(thrown)) throw thrown;
      // What was thrown may hold what the key is made from.
      throw new LLMError({ kind: 'auth', code: 'api_key_failed', message: `${provider}: the \`apiKey\` function failed, so nothing was sent.` });
    }
  }

  return {
    async get() {
      sent = renewed ?? (await ask(false));
      return sent;
    },
    async renew(failure, { signal, scope }) {
      if (isRefused || typeof apiKey !== 'function' || failure.status !== 401 || failure.kind !== 'auth') return false;
      isRefused = true;
      const watch = createWatch({ signal, runtime: scope?.runtime ?? systemRuntime, origin: url.origin, release: () => undefined });
      try {
        watch.limit('api_key', timeouts.connectMs);
        renewed = await watch.wait(ask(true));
      } finally {
        watch.end();
      }
      return renewed !== undefined && renewed !== sent;
    },
  };
}

/** A key read from a file ends in a line break. */
function cleanKey(key: string | undefined): string | undefined {
  const trimmed = key?.trim();
  return trimmed === '' ? undefined : trimmed;
}
