/**
 * Secret names: which headers, parameters and members of a body hold what must not be in a file.
 *
 * Of members fewer are: in a body `token` may be a piece of an answer, `key` that of a map, and `signature` what a model
 * wants back.
 */
const AUTHORISES = /auth|key|token(?!s)|secret|sig(?:$|nature)|cookie|credential|pass(?:$|word|wd|phrase)|pwd|bearer|jwt|session|^code$/i;
const TELLS_WHO = /organi[sz]ation|(?:^|[-_])org(?:$|[-_])|project|(?:workspace|account|tenant)[-_]?id|cookie|request-?id|trace|correlation|cf-ray/i;
const MEMBER =
  /(?:^|-)(?:api-?key|(?:access|private|secret)-key|secret|authorization(?:-token)?|(?:access|refresh|id|auth|session|bearer)-token|jwt|bearer|password|passwd|passphrase|pwd|cookie|credentials?|request-id|org(?:ani[sz]ation)?-id)$/;

/** Whether a header or a parameter of this name is masked, however short its value is. */
export function isSecretName(name: string): boolean {
  return AUTHORISES.test(name) || TELLS_WHO.test(name);
}

/** Whether a header of an answer tells who asked, and with which request. */
export function isIdName(name: string): boolean {
  return TELLS_WHO.test(name);
}

/** Whether a text of this name is masked in a body. @param name - In any spelling: `apiKey`, `api_key`, `API-Key`. */
export function isSecretMember(name: string): boolean {
  return MEMBER.test(name.replace(/([a-z])([A-Z])/g, '$1-$2').replaceAll('_', '-').toLowerCase());
}
