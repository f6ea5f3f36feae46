/** Differential: on any stream of whole events, in any chunking, the reader agrees with eventsource-parser. */
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createSseReader } from '../../src/providers/shared/sse.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const value = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: 'grapheme', maxLength: 6 }), fc.constant('')).map((text) => text.replace(/[\r\n\0]/g, ''));
const line = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constantFrom('data:', 'data: ', 'data'), value).map(([name, text]) => (name === 'data' ? name : name + text)) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('event: ', 'event:'), value).map(([name, text]) => name + text) },
  { weight: 1, arbitrary: value.map((text) => `: ${text}`) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('datum: ', ' data: ', 'foo', 'evento: '), value).map(([name, text]) => name + text) },
  { weight: 3, arbitrary: fc.constant('') },
);
const stream = fc
  .array(fc.tuple(line, lineEnd), { maxLength: 30 })
  .map((lines) => `${lines.map(([text, end]) => text + end).join('')}\n\n`);

it('reads what eventsource-parser reads, however the bytes are cut', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(400), { maxLength: 12 }), (text, cuts) => {
      const theirs: [string, string][] = [];
      const parser = createParser({ onEvent: ({ data, event }) => theirs.push([data, event ?? '']) });
      parser.feed(text);

      const ours: [string, string][] = [];
      const reader = createSseReader((data, event) => ours.push([data, event]));
      for (const chunk of split(new TextEncoder().encode(text), cuts)) reader.push(chunk);
      reader.end();

      expect(ours).toStrictEqual(theirs);
    }),
    { numRuns: RUNS },
  );
});

function split(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [...new Set(cuts.map((at) => Math.min(at, bytes.length)))].sort((a, b) => a - b);
  return [0, ...places].map((start, at) => bytes.subarray(start, places[at] ?? bytes.length));
}
