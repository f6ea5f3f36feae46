/** Arguments of calls that go back, as properties: what the model wrote, but for what no server takes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inputJson, inputText } from '../../src/providers/shared/call-input.ts';
import { cleanText } from '../../src/providers/shared/wire-text.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

const HARMLESS = ['a', ' ', 'é', '漢', '😀', '\\n', '\\t', '\\"', '\\\\', '\\/', '\\u00e9', '\\u000a', '\\ufffd', '\\ud83d\\ude00', '\ud83d\\uDE00', '\\uD83D\ude00', '\\\\u0000', '\\\\\\\\ud800', '\u2028'];
const HARMFUL = ['\\u0000', '\\u0007', '\\b', '\\f', '\\u001F', '\\ud800', '\\uDFFF', '\ud83d', '\ude00', '\\uFFFE', '\uffff', '\\ufdd0', '\\ud83f\\udffe', '\ud83f\\udffe'];

function texts(pieces: readonly string[]): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((list) => list.join(''));
}

/** JSON text of an object whose texts are made of pieces: keys that differ, numbers that no parser keeps, any spacing. */
function objects(pieces: readonly string[]): fc.Arbitrary<string> {
  const quoted = texts(pieces).map((text) => `"${text}"`);
  const value = fc.oneof(quoted, fc.constantFrom('12345678901234567890', '1.0', '1e400', '-0', 'true', 'null'), fc.array(quoted, { maxLength: 3 }).map((list) => `[ ${list.join(' , ')}]`));
  return fc.array(fc.tuple(texts(pieces), value), { maxLength: 6 }).map((entries) => `{ ${entries.map(([key, inner], at) => `"${at}${key}" :${inner}`).join(',\n')} }`);
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleaned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [cleanText(key), cleaned(inner)]));
}

describe('arguments that go back', () => {
  it('are the text that the model wrote, byte for byte, where nothing is wrong with it', () => {
    fc.assert(
      fc.property(objects(HARMLESS), (text) => {
        expect(inputJson(text)).toBe(text);
      }),
      { numRuns: RUNS },
    );
  });

  it('B13: mean the same without what no server takes', () => {
    fc.assert(
      fc.property(objects([...HARMLESS, ...HARMFUL]), (text) => {
        const sent = inputJson(text);

        expect(JSON.parse(sent)).toStrictEqual(cleaned(JSON.parse(text)));
        expect(inputJson(sent)).toBe(sent);
      }),
      { numRuns: RUNS },
    );
  });

  it('are an empty object where they are none, whatever they are', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const write of [inputJson, inputText]) expect(typeof JSON.parse(write(text))).toBe('object');
      }),
      { numRuns: RUNS },
    );
  });
});

it.each([
  ['{ "id": 12345678901234567890, "t": "a\\u000ab", "u":"\\ufffd", "z": 1.0 }', '{ "id": 12345678901234567890, "t": "a\\u000ab", "u":"\\ufffd", "z": 1.0 }'],
  ['{ "id": 12345678901234567890, "re": "\\\\u0000" }', '{ "id": 12345678901234567890, "re": "\\\\u0000" }'],
  ['{ "id": 12345678901234567890, "a": "x\\\\\\u0000y\\ud800 \\uD83D\\uDE00" }', '{ "id": 12345678901234567890, "a": "x\\\\y\ufffd \\uD83D\\uDE00" }'],
  ['{"a":"\ud83d\\u0000\\ude00\\ude00"}', '{"a":"\ufffd\ufffd\ufffd"}'],
  ['{"a":"\\ud800\\ud83d\\ude00\\ud83d"}', '{"a":"\ufffd\\ud83d\\ude00\ufffd"}'],
])('B13: loses of %j only what no server takes', (text, expected) => {
  expect(inputJson(text)).toBe(expected);
});
