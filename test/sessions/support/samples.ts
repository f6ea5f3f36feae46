/** Events and snapshots to keep. */
import { NO_USAGE, type RecordedToolResult } from 'turnloop';
import type { SessionEvent, SessionSnapshot } from 'turnloop/sessions';

/** An event that is told from others by a number. */
export function note(number: number, text = ''): SessionEvent {
  return { type: 'input.removed', at: number, messageId: `message_${number}${text}` };
}

/** Events from a number up to another, without it. */
export function notes(from: number, to: number): SessionEvent[] {
  return Array.from({ length: to - from }, (_, index) => note(from + index));
}

/** A snapshot of so many events. */
export function snapshotOf(sessionId: string, events: number, parts: Partial<SessionSnapshot> = {}): SessionSnapshot {
  const transcript = { version: 1, messages: [] };
  return { version: 1, sessionId, at: 1, events, transcript, turns: 0, steps: 0, usage: NO_USAGE, queue: [], state: {}, ...parts };
}

const STEP = { turnId: 'turn_1', at: 1, step: 1, stepId: 'step_1' };

/** A call has ended. */
export function finished(toolCallId: string, result: RecordedToolResult): SessionEvent {
  return { type: 'tool.finished', ...STEP, toolCallId, result };
}

/** The terminal record of a call. */
export function resulted(toolCallId: string, result: RecordedToolResult): SessionEvent {
  return { type: 'tool.result', ...STEP, toolCallId, name: 'read', result };
}

/** A result with a text. */
export function resultOf(text: string): RecordedToolResult {
  return { content: [{ type: 'text', text }] };
}
