/**
 * Truncate tool result: layer 1. What is too long of a result never reaches the history, and people still get all of it.
 *
 * - The text that a model sees is never longer than `maxCharacters`, the marker included.
 * - The text that was cut out is kept once: in `display`, or in the store.
 * - A store that fails loses nothing: `display` then has the whole text.
 * - Nothing that a tool returned passes for a mark, unless the result says that it was cut already.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import type { RecordedToolResult } from '../core/events.ts';
import type { Hook, HookCall, HookContext } from '../core/hooks.ts';
import type { ToolResult } from '../core/tool.ts';
import { isPlace, PLACE_RULE, placeLine, toTextBudget, truncateParts, type TextBudget } from './truncate-text.ts';

/** About 2,000 tokens, and of it some 1,500 are kept. */
const DEFAULT_BUDGET: TextBudget = { maxCharacters: 8_192, headCharacters: 3_000, tailCharacters: 3_000 };
/** A marker that names a store must fit in beside some text. */
const LEAST_CHARACTERS = 1_000;
/** More than a person can look through in a log. */
const DEFAULT_STORE_ABOVE = 50_000;
const ARGUMENT = {
  taker: 'truncateToolResult',
  example: 'hooks: [truncateToolResult({ maxCharacters: 8192, headCharacters: 3000, tailCharacters: 3000 })]',
};
const OPTIONS: Readonly<Record<keyof TruncateToolResultOptions, true>> = {
  maxCharacters: true,
  headCharacters: true,
  tailCharacters: true,
  storeAbove: true,
  store: true,
};

/** The call that a stored text is the result of. */
export interface StoredResultCall {
  /** Id of the call, unique in the transcript. */
  readonly toolCallId: string;
  /** Name of the tool as the model wrote it: not to be used as a file name. */
  readonly name: string;
  /** The turn. */
  readonly turnId: string;
}

/** Options of {@link truncateToolResult}. */
export interface TruncateToolResultOptions {
  /** Results up to this many characters are left alone; at least 1,000. @defaultValue 8,192: about 2,000 tokens */
  readonly maxCharacters?: number | undefined;
  /** Characters kept of the beginning. @defaultValue 3,000, less where `maxCharacters` is less than 8,192 */
  readonly headCharacters?: number | undefined;
  /** Characters kept of the end, where errors stand. @defaultValue 3,000, less where `maxCharacters` is less than 8,192 */
  readonly tailCharacters?: number | undefined;
  /** Longer texts go to the `store`, if there is one. @defaultValue 50,000 */
  readonly storeAbove?: number | undefined;
  /**
   * Keeps a whole text and says where it can be read, in a few words for the model: a path that a tool of the agent can
   * read, an address; one line of at most 500 characters. The path must not be made of the call's name.
   *
   * @defaultValue none: `display` has the whole text
   */
  readonly store?: ((text: string, call: StoredResultCall) => Promise<string>) | undefined;
}

/**
 * Hook that shortens results whose text is too long: the model sees the first and the last characters, and between them
 * how many characters and lines are missing. Several texts of a result count as one; media stay.
 *
 * People see the whole text in `display`. A text above `storeAbove` goes to the `store`, if there is one; the last line of
 * the result's `note` says where it is, and `display` has what the model sees. A display that the tool set stays, and is then all that people see.
 *
 * Put it behind hooks that take secrets out of results: the whole text that is kept is the one it sees. What a tool
 * put into `note` is not counted, and stays as it is.
 *
 * Notices: `truncateToolResult.truncated` `{toolCallId, name, charactersBefore, charactersAfter, where?}`;
 * `truncateToolResult.storeFailed` `{toolCallId, message}`, and the whole text is in `display`.
 *
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const store = async (text, { toolCallId }) => {
 *   const path = join(directory, `${toolCallId}.txt`);
 *   await writeFile(path, text);
 *   return path;
 * };
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [truncateToolResult({ store })] });
 * ```
 */
export function truncateToolResult(options: TruncateToolResultOptions = {}): Hook {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { storeAbove: { least: 0, orInfinity: true } }, ARGUMENT);
  const budget = toTextBudget(options, DEFAULT_BUDGET, { ...ARGUMENT, least: LEAST_CHARACTERS });
  const { storeAbove = DEFAULT_STORE_ABOVE, store } = options;
  assertStore(store);
  return {
    name: 'truncateToolResult',
    finalizeToolResult: async (context, call, result) => {
      const charactersBefore = lengthOf(result);
      if (charactersBefore <= budget.maxCharacters) return undefined;
      const text = textsOf(result.content).join('\n');
      const where = store === undefined || charactersBefore <= storeAbove ? undefined : await keep(store, text, { context, call });
      const line = where === undefined ? undefined : placeLine(where);
      const lineLength = line === undefined ? 0 : line.length + 1;
      const isFresh = result.truncated !== true;
      const content = truncateParts(result.content, { ...budget, maxCharacters: budget.maxCharacters - lineLength }, isFresh);
      const note = [result.note, line].filter((text) => text !== undefined && text !== '').join('\n');
      const shortened: ToolResult = { ...result, content, truncated: true, ...(line !== undefined && { note }) };
      const { toolCallId, name } = call;
      context.notify({
        name: 'truncateToolResult.truncated',
        data: { toolCallId, name, charactersBefore, charactersAfter: lengthOf({ content }) + lineLength, ...(where !== undefined && { where }) },
      });
      if (result.display !== undefined) return shortened;
      return { ...shortened, display: line === undefined ? text : [...textsOf(content), line].join('\n') };
    },
  };
}

function lengthOf({ content }: Pick<RecordedToolResult, 'content'>): number {
  return textsOf(content).reduce((sum, text) => sum + text.length, 0);
}

function textsOf(content: RecordedToolResult['content']): readonly string[] {
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

type Store = NonNullable<TruncateToolResultOptions['store']>;

/** Where the text is; undefined if it could not be kept. */
async function keep(
  store: Store,
  text: string,
  { context, call }: { readonly context: HookContext; readonly call: HookCall },
): Promise<string | undefined> {
  const { toolCallId, name } = call;
  try {
    const where: unknown = await store(text, { toolCallId, name, turnId: context.turnId });
    if (!isPlace(where)) throw new TypeError(`The store must return where the text is: ${PLACE_RULE}.`);
    return where;
  } catch (error) {
    context.notify({ name: 'truncateToolResult.storeFailed', data: { toolCallId, message: messageOf(error) } });
    return undefined;
  }
}

function assertStore(store: unknown): void {
  if (store === undefined || typeof store === 'function') return;
  throw new TypeError(
    `truncateToolResult: \`store\` must be a function, not a value of type ${typeof store}. ` +
      'For example: hooks: [truncateToolResult({ store: async (text, { toolCallId }) => save(toolCallId, text) })].',
  );
}
