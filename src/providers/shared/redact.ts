/**
 * Redaction: keeps secrets out of whatever text ends up in an error.
 *
 * A server may echo the key it refused, and a runtime may quote the address it could not reach. What is known to be
 * secret is replaced wherever it stands, and so is what stands in an address as a user or under a secret-looking name.
 *
 * Whoever shortens a text redacts it first: half a secret is not found any more. Only where a text ends with the
 * beginning of one is that recognised, since a connection may break there.
 */

/** Takes secrets out of texts. */
export interface Redactor {
  /** Makes a value secret from now on. Values under 4 characters stay: replacing them would only garble texts. */
  add(secret: string | undefined): void;
  /** The text without the secrets, in whatever case: headers may be echoed in another. Takes linear time. */
  redact(this: void, text: string): string;
}

const MIN_SECRET_LENGTH = 4;
const MASK = '***';

/** Header names whose values nobody is to see. */
const SECRET_HEADER = /auth|key|token|secret|cookie|credential|signature|pass(?:word|wd|phrase)|pwd/i;

// Bounded, and over no second `?` or `#`: the texts are a server's, and may be long and made to be slow.
const SECRET_PARAMETER =
  /([?&#][^\s"'<>=&?#]{0,64}?(?:key|token|secret|sig|auth|pass|pwd|credential)[^\s"'<>=&?#]{0,64}=)[^\s"'<>&]+/gi;
const URL_USER = /(\bhttps?:\/\/)[^\s"'<>/@]*@/gi;

/** Makes a redactor that knows no secret yet. */
export function createRedactor(): Redactor {
  const secrets = new Set<string>();
  return {
    add(secret) {
      if (secret === undefined || secret.length < MIN_SECRET_LENGTH) return;
      secrets.add(secret);
      // As it stands in an address, and in JSON.
      secrets.add(encodeURIComponent(secret));
      secrets.add(JSON.stringify(secret).slice(1, -1));
    },
    redact(text) {
      let clean = text.replace(URL_USER, '$1').replace(SECRET_PARAMETER, `$1${MASK}`);
      // The longest first: a secret may be a part of another.
      const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
      for (const secret of longestFirst) clean = clean.replace(new RegExp(escapePattern(secret), 'gi'), MASK);
      const begun = Math.max(0, ...longestFirst.map((secret) => lengthAtEnd(clean, secret)));
      return begun === 0 ? clean : clean.slice(0, -begun) + MASK;
    },
  };
}

/** How much of a secret's beginning a text ends with; 0 for what is too short to tell anything. */
function lengthAtEnd(text: string, secret: string): number {
  const [end, start] = [text.slice(-secret.length).toLowerCase(), secret.toLowerCase()];
  for (let length = Math.min(end.length, start.length); length >= MIN_SECRET_LENGTH; length -= 1) {
    if (end.endsWith(start.slice(0, length))) return length;
  }
  return 0;
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Makes the values of secret headers secret; of `Bearer x` and the like also the `x`. */
export function addHeaderSecrets(redactor: Redactor, headers: Iterable<readonly [string, string]>): void {
  for (const [name, value] of headers) {
    if (!SECRET_HEADER.test(name)) continue;
    redactor.add(value);
    for (const word of value.split(/[\s;,=]+/)) redactor.add(word.length >= 8 ? word : undefined);
  }
}

/** Makes the query of an address secret, as written and decoded. */
export function addUrlSecrets(redactor: Redactor, url: URL): void {
  for (const pair of url.search.slice(1).split('&')) redactor.add(pair.slice(pair.indexOf('=') + 1));
  for (const value of url.searchParams.values()) redactor.add(value);
}
