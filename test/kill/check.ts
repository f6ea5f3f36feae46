/**
 * Check: whether a session that was killed came to what the undisturbed one came to, and did nothing twice.
 *
 * Each rule gives a line for each time that it is broken, so that one run tells all that is wrong with it.
 */
import { textOf, type RecordedEvent } from 'turnloop';
import { checkTranscript } from 'turnloop/testing';
import { historyOf, labelsOf, linesOf, turnEvents, usageOf, type Play } from './play.ts';
import { UNKNOWN } from './script.ts';

/** Most sub-agents of a step, whose replies may all be under way when the process dies. */
const REPLIES_AT_ONCE = 2;

/** What is wrong with a session, in words; empty if nothing is. */
export function problemsOf(play: Play, undisturbed: Play): readonly string[] {
  const unknown = unknownLabels(play);
  return [
    ...checkHistories(play, undisturbed, unknown),
    ...checkRuns(play, unknown),
    ...checkEffects(play, undisturbed, unknown),
    ...checkReports(play, unknown),
    ...checkUsage(play),
    ...checkLaws(play),
    ...checkDisk(play),
  ];
}

/** Labels of the calls whose outcome nobody knew at a death. */
export function unknownLabels({ deaths, events, agents }: Play): ReadonlySet<string> {
  const labels = new Map([turnEvents(events), ...agents.values()].flatMap((some) => [...labelsOf(some)]));
  return new Set(deaths.flatMap(({ unknown }) => [...unknown].map((id) => labels.get(id) ?? `call ${id}`)));
}

/** The history is that of the undisturbed session, and so is that of each sub-agent. */
function checkHistories(play: Play, undisturbed: Play, unknown: ReadonlySet<string>): readonly string[] {
  const problems = differences('the history', linesOf(play.report.messages, unknown), linesOf(undisturbed.report.messages, unknown));
  problems.push(...differences('the list of sub-agents', [...play.agents.keys()].sort(), [...undisturbed.agents.keys()].sort()));
  for (const [label, events] of undisturbed.agents) {
    problems.push(...differences(`the history of ${label}`, linesOf(historyOf(play.agents.get(label) ?? []), unknown), linesOf(historyOf(events), unknown)));
  }
  if (play.report.turns !== undisturbed.report.turns) problems.push(`${play.report.turns} turns`);
  const { stopReasons, problems: beside } = play.report;
  if (stopReasons.some((reason) => reason !== 'end_turn')) problems.push(`turns ended with ${stopReasons.join(', ')}`);
  return [...problems, ...beside.map((problem) => `beside the turns: ${problem}`)];
}

function differences(what: string, found: readonly string[], expected: readonly string[]): string[] {
  const at = expected.findIndex((line, index) => line !== found[index]);
  if (at === -1 && found.length === expected.length) return [];
  const where = at === -1 ? expected.length : at;
  return [`${what} has at ${where} of ${expected.length}: ${String(found[where])}\n    instead of: ${String(expected[where])}`];
}

/** No call that had finished ran again, and none whose outcome was unknown. */
function checkRuns({ world, deaths }: Play, unknown: ReadonlySet<string>): readonly string[] {
  const problems: string[] = [];
  const runsOf = new Map<string, number>();
  for (const { process, tool, label, toolCallId } of world.runs) {
    runsOf.set(toolCallId, (runsOf.get(toolCallId) ?? 0) + 1);
    const before = deaths.slice(0, process);
    if (before.some(({ finished }) => finished.has(toolCallId))) problems.push(`${tool} ${label} had finished and ran again in process ${process}`);
    if (before.some(({ unknown: ids }) => ids.has(toolCallId))) problems.push(`${tool} ${label} had an unknown outcome and ran again in process ${process}`);
    if (tool === 'append' && runsOf.get(toolCallId) !== 1) problems.push(`append ${label} ran ${String(runsOf.get(toolCallId))} times${unknown.has(label) ? ' (unknown)' : ''}`);
  }
  return problems;
}

/** Everything was done once; an `append` of unknown outcome at most once. */
function checkEffects({ world }: Play, undisturbed: Play, unknown: ReadonlySet<string>): readonly string[] {
  const compare = (what: 'appended' | 'service'): readonly string[] => {
    const found = countsOf(world[what].map(({ label }) => label));
    const expected = new Set(undisturbed.world[what].map(({ label }) => label));
    return [...new Set([...expected, ...found.keys()])].flatMap((label) => {
      const times = found.get(label) ?? 0;
      const isRight = times === 1 ? expected.has(label) : times === 0 && what === 'appended' && unknown.has(label);
      return isRight ? [] : [`${what}: ${label} was done ${times} times`];
    });
  };
  return [...compare('appended'), ...compare('service')];
}

/** Every unknown outcome was told to the model, as one result and no more; and nothing else was said to be unknown. */
function checkReports({ report, world, agents }: Play, unknown: ReadonlySet<string>): readonly string[] {
  const histories = [report.messages, ...[...agents.values()].map(historyOf)];
  const told = histories.flatMap((messages) => {
    const labels = new Map(messages.flatMap(({ content }) => content.flatMap((part) => (part.type === 'tool_call' ? [[part.id, part.providerId ?? ''] as const] : []))));
    return messages.flatMap((message) => (message.role === 'tool' && UNKNOWN.test(textOf(message)) ? [labels.get(message.toolCallId) ?? 'nothing'] : []));
  });
  const asked = new Set(world.replies.flatMap((reply) => reply.unknown));
  return [
    ...[...countsOf(told)].flatMap(([label, times]) => (unknown.has(label) && times === 1 ? [] : [`${label} is said to be unknown ${times} times`])),
    ...[...unknown].flatMap((label) => (told.includes(label) && asked.has(label) ? [] : [`${label} was unknown, and the model was not told`])),
  ];
}

/** Usage adds up, and lacks at most the replies that were under way at a death. */
function checkUsage({ report, world, deaths, events, agents }: Play): readonly string[] {
  const problems: string[] = [];
  const recorded = usageOf(turnEvents(events));
  if (JSON.stringify(recorded) !== JSON.stringify(report.usage)) problems.push(`the session's usage is ${JSON.stringify(report.usage)}, its events say ${JSON.stringify(recorded)}`);
  if (recorded.inputTokens !== recorded.outputTokens * 10) problems.push(`usage does not add up: ${JSON.stringify(recorded)}`);
  const lost = world.replies.length - recorded.outputTokens;
  if (lost < 0 || lost > deaths.length * REPLIES_AT_ONCE) problems.push(`${world.replies.length} replies, ${recorded.outputTokens} of them counted`);
  // What a sub-agent of a sub-agent spent is counted in both.
  const ofAgents = [...agents.values()].reduce((sum, some) => sum + usageOf(some.filter((event) => !isOfChild(event))).outputTokens, 0);
  const counted = usageOf(turnEvents(events).filter(isOfChild)).outputTokens;
  if (counted < ofAgents) problems.push(`the sub-agents spent ${ofAgents}, the session counts ${counted}`);
  return problems;
}

function isOfChild(event: RecordedEvent): boolean {
  return event.type === 'usage' && event.purpose === 'child';
}

function checkLaws({ events, agents }: Play): readonly string[] {
  const check = (what: string, some: readonly RecordedEvent[]): readonly string[] =>
    checkTranscript(some, { complete: true }).map(({ law, message, index }) => `law ${law} in ${what} at ${index}: ${message}`);
  return [...check('the session', turnEvents(events)), ...[...agents].flatMap(([label, some]) => check(label, some))];
}

/** Nothing but logs, snapshots and a free lock is left. */
function checkDisk({ disk }: Play): readonly string[] {
  return [...disk.leftOvers.map((name) => `${name} is left`), ...(disk.hasSnapshot ? [] : ['there is no snapshot'])];
}

function countsOf(labels: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}
