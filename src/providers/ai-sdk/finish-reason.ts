/** Finish reason: the AI SDK's words for why a reply ended, in ours. */
import { isRecord } from '../../core/json.ts';
import type { StepStopReason } from '../../core/stop-reason.ts';
import { word } from '../shared/json-values.ts';

/** Why a reply ended. */
export interface FinishReason {
  /** The SDK's word, one for all providers. */
  readonly unified: string;
  /** The provider's own; undefined if it gave none. */
  readonly raw: string | undefined;
}

/** Reads a finish reason: an object, or in the oldest specification the SDK's word alone. */
export function readFinishReason(value: unknown): FinishReason {
  if (isRecord(value)) return { unified: word(value['unified']) ?? 'other', raw: word(value['raw']) };
  const unified = word(value) ?? 'other';
  return { unified, raw: unified === UNKNOWN ? undefined : word(value) };
}

/** The oldest specification's word for no reason at all, and for one that its packages do not know. */
const UNKNOWN = 'unknown';

/** A `Map`, since the words are a provider's. */
const UNIFIED: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['stop', 'end_turn'],
  ['tool-calls', 'tool_use'],
  ['length', 'max_tokens'],
  ['content-filter', 'filtered'],
]);

/** Providers' words that say more than the SDK's. */
const RAW: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['stop_sequence', 'stop_sequence'],
  ['pause_turn', 'paused'],
  // Anthropic stops after a compaction of its own, and goes on with the reply that is sent back.
  ['compaction', 'paused'],
  ['refusal', 'filtered'],
  ['model_context_window_exceeded', 'max_tokens'],
  // Open models' servers, which the SDK does not know.
  ['eos', 'end_turn'],
  ['eos_token', 'end_turn'],
]);

/** Our word. */
export function toStopReason({ unified, raw }: FinishReason, hasCalls: boolean): StepStopReason {
  const reason = RAW.get(raw ?? '') ?? UNIFIED.get(unified) ?? 'unknown';
  return reason === 'end_turn' && hasCalls ? 'tool_use' : reason;
}

/**
 * Whether the SDK only says that the stream ended: the provider never said that the reply did.
 *
 * A bare `unknown` may be a reason that a package of the oldest specification does not know. It is also what every cut
 * stream ends with there, and half a reply must never pass for a whole one.
 *
 * @param isStreamed - What was not streamed is whole, whatever its reason is.
 */
export function isCut({ unified, raw }: FinishReason, isStreamed: boolean): boolean {
  return unified === 'interrupted' || (isStreamed && raw === undefined && (unified === 'other' || unified === UNKNOWN));
}
