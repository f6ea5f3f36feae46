/** F2: whatever a server sends, in whatever pieces, a cassette gives back the very bytes, in whatever pieces; and no secret. */
import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from 'turnloop';
import { createCassette } from 'turnloop/testing/cassette';
import { ADAPTERS } from '../providers/every-adapter.ts';
import { ask, makeFolder, post, startServer } from './cassette-support.ts';

/** Cuts bytes at the given places, fractions of their length. */
function cutAt(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const cuts = [...places.map((place) => Math.floor(place * bytes.length)), bytes.length].sort((a, b) => a - b);
  return cuts.map((cut, index) => bytes.subarray(cuts[index - 1] ?? 0, cut)).filter(({ length }) => length > 0);
}

const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 8 });
const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }).filter((text) => text.trim() !== '');

/** How a replay cuts: as recorded, in single bytes, whole, or at random. */
const pieces = fc.oneof(
  fc.constant(undefined),
  fc.constant(1),
  fc.constant((left: number) => left),
  fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })).map((dice) => (left: number) => 1 + Math.floor(Number(dice.next().value) * left)),
);

describe.each(ADAPTERS)('F2: a cassette recorded through $name from a local server', (adapter) => {
  it('replays the same bytes and the same reply, in any chunking, with the server gone', { timeout: 60_000 }, async () => {
    const folder = makeFolder();
    const reply = fc.record({ thinking: fc.option(words, { nil: undefined }), text: words, calls: fc.array(fc.record({ name: fc.constant('weather'), input: fc.dictionary(words, words, { maxKeys: 2 }) }), { maxLength: 2 }) });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(reply, places, pieces, async ({ thinking, ...said }, cuts, replayPieces) => {
        const stream = Buffer.from(adapter.stream(thinking === undefined ? said : { ...said, thinking }));
        const server = await startServer(async (response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (const piece of cutAt(stream, cuts)) {
            response.write(piece);
            await new Promise((resolve) => setImmediate(resolve));
          }
          response.end();
        });
        const file = join(folder, `${(run += 1)}.json`);
        const recording = await createCassette(file);
        const live = await ask(adapter.connect({ baseUrl: server.baseUrl, fetch: recording.fetch }), 'Hello');
        await recording.close();
        await server.close();

        const bytes: Buffer[] = [];
        const cassette = await createCassette(file, { mode: 'replay', pieces: replayPieces });
        const fetch: typeof globalThis.fetch = async (input, init) => {
          const response = await cassette.fetch(input, init);
          const watch = new TransformStream<Uint8Array, Uint8Array>({
            transform(piece, controller) {
              bytes.push(Buffer.from(piece));
              controller.enqueue(piece);
            },
          });
          return new Response(response.body?.pipeThrough(watch), response);
        };
        const replayed = await ask(adapter.connect({ baseUrl: server.baseUrl, fetch }), 'Hello');

        expect(replayed.response).toStrictEqual(live.response);
        expect(Buffer.concat(bytes).equals(stream)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe('F2: a cassette', () => {
  const SECRET = 'sk-SECRET-1234';

  /** Records one answer without a network, and replays it. */
  async function through(body: Buffer, cuts: readonly number[], replayPieces: number | undefined): Promise<{ readonly file: string; readonly bytes: Buffer }> {
    const file = join(makeFolder(), 'cassette.json');
    const fetch = async (): Promise<Response> =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (const piece of cutAt(body, cuts)) controller.enqueue(new Uint8Array(piece));
            controller.close();
          },
        }),
      );
    const init = { headers: { 'x-api-key': SECRET } };
    const recording = await createCassette(file, { fetch });
    await (await recording.fetch('http://h/', init)).arrayBuffer();
    await recording.close();
    const cassette = await createCassette(file, { pieces: replayPieces });
    const response = await cassette.fetch('http://h/', init);
    return { file: readFileSync(file, 'utf8'), bytes: Buffer.from(await response.arrayBuffer()) };
  }

  const binary = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  const text = fc.string({ unit: fc.constantFrom('a', '\n', '\r\n', 'data: ', '{"a":1}', '[]', '"', '\\', 'ü', '🙂', '\ufeff', '\u2028', ' '), maxLength: 40 }).map((each) => Buffer.from(each));
  // Without a sign of equality: the secret could be the name of a parameter, whose value is hidden as well.
  const unsigned = binary.map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0x3d ? 0x3c : byte))));
  const json = fc.json().map((each) => Buffer.from(each));

  it('keeps the bytes of any body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(binary, text, json), places, fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }), async (body, cuts, replayPieces) => {
        expect((await through(body, cuts, replayPieces)).bytes.equals(body)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('holds no secret, wherever in a body and in whatever pieces it came, and keeps all the rest', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(unsigned, text), fc.oneof(unsigned, text), places, async (before, after, cuts) => {
        const { file, bytes } = await through(Buffer.concat([before, Buffer.from(SECRET), after]), cuts, undefined);

        expect(file).not.toContain(SECRET);
        expect(bytes.equals(Buffer.concat([before, Buffer.from('[redacted]'), after]))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('takes a request with its keys in any order for the same, and any changed value for another', async () => {
    const values = fc.jsonValue({ maxDepth: 3 });
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).reverse().map(([name, field]) => [name, shuffled(field)]));
    };
    await fc.assert(
      fc.asyncProperty(values as fc.Arbitrary<JsonValue>, values as fc.Arbitrary<JsonValue>, async (first, second) => {
        const file = join(makeFolder(), 'cassette.json');
        const recording = await createCassette(file, { fetch: async () => new Response('{}') });
        await post(recording.fetch, 'http://h/', { body: first });
        await recording.close();
        const { fetch } = await createCassette(file);

        if (!equals(first, second)) await expect(post(fetch, 'http://h/', { body: second })).rejects.toMatchObject({ code: 'cassette_miss' });
        expect((await post(fetch, 'http://h/', { body: shuffled(first) })).status).toBe(200);
      }),
      { numRuns: 200 },
    );
  });
});

/** Whether two values are the same JSON, keys in any order. */
function equals(first: unknown, second: unknown): boolean {
  try {
    expect(JSON.parse(JSON.stringify(first))).toStrictEqual(JSON.parse(JSON.stringify(second)));
    return true;
  } catch {
    return false;
  }
}
