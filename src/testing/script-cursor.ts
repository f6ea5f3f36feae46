/** Script cursor: where a scripted model stands in its script. */
import { isRecord } from '../core/json.ts';
import { assertReply, type RepeatedReply, type Reply, type ReplyFunction } from './reply.ts';

/** What a scripted model plays: replies in order, or a function that is asked each time. */
export type Script = readonly (Reply | RepeatedReply)[] | ReplyFunction;

/** Hands out the replies of a script, one for each request. */
export class ScriptCursor {
  readonly #script: Script;
  #position = 0;
  #repeated = 0;

  /** @throws TypeError for what is no script. */
  constructor(script: Script) {
    assertScript(script);
    this.#script = script;
  }

  /** How many replies there are in all, repetitions counted; endless ones count as none. */
  get total(): number {
    return typeof this.#script === 'function' ? 0 : countReplies(this.#script);
  }

  /** How many of them nobody has taken. */
  get left(): number {
    if (typeof this.#script === 'function') return 0;
    const [current, ...later] = this.#script.slice(this.#position);
    if (current === undefined) return 0;
    return Math.max(0, timesOf(current) - this.#repeated) + countReplies(later);
  }

  /** Takes the next reply; undefined if there is none. */
  next(): Reply | undefined {
    if (typeof this.#script === 'function') return this.#script;
    const entry = this.#script[this.#position];
    if (entry === undefined) return undefined;
    if (!isRepeated(entry)) {
      this.#position += 1;
      return entry;
    }
    if (this.#repeated < entry.times) {
      this.#repeated += 1;
      return entry.reply;
    }
    this.#repeated = 0;
    this.#position += 1;
    return this.next();
  }
}

function assertScript(script: unknown): void {
  if (typeof script === 'function') return;
  if (!Array.isArray(script)) throw new TypeError("scriptedLLM takes a list of replies, or a function of the request: scriptedLLM([toolCall('weather', { city: 'Oslo' }), 'done']).");
  script.forEach((entry: Reply | RepeatedReply, index) => assertReply(isRepeated(entry) ? entry.reply : entry, `reply ${index}`));
}

function countReplies(entries: readonly (Reply | RepeatedReply)[]): number {
  return entries.reduce<number>((sum, entry) => sum + timesOf(entry), 0);
}

function timesOf(entry: Reply | RepeatedReply): number {
  if (!isRepeated(entry)) return 1;
  return entry.times === Infinity ? 0 : entry.times;
}

function isRepeated(entry: Reply | RepeatedReply): entry is RepeatedReply {
  // An `LLMError` has a `kind` too.
  return isRecord(entry) && !(entry instanceof Error) && 'kind' in entry;
}
