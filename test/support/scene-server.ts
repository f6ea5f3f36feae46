/**
 * Scene server: plays the scenes of the LLM conformance kit over real HTTP, in the words of any protocol that streams.
 *
 * Owns what is the same for all: the server, the order of steps, pieces of bytes, waits, cuts and stalls. A protocol
 * says what to write at each step, how it refuses, and what it reads in a request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LLMScene, LLMSceneFailure, LLMSceneFinish, LLMSceneReplied, LLMSceneRequest, LLMSceneStep, LLMSentCall, LLMSentResult } from 'turnloop/testing/conformance';

/** A step that says something. */
export type SpokenStep = Extract<LLMSceneStep, { type: 'start' | 'part.begin' | 'part.delta' | 'part.end' | 'finish' | 'fail' }>;

/** An answer that is no success. */
export interface Refusal {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a fake server has to know of a protocol. */
export interface SceneProtocol {
  /** Headers of an answer that is a success. */
  readonly headers: Readonly<Record<string, string>>;
  /** Makes the writer of one answer: the text to send at a step, empty for none. May keep what it has written. */
  createWriter(): (step: SpokenStep) => string;
  /** The answer in place of one that streams. */
  refuse(failure: LLMSceneFailure): Refusal;
  /** The calls and results of a request's history. */
  read(body: unknown): { readonly calls: readonly LLMSentCall[]; readonly results: readonly LLMSentResult[] };
  /** What is said of a reply that ends so, besides its content. */
  replied(end: LLMSceneFinish): LLMSceneReplied;
  /** Every rule of the protocol that a request breaks: a strict server would refuse it. */
  check(body: unknown): readonly string[];
}

/** A server that plays a scene. */
export interface SceneServer {
  /** `http://127.0.0.1:PORT`: any path is answered. */
  readonly origin: string;
  requests(): readonly LLMSceneRequest[];
  close(): Promise<void>;
}

/** Starts a server on a free port. */
export async function startSceneServer({ answers, chunkBytes }: LLMScene, protocol: SceneProtocol): Promise<SceneServer> {
  const requests: LLMSceneRequest[] = [];
  const server = createServer((incoming, response) => {
    const letGo = new Promise<void>((resolve) => {
      response.on('close', () => {
        if (!response.writableFinished) resolve();
      });
    });
    void readBody(incoming).then((body) => {
      const steps = answers[requests.length];
      const parsed: unknown = JSON.parse(body);
      const end = steps?.find((step) => step.type === 'finish');
      requests.push({ body, letGo, replied: end && protocol.replied(end), ...protocol.read(parsed) });
      const problems = steps === undefined ? ['The scene has no answer to this request.'] : protocol.check(parsed);
      if (problems.length === 0) return play(steps ?? [], protocol, new Line(response, chunkBytes));
      return refuse(response, { status: 400, body: JSON.stringify({ error: { message: problems.join('; ') } }) });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function play(steps: readonly LLMSceneStep[], protocol: SceneProtocol, line: Line): Promise<void> {
  const write = protocol.createWriter();
  for (const step of steps) {
    switch (step.type) {
      case 'wait':
        await step.until();
        break;
      case 'refuse':
        refuse(line.response, protocol.refuse(step.failure));
        break;
      case 'cut':
        line.response.destroy();
        break;
      case 'close':
        line.response.end();
        break;
      case 'stall':
        break;
      default:
        if (step.type === 'start') line.response.writeHead(200, protocol.headers).flushHeaders();
        await line.send(write(step));
        if (step.type === 'finish') line.response.end();
    }
  }
}

function refuse(response: ServerResponse, { status, headers, body }: Refusal): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

/** The way to the client. */
class Line {
  readonly response: ServerResponse;
  readonly #chunkBytes: number;

  constructor(response: ServerResponse, chunkBytes = Infinity) {
    this.response = response;
    this.#chunkBytes = chunkBytes;
  }

  /** Sends text; in pieces, each has left before the next is written. */
  async send(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += this.#chunkBytes) {
      this.response.write(bytes.subarray(at, at + this.#chunkBytes));
      if (at + this.#chunkBytes < bytes.length) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}

/** Server-sent events. @param name - The event's name, for protocols that give them one. */
export function sse(data: unknown, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** `retry-after` of a failure, in seconds; no header where the server does not say. */
export function retryAfter({ retryAfterMs }: LLMSceneFailure): Readonly<Record<string, string>> {
  return retryAfterMs === undefined ? {} : { 'retry-after': String(retryAfterMs / 1000) };
}
