/**
 * Limits on model requests and tool calls across turns, for agents that share a key, a server or a resource. Needs the
 * package `p-limit`.
 *
 * @module
 */
import pLimit from 'p-limit';
import { attemptChat } from '../core/attempt-chat.ts';
import { decorateLLM, type LLM, type LLMRequest, type LLMResponse } from '../core/llm.ts';
import type { Tool } from '../core/tool.ts';
import { assertLLM, assertTool } from '../core/assert.ts';
import { heldByGate, pauseAttempt, takeToll } from './attempt-gate.ts';
import { countedBy, isCountedBy } from './counting.ts';

/**
 * A number of places that model requests and tool calls share, in the order in which they came.
 *
 * Whoever is aborted while waiting rejects at once with `signal.reason`, never runs and holds up nobody. Whoever runs
 * keeps its place until it has settled, also after an abort: it still uses what the limit protects.
 */
export interface ConcurrencyLimit {
  /** How many run now. */
  readonly active: number;
  /** How many wait for a place now. */
  readonly waiting: number;
  /**
   * A model whose requests take a place each. Put it directly around the adapter, inside of `withRetry`: then nobody
   * holds a place while waiting for the next attempt. Timeouts belong inside of it, or they run while the request waits.
   * A request that stands under the same limit twice takes one place.
   */
  llm(llm: LLM): LLM;
  /**
   * A tool whose calls take a place each. The tool's `timeoutMs` also runs while a call waits.
   *
   * Do not limit a tool that itself waits for a place of this limit, such as one that runs a sub-agent whose tools are
   * limited too: once such calls hold all places, none of them can go on. Give each level a limit of its own.
   */
  tool<Input>(tool: Tool<Input>): Tool<Input>;
}

/**
 * Makes a limit to share among models, tools, agents and turns.
 *
 * @param max - How many may run at once, a whole number of at least 1.
 * @throws TypeError for anything else.
 *
 * @example
 * ```ts
 * const limit = createConcurrencyLimit(4);
 * const llm = withRetry(limit.llm(openAIChat({ model: 'gpt-5-mini', apiKey: process.env.OPENAI_API_KEY })));
 * ```
 */
export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  if (!Number.isSafeInteger(max) || max < 1) {
    throw new TypeError(
      `createConcurrencyLimit: the limit must be a whole number of at least 1, not ${String(max)}. ` +
        'For example: createConcurrencyLimit(4).',
    );
  }
  const places = pLimit(max);
  let active = 0;
  let waiting = 0;

  const run = <Result>(signal: AbortSignal, task: () => Promise<Result> | Result): Promise<Result> => {
    // p-limit cannot take back what is queued: what has left stays there as an empty shell that passes its place on, and
    // keeps neither the task nor its request alive.
    const entry: { task: typeof task | undefined } = { task };
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      waiting += 1;
      const leave = (): void => {
        entry.task = undefined;
        waiting -= 1;
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', onAbort);

      void places(async () => {
        const start = entry.task;
        if (start === undefined) return;
        leave();
        active += 1;
        const release = (): void => {
          active -= 1;
        };
        // An async function makes a synchronous throw a rejection. The caller sees it; the place is free either way.
        const outcome = (async () => start())();
        resolve(outcome);
        await outcome.then(release, release);
      });
    });
  };

  return {
    get active() {
      return active;
    },
    get waiting() {
      return waiting;
    },
    llm: (llm) => {
      assertLLM(llm, { taker: 'limit.llm', example: "limit.llm(openAIChat({ model: 'gpt-5-mini' }))" });
      return decorateLLM(llm, async (request) => {
        // It has a place, and would wait for a second one while it holds up all others, or itself.
        if (isCountedBy(request, places)) return llm.chat(request);
        const placed = countedBy(request, places);
        // Once: two who give back what they were just given, each for the other, would go on for ever.
        pauseAttempt(request);
        for (;;) {
          const { held, response } = await run<PlaceUse>(request.signal, () => chatUnlessHeld(llm, placed));
          if (held === undefined) return response;
          await held;
        }
      });
    },
    tool: (tool) => {
      assertTool(tool, { taker: 'limit.tool', example: 'tools: [limit.tool(search)]' });
      return withExecute(tool, (input, context) => run(context.signal, () => tool.execute(input, context)));
    },
  };
}

/** What a request did with its place: what it waits for if it may not be sent, else what came of it. */
type PlaceUse = { readonly held: Promise<void>; readonly response?: undefined } | { readonly held?: undefined; readonly response: LLMResponse };

/**
 * A circuit breaker outside may have opened while the request waited for its place. It gives that back then: the probe
 * that the breaker waits for may need it.
 */
async function chatUnlessHeld(llm: LLM, request: LLMRequest): Promise<PlaceUse> {
  for (;;) {
    const held = heldByGate(request);
    if (held !== undefined) {
      // It is awaited once the place is free.
      held.catch(() => undefined);
      return { held };
    }
    const toll = takeToll(request);
    if (toll === undefined) return { response: await attemptChat(llm, request) };
    await toll;
  }
}

/** The tool with another `execute`. Calls the methods on the tool itself, which may be an object of a class. */
function withExecute<Input>(tool: Tool<Input>, execute: Tool<Input>['execute']): Tool<Input> {
  const { name, description, inputSchema, readOnly, replay, timeoutMs } = tool;
  return {
    name,
    description,
    inputSchema,
    readOnly,
    replay,
    timeoutMs,
    ...(tool.parseInput !== undefined && { parseInput: tool.parseInput.bind(tool) }),
    ...(tool.accesses !== undefined && { accesses: tool.accesses.bind(tool) }),
    ...(tool.describe !== undefined && { describe: tool.describe.bind(tool) }),
    execute,
  };
}
