/**
 * A Quill server on this machine, for `main.ts` and the tests: it refuses what a strict one would, and leaves the answer
 * to whoever starts it. Testing an adapter of your own begins with one like it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { QuillEvent, QuillPart, QuillRequest, QuillTrouble } from './protocol.ts';

/** One request and its answer. */
export interface QuillExchange {
  /** Which request of this server it is, 0-based. */
  readonly index: number;
  readonly key: string;
  /** The body as it came. */
  readonly body: string;
  readonly request: QuillRequest;
  /** Resolves when the client goes before the answer is complete. */
  readonly letGo: Promise<void>;
  /** Sends a line. @param chunkBytes - How many bytes at a time. @defaultValue all */
  send(event: QuillEvent, chunkBytes?: number): Promise<void>;
  /** Answers with a failure. */
  refuse(status: number, trouble: QuillTrouble): void;
  /** Sends the head of the answer, before any line. */
  open(): void;
  /** Ends the answer. */
  end(): void;
  /** Breaks the connection. */
  cut(): void;
}

/** A running server. */
export interface QuillServer {
  readonly url: string;
  /** All requests so far, refused ones included. */
  readonly exchanges: readonly QuillExchange[];
  close(): Promise<void>;
}

/** Starts a server. @param answer - Answers each request that is in order. */
export async function startQuillServer(answer: (exchange: QuillExchange) => Promise<void> | void): Promise<QuillServer> {
  const exchanges: QuillExchange[] = [];
  const server = createServer((incoming, response) => {
    void readBody(incoming).then((body) => {
      const exchange = createExchange({ index: exchanges.length, key: String(incoming.headers['quill-key'] ?? ''), body, response });
      exchanges.push(exchange);
      const wrong = findWrong(exchange.request);
      return wrong === undefined ? answer(exchange) : exchange.refuse(400, { word: 'bad_talk', text: wrong });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/quill`,
    exchanges,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

type Received = Pick<QuillExchange, 'index' | 'key' | 'body'> & { readonly response: ServerResponse };

function createExchange({ index, key, body, response }: Received): QuillExchange {
  const letGo = new Promise<void>((resolve) => {
    response.on('close', () => {
      if (!response.writableFinished) resolve();
    });
  });
  return {
    index,
    key,
    body,
    request: JSON.parse(body) as QuillRequest,
    letGo,
    async send(event, chunkBytes = Infinity) {
      const line = Buffer.from(`${JSON.stringify(event)}\n`);
      for (let at = 0; at < line.length; at += chunkBytes) {
        response.write(line.subarray(at, at + chunkBytes));
        if (at + chunkBytes < line.length) await new Promise((resolve) => setImmediate(resolve));
      }
    },
    refuse: (status, trouble) => void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(trouble)),
    open: () => response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders(),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  };
}

/** What a strict server would not take of a request's talk; undefined for nothing. */
function findWrong({ talk }: QuillRequest): string | undefined {
  const refs = new Set<string>();
  let open = new Set<string>();
  for (const { who, parts, ref } of talk) {
    if (parts.length === 0 || parts.some(isBlank)) return `an empty turn of ${who}`;
    if (who === 'tool') {
      if (!open.delete(ref ?? '')) return `a result of no ask before it: ${ref ?? 'no ref'}`;
      continue;
    }
    if (open.size > 0) return `asks without a result: ${[...open].join(', ')}`;
    open = new Set();
    for (const part of parts) {
      if (!('ask' in part)) continue;
      if (!/^[\w-]{1,24}$/.test(part.ref) || refs.has(part.ref)) return `a ref that is illegal or not new: ${part.ref}`;
      if (!part.with.trimStart().startsWith('{')) return `arguments that are no object: ${part.with}`;
      refs.add(part.ref);
      open.add(part.ref);
    }
  }
  return open.size === 0 ? undefined : `asks without a result: ${[...open].join(', ')}`;
}

function isBlank(part: QuillPart): boolean {
  return 'say' in part && part.say.trim() === '';
}
