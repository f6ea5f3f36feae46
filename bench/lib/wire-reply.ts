/** Wire reply: what the replies of the wire cases hold, in whatever protocol, and what a protocol has to say for itself. */
import type { LLM } from 'turnloop';

/** Deltas of a text, and fragments of the arguments. */
export const DELTAS = 20_000;
const ARGUMENTS_LENGTH = 193_000;

/** What a server of {@link replay-server} answers with; the path of the address says which. */
export type ReplayedReply = 'text' | 'arguments';

/** The tool that the arguments are for. */
export const WRITE_TOOL_NAME = 'write_file';

/** A protocol, on both sides of the wire. */
export interface WireProtocol {
  /** Of the adapter; the first part of the server's path. */
  readonly name: string;
  /** The bytes of a reply's event stream. */
  stream(reply: ReplayedReply): Buffer;
  /** The bytes of a short reply, for the request that brings a tool's result. */
  shortStream(text: string): Buffer;
  /** What only such a request has in it. */
  readonly resultMark: string;
  /** The adapter, on a server. */
  connect(baseUrl: string): LLM;
  /** Path of the endpoint. */
  readonly path: string;
  /** Bodies of the two requests, as a program has them that knows what it wants to say. */
  firstBody(prompt: string): object;
  secondBody(prompt: string, call: { readonly id: string; readonly json: string; readonly output: string }): object;
  /** What is in one event. */
  read(event: unknown): ReadEvent | undefined;
}

/** What a program that can read nothing else finds in an event. */
export interface ReadEvent {
  readonly text?: string | undefined;
  readonly callId?: string | undefined;
  readonly fragment?: string | undefined;
}

/** The arguments that come in fragments: a file as a model writes one, quotes and line breaks escaped. */
export function writeArguments(): string {
  let content = '';
  for (let line = 1; content.length < ARGUMENTS_LENGTH * 0.93; line += 1) {
    content += `export const value${line} = compute("item-${line}", { limit: ${line * 7} }); // line ${line}\n`;
  }
  const path = 'src/generated/values.ts';
  const json = JSON.stringify({ path, content });
  return JSON.stringify({ path, content: content + 'x'.repeat(Math.max(0, ARGUMENTS_LENGTH - json.length)) });
}

/** The arguments in as many fragments as there are deltas. */
export function argumentFragments(): readonly string[] {
  const json = writeArguments();
  const cut = (index: number): number => Math.floor((index * json.length) / DELTAS);
  return Array.from({ length: DELTAS }, (_, index) => json.slice(cut(index), cut(index + 1)));
}

/** An event that says what it is. */
export interface NamedEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Events as bytes, each with the name that stands in its `type`. */
export function encodeNamed(events: readonly NamedEvent[]): Buffer {
  return Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
}
