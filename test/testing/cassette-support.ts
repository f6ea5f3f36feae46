/** Cassettes in tests: a folder that goes away, a local server to record from, and one question to a model. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isLLMError, type LLM, type LLMDelta, type LLMError, type LLMRequest, type LLMResponse, userMessage } from 'turnloop';
import { createCassette, type CassetteOptions } from 'turnloop/testing/cassette';
import { onTestFinished } from 'vitest';
import { type Responder, startReplayServer, type ReplayServer } from '../support/replay-server.ts';

/** A folder that goes away after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cassette-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The text of every file in a folder. */
export function textOfFolder(folder: string): string {
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
}

/** A server that goes away after the test, or before. */
export async function startServer(responder?: Responder): Promise<ReplayServer> {
  const server = await startReplayServer(responder);
  onTestFinished(() => server.close());
  return server;
}

/** Records what happens in `use`, and stops the server. @returns Path of the file, in a folder of its own. */
export async function record(server: ReplayServer, use: (fetch: typeof globalThis.fetch) => Promise<unknown>, options: CassetteOptions = {}): Promise<string> {
  const file = join(makeFolder(), 'cassette.json');
  const cassette = await createCassette(file, { mode: 'record', ...options });
  await use(cassette.fetch);
  await cassette.close();
  await server.close();
  return file;
}

/** A request that says one thing. */
export function asking(text: string, more: Partial<LLMRequest> = {}): LLMRequest {
  return { systemPrompt: 'Be brief.', messages: [{ ...userMessage(text), id: 'm' }], tools: [], signal: new AbortController().signal, ...more };
}

export interface Heard {
  readonly deltas: readonly LLMDelta[];
  readonly response: Omit<LLMResponse, 'timing'>;
}

/** What a model says, without how long it took. */
export async function ask(llm: LLM, text: string, more: Partial<LLMRequest> = {}): Promise<Heard> {
  const deltas: LLMDelta[] = [];
  const { timing: _timing, ...response } = await llm.chat(asking(text, { onDelta: (delta) => deltas.push(delta), ...more }));
  return { deltas, response };
}

/** The `LLMError` that a promise rejects with. */
export async function llmErrorOf(promise: Promise<unknown>): Promise<LLMError> {
  const thrown = await errorOf(promise);
  if (!isLLMError(thrown)) throw thrown;
  return thrown;
}

/** What a promise rejects with. */
export function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}

/** Sends JSON. */
export function post(fetch: typeof globalThis.fetch, url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), ...init });
}

/** The pieces of a body, each as text of one character a byte. */
export async function piecesOf(response: Response): Promise<readonly string[]> {
  const pieces: string[] = [];
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) pieces.push(Buffer.from(piece).toString('latin1'));
  return pieces;
}
