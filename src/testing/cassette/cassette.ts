/**
 * Cassette: a `fetch` that records what passes, or replays what was recorded.
 *
 * - A replay never touches the network, and a recording never answers from the file.
 * - Each recorded exchange is replayed once, equal ones in their order.
 * - A request that matches nothing fails as `refused`: asking again would not help, so nobody retries it.
 */
import { LLMError } from '../../core/errors.ts';
import { readCassetteFile, writeCassetteFile } from './cassette-file.ts';
import { readCassetteText, writeCassetteText } from './cassette-text.ts';
import { CassetteError } from './errors.ts';
import { keepHeaders } from './kept-headers.ts';
import { type Outgoing, readOutgoing } from './outgoing.ts';
import { type CassetteOptions, type ResolvedOptions, resolveOptions, resolvePath } from './options.ts';
import { play } from './player.ts';
import { Recording } from './recorder.ts';
import { readText, redactExchange } from './redact.ts';
import { Secrets } from './secrets.ts';
import { Shelf } from './shelf.ts';

/** Records or replays. Made by {@link createCassette}. */
export interface Cassette {
  /** To be given to an adapter, or to anything else that takes a `fetch`. Fails with an `LLMError` `refused` for what is not recorded. */
  readonly fetch: typeof globalThis.fetch;
  /** What it does. */
  readonly mode: 'record' | 'replay';
  /**
   * That every recorded request was made again, and no other: for the end of a test. Nothing to say while recording.
   *
   * @throws {@link CassetteError} `cassette_not_done`, naming what is left.
   */
  assertDone(): void;
  /**
   * Writes what was recorded, whole or not at all; a file without any request is not written. To be awaited at the end of a
   * test that went well: what a failed one recorded, a refused key perhaps, is better not kept, and holds on to nothing.
   * What has not ended by then is recorded as aborted by the client. A second call does nothing, and a request after it is
   * refused.
   *
   * @throws {@link CassetteError} `cassette_unwritable`.
   */
  close(): Promise<void>;
}

/**
 * Opens a cassette: model traffic in a file, at the level of HTTP, so for any adapter. The first run records it from the
 * real server, and every later run replays it, without network and key, byte for byte.
 *
 * @param path - The file: JSON that is made to be read and committed. Folders are made as needed. One cassette at a time
 * records to a file: of two, the last that is closed stays.
 * @param options - What it does, what is hidden, and what is not compared.
 * @throws {@link CassetteError} for a file that is missing, broken or too new; TypeError for an option that makes no sense.
 *
 * @example
 * ```ts
 * const cassette = await createCassette('test/cassettes/weather.json');
 * const llm = openAIChat({ model: 'gpt-5-mini', apiKey: process.env.OPENAI_API_KEY, fetch: cassette.fetch });
 * // … run the agent on `llm`, expect what it did …
 * cassette.assertDone();
 * await cassette.close();
 * ```
 */
export async function createCassette(path: string | URL, options: CassetteOptions = {}): Promise<Cassette> {
  const resolved = resolveOptions(options);
  const file = resolvePath(path);
  const text = resolved.mode === 'record' ? undefined : await readCassetteFile(file);
  if (text !== undefined) return replayingCassette(file, text, resolved);
  if (resolved.mode === 'replay') {
    throw new CassetteError('cassette_missing', `There is no cassette ${file} to replay. Record it first: run once with \`mode: 'auto'\` or 'record', where the server and its key are.`);
  }
  return recordingCassette(file, resolved);
}

function recordingCassette(file: string, options: ResolvedOptions): Cassette {
  const recordings: Recording[] = [];
  const secrets = new Secrets();
  let closing: Promise<void> | undefined;

  function send({ sent, headers, resend, signal }: Outgoing): Promise<Response> {
    secrets.learnRequest(sent.url, headers);
    const recording = new Recording(sent, {
      runtime: options.runtime,
      keepHeaders: (given) => {
        secrets.learnResponse(given);
        return keepHeaders(given, options.headers);
      },
    });
    recordings.push(recording);
    return recording.send(() => options.fetch(...resend), signal);
  }

  async function write(): Promise<void> {
    const exchanges = recordings.map(({ exchange }) => exchange);
    // What is learned from one exchange may stand in another.
    for (const { request, response } of exchanges) for (const { body } of [request, response ?? request]) secrets.learnText(readText(body).text);
    const clean = exchanges.map((exchange) => redactExchange(exchange, { rules: options.redact, secrets }));
    if (clean.length > 0) await writeCassetteFile(file, writeCassetteText(clean));
  }

  return {
    fetch: async (input, init) => {
      const outgoing = await readOutgoing(input, init, options.headers);
      if (closing !== undefined) throw closedError(file);
      outgoing.signal?.throwIfAborted();
      return send(outgoing);
    },
    mode: 'record',
    assertDone: () => undefined,
    close: () => (closing ??= write()),
  };
}

function replayingCassette(file: string, text: string, options: ResolvedOptions): Cassette {
  const shelf = new Shelf(file, readCassetteText(text, file), options);
  let isClosed = false;
  return {
    fetch: async (input, init) => {
      const { sent, headers, signal } = await readOutgoing(input, init, options.headers);
      if (isClosed) throw closedError(file);
      signal?.throwIfAborted();
      return play(shelf.take(sent, headers), { url: sent.url, signal }, options.play);
    },
    mode: 'replay',
    assertDone: () => shelf.assertDone(),
    close: async () => {
      isClosed = true;
    },
  };
}

function closedError(file: string): LLMError {
  return new LLMError({ kind: 'refused', code: 'cassette_closed', message: `The cassette ${file} is closed: it takes no more requests. Await what uses it before \`close()\`.` });
}
