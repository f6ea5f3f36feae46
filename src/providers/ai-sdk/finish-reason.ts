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
  return { unified, raw: word(value) };
}

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

/** Whether the SDK only says that the stream ended: the provider never said that the reply did. */
export function isCut({ unified, raw }: FinishReason): boolean {
  return unified === 'interrupted' || (unified === 'other' && raw === undefined);
}
