/** The SSE reader: bytes in, events out, as the standard reads them and in any chunking. */
import { describe, expect, it } from 'vitest';
import { createSseReader } from '../../src/providers/shared/sse.ts';
import { cut, CHUNKINGS } from '../support/stream-cases.ts';

const encoder = new TextEncoder();

function read(...chunks: readonly (string | Uint8Array)[]): [string, string][] {
  const events: [string, string][] = [];
  const reader = createSseReader((data, event) => events.push([data, event]));
  for (const chunk of chunks) reader.push(typeof chunk === 'string' ? encoder.encode(chunk) : chunk);
  reader.end();
  return events;
}

describe('createSseReader', () => {
  it('BR-022: joins characters that chunks cut', () => {
    const bytes = encoder.encode('data: 你🌍\n\n');

    for (let at = 0; at <= bytes.length; at += 1) {
      expect(read(bytes.subarray(0, at), bytes.subarray(at))).toStrictEqual([['你🌍', '']]);
    }
    expect(read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toStrictEqual([['你🌍', '']]);
  });

  it('BR-050: reads CRLF, also cut between CR and LF', () => {
    expect(read('data: {"a":1,\r', '\ndata: "b":2}\r\n', '\r\n')).toStrictEqual([['{"a":1,\n"b":2}', '']]);
  });

  it('BR-142: reads lone CR and mixed line ends', () => {
    expect(read('data: {"n":1}\r\r')).toStrictEqual([['{"n":1}', '']]);
    expect(read('data: first\r\ndata: second\n\n')).toStrictEqual([['first\nsecond', '']]);
    expect(read('data: a\n\rdata: b\r\n\n')).toStrictEqual([['a', ''], ['b', '']]);
  });

  it('BR-143: delivers a last event that no blank line closed', () => {
    expect(read('data: z\n')).toStrictEqual([['z', '']]);
    expect(read('data: z')).toStrictEqual([['z', '']]);
  });

  it.each([
    ['a BOM', '\ufeffdata: x\n\n', [['x', '']]],
    ['comments', ': ping\n\n: ping\ndata: x\n\n', [['x', '']]],
    ['data without a space', 'data:x\n\n', [['x', '']]],
    ['one space only taken off', 'data:  x\n\n', [[' x', '']]],
    ['empty data', 'data\n\ndata:\n\n', [['', ''], ['', '']]],
    ['an event name', 'event: error\ndata: x\n\ndata: y\n\n', [['x', 'error'], ['y', '']]],
    ['an event without data', 'event: ping\n\ndata: y\n\n', [['y', '']]],
    ['unknown and longer field names', 'database: 1\nid: 7\nretry: 3\neventual: 2\ndata: x\n\n', [['x', '']]],
    ['a field with a leading space', ' data: no\n\ndata: yes\n\n', [['yes', '']]],
    ['BR-139: odd names', 'event: toString\ndata: {"type":"__proto__"}\n\n', [['{"type":"__proto__"}', 'toString']]],
  ])('reads %s', (_name, text, expected) => {
    for (const chunking of CHUNKINGS) expect(read(...cut(encoder.encode(text), chunking))).toStrictEqual(expected);
  });

  it('keeps a BOM that is data', () => {
    expect(read('data: x\n\n', '\ufeffdata: y\n\ndata: \ufeffz\n\n')).toStrictEqual([['x', ''], ['\ufeffz', '']]);
  });

  it('refuses what is not UTF-8', () => {
    expect(() => read(Uint8Array.of(100, 97, 116, 97, 58, 0xff, 10, 10))).toThrow(
      expect.objectContaining({ kind: 'malformed_response', code: 'invalid_utf8' }),
    );
  });

  it('looks at no byte of a huge event twice', () => {
    // The time of a rescan per chunk would be quadratic: 16 MB in 16,000 chunks would take minutes.
    const piece = encoder.encode('x'.repeat(1024));
    const chunks = [encoder.encode('data: '), ...Array.from({ length: 16_384 }, () => piece), encoder.encode('\n\n')];

    const [event] = read(...chunks);

    expect(event?.[0]).toHaveLength(16_384 * 1024);
  });
});
