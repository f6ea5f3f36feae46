/**
 * Approval: asks before a call runs, by rules, by what was decided before, or by asking a person.
 *
 * - A rule that denies cannot be overridden: not by what is remembered, nor by edited arguments.
 * - What cannot be decided is denied: a rule, a store or a question that fails never lets a call through.
 * - A question belongs to a step of a turn: no other turn and no later step waits for what it asked.
 * - A question dies with the calls that it was asked for: what comes of it then is ignored, and never remembered.
 */
import { assertOptions } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import { isThenable } from '../core/event-dispatcher.ts';
import type { AuthorizeDecision, Hook, HookCall, HookContext } from '../core/hooks.ts';
import { isRecord, type JsonValue } from '../core/json.ts';
import { editedCall } from './approval-edit.ts';
import { createApprovalMemory, isRemembered, type ApprovalMemory, type RememberedDecision } from './approval-memory.ts';
import { assertRules, ruleOn, type ApprovalRule } from './approval-rules.ts';
import { callKey } from './call-key.ts';

const NAME = 'approval';
const ARGUMENT = { taker: NAME, example: "hooks: [approval({ rules: [{ tool: 'bash', decision: 'ask' }] })]" };
const OPTIONS: Readonly<Record<keyof ApprovalOptions, true>> = { rules: true, ask: true, memory: true, keyOf: true };

const DENIED_BY_RULE = 'This call is not allowed: it was not run. Do not try it in another form; go on without it.';
const DENIED_BEFORE = 'The user has decided that this call is never to run: it was not run. Go on without it.';
const DENIED_BY_USER = 'The user denied this call: it was not run.';
const GIVEN_UP: AuthorizeDecision = { action: 'deny', reason: 'The question about this call was given up before it was answered: it was not run.' };

/** What a person is asked. */
export interface ApprovalQuestion {
  /** The call, with what it would do and touch. */
  readonly call: HookCall;
  /** What a remembered answer would hold for. */
  readonly key: string;
  /** Why it is asked, where the rule says. */
  readonly reason: string | undefined;
}

/** What a person answers. */
export type ApprovalAnswer =
  | {
      /** Run it. */
      readonly action: 'allow';
      /** Whether it holds for every later call of the same key. @defaultValue false */
      readonly remember?: boolean | undefined;
    }
  | {
      /** Do not run it. */
      readonly action: 'deny';
      /** Whether it holds for every later call of the same key. @defaultValue false */
      readonly remember?: boolean | undefined;
      /** Why, for the model. @defaultValue that the user denied it */
      readonly reason?: string | undefined;
    }
  | {
      /** Run it with other arguments: they are validated, and what they would do is held against the rules that deny. */
      readonly action: 'edit';
      /** The arguments. */
      readonly input: JsonValue;
    }
  | {
      /** Nobody can say now: the turn ends `suspended`, to be resumed with a decision. */
      readonly action: 'suspend';
      /** Why, for whoever decides. @defaultValue the rule's */
      readonly reason?: string | undefined;
    };

/** Options of {@link approval}. */
export interface ApprovalOptions {
  /** What is decided without asking: the first rule that matches counts. @defaultValue none: tools that only read are allowed */
  readonly rules?: readonly ApprovalRule[] | undefined;
  /**
   * Asks a person, in this process. May take its time: an abort of the turn (`context.signal`) ends the wait, as does the
   * end of the call by a cancel or by steering. What comes of it then is ignored, also `remember`. What it throws denies
   * the call.
   *
   * @defaultValue the turn ends `suspended`, and is resumed with decisions
   */
  readonly ask?: ((question: ApprovalQuestion, context: HookContext) => ApprovalAnswer | Promise<ApprovalAnswer>) | undefined;
  /** Where answers with `remember` are kept. @defaultValue one in process that lives as long as this hook */
  readonly memory?: ApprovalMemory | undefined;
  /**
   * What a remembered answer holds for: calls with an equal key are decided alike. `(call) => call.name` makes one of all
   * calls of a tool. Must answer at once: a promise denies the call.
   *
   * @defaultValue `callKey`: the same tool with the same arguments, since "always" said to `rm build` must not allow `rm /`
   */
  readonly keyOf?: ((call: HookCall) => string) | undefined;
}

/**
 * Hook that decides which calls may run. Rules come first; where they say `ask`, what was remembered answers, and only
 * then a person: in this process through `ask`, or, without it, after the turn was suspended. Without rules, tools that are
 * `readOnly` run and all others are asked about.
 *
 * A denied call is an error result with the reason, and the turn goes on. Equal calls of a step that wait at the same time
 * are asked about once; a later step asks anew. Sub-agents share the decisions by being given the same hook.
 *
 * For a suspended turn, the host decides about `TurnResult.pending` when it resumes; "always" is remembered by calling
 * `memory.set(callKey(pending), 'allow')` before. A decision that edits a call is held against the rules that deny, as an
 * edit by `ask` is: the hook is asked about the edited call, and lets run what it would only ask about.
 *
 * Notice: `approval.notRemembered` `{tool, toolCallId, message}` when a decision could not be kept; it stands for this call.
 *
 * @param options - Rules, a way to ask, and what is remembered.
 * @throws TypeError for an option or a rule that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const guard = approval({
 *   rules: [
 *     { tool: 'bash', matches: ({ input }) => /\bsudo\b/.test(JSON.stringify(input)), decision: 'deny', reason: 'No sudo.' },
 *     { tool: ['read', 'search'], decision: 'allow' },
 *   ],
 *   ask: async ({ call }) => ((await confirm(`Run ${call.description ?? call.name}?`)) ? { action: 'allow' } : { action: 'deny' }),
 * });
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [guard] });
 * ```
 */
export function approval(options: ApprovalOptions = {}): Hook {
  assertApprovalOptions(options);
  const { rules = [], ask, memory = createApprovalMemory(), keyOf = callKey } = options;
  const turns = new WeakMap<AbortSignal, TurnQuestions>();

  function questionsOf({ signal }: HookContext): TurnQuestions {
    const known = turns.get(signal);
    if (known !== undefined) return known;
    const questions: TurnQuestions = { unfinished: new Set(), open: new Map() };
    turns.set(signal, questions);
    return questions;
  }

  async function decide(context: HookContext, call: HookCall): Promise<AuthorizeDecision> {
    questionsOf(context).unfinished.add(call.toolCallId);
    const { decision, reason } = await ruleOn(rules, call);
    if (decision === 'allow') return { action: 'allow' };
    if (decision === 'deny') return { action: 'deny', reason: reason ?? DENIED_BY_RULE };
    const key = keyFor(call);
    const remembered: unknown = await memory.get(key);
    if (isRemembered(remembered)) return remembered === 'allow' ? { action: 'allow' } : { action: 'deny', reason: DENIED_BEFORE };
    if (ask === undefined) return { action: 'suspend', reason };
    return askOnce(context, { call, key, reason });
  }

  function keyFor(call: HookCall): string {
    const key: unknown = keyOf(call);
    if (typeof key === 'string') return key;
    if (isThenable(key)) key.then(undefined, () => undefined);
    throw new TypeError(`\`keyOf\` must give a text at once, not ${isThenable(key) ? 'a promise' : typeof key}`);
  }

  /** One question for calls that are the same: not for those of the same key, of which one may be allowed and one not. */
  function askOnce(context: HookContext, question: ApprovalQuestion): Promise<AuthorizeDecision> {
    const { unfinished, open } = questionsOf(context);
    const { toolCallId } = question.call;
    const same = `${context.step} ${callKey(question.call)}`;
    const asked = open.get(same);
    if (asked !== undefined && !asked.isDead()) {
      asked.waiting.push(toolCallId);
      return asked.answer;
    }
    const waiting = [toolCallId];
    const isDead = (): boolean => context.signal.aborted || !waiting.some((id) => unfinished.has(id));
    // Rules and the store may take their time too: nobody is asked about a call that is over.
    if (isDead()) return Promise.resolve(GIVEN_UP);
    const answer = askPerson(context, question, isDead).finally(() => {
      if (open.get(same)?.waiting === waiting) open.delete(same);
    });
    open.set(same, { answer, waiting, isDead });
    return answer;
  }

  async function askPerson(context: HookContext, question: ApprovalQuestion, isDead: () => boolean): Promise<AuthorizeDecision> {
    const { call, key, reason } = question;
    const answer = await ask?.(question, context);
    if (isDead()) return GIVEN_UP;
    if (!isRecord(answer)) throw new TypeError(`\`ask\` must give an answer, such as { action: 'allow' }`);
    switch (answer.action) {
      case 'allow':
        if (answer.remember === true) await remember(context, question, 'allow');
        return { action: 'allow' };
      case 'deny':
        if (answer.remember === true) await remember(context, question, 'deny');
        return { action: 'deny', reason: answer.reason ?? DENIED_BY_USER };
      case 'edit': {
        const edited = await editedCall(call, answer.input);
        if (!edited.ok) return { action: 'deny', reason: edited.message };
        const { decision, reason: why } = await ruleOn(rules, edited.call);
        return decision === 'deny' ? { action: 'deny', reason: why ?? DENIED_BY_RULE } : { action: 'edit', input: edited.input };
      }
      case 'suspend':
        return { action: 'suspend', reason: answer.reason ?? reason };
      default:
        answer satisfies never;
        throw new TypeError(`\`ask\` gave an answer about ${JSON.stringify(key)} that does not exist`);
    }
  }

  async function remember(context: HookContext, { call, key }: ApprovalQuestion, decision: RememberedDecision): Promise<void> {
    try {
      await memory.set(key, decision);
    } catch (error) {
      context.notify({ name: `${NAME}.notRemembered`, data: { tool: call.name, toolCallId: call.toolCallId, message: messageOf(error) } });
    }
  }

  return {
    name: NAME,
    authorizeToolCall: decide,
    // Whatever became of the call: nobody waits for an answer about it any more.
    finalizeToolResult: (context, { toolCallId }) => void questionsOf(context).unfinished.delete(toolCallId),
  };
}

/** What is asked in a turn. */
interface TurnQuestions {
  /** Ids of the calls that came up and are not over. */
  readonly unfinished: Set<string>;
  /** By step and call. */
  readonly open: Map<string, OpenQuestion>;
}

/** A question that was not answered yet. */
interface OpenQuestion {
  readonly answer: Promise<AuthorizeDecision>;
  /** Ids of the calls that wait for the answer. */
  readonly waiting: string[];
  /** Whether all of them are over. */
  readonly isDead: () => boolean;
}

function assertApprovalOptions(options: ApprovalOptions): void {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { rules, ask, memory, keyOf } = options;
  if (rules !== undefined) assertRules(rules, ARGUMENT.example);
  for (const [name, value] of Object.entries({ ask, keyOf })) {
    if (value === undefined || typeof value === 'function') continue;
    throw new TypeError(`${NAME}: \`${name}\` must be a function, not ${typeof value}. For example: ${ARGUMENT.example}.`);
  }
  const given: unknown = memory;
  if (given === undefined || (isRecord(given) && typeof given['get'] === 'function' && typeof given['set'] === 'function')) return;
  throw new TypeError(`${NAME}: \`memory\` must have get and set. For example: approval({ memory: createApprovalMemory() }).`);
}
