/**
 * Secrets: values that must not be in a file, wherever they stand.
 *
 * - What is secret by its name is learned as it passes, and then replaced in every address, header and body, also where it
 *   is written in JSON, base64 or hex. Names are those of headers and parameters that authorise or tell who asks, and of
 *   members of a body that can be nothing else (`secret-names.ts`).
 * - A value stands behind its name in any text: whole JSON, JSON that was cut off, JSON in a text of JSON, addresses, forms.
 * - What looks like a key or an id of the large providers is replaced without having been seen: their errors name
 *   organisations that no header tells of, and people paste keys into prompts.
 * - A value under 8 characters is masked where its name stands, and left alone elsewhere: replacing `test` in every text
 *   would only garble them.
 */
import { splitUrl } from './exchange.ts';
import { MASK } from './field-rules.ts';
import { isIdName, isSecretMember, isSecretName } from './secret-names.ts';

const MIN_LENGTH = 8;
const KNOWN_SHAPES = /\b(?:sk-[\w-]{20,}|AIza[\w-]{30,}|(?:org|proj)[-_][A-Za-z0-9]{16,}|req_[A-Za-z0-9]{16,})/g;
/** The name of a member and the beginning of its text, with as many backslashes as JSON within JSON has. */
const MEMBER = /(\\*)"([\w.-]{2,64})\1"\s*:\s*\1"/g;
/** A parameter of an address, and of a form. */
const PARAMETER = /(?<=[?&])([\w.~%+-]{2,64})=([^&#\s"'<>\\]+)/g;
const FIELD = /(?<=^|&)([\w.~%+-]{2,64})=([^&]+)/g;
/** A text that is a form: nothing else has such a shape from its beginning to its end. */
const FORM = /^[\w.~%+*[\]-]+=[\w.~%+*/=-]*(?:&[\w.~%+*[\]-]+=[\w.~%+*/=-]*)*$/;
const NOTHING = /(?!)/g;

/** What is known to be secret. */
export class Secrets {
  readonly #values = new Set<string>();
  /** All values, the longest first: a secret may be a part of another. Absent once there are more. */
  #known: { readonly pattern: RegExp; readonly values: readonly string[] } | undefined;

  /** Learns from what a client sends. */
  learnRequest(url: string, headers: Headers): void {
    for (const [name, value] of splitUrl(url).parameters) if (isSecretName(name)) this.#learn(value);
    for (const [name, value] of headers) if (isSecretName(name)) this.#learnHeader(value);
  }

  /** Learns from what a server sends. Of a server's headers, many that hold `token` are about tokens of text. */
  learnResponse(headers: Headers): void {
    // Behind the first `;` of a cookie stands what a body may hold as well: a domain, `HttpOnly`.
    for (const [name, value] of headers) if (isIdName(name)) this.#learnHeader(name === 'set-cookie' ? (value.split(';')[0] ?? '') : value);
  }

  /** Learns from a body, of either. */
  learnText(text: string): void {
    replaceNamed(text, (value) => {
      // A scheme and its key, as in a header; of a sentence each word is no secret.
      if (/^\w+ \S+$/.test(value)) this.#learnHeader(value);
      else this.#learn(value);
      return value;
    });
  }

  /** The text without them, in whatever case; also without the beginning of one that the text ends in. */
  replace(text: string): string {
    const { pattern, values } = (this.#known ??= this.#compile());
    const clean = replaceNamed(text, () => MASK).replace(KNOWN_SHAPES, MASK).replace(pattern, MASK);
    const begun = Math.max(0, ...values.map((secret) => lengthAtEnd(clean, secret)));
    return begun === 0 ? clean : clean.slice(0, -begun) + MASK;
  }

  #compile(): { readonly pattern: RegExp; readonly values: readonly string[] } {
    const values = [...this.#values].sort((a, b) => b.length - a.length);
    const pattern = values.length === 0 ? NOTHING : new RegExp(values.map((secret) => secret.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|'), 'gi');
    return { pattern, values };
  }

  /** `Bearer KEY`, `ApiKey ID:KEY`, `Basic …`, `name="VALUE"; name=VALUE`: the whole, and each value. */
  #learnHeader(value: string): void {
    this.#learn(value);
    for (const word of value.split(/[\s,;]+/)) {
      this.#learn(word);
      this.#learn(word.slice(word.indexOf('=') + 1).replace(/^"|"$/g, ''));
      this.#learn(word.slice(word.indexOf(':') + 1));
    }
    const [, basic] = /^basic\s+([\w+/=-]+)$/i.exec(value) ?? [];
    if (basic !== undefined) this.#learnHeader(Buffer.from(basic, 'base64').toString('latin1'));
  }

  #learn(secret: string): void {
    if (secret.length < MIN_LENGTH) return;
    const [inJson, bytes] = [JSON.stringify(secret).slice(1, -1), Buffer.from(secret)];
    const inAddresses = [decodeLoosely(secret), encodeURIComponent(secret)];
    const inBytes = [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
    for (const form of [secret, inJson, JSON.stringify(inJson).slice(1, -1), ...inAddresses, ...inBytes]) {
      if (form.length >= MIN_LENGTH) this.#values.add(form);
    }
    this.#known = undefined;
  }
}

/** Changes each value that stands behind a secret name. */
function replaceNamed(text: string, change: (value: string) => string): string {
  const parts: string[] = [];
  let end = 0;
  for (const match of text.matchAll(MEMBER)) {
    const [begin, slashes = '', name = ''] = match;
    if (match.index < end || !isSecretMember(name)) continue;
    const start = match.index + begin.length;
    parts.push(text.slice(end, start));
    end = endOfText(text, start, slashes);
    parts.push(change(text.slice(start, end)));
  }
  parts.push(text.slice(end));
  return parts.join('').replace(FORM.test(text) ? FIELD : PARAMETER, (pair, name: string, value: string) => (isSecretName(name) ? `${name}=${change(value)}` : pair));
}

/** Where a text of JSON ends: at a quote with these backslashes and no more; at the end of all for one that was cut off. */
function endOfText(text: string, start: number, slashes: string): number {
  for (let at = text.indexOf('"', start); at !== -1; at = text.indexOf('"', at + 1)) {
    let first = at;
    while (first > start && text[first - 1] === '\\') first -= 1;
    // Of the backslashes before a quote, each pair is one of the text itself.
    const own = at - first - slashes.length;
    if (own >= 0 && own % (2 * slashes.length + 2) === 0) return at - slashes.length;
  }
  return text.length;
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
