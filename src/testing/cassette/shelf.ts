/** Shelf: recorded exchanges, each of which is taken once, and what was asked for in vain. */
import { LLMError } from '../../core/errors.ts';
import { CassetteError } from './errors.ts';
import type { Exchange, SentRequest } from './exchange.ts';
import type { FieldRules } from './field-rules.ts';
import { type ComparedRequest, type Difference, findDifferences, toCompared } from './match.ts';
import { missMessage } from './miss.ts';
import { readText } from './redact.ts';
import { Secrets } from './secrets.ts';

interface Place {
  readonly exchange: Exchange;
  readonly compared: ComparedRequest;
  /** In the file, 1-based. */
  readonly number: number;
  isUsed: boolean;
}

/** What is done to requests before they are compared. */
interface ShelfRules {
  readonly redact: FieldRules;
  readonly ignore: FieldRules;
}

/** Another address, or another kind of body, is further away than any number of fields. */
const FAR: ReadonlySet<string> = new Set(['method', 'url', 'body']);
const FAR_DISTANCE = 1000;

function distance(differences: readonly Difference[]): number {
  return differences.reduce((sum, { path }) => sum + (FAR.has(path) ? FAR_DISTANCE : 1), 0);
}

/** Recorded exchanges. */
export class Shelf {
  readonly #file: string;
  readonly #rules: ShelfRules;
  readonly #places: readonly Place[];
  readonly #misses: string[] = [];
  #asked = 0;

  constructor(file: string, exchanges: readonly Exchange[], rules: ShelfRules) {
    this.#file = file;
    this.#rules = rules;
    this.#places = exchanges.map((exchange, index) => ({ exchange, compared: toCompared(exchange.request, rules.ignore.apply), number: index + 1, isUsed: false }));
  }

  /**
   * The first exchange for such a request that was not taken yet.
   *
   * @param headers - All that were sent: what is secret in them is not shown.
   * @throws {@link index.LLMError | LLMError} of kind `refused`, which says what differs from the nearest.
   */
  take(request: SentRequest, headers: Headers): Exchange {
    this.#asked += 1;
    const { redact, ignore } = this.#rules;
    const asked = toCompared(request, (value, path) => ignore.apply(redact.apply(value, path), path));
    let nearest: { readonly place: Place; readonly differences: readonly Difference[] } | undefined;
    // Those that are left come first: of two that are equally near, one that can still be replayed is the one that was meant.
    for (const place of [...this.#places].sort((a, b) => Number(a.isUsed) - Number(b.isUsed))) {
      const differences = findDifferences(place.compared, asked);
      if (differences.length === 0 && !place.isUsed) {
        place.isUsed = true;
        return place.exchange;
      }
      if (nearest === undefined || distance(differences) < distance(nearest.differences)) nearest = { place, differences };
    }
    throw this.#miss(request, headers, nearest && { ...nearest.place, differences: nearest.differences });
  }

  /** @throws {@link CassetteError} if anything is left, or was asked for in vain. */
  assertDone(): void {
    const left = this.#places.filter(({ isUsed }) => !isUsed).map(({ number, exchange: { request } }) => `Recorded request ${number}, ${request.method} ${request.url}, was not made.`);
    const problems = [...this.#misses, ...left];
    if (problems.length === 0) return;
    throw new CassetteError('cassette_not_done', `The cassette ${this.#file} was not replayed as it was recorded.\n${problems.join('\n')}`);
  }

  #miss(request: SentRequest, headers: Headers, nearest: Parameters<typeof missMessage>[0]['nearest']): LLMError {
    const secrets = new Secrets();
    secrets.learnRequest(request.url, headers);
    secrets.learnText(readText(request.body).text);
    const [address = ''] = request.url.split('?');
    const message = secrets.replace(missMessage({ path: this.#file, request: `${request.method} ${address}`, number: this.#asked, nearest }));
    this.#misses.push(message);
    return new LLMError({ kind: 'refused', code: 'cassette_miss', message });
  }
}
