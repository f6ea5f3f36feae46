/**
 * E14: for every turn that has ended or waits, what was watched and what was recorded give the same view, but for what
 * stands under `live`. Over generated models, tools, hooks, faults and crashes. Black box.
 */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createTranscript, isRecordedEvent, type LoopEvent, type PendingCall, type RecordedEvent, type ToolCallDecision } from 'turnloop';
import { emptyTurnsView, reduceTurnsView, stepsOf, turnsOf, type TurnsView, turnsView, type TurnView } from 'turnloop/agent';
import { law } from '../properties/law.ts';
import { play } from '../properties/play.ts';
import { type Scenario, scenarios } from '../properties/scenario.ts';

/** A view of which only that is left which a record knows too. */
function withoutLive(view: TurnsView): TurnsView {
  const ofTurn = ({ live: _live, ...turn }: TurnView): TurnView => ({ ...turn, steps: turn.steps.map(ofStep), ...(turn.step && { step: ofStep(turn.step) }) });
  const ofStep = ({ live: _live, ...step }: TurnView['steps'][number]): TurnView['steps'][number] => ({
    ...step,
    items: step.items.map((item) => {
      if (item.type !== 'tool_call') return item;
      const { live: _ofCall, ...call } = item;
      return call;
    }),
  });
  return { ...view, ended: view.ended.map(ofTurn), open: view.open.map(ofTurn) };
}

interface Watched {
  /** What a listener saw, in order, over all processes. */
  readonly seen: readonly LoopEvent[];
  readonly recorded: readonly RecordedEvent[];
}

const decide = ({ toolCallId, name }: PendingCall): ToolCallDecision =>
  name.length % 2 === 0 ? { toolCallId, action: 'allow' } : { toolCallId, action: 'deny' };

/** Plays a scenario from these events on, and goes on with it while it is suspended. */
async function watch(scenario: Scenario, before: Watched = { seen: [], recorded: [] }, generation = 0): Promise<Watched> {
  const seen = [...before.seen];
  let { recorded } = before;
  for (let process = 0; process < 8; process += 1) {
    const turn = createTranscript(recorded).openTurn();
    const pending = (turn?.step?.calls ?? []).flatMap((call) => call.suspended?.pending ?? []);
    const played = await play(scenario, {
      from: recorded,
      decisions: turn?.suspended === true ? pending.map(decide) : [],
      idPrefix: `p${generation}_${process}_`,
      listener: (event) => seen.push(event),
    });
    recorded = played.transcript.events;
    if (recorded.at(-1)?.type !== 'turn.suspend') break;
  }
  return { seen, recorded };
}

function isSettled(events: readonly RecordedEvent[]): boolean {
  const last = events.at(-1)?.type;
  return last === 'turn.end' || last === 'turn.suspend';
}

describe('the view of turns', () => {
  law('E14 is the same watched and read back, once a turn has ended or waits', scenarios(), async (scenario) => {
    const { seen, recorded } = await watch(scenario);
    fc.pre(isSettled(recorded));

    expect(withoutLive(turnsView(seen))).toStrictEqual(turnsView(recorded));
  });

  law('E14 is the same after a crash at any event, for whoever went on watching', fc.tuple(scenarios({ calm: true }), fc.nat()), async ([scenario, at]) => {
    const whole = await watch(scenario);
    const seen = whole.seen.slice(0, 1 + (at % whole.seen.length));
    const recorded = seen.filter((event): event is RecordedEvent => isRecordedEvent(event));
    const after = recorded.at(-1)?.type === 'turn.end' ? { seen, recorded } : await watch(scenario, { seen, recorded }, 1);
    fc.pre(isSettled(after.recorded));

    expect(withoutLive(turnsView(after.seen))).toStrictEqual(turnsView(after.recorded));
  });

  law('E14 is never changed, and takes an event that it has seen for nothing new, but for tokens', scenarios({ maxSteps: 3 }), async (scenario) => {
    const { recorded } = await watch(scenario);

    let view = emptyTurnsView();
    for (const event of recorded) {
      const before = JSON.stringify(view);
      const next = reduceTurnsView(view, event);
      expect(JSON.stringify(view)).toBe(before);
      if (REPEATABLE.has(event.type)) expect(reduceTurnsView(next, event)).toStrictEqual(next);
      view = next;
    }
  });

  law('E14 tells what the record tells: every call with its result, every message, every step', scenarios(), async (scenario) => {
    const { recorded } = await watch(scenario);
    fc.pre(recorded.at(-1)?.type === 'turn.end');

    const [turn, ...others] = turnsOf(turnsView(recorded));
    expect(others).toStrictEqual([]);
    const steps = stepsOf(turn!);
    // A compaction changes what the model sees, not what people do.
    const messages = createTranscript(recorded.filter(({ type }) => type !== 'compaction')).buildMessages();
    const calls = steps.flatMap(({ items }) => items.filter((item) => item.type === 'tool_call'));
    const results = recorded.filter((event) => event.type === 'tool.result');
    expect(calls.map(({ toolCallId }) => toolCallId)).toStrictEqual(
      messages.flatMap(({ content }) => content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))),
    );
    expect(calls.map(({ result }) => result)).toStrictEqual(results.map(({ result }) => result));
    expect([...turn!.input, ...steps.flatMap(({ messagesAfter }) => messagesAfter)].map(({ id }) => id)).toStrictEqual(
      recorded.flatMap((event) => (event.type === 'message' ? [event.message.id] : [])),
    );
    expect(new Set(steps.map(({ step }) => step)).size).toBe(steps.length);
  });
});

/** Events that a store may hand out twice without harm. */
const REPEATABLE: ReadonlySet<string> = new Set<RecordedEvent['type']>(['turn.begin', 'step.begin', 'content.part', 'tool.call', 'tool.start', 'tool.finished', 'tool.result', 'turn.suspend', 'turn.end']);
