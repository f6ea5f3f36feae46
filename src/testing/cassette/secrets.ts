/**
 * Secrets: values that must not be in a file, wherever they stand.
 *
 * - What is secret by its name (headers that authorise, cookies, ids of an organisation or a request, parameters that hold
 *   a key) is learned as it passes, and then replaced in every address, header and body.
 * - What looks like a key or an id of the large providers is replaced without having been seen: their errors name
 *   organisations that no header tells of, and people paste keys into prompts.
 * - A value under 8 characters is masked where its name stands, and left alone elsewhere: replacing `test` in every text
 *   would only garble them.
 */
import { splitUrl } from './exchange.ts';
import { MASK } from './field-rules.ts';

const MIN_LENGTH = 8;
const SECRET_NAME = /auth|key|token|secret|sig(?:$|nature)|cookie|credential|pass(?:$|word|wd|phrase)|pwd/i;
const ID_NAME = /organi[sz]ation|project|cookie|request-?id|trace|correlation|cf-ray/i;

const KNOWN_SHAPES = /\b(?:sk-[\w-]{20,}|AIza[\w-]{30,}|(?:org|proj)[-_][A-Za-z0-9]{16,}|req_[A-Za-z0-9]{16,})/g;

/** What is known to be secret. */
export class Secrets {
  readonly #values = new Set<string>();

  /** Learns from what a client sends. */
  learnRequest(url: string, headers: Headers): void {
    for (const [name, value] of splitUrl(url).parameters) if (isSecretName(name)) this.#learn(value);
    for (const [name, value] of headers) if (isSecretName(name)) this.#learnHeader(value);
  }

  /** Learns from what a server sends. Of a server's headers, many that hold `token` are about tokens of text. */
  learnResponse(headers: Headers): void {
    // Behind the first `;` of a cookie stands what a body may hold as well: a domain, `HttpOnly`.
    for (const [name, value] of headers) if (ID_NAME.test(name)) this.#learnHeader(name === 'set-cookie' ? (value.split(';')[0] ?? '') : value);
  }

  /** The text without them, in whatever case; also without the beginning of one that the text ends in. */
  replace(text: string): string {
    // The longest first: a secret may be a part of another.
    const longestFirst = [...this.#values].sort((a, b) => b.length - a.length);
    let clean = text.replace(KNOWN_SHAPES, MASK);
    for (const secret of longestFirst) clean = clean.replace(new RegExp(secret.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'gi'), MASK);
    const begun = Math.max(0, ...longestFirst.map((secret) => lengthAtEnd(clean, secret)));
    return begun === 0 ? clean : clean.slice(0, -begun) + MASK;
  }

  /** `Bearer KEY`, `Basic KEY`, `name=VALUE; name=VALUE`: the whole, and each value. */
  #learnHeader(value: string): void {
    this.#learn(value);
    for (const word of value.split(/[\s,;]+/)) {
      this.#learn(word);
      this.#learn(word.slice(word.indexOf('=') + 1));
    }
  }

  #learn(secret: string): void {
    // As it stands in an address, and in JSON.
    for (const form of [secret, decodeLoosely(secret), encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
      if (form.length >= MIN_LENGTH) this.#values.add(form);
    }
  }
}

/** Whether a value of this name is masked, however short it is. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) || ID_NAME.test(name);
}

function decodeLoosely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function lengthAtEnd(text: string, secret: string): number {
  const [end, start] = [text.slice(-secret.length).toLowerCase(), secret.toLowerCase()];
  for (let length = Math.min(end.length, start.length); length >= MIN_LENGTH; length -= 1) {
    if (end.endsWith(start.slice(0, length))) return length;
  }
  return 0;
}
