/**
 * wire-…: what the adapter of a protocol costs beside reading its bytes.
 *
 * Measured: whole turns through the adapter against a server in a process of its own on 127.0.0.1; processor time of the reader alone.
 * - `ms-text`: one step, 20,000 text deltas to a listener.
 * - `ms-arguments`: a tool call whose 193 KB of arguments come in 20,000 fragments, then the request with its result.
 *
 * Limit: `fetch`, a streaming `TextDecoder`, `indexOf` for the blank line between events, `JSON.parse` for each, and a
 * callback for each fragment; arguments are joined and parsed once; the same two requests. Fair, since nobody can read the
 * protocol without these; out of reach, since it takes for granted what an adapter has to check: status, line ends of all
 * kinds, events over several lines, errors in the stream, time limits, abort.
 */
import { type AnyTool, ToolAccesses } from 'turnloop';
import type { BenchCase, Measurement, Numbers } from '../lib/bench-case.ts';
import { startReplayServer } from '../lib/replay-server.ts';
import { FINAL_TEXT, PROMPT, TOOL_OUTPUT, tokensLength } from '../lib/scenario.ts';
import { cpuMsPerRun, expectEqual } from '../lib/timing.ts';
import { runToEnd } from '../lib/turnloop-turn.ts';
import { WIRE_PROTOCOLS } from '../lib/wire-protocols.ts';
import { DELTAS, type ReplayedReply, type WireProtocol, WRITE_TOOL_NAME, writeArguments } from '../lib/wire-reply.ts';

// Long enough for the compiler to have come to its end: adapters have more code for it than the limit.
const BUDGET = { warmMs: 2000, measureMs: 1000 };

/** What a turn told of its reply: characters of text, and of the file that it was to write. */
interface Seen {
  readonly textLength: number;
  readonly contentLength: number;
}

/** One case for each protocol. */
export const wireCases: readonly BenchCase[] = WIRE_PROTOCOLS.map((protocol) => ({
  name: `wire-${protocol.name}`,
  repetitions: 3,
  measurements: [measurementOf('turnloop', protocol, turnloopTurn), measurementOf('parse', protocol, parseTurn)],
  figures: [
    {
      metric: 'ms-text',
      unit: 'ms',
      value: ['turnloop', 'text'],
      ratio: { metric: 'text-x-parse', to: ['parse', 'text'], label: 'bytes + JSON.parse' },
    },
    {
      metric: 'ms-arguments',
      unit: 'ms',
      value: ['turnloop', 'arguments'],
      ratio: { metric: 'arguments-x-parse', to: ['parse', 'arguments'], label: 'bytes + JSON.parse' },
    },
  ],
}));

async function turnloopTurn(protocol: WireProtocol, baseUrl: string): Promise<Seen> {
  let textLength = 0;
  let contentLength = 0;
  const tool: AnyTool = {
    name: WRITE_TOOL_NAME,
    description: 'Writes a file.',
    inputSchema: {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
    },
    accesses: () => ToolAccesses.none(),
    execute: async ({ content }: { readonly content: string }) => {
      contentLength = content.length;
      return TOOL_OUTPUT;
    },
  };
  await runToEnd(protocol.connect(baseUrl), {
    tools: [tool],
    listener: (event) => {
      if (event.type === 'text.delta') textLength += event.text.length;
    },
  });
  return { textLength, contentLength };
}

async function parseTurn(protocol: WireProtocol, baseUrl: string): Promise<Seen> {
  let textLength = 0;
  const onText = (text: string): void => {
    textLength += text.length;
  };
  const url = baseUrl + protocol.path;
  const first = await parseReply(protocol, { url, body: protocol.firstBody(PROMPT), onText });
  if (first.id === undefined) return { textLength, contentLength: 0 };
  const json = first.fragments.join('');
  const { content } = JSON.parse(json) as { readonly content: string };
  await parseReply(protocol, { url, body: protocol.secondBody(PROMPT, { id: first.id, json, output: TOOL_OUTPUT }), onText });
  return { textLength, contentLength: content.length };
}

interface ParsedRequest {
  readonly url: string;
  readonly body: object;
  readonly onText: (text: string) => void;
}

async function parseReply(
  protocol: WireProtocol,
  { url, body, onText }: ParsedRequest,
): Promise<{ readonly id: string | undefined; readonly fragments: readonly string[] }> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  const decoder = new TextDecoder();
  const fragments: string[] = [];
  let id: string | undefined;
  const onData = (data: string): void => {
    if (data === '[DONE]') return;
    const read = protocol.read(JSON.parse(data));
    if (read?.text !== undefined) onText(read.text);
    id ??= read?.callId;
    if (read?.fragment !== undefined) fragments.push(read.fragment);
  };
  let rest = '';
  for await (const chunk of response.body!) {
    const text = rest + decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n', start)) {
      onData(text.slice(text.indexOf('data: ', start) + 'data: '.length, end));
      start = end + 2;
    }
    rest = text.slice(start);
  }
  return { id, fragments };
}

type Turn = (protocol: WireProtocol, baseUrl: string) => Promise<Seen>;

function measurementOf(name: string, protocol: WireProtocol, turn: Turn): Measurement {
  return {
    name,
    measure: async (): Promise<Numbers> => {
      const { content } = JSON.parse(writeArguments()) as { readonly content: string };
      const expected: Record<ReplayedReply, Seen> = {
        text: { textLength: tokensLength(DELTAS), contentLength: 0 },
        arguments: { textLength: FINAL_TEXT.length, contentLength: content.length },
      };
      const server = await startReplayServer();
      const timeOf = (reply: ReplayedReply): Promise<number> =>
        cpuMsPerRun(async () => {
          const seen = await turn(protocol, `${server.url}/${protocol.name}/${reply}`);
          expectEqual('characters of text', seen.textLength, expected[reply].textLength);
          expectEqual('characters of the file', seen.contentLength, expected[reply].contentLength);
        }, BUDGET);
      try {
        return { text: await timeOf('text'), arguments: await timeOf('arguments') };
      } finally {
        server.stop();
      }
    },
  };
}
