/** Test tools: the few behaviours that tests need again and again. Each keeps its runs, and any member can be set. */
import { sleep } from '../core/runtime.ts';
import type { ToolContext, ToolReturn } from '../core/tool.ts';
import { recordingTool, type TestTool, type TestToolInput, type TestToolOptions } from './recording-tool.ts';

/** A tool that returns its `text`; where that is no text, its arguments as JSON. */
export function echoTool(options: TestToolOptions = {}): TestTool {
  return recordingTool({
    name: 'echo',
    description: 'Returns the text it is given.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    ...options,
    execute: (input) => (typeof input['text'] === 'string' ? input['text'] : JSON.stringify(input)),
  });
}

/** Options of {@link failingTool}. */
export interface FailingToolOptions extends TestToolOptions {
  /** What it throws, rejects with, or says. @defaultValue an error saying `the tool failed` */
  readonly error?: unknown;
  /** `returns` a result marked as an error instead of throwing. @defaultValue `'rejects'` */
  readonly mode?: 'throws' | 'rejects' | 'returns' | undefined;
}

/** A tool that fails. */
export function failingTool(options: FailingToolOptions = {}): TestTool {
  const { error = new Error('the tool failed'), mode = 'rejects', ...rest } = options;
  return recordingTool({ name: 'fail', description: 'Fails.', ...rest, execute });

  function execute(): ToolReturn | Promise<ToolReturn> {
    if (mode === 'throws') throw error;
    if (mode === 'returns') return { content: error instanceof Error ? error.message : String(error), isError: true };
    return Promise.reject(error);
  }
}

/** Options of {@link hangingTool}. */
export interface HangingToolOptions extends TestToolOptions {
  /** Whether an abort does nothing to it either. @defaultValue false */
  readonly ignoresAbort?: boolean | undefined;
}

/** A tool that never ends, until it is aborted: it then rejects with the signal's reason. */
export function hangingTool(options: HangingToolOptions = {}): TestTool {
  const { ignoresAbort = false, ...rest } = options;
  return recordingTool({
    name: 'hang',
    description: 'Never ends.',
    ...rest,
    execute: (_input, context) =>
      new Promise((_resolve, reject) => {
        if (!ignoresAbort) whenAborted(context.signal, () => reject(context.signal.reason as Error));
      }),
  });
}

/** Options of {@link slowTool}. */
export interface SlowToolOptions extends TestToolOptions {
  /** What it returns. @defaultValue `'done'` */
  readonly result?: ToolReturn | ((input: TestToolInput, context: ToolContext) => ToolReturn) | undefined;
  /** Whether it takes its time also when aborted. @defaultValue false: it rejects with the signal's reason */
  readonly ignoresAbort?: boolean | undefined;
}

/**
 * A tool that takes its time, by the turn's runtime.
 *
 * @param delayMs - How long, or how long for given arguments, in milliseconds.
 */
export function slowTool(delayMs: number | ((input: TestToolInput) => number), options: SlowToolOptions = {}): TestTool {
  const { result = 'done', ignoresAbort = false, ...rest } = options;
  return recordingTool({
    name: 'slow',
    description: 'Takes its time.',
    ...rest,
    execute: async (input, context) => {
      const { runtime, signal } = context;
      const ms = typeof delayMs === 'function' ? delayMs(input) : delayMs;
      await sleep(ms, { runtime, signal: ignoresAbort ? undefined : signal });
      return typeof result === 'function' ? result(input, context) : result;
    },
  });
}

/** Calls back once when the signal aborts; at once if it has. Gives back how to stop waiting. */
export function whenAborted(signal: AbortSignal, onAbort: () => void): () => void {
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return () => {
    signal.removeEventListener('abort', onAbort);
  };
}
