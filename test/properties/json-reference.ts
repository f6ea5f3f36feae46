/**
 * JSON reference: where a text stops being JSON, found one character after the other by the grammar of RFC 8259. Written
 * without a look at `src`, and without speed in mind.
 */

/** Thrown at the first character that cannot stand where it stands. */
class Offence extends Error {
  readonly position: number;

  constructor(position: number) {
    super(`offence at ${position}`);
    this.position = position;
  }
}

/**
 * Position of the first character that no JSON text could have there, after what stands before it; the text's length if
 * the text could go on to be JSON; undefined if it is JSON.
 */
export function firstOffence(text: string): number | undefined {
  try {
    new Reader(text).document();
    return undefined;
  } catch (error) {
    if (error instanceof Offence) return error.position;
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#space();
    this.#value();
    this.#space();
    if (this.#at < this.#text.length) throw new Offence(this.#at);
  }

  get #next(): string {
    return this.#text.charAt(this.#at);
  }

  /** Takes one character, which has to be one of these. */
  #take(pattern: RegExp): string {
    if (!pattern.test(this.#next)) throw new Offence(this.#at);
    const taken = this.#next;
    this.#at += 1;
    return taken;
  }

  #space(): void {
    while (/^[ \t\n\r]$/.test(this.#next)) this.#at += 1;
  }

  #value(): void {
    switch (this.#next) {
      case '{':
        return this.#list('}', () => {
          this.#string();
          this.#space();
          this.#take(/^:$/);
          this.#space();
          this.#value();
        });
      case '[':
        return this.#list(']', () => this.#value());
      case '"':
        return this.#string();
      case 't':
        return this.#word('true');
      case 'f':
        return this.#word('false');
      case 'n':
        return this.#word('null');
      default:
        return this.#number();
    }
  }

  #list(closer: '}' | ']', entry: () => void): void {
    this.#at += 1;
    this.#space();
    if (this.#next === closer) {
      this.#at += 1;
      return;
    }
    for (;;) {
      entry();
      this.#space();
      if (this.#take(closer === '}' ? /^[,}]$/ : /^[,\]]$/) === closer) return;
      this.#space();
    }
  }

  #word(word: string): void {
    for (const letter of word) {
      if (this.#next !== letter) throw new Offence(this.#at);
      this.#at += 1;
    }
  }

  #string(): void {
    this.#take(/^"$/);
    for (;;) {
      const letter = this.#take(/^[^\u0000-\u001f]$/);
      if (letter === '"') return;
      if (letter !== '\\') continue;
      if (this.#take(/^["\\/bfnrtu]$/) !== 'u') continue;
      for (let digit = 0; digit < 4; digit += 1) this.#take(/^[0-9a-fA-F]$/);
    }
  }

  #number(): void {
    if (this.#next === '-') this.#at += 1;
    if (this.#take(/^\d$/) !== '0') this.#digits();
    if (this.#next === '.') {
      this.#at += 1;
      this.#take(/^\d$/);
      this.#digits();
    }
    if (!/^[eE]$/.test(this.#next)) return;
    this.#at += 1;
    if (/^[+-]$/.test(this.#next)) this.#at += 1;
    this.#take(/^\d$/);
    this.#digits();
  }

  #digits(): void {
    while (/^\d$/.test(this.#next)) this.#at += 1;
  }
}
