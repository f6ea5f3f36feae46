/** Faults: tools that do one thing wrong each, and the cases that find it. */
import { sleep, type ToolContext, ToolAccesses, type ToolReturn } from 'turnloop';
import type { CreateTool, ToolConformanceCaseId } from 'turnloop/testing/conformance';
import { type NoteInput, notes, type NoteTool, SECRET, type World } from './tool-conformance-good.ts';

/** A tool that does something wrong. */
export interface ToolFault {
  /** Cases that have to fail. */
  readonly caughtBy: readonly ToolConformanceCaseId[];
  /** What the first of them has to say. */
  readonly saying: RegExp;
  /** Makes it. */
  readonly make: CreateTool;
}

type Execute = (input: NoteInput, context: ToolContext) => ToolReturn | Promise<ToolReturn>;

/** The good tool with another `execute`. @param make - Called for each tool, so that its calls can share something. */
function execute(make: (good: Execute, world: World) => unknown): CreateTool {
  return notes((tool, world) => ({ execute: make((input, context) => tool.execute(input, context), world) as Execute }));
}

/** The good tool with another result. */
function result(change: (content: string, input: NoteInput) => unknown): CreateTool {
  return execute((good) => async (input: NoteInput, context: ToolContext) => change(((await good(input, context)) as { content: string }).content, input));
}

/** The good tool whose failure is another. */
function failure(change: (error: Error) => unknown): CreateTool {
  return execute((good) => async (input: NoteInput, context: ToolContext) => {
    try {
      return await good(input, context);
    } catch (error) {
      return context.signal.aborted ? 'aborted' : change(error as Error);
    }
  });
}

function raise(error: unknown): never {
  throw error;
}

/** A good tool that changes nothing, with something else about it. */
function reader(change: (tool: NoteTool, world: World) => Partial<NoteTool>): CreateTool {
  return notes((tool, world) => ({ replay: 'safe', readOnly: true, accesses: ({ title }) => ToolAccesses.read(`note:${title}`), ...change(tool, world) }));
}

/** Something for the third argument that a type would refuse. */
const wrong = (value: unknown): never => value as never;

let made = 0;

export const toolFaults: Readonly<Record<string, ToolFault>> = {
  'has a schema that is no object': {
    caughtBy: ['definition.taken'],
    saying: /a turn with this tool is refused: .*"save_note".*its type is "string"/,
    make: notes(() => ({ inputSchema: { type: 'string' } })),
  },
  'has a name that providers refuse': {
    caughtBy: ['definition.name'],
    saying: /`name` is "save note": providers take/,
    make: notes(() => ({ name: 'save note' })),
  },
  'has no description': { caughtBy: ['definition.name'], saying: /`description` is empty/, make: notes(() => ({ description: ' ' })) },
  'has a function in its schema': {
    caughtBy: ['definition.schema'],
    saying: /inputSchema\.properties\.title\.check is a function/,
    make: notes(() => ({ inputSchema: { type: 'object', properties: { title: { type: 'string', check: wrong(() => true) } } } })),
  },
  'requires what its schema does not describe': {
    caughtBy: ['definition.schema'],
    saying: /`required` of the schema names titel/,
    make: notes(({ inputSchema }) => ({ inputSchema: { ...inputSchema, required: ['titel'] } })),
  },
  'has the time in its description': {
    caughtBy: ['definition.stable'],
    saying: /it was defined as .*Version \d+.*and the next time as/,
    make: notes(() => ({ description: `Saves a note. Version ${(made += 1)}.` })),
  },
  'counts its calls in its description': {
    caughtBy: ['definition.stable'],
    saying: /0 saved.*, and after it ran as .*2 saved/,
    make: () => {
      const good = notes()();
      let calls = 0;
      const run: Execute = (input, context) => {
        calls += 1;
        return good.tool.execute(input, context);
      };
      return { ...good, tool: Object.defineProperty({ ...good.tool, execute: run }, 'description', { get: () => `Saves a note, ${calls} saved.` }) };
    },
  },
  'is read-only and never to be repeated': {
    caughtBy: ['definition.replay'],
    saying: /`readOnly` says that a call changes nothing, and `replay: "never"`/,
    make: reader(() => ({ replay: 'never' })),
  },
  'has a replay that there is not': { caughtBy: ['definition.replay'], saying: /`replay` is "always"/, make: notes(() => ({ replay: wrong('always') })) },

  'refuses good arguments': {
    caughtBy: ['input.good', 'result.success'],
    saying: /the arguments \{"title":"groceries"\} were refused: .*lines: is missing/,
    make: notes(({ parseInput }) => ({ parseInput: (input) => ((input as NoteInput).lines === undefined ? raise(new Error('lines: is missing')) : parseInput!(input)) })),
  },
  'takes what its schema does not describe': {
    caughtBy: ['input.good'],
    saying: /which its schema does not describe: .*"title" must be array/,
    make: notes(({ inputSchema }) => ({ inputSchema: { ...inputSchema, properties: { title: { type: 'array' } } } })),
  },
  'takes bad arguments': {
    caughtBy: ['input.bad', 'input.required'],
    saying: /the arguments \{"title":7\} were taken as .*: `title` is wrong in them/,
    make: notes(() => ({ parseInput: (input) => ({ ...(input as NoteInput) }) })),
  },
  'refuses without a word of what is wrong': {
    caughtBy: ['input.bad', 'input.required'],
    saying: /the refusal of \{"title":7\} does not name `title`.*"Invalid input"/,
    make: notes(({ parseInput }) => ({
      parseInput: (input) => {
        try {
          return parseInput!(input);
        } catch {
          throw new Error('Invalid input');
        }
      },
    })),
  },
  'makes up what is required': {
    caughtBy: ['input.required'],
    saying: /the arguments \{\} were taken as \{"title":"Untitled"/,
    make: notes(({ parseInput }) => ({ parseInput: (input) => parseInput!({ title: 'Untitled', ...(input as object) }) })),
  },
  'reads the same arguments another way each time': {
    caughtBy: ['input.again'],
    saying: /were read as the second time: expected .*"lines":1.* got .*"lines":2/,
    make: notes(({ parseInput }) => {
      let reads = 0;
      return { parseInput: async (input) => ({ ...(await parseInput!(input)), lines: (reads += 1) }) };
    }),
  },
  'fills in its arguments': {
    caughtBy: ['input.unchanged'],
    saying: /the arguments \{"title":"groceries"\} after the call: expected .* got .*"lines":9/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => good(Object.assign(input, { lines: 9 }), context)),
  },

  'has to wait for its accesses': {
    caughtBy: ['accesses.list'],
    saying: /`accesses` gave a promise/,
    make: notes(() => ({ accesses: wrong(async () => ToolAccesses.none()) })),
  },
  'gives names for accesses': { caughtBy: ['accesses.list'], saying: /`accesses` gave \["notes"\]/, make: notes(() => ({ accesses: wrong(() => ['notes']) })) },
  'fails to say what it touches': {
    caughtBy: ['accesses.list'],
    saying: /`accesses` threw: no folder/,
    make: notes(() => ({ accesses: () => raise(new Error('no folder')) })),
  },
  'touches something else each time': {
    caughtBy: ['accesses.pure'],
    saying: /`accesses` of \{"title":"groceries"\} the second time: expected .*note:0.* got .*note:/,
    make: notes((_tool, { notes: saved }) => ({ accesses: () => ToolAccesses.write(`note:${saved.size}`) })),
  },
  'sorts its arguments to say what it touches': {
    caughtBy: ['accesses.pure'],
    saying: /the arguments .* after it was asked/,
    make: notes(() => ({ accesses: (input) => ToolAccesses.write(`note:${Object.assign(input, { title: input.title.toUpperCase() }).title}`) })),
  },
  'is read-only and writes': {
    caughtBy: ['accesses.read_only'],
    saying: /it is `readOnly`, and writes \[/,
    make: reader(() => ({ accesses: ({ title }) => ToolAccesses.write(`note:${title}`) })),
  },
  'describes a call in two lines': { caughtBy: ['describe.line'], saying: /`describe` gave "Saves\\na note"/, make: notes(() => ({ describe: () => 'Saves\na note' })) },
  'fails to describe a call': {
    caughtBy: ['describe.line'],
    saying: /`describe` threw: .*undefined/,
    make: notes(() => ({ describe: ({ lines }) => (lines === undefined ? raise(new Error('lines is undefined')) : 'Saves.') })),
  },
  'changes its arguments to describe a call': {
    caughtBy: ['describe.pure'],
    saying: /the arguments .* after it was asked/,
    make: notes(() => ({ describe: (input) => `Saves ${Object.assign(input, { title: input.title.trimEnd().slice(0, 4) }).title}.` })),
  },

  'gives an object of its own': {
    caughtBy: ['result.content', 'result.success'],
    saying: /it gave \{"saved":"Saved groceries, 1 lines\."\}, which the model is told as a failure/,
    make: result((saved) => ({ saved })),
  },
  'gives nothing': { caughtBy: ['result.content', 'result.success'], saying: /it gave undefined/, make: result(() => undefined) },
  'says that it failed when it did not': {
    caughtBy: ['result.success'],
    saying: /with \{"title":"groceries"\} it failed: Saved groceries/,
    make: result((content) => ({ content, isError: true })),
  },
  'shows what is no JSON': {
    caughtBy: ['result.json'],
    saying: /display\.at is an object of class Date, which is lost/,
    make: result((content) => ({ content, display: { at: new Date(0) } })),
  },
  'gives more than anybody reads': {
    caughtBy: ['result.size'],
    saying: /its result has 9\d\d\d characters, more than 8192/,
    make: result((content) => content.padEnd(9_000, '.') + content),
  },
  'tells of more than the whole': {
    caughtBy: ['progress.shape'],
    saying: /"percent":130.*which is no ToolUpdate/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => {
      context.progress({ kind: 'progress', percent: 130 });
      return good(input, context);
    }),
  },
  'tells of its progress by a text alone': {
    caughtBy: ['progress.shape'],
    saying: /it told of its progress "half way"/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => {
      context.progress(wrong('half way'));
      return good(input, context);
    }),
  },

  'calls a failure a success': {
    caughtBy: ['failure.message'],
    saying: /with \{"title":"locked"\} it succeeded, and it should fail/,
    make: failure((error) => error.message),
  },
  'throws a text': { caughtBy: ['failure.message'], saying: /it threw "locked": throw an Error/, make: failure(() => raise('locked')) },
  'fails without a reason': { caughtBy: ['failure.message'], saying: /it failed with "", of which a model learns nothing/, make: failure(() => raise(new Error(''))) },
  'fails with an object for a reason': {
    caughtBy: ['failure.message'],
    saying: /it failed with "Failed: \[object Object\]"/,
    make: failure(() => ({ content: 'Failed: [object Object]', isError: true })),
  },

  'leaves a listener on the signal': {
    caughtBy: ['end.listeners'],
    saying: /with \{"title":"groceries"\} it left 1 listeners on `context\.signal`/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => {
      context.signal.addEventListener('abort', () => {}, { once: true });
      return good(input, context);
    }),
  },
  'leaves a timer when it fails': {
    caughtBy: ['end.timers'],
    saying: /with \{"title":"locked"\} it left 1 timers on `context\.runtime`/,
    make: execute((good) => async (input: NoteInput, context: ToolContext) => {
      const cancel = context.runtime.setTimer(10_000, () => {});
      const saved = await good(input, context);
      cancel();
      return saved;
    }),
  },
  'goes on telling after its end': {
    caughtBy: ['end.silence'],
    saying: /it reported progress 1 times after it had ended/,
    make: execute((good) => async (input: NoteInput, context: ToolContext) => {
      const saved = await good(input, context);
      context.runtime.setTimer(5, () => context.progress({ kind: 'status', text: 'Indexed.' }));
      return saved;
    }),
  },

  'begins though it was aborted before': {
    caughtBy: ['abort.before'],
    saying: /after a call that was aborted before its beginning: expected \[\], got \["novel"\]/,
    make: execute((good, { notes: saved }) => (input: NoteInput, context: ToolContext) => {
      if (context.signal.aborted) saved.set(context.idempotencyKey, input.title);
      return good(input, context);
    }),
  },
  'hears no abort that came before it listens': {
    caughtBy: ['abort.before', 'abort.early'],
    saying: /aborted before its beginning, did not settle within 75 ms \(a quarter of the option `settleWithinMs`\)/,
    make: execute((good) => async (input: NoteInput, context: ToolContext) => {
      await sleep(0, { runtime: context.runtime });
      const controller = new AbortController();
      const onAbort = (): void => controller.abort();
      context.signal.addEventListener('abort', onAbort);
      return Promise.resolve(good(input, { ...context, signal: controller.signal })).finally(() => context.signal.removeEventListener('abort', onAbort));
    }),
  },
  'hears no abort': {
    caughtBy: ['abort.running', 'abort.before', 'abort.early', 'abort.left', 'abort.others'],
    saying: /aborted while it ran, did not settle within 300 ms/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => good(input, { ...context, signal: new AbortController().signal })),
  },
  'leaves its timer when it is aborted': {
    caughtBy: ['abort.left'],
    saying: /listeners on the signal and timers on the runtime after an abort .*: expected \[0,0\], got \[0,1\]/,
    make: execute((good) => async (input: NoteInput, context: ToolContext) => {
      const cancel = context.runtime.setTimer(10_000, () => {});
      const saved = await Promise.resolve(good(input, context)).catch((error: unknown) => (context.signal.aborted ? raise(error) : (cancel(), raise(error))));
      cancel();
      return saved;
    }),
  },
  'goes on telling after an abort': {
    caughtBy: ['abort.left'],
    saying: /it reported progress 1 times after it was aborted/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => {
      const onAbort = (): void => void setTimeout(() => context.progress({ kind: 'status', text: 'Aborted.' }), 10);
      context.signal.addEventListener('abort', onAbort, { once: true });
      return Promise.resolve(good(input, context)).finally(() => context.signal.removeEventListener('abort', onAbort));
    }),
  },
  'aborts all calls when one is': {
    caughtBy: ['abort.others'],
    saying: /an abort of one call .* ended another that nobody had aborted/,
    make: execute((good) => {
      const shared = new AbortController();
      return (input: NoteInput, context: ToolContext) => {
        context.signal.throwIfAborted();
        const onAbort = (): void => shared.abort();
        context.signal.addEventListener('abort', onAbort, { once: true });
        return Promise.resolve(good(input, { ...context, signal: shared.signal })).finally(() => context.signal.removeEventListener('abort', onAbort));
      };
    }),
  },

  'keeps the arguments of the last call for all': {
    caughtBy: ['calls.apart'],
    saying: /with \{"title":"groceries"\} a call alone gave .*groceries.*, and beside 1 others .*letters/,
    make: execute((good) => {
      let last: NoteInput;
      return async (input: NoteInput, context: ToolContext) => {
        last = input;
        await sleep(1, context);
        return good(last, context);
      };
    }),
  },
  'tells the progress of each call to the last': {
    caughtBy: ['calls.apart'],
    saying: /a call alone gave .*progress.*, and beside 1 others/,
    make: execute((good) => {
      let last: ToolContext;
      return (input: NoteInput, context: ToolContext) => {
        last = context;
        return good(input, { ...context, progress: (update) => last.progress(update) });
      };
    }),
  },

  'is read-only and changes something': {
    caughtBy: ['replay.safe'],
    saying: /after calls that change nothing: expected \[\], got \["groceries","letters"\]/,
    make: reader(() => ({})),
  },
  'does a call again under the same key': {
    caughtBy: ['replay.idempotent'],
    saying: /after the same call was run again: expected \["groceries"\], got \["groceries","groceries"\]/,
    make: execute((good) => {
      let calls = 0;
      return (input: NoteInput, context: ToolContext) => good(input, { ...context, idempotencyKey: String((calls += 1)) });
    }),
  },
  'fails when a call is run again': {
    caughtBy: ['replay.idempotent'],
    saying: /run again under the same key, the call .* failed: exists already/,
    make: execute((good, { notes: saved }) => (input: NoteInput, context: ToolContext) => (saved.has(context.idempotencyKey) ? raise(new Error('exists already')) : good(input, context))),
  },

  'shows its key in its display': {
    caughtBy: ['secrets.results'],
    saying: /its outcome shows the key/,
    make: result((content) => ({ content, display: { authorization: `Bearer ${SECRET}` } })),
  },
  'shows its key in its progress': {
    caughtBy: ['secrets.results', 'secrets.failures'],
    saying: /its progress shows the key/,
    make: execute((good) => (input: NoteInput, context: ToolContext) => {
      context.progress({ kind: 'stdout', text: `curl -H 'x-api-key: ${SECRET}'` });
      return good(input, context);
    }),
  },
  'shows its key in the cause of its failure': {
    caughtBy: ['secrets.failures'],
    saying: /its outcome shows the key/,
    make: failure((error) => raise(new Error(error.message, { cause: { headers: { authorization: SECRET } } }))),
  },
};
