/**
 * Guardrails, options: who judges what, and the words of it.
 */
import { assertLLM, assertOptions } from '../core/assert.ts';
import { isRecord, type JsonValue } from '../core/json.ts';
import type { LLM, ReplyPart } from '../core/llm.ts';
import type { Message, UserMessage } from '../core/message.ts';

/** What every guardrail is given. */
export interface GuardrailContext {
  /** Aborts when the verdict is not needed any more: another guardrail tripped, the request failed, the turn was aborted. */
  readonly signal: AbortSignal;
  /** The model, without guardrails: for those that ask one. Tokens spent through it count as the request's. */
  readonly llm: LLM;
  /** The `host` option. */
  readonly host: unknown;
  /** The history that the request has. */
  readonly messages: readonly Message[];
  /** The turn; absent when a host calls `chat` itself. */
  readonly turnId?: string | undefined;
  /** The step, 1-based; absent when a host calls `chat` itself. */
  readonly step?: number | undefined;
}

/** A verdict: nothing passes, a text trips and says why. Anything else trips too. */
export type GuardrailVerdict = string | undefined | void;

/** Judges something. */
export interface Guardrail<Judged> {
  /** Names it in `TurnResult.stoppedBy`. */
  readonly name: string;
  /** Passes it with nothing, trips with a text. A throw trips with its message. */
  check(judged: Judged, context: GuardrailContext): Promise<GuardrailVerdict> | GuardrailVerdict;
}

/** What a model said. */
export interface GuardedReply {
  /** Its text; never empty. */
  readonly text: string;
  /** The whole reply, calls and thinking included. */
  readonly content: readonly ReplyPart[];
}

/** A tool call that a model asks for. */
export interface GuardedCall {
  /** The tool's name as the model wrote it: it need not exist. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly inputText: string;
  /** The same as JSON; absent where they are none. */
  readonly input: JsonValue | undefined;
}

/** Options of {@link withGuardrails}. */
export interface GuardrailOptions {
  /**
   * Judge what people and the host said since the model's last reply, beside the request. Not asked where nobody said
   * anything, as after tool results. What tripped stays in the history, so that it is judged again with what comes next: take it
   * back with `session.undo()`. @defaultValue none
   */
  readonly input?: readonly Guardrail<readonly UserMessage[]>[] | undefined;
  /** Judge each reply that has text, also beside calls. @defaultValue none */
  readonly output?: readonly Guardrail<GuardedReply>[] | undefined;
  /** Judge each tool call of a reply, before any hook sees it. @defaultValue none */
  readonly toolCalls?: readonly Guardrail<GuardedCall>[] | undefined;
  /**
   * Whether fragments wait until the whole reply has been judged. Without it people may see text that is taken back.
   *
   * @defaultValue false: a reply that streams is what most hosts want, and nothing unjudged is recorded either way, but for
   * the text so far of a reply that was cut off after the input had passed
   */
  readonly holdDeltas?: boolean | undefined;
  /** Any value, handed to the guardrails untouched. */
  readonly host?: unknown;
}

const ARGUMENT = {
  taker: 'withGuardrails',
  example: "withGuardrails(llm, { output: [{ name: 'noSecrets', check: ({ text }) => (text.includes(secret) ? 'It holds a secret.' : undefined) }] })",
};
const OPTIONS: Readonly<Record<keyof GuardrailOptions, true>> = { input: true, output: true, toolCalls: true, holdDeltas: true, host: true };

/** @throws TypeError naming what is wrong. */
export function assertGuardrails(llm: unknown, options: GuardrailOptions): void {
  assertLLM(llm, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  const given: { readonly [Name in keyof GuardrailOptions]: unknown } = options;
  for (const name of ['input', 'output', 'toolCalls'] as const) {
    const list = given[name];
    if (list === undefined || (Array.isArray(list) && list.every(isGuardrail))) continue;
    throw new TypeError(`withGuardrails: \`${name}\` must be a list of guardrails, each with a name and a check function. For example: ${ARGUMENT.example}.`);
  }
  if (given.holdDeltas === undefined || typeof given.holdDeltas === 'boolean') return;
  throw new TypeError(`withGuardrails: \`holdDeltas\` must be true or false, not a value of type ${typeof given.holdDeltas}. For example: withGuardrails(llm, { output, holdDeltas: true }).`);
}

function isGuardrail(value: unknown): boolean {
  return isRecord(value) && typeof value['name'] === 'string' && value['name'] !== '' && typeof value['check'] === 'function';
}
