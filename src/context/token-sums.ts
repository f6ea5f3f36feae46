/**
 * Token sums: what the messages of recent conversations come to, so that a request costs a look at what is new in it.
 *
 * A conversation that was seen is a run: its messages, and the sums up to each. A list is laid along the run that it goes
 * on with, and only what the run lacks is added up. What stands before the run may change from request to request, as
 * messages do that are built for one: sums are taken as differences.
 *
 * - S1 What was added up before changes no result, not by a bit: tokens are multiples of a step, and so are exact.
 * - S2 Conversations that take turns have a run each, also where they begin alike. How many is limited.
 * - S3 A run keeps no message alive: it goes with the message that it was made for.
 */
import type { Message } from '../core/message.ts';
import { noTokens, TOKEN_CLASSES, type TokenCounts } from './token-text.ts';

const SIZE = TOKEN_CLASSES.length;
/** Enough for the agents that share an estimator; with more, those that had none for longest are added up again. */
const KNOWN_RUNS = 16;
/** Where a list and a run are laid together: somewhere among so many of their first messages. */
const HEAD = 4;
/** Less than so many messages of a run are dropped for others. With more, it may be that another conversation has them. */
const MOST_DROPPED = 64;

/** A step so small that it is no error, and so large that sums of steps are exact up to 10^12 tokens. */
const STEPS_PER_TOKEN = 4_096;
/** No message costs more; what a host says of its media may. */
const MOST_TOKENS = 1e9;

/** Rounds tokens to steps, in place, so that they can be added and taken away in any order. */
export function inSteps(counts: TokenCounts): TokenCounts {
  for (let kind = 0; kind < SIZE; kind += 1) {
    counts[kind] = Math.min(MOST_TOKENS, Math.round((counts[kind] ?? 0) * STEPS_PER_TOKEN) / STEPS_PER_TOKEN);
  }
  return counts;
}

/** Adds tokens to others. */
export function addCounts(source: TokenCounts, target: TokenCounts): void {
  for (let kind = 0; kind < SIZE; kind += 1) target[kind] = (target[kind] ?? 0) + (source[kind] ?? 0);
}

/** Messages in a row, and their sums. */
class Run {
  /** The run goes when nothing else holds this message. */
  readonly owner: Message;
  #messages: Message[] = [];
  /** Sums up to each message, class by class, and before them those of none. */
  #sums: number[] = Array.from({ length: SIZE }, () => 0);

  constructor(owner: Message) {
    this.owner = owner;
  }

  get length(): number {
    return this.#messages.length;
  }

  /** Where in the run a message stands, if among the first. */
  indexOf(message: Message | undefined): number {
    for (let at = 0; at < HEAD && at < this.#messages.length; at += 1) if (this.#messages[at] === message) return at;
    return -1;
  }

  /** How many messages the run has in common with a list, each from an index on. */
  common(at: number, messages: readonly Message[], first: number): number {
    let common = 0;
    while (first + common < messages.length && this.#messages[at + common] === messages[first + common]) common += 1;
    return common;
  }

  push(message: Message, counts: TokenCounts): void {
    const before = this.#sums.length - SIZE;
    this.#messages.push(message);
    for (let kind = 0; kind < SIZE; kind += 1) this.#sums.push((this.#sums[before + kind] ?? 0) + (counts[kind] ?? 0));
  }

  /** Keeps only so many messages. */
  cut(length: number): void {
    this.#messages.length = length;
    this.#sums.length = (length + 1) * SIZE;
  }

  /** A run of the messages between two indices. */
  copy(owner: Message, from: number, to: number): Run {
    const run = new Run(owner);
    run.#messages = this.#messages.slice(from, to);
    run.#sums = this.#sums.slice(from * SIZE, (to + 1) * SIZE);
    return run;
  }

  /** Adds the tokens of the messages between two indices. */
  addTo(counts: TokenCounts, from: number, to: number): void {
    for (let kind = 0; kind < SIZE; kind += 1) {
      counts[kind] = (counts[kind] ?? 0) + (this.#sums[to * SIZE + kind] ?? 0) - (this.#sums[from * SIZE + kind] ?? 0);
    }
  }
}

/** How a list lies along a run: its messages from `first` on are those of the run from `at` on. */
interface Place {
  readonly run: Run;
  readonly first: number;
  readonly at: number;
}

/** Adds up lists of messages. */
export class MessageSums {
  readonly #ofMessage: (message: Message) => TokenCounts;
  /** Newest first. */
  #runs: readonly WeakRef<Run>[] = [];
  readonly #byOwner = new WeakMap<Message, Run>();

  /** @param ofMessage - Tokens of a message {@link inSteps | in steps}, always the same. */
  constructor(ofMessage: (message: Message) => TokenCounts) {
    this.#ofMessage = ofMessage;
  }

  /**
   * Tokens of a list, in an array of the caller's own.
   *
   * @param length - Of so many of its messages only. They are found in the run of the whole list.
   */
  of(messages: readonly Message[], length: number): TokenCounts {
    const counts = noTokens();
    const { run, first, at } = this.#place(messages) ?? { first: messages.length, at: 0 };
    for (const message of messages.slice(0, Math.min(first, length))) addCounts(this.#ofMessage(message), counts);
    if (length > first) run?.addTo(counts, at, at + length - first);
    return counts;
  }

  /** The place of a list along a run that has all of it. Undefined if it has only messages that no run begins with. */
  #place(messages: readonly Message[]): Place | undefined {
    const begin = messages.findIndex((message) => !isTransient(message));
    const owner = messages[begin];
    if (owner === undefined) return undefined;
    const { common = 0, ...place } = this.#find(messages, begin) ?? { run: new Run(owner), first: begin, at: 0 };
    const next = messages[place.first + common];
    const kept = place.at + common;
    if (next === undefined) return this.#remember(place);
    const isShared = place.run.length - kept > MOST_DROPPED;
    const placed = isShared ? { ...place, run: place.run.copy(next, place.at, kept), at: 0 } : place;
    if (!isShared) placed.run.cut(kept);
    for (const message of messages.slice(place.first + common)) placed.run.push(message, this.#ofMessage(message));
    return this.#remember(placed);
  }

  /** The run that has most of a list, from one of its first messages on. */
  #find(messages: readonly Message[], begin: number): (Place & { readonly common: number }) | undefined {
    let best: (Place & { readonly common: number }) | undefined;
    for (const reference of this.#runs) {
      const run = reference.deref();
      for (let first = begin; run !== undefined && first < begin + HEAD && first < messages.length; first += 1) {
        const at = run.indexOf(messages[first]);
        if (at < 0) continue;
        const common = run.common(at, messages, first);
        if (common > (best?.common ?? 0)) best = { run, first, at, common };
        if (first + common === messages.length) return best;
        break;
      }
    }
    return best;
  }

  /** Puts the run of a place first; the last of too many goes. */
  #remember(place: Place): Place {
    const { run } = place;
    if (this.#runs[0]?.deref() === run) return place;
    const others = this.#runs.filter((reference) => reference.deref() !== undefined && reference.deref() !== run);
    for (const reference of others.splice(KNOWN_RUNS - 1)) {
      const oldest = reference.deref();
      if (oldest !== undefined && this.#byOwner.get(oldest.owner) === oldest) this.#byOwner.delete(oldest.owner);
    }
    this.#runs = [new WeakRef(run), ...others];
    this.#byOwner.set(run.owner, run);
    return place;
  }
}

function isTransient(message: Message): boolean {
  return message.role === 'user' && message.transient === true;
}
