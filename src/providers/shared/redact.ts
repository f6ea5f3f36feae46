/**
 * Redaction: keeps secrets out of whatever text ends up in an error.
 *
 * A server may echo the key it refused, and a runtime may quote the address it could not reach. What is known to be
 * secret is replaced wherever it stands, and so is what stands in an address as a user or under a secret-looking name.
 */

/** Takes secrets out of texts. */
export interface Redactor {
  /** Makes a value secret from now on. Values under 4 characters stay: replacing them would only garble texts. */
  add(secret: string | undefined): void;
  /** The text without the secrets. */
  redact(this: void, text: string): string;
}

const MIN_SECRET_LENGTH = 4;
const MASK = '***';

/** Header names whose values nobody is to see. */
const SECRET_HEADER = /auth|key|token|secret|cookie|credential|signature|password/i;

const SECRET_PARAMETER = /([?&][^\s"'<>=&]*(?:key|token|secret|sig|auth|pass|credential)[^\s"'<>=&]*=)[^\s"'<>&]+/gi;
const URL_USER = /(\bhttps?:\/\/)[^\s"'<>/@]*@/gi;

/** Makes a redactor that knows no secret yet. */
export function createRedactor(): Redactor {
  const secrets = new Set<string>();
  return {
    add(secret) {
      if (secret === undefined || secret.length < MIN_SECRET_LENGTH) return;
      secrets.add(secret);
      secrets.add(encodeURIComponent(secret));
    },
    redact(text) {
      let clean = text.replace(URL_USER, '$1').replace(SECRET_PARAMETER, `$1${MASK}`);
      // The longest first: a secret may be a part of another.
      for (const secret of [...secrets].sort((a, b) => b.length - a.length)) clean = clean.replaceAll(secret, MASK);
      return clean;
    },
  };
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
