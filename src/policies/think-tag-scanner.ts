/**
 * Think-tag scanner: tells thinking from answer in the text of a reply, however the text is cut into pieces.
 *
 * - K1 The text decides, not its pieces: any cutting gives the same thinking and the same answer, without a character lost
 *   but those of the tags and the white space before the first. A call or other thinking within a tag makes it none.
 * - K2 Only what may still become a tag is held back: white space and a part of an opening tag where the reply begins, a
 *   part of a closing tag within thinking. So nothing that comes later is told of earlier.
 * - K3 Work per piece depends on the piece and on the tags, not on what came before. Behind the thinking there is none.
 */

/** The two marks around thinking that a model writes into its answer. */
export interface ThinkTag {
  /** What stands before the thinking, such as `<think>`. */
  readonly open: string;
  /** What stands behind it, such as `</think>`. */
  readonly close: string;
}

/** How replies are read; made once per model. */
export interface ThinkTagRules {
  /** Shortest opening tag first: of two that begin alike the one that is complete first counts. */
  readonly openings: readonly Opening[];
  /** The state of a reply that does not begin with an opening tag. */
  readonly withoutTag: 'thinking' | 'text';
  /** Finds the end of thinking that no opening tag began. */
  readonly anyClosing: RegExp;
}

interface Opening {
  readonly length: number;
  readonly whole: RegExp;
  /** Matches what could become the tag. */
  readonly partial: RegExp;
  /** Finds the closing tag, as the first group, or at the end of the text what could become it. */
  readonly closing: RegExp;
}

/** Makes rules. */
export function createThinkTagRules(tags: readonly ThinkTag[], startsInside: boolean): ThinkTagRules {
  const openings = tags.map(({ open, close }): Opening => ({
    length: open.length,
    whole: new RegExp(`^${escape(open)}`, 'i'),
    partial: new RegExp(`^(?:${beginnings(open).join('|')})$`, 'i'),
    closing: closingPattern([close]),
  }));
  return {
    openings: openings.sort((a, b) => a.length - b.length),
    withoutTag: startsInside ? 'thinking' : 'text',
    anyClosing: closingPattern(tags.map(({ close }) => close)),
  };
}

/** Where thinking and answer stand in the joined text of a reply: positions, `Infinity` for what has not come. */
export interface ThinkTagRegions {
  readonly thinkingFrom: number;
  readonly thinkingTo: number;
  readonly textFrom: number;
}

/** Reads the text of one reply. */
export class ThinkTagScanner {
  readonly #rules: ThinkTagRules;
  readonly #emit: (type: 'thinking' | 'text', text: string) => void;
  #state: 'start' | 'thinking' | 'text' = 'start';
  /** White space that the reply begins with, as long as a tag may follow. */
  #blank = '';
  /** What may be a part of a tag. */
  #held = '';
  #closing: RegExp;
  /** Length of all text so far. */
  #taken = 0;
  #thinkingFrom = Infinity;
  #thinkingTo = Infinity;
  #textFrom = Infinity;

  /** @param emit - Gets the pieces, never empty, as soon as it is known what they are. */
  constructor(rules: ThinkTagRules, emit: (type: 'thinking' | 'text', text: string) => void) {
    this.#rules = rules;
    this.#closing = rules.anyClosing;
    this.#emit = emit;
  }

  /** True once all text to come is answer, and nothing is held back: there is no need to hand it over any more. */
  get isInText(): boolean {
    return this.#state === 'text';
  }

  /** True once it is known that all text of the reply is answer. */
  get isPlain(): boolean {
    return this.#textFrom === 0;
  }

  get regions(): ThinkTagRegions {
    return { thinkingFrom: this.#thinkingFrom, thinkingTo: this.#thinkingTo, textFrom: this.#textFrom };
  }

  /** Takes the next piece of the reply's text. */
  addText(text: string): void {
    this.#taken += text.length;
    if (this.#state === 'start') this.#readStart(text);
    else if (this.#state === 'thinking') this.#readThinking(text);
    else this.#send('text', text);
  }

  /** Takes note of a call: the reply has begun, and no tag will open thinking any more. What was held back is no tag. */
  addCall(): void {
    if (this.#state === 'start') this.#begin(this.#rules.withoutTag);
    this.#release();
  }

  /** Takes note of thinking that the server told apart itself: what the model writes besides is its answer. */
  addThinking(): void {
    if (this.#state === 'start') this.#begin('text');
    this.#release();
  }

  /** The reply is complete. */
  end(): void {
    this.addCall();
  }

  /** What is held back within thinking is no tag. */
  #release(): void {
    const held = this.#held;
    this.#held = '';
    this.#send('thinking', held);
  }

  #readStart(piece: string): void {
    const text = this.#held === '' ? piece.trimStart() : piece;
    this.#blank += piece.slice(0, piece.length - text.length);
    this.#held += text;
    const held = this.#held;
    if (held === '') return;
    const opening = this.#rules.openings.find(({ whole }) => whole.test(held));
    if (opening !== undefined) {
      this.#state = 'thinking';
      this.#closing = opening.closing;
      this.#thinkingFrom = this.#taken - held.length + opening.length;
      this.#held = '';
      this.#readThinking(held.slice(opening.length));
    } else if (!this.#rules.openings.some(({ partial }) => partial.test(held))) {
      this.#begin(this.#rules.withoutTag);
    }
  }

  /** Begins without a tag, with all that was held back. */
  #begin(state: 'thinking' | 'text'): void {
    const text = this.#blank + this.#held;
    this.#held = '';
    this.#state = state;
    this.#thinkingFrom = 0;
    if (state === 'thinking') {
      this.#readThinking(text);
      return;
    }
    this.#thinkingTo = 0;
    this.#textFrom = 0;
    this.#send('text', text);
  }

  #readThinking(piece: string): void {
    const text = this.#held + piece;
    this.#held = '';
    const match = this.#closing.exec(text);
    if (match === null) {
      this.#send('thinking', text);
      return;
    }
    const [found, closing] = match;
    this.#send('thinking', text.slice(0, match.index));
    if (closing === undefined) {
      this.#held = found;
      return;
    }
    this.#state = 'text';
    this.#thinkingTo = this.#taken - text.length + match.index;
    this.#textFrom = this.#thinkingTo + closing.length;
    this.#send('text', text.slice(match.index + closing.length));
  }

  #send(type: 'thinking' | 'text', text: string): void {
    if (text !== '') this.#emit(type, text);
  }
}

/** Among equals the shortest comes first, as it would in a stream. */
function closingPattern(closings: readonly string[]): RegExp {
  const whole = closings.toSorted((a, b) => a.length - b.length).map(escape);
  return new RegExp(`(${whole.join('|')})|(?:${closings.flatMap(beginnings).join('|')})$`, 'i');
}

/** Patterns of all that a tag may be cut to, but for nothing and the whole. */
function beginnings(tag: string): readonly string[] {
  return Array.from({ length: tag.length - 1 }, (_, index) => escape(tag.slice(0, index + 1)));
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
