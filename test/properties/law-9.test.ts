/**
 * Law 9, crash safety within a process: the record is cut after any event, and the turn goes on from there. A call
 * without `tool.start` did not run (or is `safe`) and is run; one with it but without `tool.finished` is unknown, and
 * `replay` decides; a finished call is never run again, nor finalised twice; the turn ends as it would have. Black box.
 *
 * The model of a scenario answers by step, so a turn that goes on meets the same model; time plays no part in these
 * scenarios, since a resume starts the clock of every call anew.
 */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { closeOpenTurn, createTranscript, type Message, type OpenCall, type RecordedEvent, textOf } from 'turnloop';
import { runSession, type Session } from './crash.ts';
import { expectLaws, law } from './law.ts';
import type { Play } from './play.ts';
import { brokenRules } from './protocol-rules.ts';
import { type Scenario, scenarios } from './scenario.ts';

const calm = scenarios({ calm: true, timeless: true, maxSteps: 3, maxCalls: 4 });

/**
 * Without recoveries: which of them worked is forgotten by a crash, and the model of a scenario fails at a step whatever
 * is sent, so that a recovery may then help where it was used up before.
 */
const forgetful = calm.map((scenario): Scenario => ({ ...scenario, recoveries: [] }));

/** One call after the other, of which every second ends the turn: what is skipped does not depend on time then. */
const stopping = forgetful.map(
  (scenario): Scenario => ({
    ...scenario,
    maxParallelTools: 1,
    tools: scenario.tools.map((tool, index) => (index % 2 === 0 ? tool : { ...tool, deed: 'stop' })),
  }),
);

const UNKNOWN = 'it is not known whether it took effect';

describe('law-9 crash safety', () => {
  law('law-9: after a crash behind any event each call is run, run again or reported, as its replay says', crashesOf(calm), async ([scenario, offset]) => {
    const whole = await runSession(scenario);

    for (const crashed of prefixes(whole.events, offset)) {
      const session = await runSession(scenario, crashed, whole.plays.length);
      expectSafe(crashed, { scenario, whole, session });
    }
  });

  law('law-9: after a crash behind any event the turn ends as it would have', crashesOf(forgetful), async ([scenario, offset]) => {
    const whole = await runSession(scenario);

    for (const crashed of prefixes(whole.events, offset)) {
      const session = await runSession(scenario, crashed, whole.plays.length);
      if (!loses(scenario, crashed)) expectSameEnd(session, whole);
    }
  });

  law('law-9: a crash while a crash is being recovered from is no different', fc.tuple(forgetful, fc.nat(), fc.nat()), async ([scenario, first, second]) => {
    const whole = await runSession(scenario);
    const crashedBefore = pickPrefix(whole.events, first);
    const once = await runSession(scenario, crashedBefore, 10);
    const crashed = pickPrefix(once.events, second);

    const twice = await runSession(scenario, crashed, 20);
    expectSafe(crashed, { scenario, whole: once, session: twice });
    if (!loses(scenario, crashedBefore) && !loses(scenario, crashed)) expectSameEnd(twice, whole);
  });

  law('law-9: a tool that ended the turn has ended it after a crash too', crashesOf(stopping), async ([scenario, offset]) => {
    const whole = await runSession(scenario);

    for (const crashed of prefixes(whole.events, offset)) {
      if (loses(scenario, crashed)) continue;
      const { last } = await runSession(scenario, crashed, whole.plays.length);
      expect(endOf(last)).toStrictEqual(endOf(whole.last));
    }
  });

  law('law-9: a turn may be given up after a crash behind any event', crashesOf(calm), async ([scenario, offset]) => {
    const whole = await runSession(scenario);

    for (const crashed of prefixes(whole.events, offset)) {
      const transcript = createTranscript(crashed);
      await closeOpenTurn(transcript, { runtime: whole.last.world.loopRuntime });
      expect(transcript.openTurn()).toBeUndefined();
      expect(transcript.events.at(-1)).toMatchObject({ type: 'turn.end', stopReason: 'aborted' });
      expectLaws([1, 2, 3, 9], transcript.events, { complete: true });
      expect(brokenRules(transcript.buildMessages())).toStrictEqual([]);
    }
  });
});

/** Which of the events a crash comes behind: every so many, from a different one in each run. */
const STRIDE = 4;

function crashesOf(scenario: fc.Arbitrary<Scenario>): fc.Arbitrary<[Scenario, number]> {
  return fc.tuple(scenario, fc.nat(STRIDE - 1));
}

/** Beginnings of a transcript that leave its turn open. */
function prefixes(events: readonly RecordedEvent[], offset: number): readonly (readonly RecordedEvent[])[] {
  return events.slice(1).flatMap((_, index) => (index % STRIDE === offset ? [events.slice(0, index + 1)] : []));
}

function pickPrefix(events: readonly RecordedEvent[], pick: number): readonly RecordedEvent[] {
  return events.slice(0, 1 + (pick % Math.max(1, events.length - 1)));
}

/** Every call of the open step got what the record of the crash entitles it to. */
function expectSafe(
  crashed: readonly RecordedEvent[],
  around: { readonly scenario: Scenario; readonly whole: Session; readonly session: Session },
): void {
  const { scenario, whole, session } = around;
  const first = session.plays[0]!;
  expectLaws([1, 2, 3, 9], session.events, { complete: true });
  for (const call of openCalls(crashed)) {
    const runs = first.world.runs.filter((run) => run.toolCallId === call.toolCallId);
    const replay = replayOf(scenario, call.name);
    const finalized = first.world.finalized.filter((id) => id === call.toolCallId).length;
    const finalizers = scenario.hooks.filter((hook) => hook.finalize !== undefined).length;
    if (call.result !== undefined) {
      expect([call.toolCallId, runs.length, finalized]).toStrictEqual([call.toolCallId, 0, 0]);
      expect(resultOf(session.events, call.toolCallId)).toStrictEqual(call.result);
      continue;
    }
    expect(runs.length).toBeLessThanOrEqual(1);
    // A hook that fails keeps those behind it from looking.
    if (call.suspended === undefined) expect(finalized).toBeLessThanOrEqual(finalizers);
    // A call that is suspended runs again once it is decided, whatever its replay.
    if (call.started !== true || call.suspended !== undefined) continue;
    const isGone = replay === 'never';
    if (isGone) expect(runs).toStrictEqual([]);
    if (isGone && finalizers === 0) expect(textOf(resultOf(session.events, call.toolCallId)?.content)).toContain(UNKNOWN);
    const before = whole.plays.flatMap(({ world }) => world.runs).find((run) => run.toolCallId === call.toolCallId);
    if (!isGone && before !== undefined) expect(runs.map((run) => run.idempotencyKey)).toStrictEqual([before.idempotencyKey]);
  }
}

function replayOf(scenario: Scenario, name: string): string | undefined {
  const tool = scenario.tools.find((one) => one.name === name);
  return tool === undefined ? undefined : (tool.replay ?? (tool.readOnly === true ? 'safe' : 'never'));
}

function openCalls(events: readonly RecordedEvent[]): readonly OpenCall[] {
  const step = createTranscript(events).openTurn()?.step;
  return step?.reply === undefined || step.ended !== undefined ? [] : step.calls;
}

function resultOf(events: readonly RecordedEvent[], toolCallId: string): OpenCall['result'] {
  return events.flatMap((event) => (event.type === 'tool.finished' && event.toolCallId === toolCallId ? [event.result] : [])).at(0);
}

/** The turn ended as the one that never crashed. */
function expectSameEnd(session: Session, whole: Session): void {
  expectLaws([5], session.events, { result: session.last.result });
  expect(endOf(session.last)).toStrictEqual(endOf(whole.last));
  expect(canonical(session.last)).toStrictEqual(canonical(whole.last));
}

/** True if the crash lost a call: it had started, its outcome is not known, and it must not run again. */
function loses(scenario: Scenario, crashed: readonly RecordedEvent[]): boolean {
  return openCalls(crashed).some(
    ({ name, started, suspended, result }) =>
      started === true && suspended === undefined && result === undefined && replayOf(scenario, name) === 'never',
  );
}

/** How a turn ended. What an error said is not in the record before `turn.end`, so only that there is one can be asked. */
function endOf({ result }: Play): object {
  const { stopReason, steps, text, stoppedBy, error } = result;
  return { stopReason, steps, text, stoppedBy, failed: error !== undefined };
}

/** The history with ids by order of appearance: a step that is asked again has others. */
function canonical({ transcript }: Play): readonly Message[] {
  const names = new Map<string, string>();
  const rename = (id: string): string => names.get(id) ?? names.set(id, `id${names.size}`).get(id)!;
  const text = JSON.stringify(transcript.buildMessages(), (key, value: unknown) =>
    (key === 'id' || key === 'toolCallId') && typeof value === 'string' ? rename(value.replace(/^result_/, '')) : value,
  );
  return JSON.parse(text) as Message[];
}
