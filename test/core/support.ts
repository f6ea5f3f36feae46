/** What the tests of core have in common: reading a record in short, and a second process that goes on with it. */
import {
  createTranscript,
  type JsonValue,
  type Message,
  type RecordedEvent,
  type StopCondition,
  textOf,
  type Transcript,
} from 'turnloop';
import {
  crashingRecorder,
  type EventMoment,
  runScripted,
  type RunScriptedOptions,
  type ScriptedOutcome,
  startScripted,
  virtualRuntime,
  type VirtualRuntime,
} from 'turnloop/testing';

/** A recorded result in short: whose, whether it is a failure, and its text. */
export type ResultLine = readonly [toolCallId: string, outcome: 'ok' | 'error', text: string];

/** The `tool.result` events of a record, in order. */
export function resultLines(events: readonly RecordedEvent[]): readonly ResultLine[] {
  return events.flatMap((event): ResultLine[] => {
    if (event.type !== 'tool.result') return [];
    return [[event.toolCallId, event.result.isError === true ? 'error' : 'ok', textOf(event.result.content)]];
  });
}

/** The texts of all recorded results, in order. */
export function resultTexts(events: readonly RecordedEvent[]): readonly string[] {
  return resultLines(events).map(([, , text]) => text);
}

/** The events of a record in short: their type, with the call they are about. */
export function outline(events: readonly RecordedEvent[]): readonly string[] {
  return events.map((event) => ('toolCallId' in event ? `${event.type} ${event.toolCallId}` : event.type));
}

/** A history in short: who says what; calls by name, results by the call they answer. */
export function conversation(messages: readonly Message[]): readonly string[] {
  return messages.map((message) => {
    const calls = message.content.flatMap((part) => (part.type === 'tool_call' ? [`${part.name}()`] : []));
    const text = [textOf(message), ...calls].filter((piece) => piece !== '').join(' ');
    return message.role === 'tool' ? `tool ${message.toolCallId}: ${text}` : `${message.role}: ${text}`;
  });
}

/** A stop condition that ends the turn before it begins one more step than this. */
export function stepLimit(steps: number): StopCondition {
  return (state) => (state.steps >= steps ? { stopReason: 'max_steps', name: 'stepLimit', reason: `${steps} steps` } : undefined);
}

/** A stop condition that also looks at each reply, and ends the turn once it has cost this many output tokens. */
export function outputBudget(tokens: number): StopCondition {
  const condition: StopCondition = ({ usage }) =>
    usage.outputTokens >= tokens ? { stopReason: 'max_budget', name: 'outputBudget' } : undefined;
  return Object.assign(condition, { afterReply: true });
}

/** A value after it was written to a file and read back. */
export function throughJson<Value extends JsonValue | object>(value: Value): Value {
  // What was plain JSON comes back as it was.
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** What another process makes of a record: a transcript of the events read back from JSON, and ids that are new. */
export function secondProcess(
  events: readonly RecordedEvent[],
  idPrefix = 'b',
): { readonly transcript: Transcript; readonly runtime: VirtualRuntime } {
  return { transcript: createTranscript(throughJson(events)), runtime: virtualRuntime({ idPrefix, start: 1_000_000 }) };
}

/** Collects unhandled rejections until the test is over. */
export function watchRejections(): { readonly reasons: readonly unknown[]; stop(): void } {
  const reasons: unknown[] = [];
  const listener = (reason: unknown): void => {
    reasons.push(reason);
  };
  process.on('unhandledRejection', listener);
  return { reasons, stop: () => process.off('unhandledRejection', listener) };
}

/** Runs a turn whose process dies right after this event: what was durable then. */
export async function crash(at: EventMoment, options: RunScriptedOptions): Promise<readonly RecordedEvent[]> {
  const recorder = crashingRecorder({ at });
  const turn = startScripted({ ...options, record: recorder });
  await turn.runtime.settle(recorder.crashed);
  return recorder.events;
}

/** Goes on with the open turn of these events, in another process. */
export function resumeFrom(events: readonly RecordedEvent[], options: RunScriptedOptions): Promise<ScriptedOutcome> {
  return runScripted({ ...secondProcess(events), resume: {}, ...options });
}
