/**
 * Secrets: takes out of texts what looks like a key. The keys are in the SDK's provider, so this room knows none of
 * them; what the host gave as a header and what stands in an address is known, and redacted as everywhere.
 */
import { addHeaderSecrets, addUrlSecrets, createRedactor } from '../shared/redact.ts';

const MASK = '***';
const AFTER_SCHEME = /\b(Bearer|Basic) +[^\s"',;<>]{4,}/gi;
/** What stands behind its name, if it holds more than digits: those may be counts of tokens. */
const AFTER_NAME = /((?:api[-_ ]?key|token|secret|password|credential)(?: provided| is)?["']? ?[:=] ?["']?)(?!\d+\b)[^\s"',;<>]{6,}/gi;
/** Keys as companies make them. */
const KEY_SHAPES = /\b(?:(?:sk|pk|rk|gsk|xai|hf|r8|pplx|vck|nvapi|tgp|csk|fw|ghp)[-_][\w-]{8,}|AIza[\w-]{16,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w.-]+)/g;

/** Takes secrets out of texts. */
export interface ErrorRedactor {
  /** Makes the query of an address secret. */
  addUrl(url: string): void;
  redact(this: void, text: string): string;
}

/** Makes a redactor. @param headers - What the host sends along. */
export function createErrorRedactor(headers: Readonly<Record<string, string>>): ErrorRedactor {
  const redactor = createRedactor();
  addHeaderSecrets(redactor, Object.entries(headers));
  return {
    addUrl(url) {
      if (URL.canParse(url)) addUrlSecrets(redactor, new URL(url));
    },
    redact: (text) =>
      redactor.redact(text).replace(AFTER_SCHEME, `$1 ${MASK}`).replace(AFTER_NAME, `$1${MASK}`).replace(KEY_SHAPES, MASK),
  };
}
