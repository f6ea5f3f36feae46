/**
 * Plan first: nothing is changed before the host has confirmed the plan.
 *
 * - Whether it is confirmed is the host's to know, and asked at each call: so it holds over a resume.
 * - A call is refused before any hook is asked to authorise it: nobody is asked about what will not run.
 */
import { assertOptions } from '../core/assert.ts';
import type { Hook, HookContext } from '../core/hooks.ts';

const NAME = 'planFirst';
const ARGUMENT = { taker: NAME, example: 'hooks: [planFirst({ isConfirmed: () => plan.confirmed })]' };
const OPTIONS: Readonly<Record<keyof PlanFirstOptions, true>> = { isConfirmed: true, allow: true, reason: true };

const DEFAULT_REASON =
  'Not run: the plan is not confirmed yet, and this tool may change something. Look around with the tools that only read, ' +
  'then give your plan as your answer and wait for it to be confirmed.';

/** Options of {@link planFirst}. */
export interface PlanFirstOptions {
  /**
   * Whether the plan is confirmed, asked at each call of a tool that is not `readOnly`. Only `true` lets it run: what it
   * throws refuses the call.
   */
  readonly isConfirmed: (context: HookContext) => boolean | Promise<boolean>;
  /** Names of tools that may run anyway, such as one that keeps a to-do list. @defaultValue none */
  readonly allow?: readonly string[] | undefined;
  /** What the model is told instead of a result. @defaultValue to look around, then to give its plan as its answer */
  readonly reason?: string | undefined;
}

/**
 * Hook that refuses all tools that are not `readOnly` until the host confirms the plan. The model explores with the tools
 * that only read, and its answer is the plan; the host shows it, and the next turn may do the work.
 *
 * A refused call is an error result that says so, and the turn goes on. The list of tools that the model sees stays as it
 * is, so that the cached beginning of its requests does. A model that insists is `loopGuard`'s business.
 *
 * Notice: `planFirst.refused` `{tool, toolCallId}`.
 *
 * @param options - How to know that the plan is confirmed, and what may run before.
 * @throws TypeError for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const plan = { confirmed: false };
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [planFirst({ isConfirmed: () => plan.confirmed })] });
 * ```
 */
export function planFirst(options: PlanFirstOptions): Hook {
  assertPlanFirstOptions(options);
  const { isConfirmed, reason = DEFAULT_REASON } = options;
  const allowed: ReadonlySet<string> = new Set(options.allow);
  return {
    name: NAME,
    prepareToolCall: async (context, { toolCallId, name, tool }) => {
      // What does not exist is answered by the loop, with the names that do.
      if (tool === undefined || tool.readOnly === true || allowed.has(name)) return undefined;
      const answer: unknown = await isConfirmed(context);
      if (answer === true) return undefined;
      context.notify({ name: `${NAME}.refused`, data: { tool: name, toolCallId } });
      return { action: 'block', reason };
    },
  };
}

function assertPlanFirstOptions(options: PlanFirstOptions): void {
  assertOptions(options, OPTIONS, ARGUMENT);
  const given: { readonly [Name in keyof PlanFirstOptions]: unknown } = options;
  if (typeof given.isConfirmed !== 'function') {
    throw new TypeError(`${NAME} needs \`isConfirmed\`, a function that says whether the plan is confirmed. For example: ${ARGUMENT.example}.`);
  }
  if (given.allow !== undefined && !(Array.isArray(given.allow) && given.allow.every((name) => typeof name === 'string'))) {
    throw new TypeError(`${NAME}: \`allow\` must be a list of tool names. For example: planFirst({ isConfirmed, allow: ['todo'] }).`);
  }
  if (given.reason !== undefined && (typeof given.reason !== 'string' || given.reason === '')) {
    throw new TypeError(`${NAME}: \`reason\` must be a text for the model. For example: planFirst({ isConfirmed, reason: 'Plan first.' }).`);
  }
}
