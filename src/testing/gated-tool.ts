/** Gated tool: tells when it has started, and ends when it is told. For tests about what happens in between. */
import type { ToolReturn } from '../core/tool.ts';
import { extendTool, recordingTool, type TestTool, type TestToolOptions } from './recording-tool.ts';
import { whenAborted } from './test-tools.ts';

/** Options of {@link gatedTool}. */
export interface GatedToolOptions extends TestToolOptions {
  /** Whether an abort leaves it running. @defaultValue false: it rejects with the signal's reason */
  readonly ignoresAbort?: boolean | undefined;
}

/** A tool that ends when it is told. Made by {@link gatedTool}. */
export interface GatedTool extends TestTool {
  /** Ids of the runs that wait at the gate, in order of start. */
  readonly waiting: readonly string[];
  /** Resolves once so many runs have started, ended ones included. @param count - @defaultValue 1 */
  started(count?: number): Promise<void>;
  /**
   * Ends a waiting run with a result.
   *
   * @param result - @defaultValue `'done'`
   * @param toolCallId - Which run. @defaultValue the oldest
   * @throws Error if no such run waits.
   */
  finish(result?: ToolReturn, toolCallId?: string): void;
  /** Ends a waiting run with a failure. @throws Error if no such run waits. */
  fail(error: unknown, toolCallId?: string): void;
  /** Ends every waiting run, and every later one as soon as it starts. */
  open(result?: ToolReturn): void;
}

interface Waiting {
  readonly toolCallId: string;
  readonly resolve: (result: ToolReturn) => void;
  readonly reject: (error: unknown) => void;
}

/** Makes a tool that ends when it is told. */
export function gatedTool(options: GatedToolOptions = {}): GatedTool {
  const { ignoresAbort = false, ...rest } = options;
  const waiting: Waiting[] = [];
  const arrivals: { readonly count: number; readonly resolve: () => void }[] = [];
  let opened: { readonly result: ToolReturn } | undefined;
  let startedCount = 0;

  const tool = recordingTool({
    name: 'gate',
    description: 'Ends when it is told.',
    ...rest,
    execute: (_input, { toolCallId, signal }) => {
      startedCount += 1;
      for (const arrival of arrivals) if (startedCount >= arrival.count) arrival.resolve();
      if (opened !== undefined) return opened.result;
      return new Promise((resolve, reject) => {
        let stopWaiting = (): void => undefined;
        waiting.push({
          toolCallId,
          resolve: (result) => {
            stopWaiting();
            resolve(result);
          },
          reject: (error) => {
            stopWaiting();
            reject(error);
          },
        });
        if (!ignoresAbort) stopWaiting = whenAborted(signal, () => take(toolCallId).reject(signal.reason));
      });
    },
  });

  return extendTool(tool, {
    get waiting() {
      return waiting.map((run) => run.toolCallId);
    },
    started: (count = 1) =>
      new Promise<void>((resolve) => {
        if (startedCount >= count) resolve();
        else arrivals.push({ count, resolve });
      }),
    finish: (result: ToolReturn = 'done', toolCallId?: string) => take(toolCallId).resolve(result),
    fail: (error: unknown, toolCallId?: string) => take(toolCallId).reject(error),
    open: (result: ToolReturn = 'done') => {
      opened = { result };
      while (waiting.length > 0) take(undefined).resolve(result);
    },
  });

  function take(toolCallId: string | undefined): Waiting {
    const place = toolCallId === undefined ? 0 : waiting.findIndex((run) => run.toolCallId === toolCallId);
    const [run] = place < 0 ? [] : waiting.splice(place, 1);
    if (run === undefined) throw new Error(`gatedTool: ${toolCallId ?? 'no run'} does not wait at the gate of "${tool.name}".`);
    return run;
  }
}
