/**
 * Replay server: answers requests of the wire cases with ready bytes, in a process of its own, so that a measured process
 * only reads. It listens on 127.0.0.1 and a free port, and ends with whoever started it.
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FINAL_TEXT } from './scenario.ts';
import { WIRE_PROTOCOLS } from './wire-protocols.ts';

/** The argument by which a process of this bundle becomes the server. */
export const SERVER_ROLE = 'replay-server';

/** A server that runs. */
export interface RunningServer {
  /** Without a slash at its end; the names of the protocol and of the reply follow. */
  readonly url: string;
  stop(): void;
}

/** Starts the server as a child process. */
export function startReplayServer(): Promise<RunningServer> {
  const child = fork(process.argv[1]!, [SERVER_ROLE], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      reject(new Error(`The replay server ended with ${String(code)}.`));
    });
    child.once('message', (port) => {
      resolve({ url: `http://127.0.0.1:${port as number}`, stop: () => child.kill() });
    });
  });
}

/** Is the server: tells its port to the parent, and serves until the parent is gone. */
export function serveReplays(): void {
  const replies = new Map(
    WIRE_PROTOCOLS.map((protocol) => [
      protocol.name,
      { mark: protocol.resultMark, text: protocol.stream('text'), arguments: protocol.stream('arguments'), short: protocol.shortStream(FINAL_TEXT) },
    ]),
  );
  const server = createServer((request, response) => {
    const [, name = '', reply] = request.url?.split('/') ?? [];
    const ready = replies.get(name);
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      response.writeHead(ready === undefined ? 404 : 200, { 'content-type': 'text/event-stream' });
      response.end(body.includes(ready?.mark ?? '') ? ready?.short : reply === 'text' ? ready?.text : ready?.arguments);
    });
  });
  process.once('disconnect', () => process.exit(0));
  server.listen(0, '127.0.0.1', () => {
    process.send?.((server.address() as AddressInfo).port);
  });
}
