/**
 * Law 11, byte-stable prefix: within a turn, between compactions and with an unchanged tool list, the request for step
 * n+1 begins with that of step n: system prompt, tools, messages. A recovery's first use counts as a compaction. Black box.
 */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Message } from 'turnloop';
import { law } from './law.ts';
import { play, type Play } from './play.ts';
import { type ActionSpec, scenarios } from './scenario.ts';
import type { SeenRequest } from './fake-model.ts';

/** Turns of several steps, with messages that people put in between. */
const steered = fc
  .tuple(scenarios({ maxSteps: 6 }), fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 }))
  .map(([scenario, events]) => ({
    ...scenario,
    actions: [...scenario.actions, ...events.map((event): ActionSpec => ({ at: { event }, act: 'steer', target: 0 }))],
  }));

describe('law-11 byte-stable prefix', () => {
  law('law-11: each request begins with the one before it, byte for byte and message for message', steered, async (scenario) => {
    const played = await play(scenario);

    for (const [before, after] of neighbours(played)) {
      expect(after.json.slice(0, before.json.length - 1)).toBe(before.json.slice(0, -1));
      expect(sharedStart(before.request.messages, after.request.messages)).toBe(before.request.messages.length);
      expect(after.request.systemPrompt).toBe(before.request.systemPrompt);
      expect(after.request.tools).toBe(before.request.tools);
    }
  });

  law('law-11: a message that was sent is never changed afterwards', steered, async (scenario) => {
    const { requests } = await play(scenario);

    for (const { request, json } of requests) expect(JSON.stringify(request.messages)).toBe(json);
  });
});

/** Requests that follow each other with nothing between them that may change the past. */
function neighbours({ requests, dispatched }: Play): readonly (readonly [SeenRequest, SeenRequest])[] {
  const breaks = new Set<string>();
  let stepId = '';
  for (const { event } of dispatched) {
    if (event.type === 'step.begin') stepId = event.stepId;
    if (event.type === 'compaction') breaks.add(stepId);
    // The request behind it is a recovery's first: it may begin otherwise than the step's first request.
    if (event.type === 'step.retrying' && event.recovery !== undefined) breaks.add(`${event.stepId} ${event.attempt}`);
  }
  const attempts = new Map<string, number>();
  return requests.flatMap((after, index) => {
    const attempt = attempts.get(after.stepId) ?? 0;
    attempts.set(after.stepId, attempt + 1);
    const before = requests[index - 1];
    if (before === undefined) return [];
    const isCut = before.stepId === after.stepId ? breaks.has(`${after.stepId} ${attempt}`) : breaks.has(before.stepId);
    return isCut ? [] : [[before, after] as const];
  });
}

function sharedStart(left: readonly Message[], right: readonly Message[]): number {
  const end = left.findIndex((message, index) => message !== right[index]);
  return end === -1 ? left.length : end;
}
