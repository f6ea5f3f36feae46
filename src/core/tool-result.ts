/**
 * Tool result: from whatever a tool, hook or person handed back to a result that can be recorded.
 *
 * - Anything that is not text, parts or a result becomes an error result that shows what came: the tool's effects may
 *   have happened all the same, and the model has to know.
 * - A recorded result is plain JSON without control fields.
 */
import { messageOf } from './errors.ts';
import type { RecordedToolResult } from './events.ts';
import { isRecord, toJson } from './json.ts';
import { isTextOrMedia, type ToolResultPart } from './message.ts';

/** A result, and whether it ends the turn. */
export interface ToolOutcome {
  /** The result. */
  readonly result: RecordedToolResult;
  /** True if a successful result asked to end the turn. */
  readonly stopTurn: boolean;
}

/** An error result with this text. */
function errorResult(text: string): RecordedToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** The outcome of a call that did not run, or not to its end. */
export function errorOutcome(text: string): ToolOutcome {
  return { result: errorResult(text), stopTurn: false };
}

/** The error result of a tool that threw. */
export function failureResult(thrown: unknown): RecordedToolResult {
  return errorResult(messageOf(thrown));
}

/**
 * Makes a recorded result of what was handed back.
 *
 * @param returned - A string, parts or a tool result; an error is what went wrong, anything else becomes an error that
 * shows it.
 * @param from - Who handed it back, for that error, such as `Tool "echo"`.
 */
export function toToolOutcome(returned: unknown, from: string): ToolOutcome {
  if (typeof returned === 'string') return plain([{ type: 'text', text: returned }]);
  if (isPartList(returned)) return plain(copyParts(returned));
  if (returned instanceof Error) return { result: failureResult(returned), stopTurn: false };
  if (!isRecord(returned) || !(typeof returned['content'] === 'string' || isPartList(returned['content']))) {
    return { result: wrongShape(returned, from), stopTurn: false };
  }
  const { content, isError, display, note, truncated, stopTurn } = returned;
  const shown = typeof display === 'string' || display === undefined ? display : (toJson(display) ?? '[not JSON]');
  const result: RecordedToolResult = {
    content: typeof content === 'string' ? [{ type: 'text', text: content }] : copyParts(content),
    ...(isError === true && { isError }),
    ...(shown !== undefined && { display: shown }),
    ...(typeof note === 'string' && note !== '' && { note }),
    ...(truncated === true && { truncated }),
  };
  return { result, stopTurn: stopTurn === true && isError !== true };
}

function plain(content: readonly ToolResultPart[]): ToolOutcome {
  return { result: { content }, stopTurn: false };
}

function isPartList(value: unknown): value is readonly ToolResultPart[] {
  return Array.isArray(value) && value.every(isTextOrMedia);
}

/** The known fields of parts, in a list of our own: a tool that goes on changing what it returned changes no record. */
function copyParts(parts: readonly ToolResultPart[]): readonly ToolResultPart[] {
  return parts.map((part): ToolResultPart => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    const { mediaType, data, url } = part;
    return data === undefined ? { type: 'media', mediaType, url } : { type: 'media', mediaType, data };
  });
}

/** How much of a wrong return value is shown. */
const MAX_SHOWN = 2000;

function wrongShape(returned: unknown, from: string): RecordedToolResult {
  if (returned === undefined) {
    return errorResult(`${from} returned nothing: its effects may have happened, but there is no output.`);
  }
  const shown = render(returned);
  const cut = shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
  return errorResult(`${from} returned something that is neither text, parts nor a result: ${cut}`);
}

function render(value: unknown): string {
  if (typeof value === 'function' || typeof value === 'symbol') return String(value);
  const seen = new Set<unknown>();
  try {
    const text = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner === 'bigint') return inner.toString();
      if (typeof inner !== 'object' || inner === null) return inner;
      if (seen.has(inner)) return '[seen above]';
      seen.add(inner);
      if (inner instanceof Map) return Object.fromEntries(inner as Map<string, unknown>);
      return inner instanceof Set ? Array.from(inner as Set<unknown>) : inner;
    });
    return text;
  } catch (error) {
    return `a value that cannot be shown (${messageOf(error)})`;
  }
}
