/**
 * Cases about what a tool says of itself: its definition, which arguments it takes, what a call touches and would do. The
 * loop asks all that before it runs anything.
 */
import { messageOf } from '../../core/errors.ts';
import { isThenable } from '../../core/event-dispatcher.ts';
import { isRecord, type JsonSchema, type JsonValue } from '../../core/json.ts';
import { isAccessList, type ToolAccess } from '../../core/tool-access.ts';
import { checkToolInput, toolSet } from '../../core/tool-input.ts';
import { replayOf, type AnyTool } from '../../core/tool.ts';
import { findNonJson } from '../plain-json.ts';
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import type { ToolCasesOf } from './tool-conformance-case.ts';
import { imageOf } from './tool-conformance-image.ts';
import type { ToolStage, ToolSubject } from './tool-conformance-stage.ts';

/** What every provider takes as a name. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Cases about definitions, arguments, accesses and descriptions. */
export const toolDefinitionCases: ToolCasesOf<'definition' | 'input' | 'accesses' | 'describe'> = {
  'definition.taken': {
    title: 'the loop takes it: it has a name, a description, a JSON Schema of an object, and `execute`',
    async run(stage) {
      const { tool } = await stage.make();
      try {
        toolSet([tool]);
      } catch (error) {
        fail(`a turn with this tool is refused: ${messageOf(error)}`);
      }
    },
  },
  'definition.name': {
    title: 'every provider takes its name, and a model can tell what it is for',
    async run(stage) {
      const { name, description } = (await stage.make()).tool;
      if (!NAME.test(name)) fail(`\`name\` is ${shown(name)}: providers take 1 to 64 of the letters a to z, digits, _ and -`);
      if (description.trim() === '') fail('`description` is empty: it is all that tells the model when to call the tool');
    },
  },
  'definition.schema': {
    title: 'its schema is plain JSON, and what it requires it also describes',
    async run(stage) {
      const { inputSchema } = (await stage.make()).tool;
      const nonJson = findNonJson(inputSchema, 'inputSchema');
      if (nonJson !== undefined) fail(`${nonJson}: a provider gets it as JSON`);
      const properties = isRecord(inputSchema['properties']) ? inputSchema['properties'] : undefined;
      const unknown = requiredOf(inputSchema).filter((name) => properties !== undefined && !Object.hasOwn(properties, name));
      if (unknown.length > 0) fail(`\`required\` of the schema names ${unknown.join(', ')}, which \`properties\` does not have`);
    },
  },
  'definition.stable': {
    title: 'its definition is the same each time it is made, and after it ran: prompt caches rely on it',
    async run(stage) {
      const [subject, other] = [await stage.make(), await stage.make()];
      const before = wireForm(subject.tool);
      if (before !== wireForm(other.tool)) fail(`it was defined as ${before}, and the next time as ${wireForm(other.tool)}`);
      for (const input of stage.inputs('good')) await subject.run(input);
      if (before !== wireForm(subject.tool)) fail(`it was defined as ${before}, and after it ran as ${wireForm(subject.tool)}`);
    },
  },
  'definition.replay': {
    title: '`replay` is one of its three words, and `readOnly` does not contradict it',
    async run(stage) {
      const { tool } = await stage.make();
      if (!['safe', 'idempotent', 'never'].includes(replayOf(tool))) fail(`\`replay\` is ${shown(tool.replay)}: it is 'safe', 'idempotent' or 'never'`);
      if (tool.readOnly === true && replayOf(tool) !== 'safe') {
        fail(`\`readOnly\` says that a call changes nothing, and \`replay: ${shown(tool.replay)}\` that it may not run again: leave \`replay\` out`);
      }
    },
  },

  'input.good': {
    title: 'good arguments are taken, and agree with the schema that the model is shown',
    async run(stage) {
      const subject = await stage.make();
      const { name, inputSchema } = subject.tool;
      for (const input of stage.accepted()) {
        await subject.parse(input);
        // Without a parser of its own it is the schema that says what a tool takes.
        const read = await checkToolInput({ name, description: '', inputSchema, execute: () => '' }, input);
        if (!read.ok) fail(`the tool takes ${shown(input)}, which its schema does not describe: ${read.message}`);
      }
    },
  },
  'input.bad': {
    title: 'bad arguments are refused, and the refusal names the field (needs `inputs.bad`)',
    async run(stage) {
      const subject = await stage.make();
      for (const { input, field } of stage.inputs('bad')) await expectRefusal(subject, input, field);
    },
  },
  'input.required': {
    title: 'arguments without something that the schema requires are refused by its name',
    async run(stage) {
      const subject = await stage.make();
      for (const input of stage.inputs('good')) {
        for (const name of requiredOf(subject.tool.inputSchema)) {
          if (!Object.hasOwn(input, name)) continue;
          const { [name]: _left, ...rest } = input;
          await expectRefusal(subject, rest, name);
        }
      }
    },
  },
  'input.again': {
    title: 'the same arguments are read the same way each time',
    async run(stage) {
      const subject = await stage.make();
      for (const input of stage.accepted()) {
        const [first, second] = [imageOf(await subject.parse(input)), imageOf(await subject.parse(input))];
        expectEqual(second, first, `what the arguments ${shown(input)} were read as the second time`);
      }
    },
  },
  'input.unchanged': {
    title: 'a call does not change the arguments that it was given',
    async run(stage) {
      for (const input of [...stage.inputs('good'), ...(stage.options.inputs.failing ?? [])]) {
        const call = await stage.run(input);
        expectEqual(imageOf(call.parsed), call.parsedAtStart, `the arguments ${shown(input)} after the call`);
      }
    },
  },

  'accesses.list': {
    title: '`accesses` gives a list at once, made by `ToolAccesses`',
    async run(stage) {
      await forEachAccepted(stage, ({ tool }, input) => void accessesOf(tool, input));
    },
  },
  'accesses.pure': {
    title: '`accesses` says the same each time, also after a call, and changes nothing of the arguments',
    async run(stage) {
      const subject = await stage.make();
      const inputs = stage.inputs('good');
      const first: unknown[] = [];
      for (const input of inputs) first.push(await unchangedBy(subject, input, (parsed) => accessesOf(subject.tool, parsed)));
      for (const input of inputs) await subject.run(input);
      for (const [index, input] of inputs.entries()) {
        expectEqual(accessesOf(subject.tool, await subject.parse(input)), first[index], `\`accesses\` of ${shown(input)} the second time`);
      }
    },
  },
  'accesses.read_only': {
    title: 'a tool that is `readOnly` writes nothing by its `accesses`',
    async run(stage) {
      await forEachAccepted(stage, ({ tool }, parsed) => {
        if (tool.readOnly !== true) return;
        const writes = (accessesOf(tool, parsed) ?? []).filter(({ mode }) => mode === 'write');
        if (writes.length > 0) fail(`it is \`readOnly\`, and writes ${shown(writes)} by its \`accesses\``);
      });
    },
  },

  'describe.line': {
    title: '`describe` gives one line of text at once',
    async run(stage) {
      await forEachAccepted(stage, ({ tool }, parsed) => void descriptionOf(tool, parsed));
    },
  },
  'describe.pure': {
    title: '`describe` says the same each time, and changes nothing of the arguments',
    async run(stage) {
      const subject = await stage.make();
      for (const input of stage.accepted()) {
        const first = await unchangedBy(subject, input, (parsed) => descriptionOf(subject.tool, parsed));
        expectEqual(descriptionOf(subject.tool, await subject.parse(input)), first, `\`describe\` of ${shown(input)} the second time`);
      }
    },
  },
};

/** What a provider is sent of it. */
function wireForm({ name, description, inputSchema }: AnyTool): string {
  return JSON.stringify({ name, description, inputSchema });
}

function requiredOf({ required }: JsonSchema): readonly string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

async function expectRefusal(subject: ToolSubject, input: JsonValue, field: string): Promise<void> {
  const read = await subject.read(input);
  if (!('refusal' in read)) fail(`the arguments ${shown(input)} were taken as ${shown(read.parsed)}: \`${field}\` is wrong in them`);
  if (!read.refusal.includes(field)) fail(`the refusal of ${shown(input)} does not name \`${field}\`, so that a model cannot mend it: ${shown(read.refusal)}`);
}

async function forEachAccepted(stage: ToolStage, look: (subject: ToolSubject, parsed: unknown) => void): Promise<void> {
  const subject = await stage.make();
  for (const input of stage.accepted()) look(subject, await subject.parse(input));
}

/** What `ask` gives for arguments, which have to be the same behind it. */
async function unchangedBy<Value>(subject: ToolSubject, input: JsonValue, ask: (parsed: unknown) => Value): Promise<Value> {
  const parsed = await subject.parse(input);
  const before = imageOf(parsed);
  const value = ask(parsed);
  expectEqual(imageOf(parsed), before, `the arguments ${shown(input)} after it was asked`);
  return value;
}

/** What `accesses` gives; undefined for a tool without it. */
export function accessesOf(tool: AnyTool, parsed: unknown): readonly ToolAccess[] | undefined {
  const accesses: unknown = asked('accesses', () => tool.accesses?.(parsed));
  if (tool.accesses === undefined || isAccessList(accesses)) return accesses as readonly ToolAccess[] | undefined;
  fail(`\`accesses\` gave ${isThenable(accesses) ? 'a promise' : shown(accesses)}: it gives a list at once, such as ToolAccesses.read('db:users')`);
}

function descriptionOf(tool: AnyTool, parsed: unknown): string | undefined {
  if (tool.describe === undefined) return undefined;
  const said: unknown = asked('describe', () => tool.describe?.(parsed));
  if (typeof said === 'string' && said.trim() !== '' && !/[\n\r]/.test(said)) return said;
  fail(`\`describe\` gave ${isThenable(said) ? 'a promise' : shown(said)}: it gives one line of text at once, for whoever has to allow the call`);
}

function asked(what: string, ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    fail(`\`${what}\` threw: ${messageOf(error)}`);
  }
}
