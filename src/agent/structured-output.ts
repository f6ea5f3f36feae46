/**
 * Structured output: a turn whose answer is a value of a schema.
 *
 * - A model that takes a response schema is given one; any other gives its answer by calling a tool that ends the turn.
 * - An answer that does not fit goes back to the model, so and so often a turn; then the turn ends `stopped`, with what is
 *   wrong.
 * - All that is counted is read out of the history, and what the answer is, out of the turn's result: nothing is kept that a
 *   resume would lack.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { FinishedStep, Hook, HookContext } from '../core/hooks.ts';
import { isRecord, type JsonSchema } from '../core/json.ts';
import type { LLM } from '../core/llm.ts';
import { type AssistantMessage, type Message, textOf, type ToolCallPart, userMessage } from '../core/message.ts';
import type { TurnStopReason } from '../core/stop-reason.ts';
import type { AnyTool, StandardSchema, Tool } from '../core/tool.ts';
import { ToolAccesses } from '../core/tool-access.ts';
import type { TurnResult } from '../core/turn-options.ts';
import { type AnswerForm, type CheckedAnswer, createAnswerForm } from './structured-output-form.ts';

const NAME = 'structuredOutput';
const DEFAULT_TOOL_NAME = 'give_answer';
const DEFAULT_DESCRIPTION = 'Gives your final answer and ends your work. Call it once, when everything else is done.';
const DEFAULT_MAX_RETRIES = 2;

const ARGUMENT = { taker: NAME, example: 'structuredOutput(z.object({ city: z.string() }))' };
const OPTIONS: Readonly<Record<keyof StructuredOutputOptions, true>> = { jsonSchema: true, maxRetries: true, toolName: true, description: true };

/** Options of {@link structuredOutput}. */
export interface StructuredOutputOptions {
  /** JSON Schema of the answer, for a schema that cannot give its own. */
  readonly jsonSchema?: JsonSchema | undefined;
  /** How often an answer that does not fit goes back to the model within one turn. @defaultValue 2 */
  readonly maxRetries?: number | undefined;
  /** Name of the closing tool. @defaultValue `'give_answer'` */
  readonly toolName?: string | undefined;
  /** What the model is told the closing tool is for. @defaultValue to give the final answer, once, when all is done */
  readonly description?: string | undefined;
}

/** What a turn needs so that its answer is a value of a schema. Made by {@link structuredOutput}; serves any number of turns. */
export interface StructuredOutput<Output> {
  /** For the turn's `hooks`. */
  readonly hooks: readonly Hook[];
  /**
   * For the turn's `tools`, beside others: the closing tool for a model that takes no response schema, none for one that
   * does (`capabilities.structuredOutput`). The same list each time.
   */
  toolsFor(llm: LLM): readonly AnyTool[];
  /**
   * The answer of a turn that ended, as the schema gives it; undefined if the turn ended without one: `stopMessage` or
   * `error` say why. The schema is asked anew. What a person changed about the closing call is not seen.
   */
  parse(result: Pick<TurnResult, 'stopReason' | 'stoppedBy' | 'message'>): Promise<Output | undefined>;
}

/**
 * Asks for an answer of a schema. The turn ends as soon as there is one: `end_turn` where the provider has a format of its
 * own, `stopped` by the closing tool otherwise. One that does not fit goes back to the model with what is wrong, at most
 * twice a turn, also over a resume; then the turn ends `stopped` by `structuredOutput`, with what is wrong as `stopMessage`.
 *
 * How often it went back is read out of the history: what a compaction takes out of it within the turn is forgotten. Calls
 * of the closing tool count from the newest message of a person or of the host on.
 *
 * @param schema - Any Standard Schema (zod, valibot, arktype …).
 * @param options - The closing tool, and how often the model may try again.
 * @throws TypeError for something that is no Standard Schema, one without a JSON Schema, or a wrong option.
 *
 * @example
 * ```ts
 * const answer = structuredOutput(z.object({ city: z.string(), degrees: z.number() }));
 * const result = await runTurn({ llm, tools: [weather, ...answer.toolsFor(llm)], hooks: answer.hooks, dispatchEvent, buildMessages, input });
 * const output = await answer.parse(result); // { city: string; degrees: number } | undefined
 * ```
 */
export function structuredOutput<Output>(schema: StandardSchema<Output>, options: StructuredOutputOptions = {}): StructuredOutput<Output> {
  assertStructuredOutput(schema, options);
  const form = createAnswerForm(schema, options.jsonSchema);
  const { toolName = DEFAULT_TOOL_NAME, description = DEFAULT_DESCRIPTION, maxRetries = DEFAULT_MAX_RETRIES } = options;
  const closing: readonly AnyTool[] = [closingTool(form, toolName, description)];
  const none: readonly AnyTool[] = [];
  return {
    hooks: [answerHook(form, { toolName, maxRetries })],
    toolsFor: (llm) => (isNative(llm) ? none : closing),
    parse: ({ stopReason, stoppedBy, message }) => parseAnswer(form, { toolName, message, isClosed: stopReason === 'stopped' && stoppedBy === toolName }),
  };
}

function isNative(llm: LLM): boolean {
  return llm.capabilities?.structuredOutput === true;
}

function closingTool<Output>(form: AnswerForm<Output>, name: string, description: string): Tool<Output> {
  return {
    name,
    description,
    inputSchema: form.schema,
    parseInput: (value) => form.parse(value),
    // To answer changes nothing: it needs no place in the schedule and nobody's leave.
    readOnly: true,
    accesses: () => ToolAccesses.none(),
    execute: () => ({ content: 'The answer was taken.', stopTurn: true }),
  };
}

/** Ends at which the model thinks that it has answered, or was kept from it by the length of its answer. */
const ANSWERED: ReadonlySet<string> = new Set<TurnStopReason>(['end_turn', 'stop_sequence', 'max_tokens', 'unknown']);

interface AnswerRules {
  readonly toolName: string;
  readonly maxRetries: number;
}

function answerHook<Output>(form: AnswerForm<Output>, { toolName, maxRetries }: AnswerRules): Hook {
  return {
    name: NAME,
    beforeStep: ({ llm }) => (isNative(llm) ? { responseSchema: form.schema } : undefined),
    afterStep: async (context, step) => {
      const problem = await problemOf(form, toolName, step);
      if (problem === undefined) return undefined;
      const messages = await context.messages();
      const failures = toldIn(messages, context) + (await failedCallsIn(messages, form, toolName)) + (callsOf(step.message).length === 0 ? 1 : 0);
      if (failures <= maxRetries) return undefined;
      const times = failures === 1 ? 'once' : `${failures} times`;
      return { reason: `The model gave an answer that is not of the form asked for, ${times}. The last time: ${problem}` };
    },
    shouldContinueAfterStop: async (context, { stopReason, limit }) => {
      if (limit || !ANSWERED.has(stopReason)) return undefined;
      const messages = await context.messages();
      const reply = messages.findLast((message): message is AssistantMessage => message.role === 'assistant');
      const told = toldIn(messages, context);
      // A call has its own answer, from the loop; and too many failures ended the turn before this.
      if ((reply !== undefined && callsOf(reply).length > 0) || told >= maxRetries) return undefined;
      const checked = await form.checkText(textOf(reply));
      if (checked.ok) return undefined;
      const text = isNative(context.llm)
        ? `Your answer is not of the form that was asked for: ${checked.problem}. Answer again, with nothing but JSON of that form.`
        : `Your answer was not taken: text is not what was asked for. Give it by calling ${toolName}.`;
      return userMessage(text, { id: `${reminderPrefix(context)}${told + 1}`, origin: 'reminder' });
    },
  };
}

/** What is wrong with the answer that a step gave; undefined if it gave none, or a good one. */
async function problemOf<Output>(form: AnswerForm<Output>, toolName: string, step: FinishedStep): Promise<string | undefined> {
  const calls = step.results.filter(({ name }) => name === toolName);
  if (calls.some(({ result }) => result.isError !== true)) return undefined;
  const isText = callsOf(step.message).length === 0 && ANSWERED.has(step.stopReason);
  const checks = isText ? [form.checkText(textOf(step.message))] : calls.map((call) => checkCall(form, call));
  const last = (await Promise.all(checks)).at(-1);
  // A call that fits and failed all the same was refused by somebody: that is not the model's doing.
  return last?.ok === false ? last.problem : undefined;
}

function checkCall<Output>(form: AnswerForm<Output>, { input, inputText }: Pick<ToolCallPart, 'input' | 'inputText'>): Promise<CheckedAnswer<Output>> {
  return input === undefined ? form.checkText(inputText) : form.check(input);
}

/** The id of a reminder says which one of the turn it is. */
function reminderPrefix({ turnId }: Pick<HookContext, 'turnId'>): string {
  return `${NAME}_${turnId}_`;
}

/** How often the model was told that its text will not do. */
function toldIn(messages: readonly Message[], context: Pick<HookContext, 'turnId'>): number {
  const prefix = reminderPrefix(context);
  let told = 0;
  for (const { id } of messages) if (id.startsWith(prefix)) told = Math.max(told, Number(id.slice(prefix.length)));
  return told;
}

/** How many replies since somebody last said something called the closing tool with nothing that fits. */
async function failedCallsIn<Output>(messages: readonly Message[], form: AnswerForm<Output>, toolName: string): Promise<number> {
  const start = messages.findLastIndex((message) => message.role === 'user' && (message.origin === 'user' || message.origin === 'host'));
  let failed = 0;
  for (const message of messages.slice(start + 1)) {
    const calls = message.role === 'assistant' ? callsOf(message).filter(({ name }) => name === toolName) : [];
    if (calls.length === 0) continue;
    const checked = await Promise.all(calls.map((call) => checkCall(form, call)));
    if (checked.every(({ ok }) => !ok)) failed += 1;
  }
  return failed;
}

function callsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  return content.filter((part) => part.type === 'tool_call');
}

interface GivenAnswer {
  readonly toolName: string;
  readonly message: AssistantMessage | undefined;
  /** Whether the closing tool ended the turn. */
  readonly isClosed: boolean;
}

async function parseAnswer<Output>(form: AnswerForm<Output>, { toolName, message, isClosed }: GivenAnswer): Promise<Output | undefined> {
  if (message === undefined || message.status === 'interrupted') return undefined;
  const calls = callsOf(message);
  const given = isClosed ? calls.filter(({ name }) => name === toolName) : [];
  const checks = calls.length === 0 ? [form.checkText(textOf(message))] : given.map((call) => checkCall(form, call));
  for (const checked of await Promise.all(checks)) if (checked.ok) return checked.value;
  return undefined;
}

function assertStructuredOutput(schema: unknown, options: StructuredOutputOptions): void {
  const isSchema = (typeof schema === 'object' || typeof schema === 'function') && schema !== null && '~standard' in schema;
  if (!isSchema) throw new TypeError(`${NAME} needs a Standard Schema, such as one of zod, valibot or arktype. For example: ${ARGUMENT.example}.`);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { maxRetries: { least: 0, whole: true } }, ARGUMENT);
  const standard: unknown = schema['~standard'];
  if (options.jsonSchema === undefined && !(isRecord(standard) && isRecord(standard['jsonSchema']))) {
    throw new TypeError(`${NAME}: the schema gives no JSON Schema. Pass it beside the schema: ${NAME}(schema, { jsonSchema: { type: 'object', properties: { … } } }).`);
  }
  for (const name of ['toolName', 'description'] as const) {
    const text: unknown = options[name];
    if (text === undefined || (typeof text === 'string' && text !== '')) continue;
    throw new TypeError(`${NAME}: \`${name}\` must be a text. For example: ${NAME}(schema, { ${name}: 'report' }).`);
  }
}
