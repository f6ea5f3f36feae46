/**
 * Cases about calls that run to their end: what they give, what they leave behind, what they tell, alone and side by side.
 */
import { messageOf } from '../../core/errors.ts';
import { isRecord, type JsonObject } from '../../core/json.ts';
import { isTextOrMedia, textOf } from '../../core/message.ts';
import { accessesConflict, ToolAccesses, type ToolAccess } from '../../core/tool-access.ts';
import { toToolOutcome } from '../../core/tool-result.ts';
import { isSuspension, replayOf } from '../../core/tool.ts';
import { findNonJson } from '../plain-json.ts';
import { expectEqual, expectNoSecret, fail, shown } from './llm-conformance-checks.ts';
import type { ToolCasesOf } from './tool-conformance-case.ts';
import { accessesOf } from './tool-conformance-definition.ts';
import { imageOf } from './tool-conformance-image.ts';
import type { CallEnd, ToolCall, ToolStage, ToolSubject } from './tool-conformance-stage.ts';

/** Cases about whole calls. */
export const toolRunCases: ToolCasesOf<'result' | 'progress' | 'failure' | 'end' | 'calls' | 'replay' | 'secrets'> = {
  'result.content': {
    title: 'a call gives content that the loop takes: a text, parts, or a result of them',
    run: (stage) => forEachRun(stage, (end, input) => {
      if (end.kind === 'returned' && !isToolReturn(end.value)) fail(`with ${shown(input)} it gave ${shown(end.value)}, which the model is told as a failure: give a text, parts, or { content }`);
    }),
  },
  'result.success': {
    title: 'good arguments give no failure',
    run: (stage) => forEachRun(stage, (end, input) => {
      const failure = failureOf(end);
      if (failure !== undefined) fail(`with ${shown(input)} it failed: ${failure}`);
    }),
  },
  'result.json': {
    title: 'what a call gives is plain JSON: it is recorded',
    run: (stage) => forEachRun(stage, (end, input) => {
      if (end.kind === 'threw' || !isRecord(end.value)) return;
      const { content, display, note, state } = end.value;
      for (const [name, value] of Object.entries({ content, display, note, state })) {
        const nonJson = value === undefined ? undefined : findNonJson(value, name);
        if (nonJson !== undefined) fail(`with ${shown(input)}: ${nonJson}, which is lost where it is recorded`);
      }
    }),
  },
  'result.size': {
    title: 'the text of a result is within `maxResultCharacters`: what is longer is cut, in its middle',
    run: (stage) => forEachRun(stage, (end, input) => {
      const { length } = textFor(end);
      const { maxResultCharacters } = stage.options;
      if (length > maxResultCharacters) fail(`with ${shown(input)} its result has ${length} characters, more than ${maxResultCharacters}: shorten it, and set \`truncated\``);
    }),
  },

  'progress.shape': {
    title: 'what a call tells of its progress is a `ToolUpdate`, as plain JSON',
    run: (stage) => forEachCall(stage, ({ updates }) => {
      for (const update of updates) expectUpdate(update);
    }),
  },

  'failure.message': {
    title: 'a call that fails says why, by a throw or by a result with `isError` (needs `inputs.failing`)',
    async run(stage) {
      for (const input of stage.inputs('failing')) {
        const { end } = await stage.run(input);
        if (end === undefined || failureOf(end) === undefined) fail(`with ${shown(input)} it succeeded, and it should fail: the model would take it for done`);
        expectReason(end, input);
      }
    },
  },

  'end.listeners': {
    title: 'a call that has ended leaves no listener on its signal',
    run: (stage) => forEachCall(stage, async (call, input) => {
      await call.settle();
      const { listenerCount } = call.controller;
      if (listenerCount > 0) fail(`with ${shown(input)} it left ${listenerCount} listeners on \`context.signal\` (\`fetch\` leaves one: give it a signal of your own)`);
    }),
  },
  'end.timers': {
    title: 'a call that has ended leaves no timer on the runtime',
    run: (stage) => forEachCall(stage, async (call, input) => {
      await call.settle();
      if (call.pendingTimers > 0) fail(`with ${shown(input)} it left ${call.pendingTimers} timers on \`context.runtime\``);
    }),
  },
  'end.silence': {
    title: 'a call that has ended tells of no more progress, and forwards nothing',
    async run(stage) {
      const calls: ToolCall[] = [];
      for (const input of endingInputs(stage)) calls.push(await stage.run(input));
      await stage.quiet();
      for (const { toldLate } of calls) if (toldLate > 0) fail(`it reported progress ${toldLate} times after it had ended: something of it still runs`);
    },
  },

  'calls.apart': {
    title: 'calls at once do not mix, unless their `accesses` keep them apart: each gives what it gives alone',
    async run(stage) {
      const inputs = stage.inputs('good').length > 1 ? stage.inputs('good') : [...stage.inputs('good'), ...stage.inputs('good')];
      const alone = await outcomesAlone(stage, inputs);
      const subject = await stage.make();
      const isShared = await sharingOf(subject, inputs);
      const calls = await Promise.all(inputs.map((input) => subject.start(input)));
      await stage.within(Promise.all(calls.map(({ ended }) => ended)), `${calls.length} calls at once`);
      for (const [index, call] of calls.entries()) {
        if (alone[index] === undefined || isShared[index] !== true) continue;
        const beside = outcomeOf(call);
        if (beside !== alone[index]) fail(`with ${shown(inputs[index])} a call alone gave ${alone[index]}, and beside ${calls.length - 1} others ${beside}`);
      }
    },
  },

  'replay.safe': {
    title: 'a tool that is `readOnly`, or whose `replay` is `safe`, changes nothing (needs `state`)',
    async run(stage) {
      const subject = await stage.make();
      if (replayOf(subject.tool) !== 'safe') return;
      const before = imageOf(await subject.state());
      for (const input of stage.inputs('good')) await subject.run(input);
      expectEqual(imageOf(await subject.state()), before, 'what the tool may change, after calls that change nothing');
    },
  },
  'replay.idempotent': {
    title: 'a tool whose `replay` is `idempotent` does a call once, also when it is run again under the same key (needs `state`)',
    async run(stage) {
      for (const input of stage.inputs('good')) {
        const subject = await stage.make();
        if (replayOf(subject.tool) !== 'idempotent') return;
        await subject.run(input);
        const once = imageOf(await subject.state());
        const again = await subject.run(input, 'call_1');
        const failure = again.end === undefined ? undefined : failureOf(again.end);
        if (failure !== undefined) fail(`run again under the same key, the call with ${shown(input)} failed: ${failure}`);
        expectEqual(imageOf(await subject.state()), once, 'what the tool may change, after the same call was run again');
      }
    },
  },

  'secrets.results': {
    title: 'no secret is in what a call gives, tells of its progress, or describes (needs `secrets`)',
    run: (stage) => expectSecretsKept(stage, stage.inputs('good')),
  },
  'secrets.failures': {
    title: 'no secret is in what a call fails with (needs `secrets` and `inputs.failing`)',
    run: (stage) => expectSecretsKept(stage, stage.inputs('failing')),
  },
};

/** Arguments of calls that end by themselves. */
function endingInputs(stage: ToolStage): readonly JsonObject[] {
  return [...stage.inputs('good'), ...(stage.options.inputs.failing ?? [])];
}

async function forEachCall(stage: ToolStage, look: (call: ToolCall, input: JsonObject) => Promise<void> | void): Promise<void> {
  for (const input of endingInputs(stage)) await look(await stage.run(input), input);
}

async function forEachRun(stage: ToolStage, look: (end: CallEnd, input: JsonObject) => void): Promise<void> {
  for (const input of stage.inputs('good')) {
    const { end } = await stage.run(input);
    if (end !== undefined) look(end, input);
  }
}

function isToolReturn(value: unknown): boolean {
  if (isContent(value) || isSuspension(value) || value instanceof Error) return true;
  return isRecord(value) && isContent(value['content']);
}

function isContent(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every(isTextOrMedia));
}

/** What the model is told. */
function textFor(end: CallEnd): string {
  if (end.kind === 'threw') return messageOf(end.error);
  return isSuspension(end.value) ? '' : textOf(toToolOutcome(end.value, 'The tool').result.content);
}

/** What a call failed with; undefined for one that succeeded. */
function failureOf(end: CallEnd): string | undefined {
  if (end.kind === 'returned' && (isSuspension(end.value) || toToolOutcome(end.value, 'The tool').result.isError !== true)) return undefined;
  return textFor(end);
}

function expectReason(end: CallEnd, input: JsonObject): void {
  const thrown = end.kind === 'threw' ? end.error : undefined;
  if (end.kind === 'threw' && !(thrown instanceof Error)) fail(`with ${shown(input)} it threw ${shown(thrown)}: throw an Error with a message for the model`);
  const said = thrown instanceof Error ? thrown.message : textFor(end);
  if (said.trim() === '' || said.includes('[object ')) fail(`with ${shown(input)} it failed with ${shown(said)}, of which a model learns nothing`);
}

function expectUpdate(update: unknown): void {
  const nonJson = findNonJson(update, 'the update');
  if (nonJson !== undefined) fail(`it told of its progress what is not plain JSON: ${nonJson}`);
  const { kind, text, percent, data }: Record<string, unknown> = isRecord(update) ? update : {};
  const isText = typeof text === 'string';
  const isPart = typeof percent === 'number' && percent >= 0 && percent <= 100 && (isText || text === undefined);
  const isGood = kind === 'progress' ? isPart : kind === 'custom' ? data !== undefined : isText && (kind === 'stdout' || kind === 'stderr' || kind === 'status');
  if (!isGood) fail(`it told of its progress ${shown(update)}, which is no ToolUpdate, such as { kind: 'status', text } or { kind: 'progress', percent } with 0 to 100`);
}

/** How each call ends that nothing runs beside; undefined for one that differs from one time to the next, or by the calls before it. */
async function outcomesAlone(stage: ToolStage, inputs: readonly JsonObject[]): Promise<readonly (string | undefined)[]> {
  const outcomes: (string | undefined)[] = [];
  const inTurn = await stage.make();
  for (const input of inputs) {
    const [first, second, behind] = [await stage.run(input), await stage.run(input), await inTurn.run(input)].map(outcomeOf);
    outcomes.push(first === second && first === behind ? first : undefined);
  }
  return outcomes;
}

function outcomeOf({ end, updates }: ToolCall): string {
  if (end === undefined) return 'no end';
  const told = updates.length === 0 ? '' : ` and the progress ${JSON.stringify(imageOf(updates))}`;
  return end.kind === 'threw' ? `the failure ${textFor(end)}${told}` : `${JSON.stringify(imageOf(end.value))}${told}`;
}

/** Whether each call may run beside all others, by what it touches. A tool that says nothing may: its calls meet where sessions share it. */
async function sharingOf(subject: ToolSubject, inputs: readonly JsonObject[]): Promise<readonly boolean[]> {
  const touched: (readonly ToolAccess[])[] = [];
  for (const input of inputs) touched.push(accessesOf(subject.tool, await subject.parse(input)) ?? ToolAccesses.none());
  return touched.map((own, index) => touched.every((other, at) => at === index || !accessesConflict(own, other)));
}

async function expectSecretsKept(stage: ToolStage, inputs: readonly JsonObject[]): Promise<void> {
  const secrets = stage.secrets();
  for (const input of inputs) {
    const subject = await stage.make();
    const call = await subject.run(input);
    const said = call.end?.kind === 'threw' ? call.end.error : call.end?.value;
    const described: unknown = subject.tool.describe?.(await subject.parse(input));
    for (const secret of secrets) {
      for (const [what, value] of Object.entries({ 'its outcome': said, 'its progress': call.updates, 'its description': described })) {
        expectNoSecret(value, secret, `with ${shown(input)} ${what}`);
      }
    }
  }
}
