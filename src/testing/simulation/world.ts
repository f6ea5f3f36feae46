/**
 * World: what outlives a process in one simulated run: the seed's choices, what goes wrong when, what has become durable, and
 * what was found to be wrong.
 *
 * - The same seed and faults give the same world, to the byte. How long a boundary takes depends on its name and on how often it
 *   was used alone, so that a fault at one place does not change all others.
 * - The journal has everything that became durable, in its order, over all logs and lives.
 */
import type { RecordedEvent } from '../../core/events.ts';
import type { SessionEvent } from '../../sessions/session-store.ts';
import { isRecord } from '../../core/json.ts';
import { seededRandom } from '../seeded-random.ts';
import { type Boundary, type Fault, type FaultKind, formatFault, isCrash } from './fault.ts';
import type { SimulatedWorld } from './scenario.ts';

/** Something that broke a law, or a promise of the scenario. */
export interface Violation {
  /** Number of the law; absent for what the scenario checks itself. */
  readonly law?: number | undefined;
  /** What is wrong, naming the call, turn or request. */
  readonly message: string;
}

/** A line of a run's story. */
export interface StoryLine {
  /** Virtual time, in milliseconds. */
  readonly at: number;
  /** Who did it: a boundary, `event`, `process`, `host`, or `fault`. */
  readonly who: Boundary | 'process' | 'host' | 'fault' | 'wrong';
  /** What. */
  readonly text: string;
}

/** A use of a boundary. */
export interface Visit {
  /** Which use it is, 1-based. */
  readonly number: number;
  /** What goes wrong with it. */
  readonly fault: FaultKind | undefined;
  /** How long it takes until it begins, and until its end is told, in milliseconds; 0 for no wait at all. */
  readonly delays: readonly [before: number, after: number];
}

/** A tool call that ran in any life. */
export interface ToolRun {
  /** The key that it ran with. */
  readonly idempotencyKey: string;
  /** Whether it asked to be called again. */
  didSuspend: boolean;
}

/** What a world is told. */
export interface WorldOptions {
  /** The seed. */
  readonly seed: number;
  /** What goes wrong. */
  readonly faults: readonly Fault[];
  /** Whether nothing takes any time: the simplest of schedules. */
  readonly isCalm: boolean;
  /** Whether a story is kept. */
  readonly isTold: boolean;
}

/** Delays of a boundary, in milliseconds: mostly none, so that most of a run is ordinary. */
const DELAYS: readonly number[] = [0, 0, 0, 0, 1, 1, 2, 5, 20];

/** Characters of a line of a story. */
const STORY_LINE_LENGTH = 160;

/** The world of one run. */
export class World implements SimulatedWorld {
  readonly seed: number;
  /** What went wrong, in its order. */
  readonly fired: Fault[] = [];
  /** How often each boundary was used. */
  readonly visits: Map<Boundary, number> = new Map();
  /** What was kept, by the name of its log. */
  readonly logs: Map<string, SessionEvent[]> = new Map();
  /** Everything that became durable, as text. */
  readonly journal: string[] = [];
  /** How long the journal was when the first fault fired; undefined while none has. */
  journalAtFault: number | undefined;
  /** Tool calls that ran, by id. */
  readonly toolRuns: Map<string, ToolRun> = new Map();
  readonly violations: Violation[] = [];
  readonly story: StoryLine[] = [];
  /** Virtual time. */
  now = 0;
  /** True once the host gave up. */
  isAborted = false;
  /** True once anybody asked the runtime of a life for an id, as every turn does. */
  hasGivenId = false;
  readonly #options: WorldOptions;
  readonly #faults: Map<string, FaultKind>;
  readonly #choices: () => number;

  constructor(options: WorldOptions) {
    this.seed = options.seed;
    this.#options = options;
    this.#faults = new Map(options.faults.map((fault) => [`${fault.boundary}@${fault.at}`, fault.kind]));
    this.#choices = seededRandom(hashOf(options.seed, 'choices', 0));
  }

  random(): number {
    return this.#choices();
  }

  int(below: number): number {
    return Math.floor(this.#choices() * below);
  }

  pick<Value>(choices: readonly Value[]): Value {
    if (choices.length === 0) throw new TypeError('world.pick needs at least one choice.');
    return choices[this.int(choices.length)] as Value; // Its index is below the length.
  }

  chance(probability: number): boolean {
    return this.#choices() < probability;
  }

  /** Counts a use of a boundary, and tells what becomes of it. */
  visit(boundary: Boundary): Visit {
    const number = (this.visits.get(boundary) ?? 0) + 1;
    this.visits.set(boundary, number);
    const fault = this.#faults.get(`${boundary}@${number}`);
    if (fault !== undefined) this.#fire({ boundary, kind: fault, at: number });
    return { number, fault, delays: this.#options.isCalm ? [0, 0] : [this.#delay(boundary, number, 'before'), this.#delay(boundary, number, 'after')] };
  }

  /** A number of at least 0 and below 1 that belongs to one use of a boundary. */
  dice(boundary: Boundary, number: number): number {
    return seededRandom(hashOf(this.seed, `${boundary} dice`, number))();
  }

  /** Keeps an event that became durable. */
  keep(log: string, event: SessionEvent): void {
    this.journal.push(`${log} ${JSON.stringify(event)}`);
    this.tell('store', `${event.type} is kept${log === '' ? '' : ` in ${log}`}`);
    const events = this.logs.get(log);
    if (events === undefined) this.logs.set(log, [event]);
    else events.push(event);
  }

  /**
   * Compares what a log is opened with to what was kept. A dead process may have kept more than it was told of.
   *
   * @param covered - Events that a snapshot stands for.
   * @param events - Those behind it.
   */
  compare(log: string, covered: number, events: readonly SessionEvent[]): void {
    const kept = this.logs.get(log) ?? [];
    this.expectKept(log, kept, [...kept.slice(0, covered), ...events]);
    for (const event of events.slice(Math.max(0, kept.length - covered))) this.keep(log, event);
  }

  /** Reports what of the kept events is not among those that a log has. */
  expectKept(log: string, kept: readonly SessionEvent[], has: readonly SessionEvent[]): void {
    if (has.length < kept.length) this.report(`the log of ${log} has ${has.length} events, and ${kept.length} were kept`, 9);
    kept.forEach((event, index) => {
      // Mostly the order of keys is the same, too, and telling that is quick.
      if (event === has[index] || JSON.stringify(event) === JSON.stringify(has[index])) return;
      const [was, is] = [sortedJson(event), sortedJson(has[index])];
      if (was !== is) this.report(`event ${index} of the log of ${log} was ${was}, and is ${is}`, 9);
    });
  }

  /** What was kept of the turns of a log. */
  turnEvents(log: string): readonly RecordedEvent[] {
    return (this.logs.get(log) ?? []).filter(isOfTurn);
  }

  /** Something is wrong. */
  report(message: string, law?: number): void {
    this.violations.push({ message, ...(law !== undefined && { law }) });
    this.tell('wrong', law === undefined ? message : `law ${law}: ${message}`);
  }

  /** Adds to the story. */
  tell(who: StoryLine['who'], text: string): void {
    if (!this.#options.isTold) return;
    const line = text.replaceAll(/\s+/g, ' ');
    this.story.push({ at: this.now, who, text: line.length > STORY_LINE_LENGTH ? `${line.slice(0, STORY_LINE_LENGTH)}…` : line });
  }

  #fire(fault: Fault): void {
    this.fired.push(fault);
    this.journalAtFault ??= this.journal.length;
    this.tell('fault', `${formatFault(fault)}${isCrash(fault.kind) ? ': the process dies' : ''}`);
  }

  #delay(boundary: Boundary, number: number, when: string): number {
    const random = seededRandom(hashOf(this.seed, `${boundary} ${when}`, number));
    return DELAYS[Math.floor(random() * DELAYS.length)] ?? 0;
  }
}

/** True for an event of a turn, rather than of the session itself. */
function isOfTurn(event: SessionEvent): event is RecordedEvent {
  return event.type !== 'input.queued' && event.type !== 'input.removed' && event.type !== 'handoff';
}

/** JSON whose keys have one order: a store may have its own. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => (isRecord(member) ? Object.fromEntries(Object.entries(member).sort(([left], [right]) => (left < right ? -1 : 1))) : member)) ?? 'nothing';
}

/** A number for a seed, a word and a number. FNV-1a over the word. */
export function hashOf(seed: number, word: string, number: number): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < word.length; index += 1) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193);
  return Math.imul(hash ^ Math.imul(number + 1, 0x9e3779b1), 0x85ebca6b) | 0;
}
