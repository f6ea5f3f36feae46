/** A real llama.cpp server with the tiny model: fetched once, started on a free port. */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';

const DIRECTORY = path.resolve('node_modules/.cache/llama-server');
const MODEL = path.resolve('examples/tiny-llm/tiny-coder.gguf');
const FETCH_MS = 240_000;
const START_MS = 60_000;
/** Two slots of 4096 tokens each. */
const ARGUMENTS = ['--host', '127.0.0.1', '--offline', '--no-webui', '-c', '8192', '-np', '2', '-t', '1', '--alias', 'tiny-coder'];

export interface LlamaServer {
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** Starts the server. @returns The server, or why it cannot be had here. */
export async function startLlamaServer(): Promise<LlamaServer | string> {
  const program = path.join(DIRECTORY, 'llama-server');
  try {
    if (!existsSync(program)) await promisify(execFile)('bash', ['test/server/get-llama-server.sh', DIRECTORY], { timeout: FETCH_MS });
  } catch (error) {
    return `llama-server could not be fetched: ${error instanceof Error ? error.message.trim().split('\n').at(-1) : 'unknown'}`;
  }
  const port = await freePort();
  const child = spawn(program, ['-m', MODEL, '--port', String(port), ...ARGUMENTS], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const close = async (): Promise<void> => {
    child.kill();
    await exited;
  };
  if (await isHealthy(port, exited)) return { baseUrl: `http://127.0.0.1:${port}/v1`, close };
  await close();
  return 'llama-server was fetched but did not start';
}

async function isHealthy(port: number, exited: Promise<void>): Promise<boolean> {
  let isGone = false;
  void exited.then(() => (isGone = true));
  const deadline = Date.now() + START_MS;
  while (!isGone && Date.now() < deadline) {
    const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok === true) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
