import { retryDelay } from './retry-policy.js';

export interface TurnOptions {
  maxSteps?: number;
  signal?: AbortSignal;
}

/** Runs one turn of the loop. */
export async function runTurn(options: TurnOptions = {}): Promise<string> {
  const maxSteps = options.maxSteps ?? 8;
  for (let step = 0; step < maxSteps; step++) {
    if (options.signal?.aborted) return 'aborted';
    await new Promise((r) => setTimeout(r, retryDelay(step)));
  }
  return 'done';
}
