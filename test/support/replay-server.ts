/** A local HTTP server that answers as it is told, and remembers what it was asked. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request, as the server saw it. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Settles when the connection of the request is closed before its answer was complete. */
  readonly closed: Promise<void>;
}

/** Answers a request. */
export type Responder = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

export interface ReplayServer {
  /** `http://127.0.0.1:PORT/v1` */
  readonly baseUrl: string;
  /** Every request so far, oldest first. */
  readonly requests: readonly SeenRequest[];
  /** Answers all requests from now on. */
  respond(responder: Responder): void;
  close(): Promise<void>;
}

/** Starts a server on a free port. */
export async function startReplayServer(first?: Responder): Promise<ReplayServer> {
  let responder: Responder = first ?? ((response) => void response.writeHead(500).end());
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const closed = new Promise<void>((resolve) => {
      response.on('close', () => {
        if (!response.writableFinished) resolve();
      });
    });
    void readBody(request).then(async (body) => {
      const seen = { url: request.url ?? '', headers: request.headers, body, closed };
      requests.push(seen);
      await responder(response, seen);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    respond(next) {
      responder = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers with a body in the given pieces. */
export function answer(body: string | readonly Uint8Array[], status = 200, headers: Record<string, string> = {}): Responder {
  return (response) => {
    response.writeHead(status, headers);
    if (typeof body === 'string') response.write(body);
    else for (const piece of body) response.write(piece);
    response.end();
  };
}

/** Answers with the given events, and with `[DONE]` unless told otherwise. */
export function answerEvents(events: readonly unknown[], end = 'data: [DONE]\n\n'): Responder {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + end;
  return answer(body, 200, { 'content-type': 'text/event-stream' });
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}
