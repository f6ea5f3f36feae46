/** Cases about aborts: whenever the signal aborts, a call ends soon, leaves nothing behind and disturbs no other. */
import { nextTask } from '../next-task.ts';
import { watchedController } from '../watched-controller.ts';
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import type { ToolCasesOf } from './tool-conformance-case.ts';
import { imageOf } from './tool-conformance-image.ts';
import type { ToolCall, ToolStage } from './tool-conformance-stage.ts';

/** How long after its beginning a call is aborted, for `abort.early`. */
const EARLY: readonly (readonly [when: string, wait: () => Promise<void> | undefined])[] = [
  ['as soon as it had begun', () => undefined],
  ['a microtask after its beginning', () => Promise.resolve()],
  ['a task after its beginning', nextTask],
];

/** Cases about aborts. */
export const toolAbortCases: ToolCasesOf<'abort'> = {
  'abort.before': {
    title: 'a call whose signal is aborted already ends at once, and does nothing (needs `inputs.long`)',
    async run(stage) {
      for (const input of stage.inputs('long')) {
        const subject = await stage.make();
        const hasState = subject.hasState;
        const before = hasState ? imageOf(await subject.state()) : undefined;
        const controller = watchedController();
        controller.abort();
        const call = await subject.start(input, controller);
        await stage.within(call.ended, `execute with ${shown(input)}, aborted before its beginning,`, true);
        if (hasState) expectEqual(imageOf(await subject.state()), before, 'what the tool may change, after a call that was aborted before its beginning');
      }
    },
  },
  'abort.early': {
    title: 'an abort right behind the beginning of a call is not missed (needs `inputs.long`)',
    async run(stage) {
      for (const input of stage.inputs('long')) {
        for (const [when, wait] of EARLY) {
          const subject = await stage.make();
          const call = await subject.start(input);
          await wait();
          call.controller.abort();
          await stage.within(call.ended, `execute with ${shown(input)}, aborted ${when},`);
        }
      }
    },
  },
  'abort.running': {
    title: 'an abort ends a call within the grace (needs `inputs.long`)',
    async run(stage) {
      for (const input of stage.inputs('long')) await abortRunning(stage, input);
    },
  },
  'abort.left': {
    title: 'a call that was aborted leaves no listener and no timer, and is silent (needs `inputs.long`)',
    async run(stage) {
      for (const input of stage.inputs('long')) {
        const call = await abortRunning(stage, input);
        await call.settle();
        const { controller, pendingTimers } = call;
        expectEqual([controller.listenerCount, pendingTimers], [0, 0], `listeners on the signal and timers on the runtime after an abort with ${shown(input)}`);
        await stage.quiet();
        if (call.toldLate > 0) fail(`it reported progress ${call.toldLate} times after it was aborted and had ended: something of it still runs`);
      }
    },
  },
  'abort.others': {
    title: 'an abort ends one call, and no other of the same tool (needs `inputs.long`)',
    async run(stage) {
      for (const input of stage.inputs('long')) {
        const subject = await stage.make();
        const [first, second, third] = [await subject.start(input), await subject.start(input), await subject.start(input)];
        await stage.quiet();
        // Neither the call that came first nor the one that came last is to be taken for that which was aborted.
        for (const [aborted, others] of [[second, [first, third]], [first, [third]]] as const) {
          aborted.controller.abort();
          await stage.within(aborted.ended, `execute with ${shown(input)}, aborted beside others,`);
          await stage.quiet();
          if (others.some(({ end }) => end !== undefined)) fail(`an abort of one call with ${shown(input)} ended another that nobody had aborted`);
        }
      }
    },
  },
};

/** Aborts a call that is under way, and gives it once it has ended. */
async function abortRunning(stage: ToolStage, input: Parameters<ToolStage['run']>[0]): Promise<ToolCall> {
  const subject = await stage.make();
  const call = await subject.start(input);
  await stage.quiet();
  if (call.end !== undefined) fail(`the call with ${shown(input)} of \`inputs.long\` had ended before it could be aborted: give arguments whose call goes on until it is aborted`);
  call.controller.abort();
  await stage.within(call.ended, `execute with ${shown(input)}, aborted while it ran,`);
  return call;
}
