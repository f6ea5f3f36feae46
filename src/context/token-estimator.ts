/**
 * Token estimator: how many tokens a request will have, before it is sent, and how many fit.
 *
 * - E1 What costs tokens is counted: system prompt, tools with their schemas, text, thinking, calls, results. Media cost a
 *   flat figure, never the length of their bytes.
 * - E2 A message object is read once. Work per step grows with what is new, not with the history.
 * - E3 Nothing is asked of the network and no vocabulary is loaded; equal calls in equal order give equal figures.
 *
 * What it learns, it learns by `provider` and `modelId`; one estimator serves any number of turns and agents at once.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { LLM } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { Calibration } from './token-calibration.ts';
import { CountedRequests } from './token-counted.ts';
import { type EstimatedRequest, RequestCounter } from './token-history.ts';
import type { MediaTokens } from './token-message.ts';
import { type EstimatorSnapshot, readSnapshot } from './token-snapshot.ts';
import { addTextTokens, noTokens, sumOf } from './token-text.ts';
import { ObservedWindow } from './token-window.ts';

export type { EstimatedRequest } from './token-history.ts';

/** The model that an estimate is for. Every {@link index.LLM | LLM} is one. */
export interface EstimatedModel {
  /** `LLM.provider`. */
  readonly provider: string;
  /** `LLM.modelId`. */
  readonly modelId: string;
}

/** What a provider told when it refused a request; each left out where it did not tell. */
export interface OverflowFigures {
  /** Tokens that fit. */
  readonly window?: number | undefined;
  /** Tokens that the request had. */
  readonly tokens?: number | undefined;
}

/** Says how many tokens something will cost, and learns from what it did cost. */
export interface TokenEstimator {
  /** Tokens of a text, before calibration. Not a whole number. */
  estimateText(text: string): number;
  /** Tokens of a message, before calibration; counted once for each message object. Not a whole number. */
  estimateMessage(message: Message): number;
  /**
   * Tokens of messages together, before calibration: the sum of what `estimateMessage` gives, without prompt and tools. Not
   * a whole number.
   */
  estimateMessages(messages: readonly Message[]): number;
  /** Tokens of a whole request, calibrated for the model; a whole number. */
  estimateRequest(request: EstimatedRequest, model: EstimatedModel): number;
  /**
   * What estimates are multiplied with for a model, from 0.5 to 4; 1 as long as nothing is known of it. It holds for texts
   * like those observed: `estimateRequest` also knows how far the model's figure differs for other kinds of text.
   */
  factorOf(model: EstimatedModel): number;
  /**
   * Learns what a request did cost. Counts that say nothing are passed over: of less than a token, and of requests of less
   * than 50, where what providers add of their own weighs too much.
   *
   * @param inputTokens - Input, cache reads and cache writes together.
   */
  observe(request: EstimatedRequest, model: EstimatedModel, inputTokens: number): void;
  /**
   * Learns that a request was refused as larger than the window: 95 % of what it had, by the provider's count or the
   * estimate, is the most that is tried from now on, until a larger request goes through.
   *
   * A window of less than 256 tokens is none: a request so small was refused for something else, and teaches nothing.
   *
   * @param figures - What the provider told with it. A window that it names is taken as it is, if it is one.
   */
  observeOverflow(request: EstimatedRequest, model: EstimatedModel, figures?: OverflowFigures): void;
  /**
   * Tokens that fit into the model: as observed, else its `maxInputTokens`, else its `contextWindow`; undefined if none is
   * known.
   */
  windowOf(llm: Pick<LLM, 'provider' | 'modelId' | 'capabilities'>): number | undefined;
  /** What was learned so far, as plain JSON, for `createTokenEstimator({ snapshot })`. */
  snapshot(): EstimatorSnapshot;
}

/** Options of {@link createTokenEstimator}. */
export interface TokenEstimatorOptions {
  /**
   * Tokens of a medium, whatever its size: a figure for all, or by MIME type.
   *
   * @defaultValue 1,500, about what providers charge for a picture of a megapixel
   */
  readonly mediaTokens?: number | ((mediaType: string) => number) | undefined;
  /**
   * What an estimator has learned before, also straight from disk. It is advice: entries that are damaged, and snapshots
   * of another version, are left out, and their models are learned anew.
   */
  readonly snapshot?: EstimatorSnapshot | undefined;
}

const OPTIONS: Readonly<Record<keyof TokenEstimatorOptions, true>> = { mediaTokens: true, snapshot: true };
const CALL = { taker: 'createTokenEstimator', example: 'createTokenEstimator({ mediaTokens: 1_500 })' };
const MEDIA_TOKENS = 1_500;
const LEAST_OBSERVED = 50;

/**
 * Makes an estimator: tokens of texts, messages and requests within a few per cent for prose, Chinese, code and JSON, at
 * once for tokenizers like OpenAI's, after some requests for others.
 *
 * @throws TypeError if `mediaTokens` is neither a number of at least 0 nor a function, if `snapshot` is no snapshot at all,
 *   and for an option that does not exist.
 *
 * @example
 * ```ts
 * const estimator = createTokenEstimator();
 * const tokens = estimator.estimateRequest(request, llm);
 * const { usage } = await llm.chat(request);
 * estimator.observe(request, llm, usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens);
 * ```
 */
export function createTokenEstimator(options: TokenEstimatorOptions = {}): TokenEstimator {
  assertOptions(options, OPTIONS, CALL);
  const { mediaTokens = MEDIA_TOKENS, snapshot } = options;
  if (typeof mediaTokens !== 'function') assertNumbers({ mediaTokens }, { mediaTokens: { least: 0 } }, CALL);
  const counter = new RequestCounter(typeof mediaTokens === 'function' ? checkedTokens(mediaTokens) : () => mediaTokens);
  const models = new Models(snapshot);

  function learn({ calibration, counted }: KnownModel, request: EstimatedRequest, tokens: number): void {
    const counts = counter.ofRequest(request);
    if (!isTelling(sumOf(counts), tokens)) return;
    calibration.observe({ counts, tokens }, counted.before(request, counter));
    counted.add(request, { counts, tokens });
  }

  return {
    estimateText: (text) => {
      const counts = noTokens();
      addTextTokens(text, counts);
      return sumOf(counts);
    },
    estimateMessage: (message) => sumOf(counter.ofMessage(message)),
    estimateMessages: (messages) => messages.reduce((sum, message) => sum + sumOf(counter.ofMessage(message)), 0),
    estimateRequest: (request, model) => {
      const counts = counter.ofRequest(request);
      return Math.ceil(sumOf(counts) * (models.get(model)?.calibration.factorFor(counts) ?? 1));
    },
    factorOf: (model) => models.get(model)?.calibration.factor ?? 1,
    observe: (request, model, inputTokens) => {
      if (!isCount(inputTokens)) return;
      const known = models.open(model);
      known.window.fit(inputTokens);
      learn(known, request, inputTokens);
    },
    observeOverflow: (request, model, { window, tokens } = {}) => {
      const known = models.open(model);
      if (isCount(tokens)) learn(known, request, tokens);
      const counts = counter.ofRequest(request);
      const refused = isCount(tokens) ? tokens : sumOf(counts) * known.calibration.factorFor(counts);
      known.window.refuse(refused, window);
    },
    windowOf: (llm) => {
      const declared = llm.capabilities?.maxInputTokens ?? llm.capabilities?.contextWindow;
      const known = models.get(llm);
      return known === undefined ? declared : known.window.within(declared);
    },
    snapshot: () => models.snapshot(),
  };
}

/** A host's figures, which are asked for in the middle of a turn: what is no count becomes the default. */
function checkedTokens(mediaTokens: (mediaType: string) => number): MediaTokens {
  return (mediaType) => {
    const tokens = mediaTokens(mediaType);
    return Number.isFinite(tokens) && tokens >= 0 ? tokens : MEDIA_TOKENS;
  };
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value) && value >= 1;
}

/** A count of a tenth or of the tenfold is no tokenizer, but something else that was counted. */
function isTelling(estimated: number, counted: number): boolean {
  return estimated >= LEAST_OBSERVED && counted > estimated / 10 && counted < estimated * 10;
}

/** What is known of a model. */
interface KnownModel {
  readonly provider: string;
  readonly modelId: string;
  readonly calibration: Calibration;
  readonly window: ObservedWindow;
  readonly counted: CountedRequests;
}

/** Models by provider and id. Names are data: they are keys of maps only. */
class Models {
  readonly #byProvider = new Map<string, Map<string, KnownModel>>();

  constructor(snapshot: unknown) {
    for (const { provider, modelId, calibration, window } of readSnapshot(snapshot)) {
      this.#set({ provider, modelId, calibration: new Calibration(calibration), window: new ObservedWindow(window), counted: new CountedRequests() });
    }
  }

  get({ provider, modelId }: EstimatedModel): KnownModel | undefined {
    return this.#byProvider.get(provider)?.get(modelId);
  }

  /** The model, with nothing known of it if it is new. */
  open(model: EstimatedModel): KnownModel {
    const { provider, modelId } = model;
    const known = this.get(model);
    if (known !== undefined) return known;
    return this.#set({ provider, modelId, calibration: new Calibration(), window: new ObservedWindow(), counted: new CountedRequests() });
  }

  snapshot(): EstimatorSnapshot {
    const models = [...this.#byProvider.values()].flatMap((byId) => [...byId.values()]);
    return {
      version: 1,
      models: models.map(({ provider, modelId, calibration, window }) => ({
        provider,
        modelId,
        calibration: calibration.state,
        window: window.state,
      })),
    };
  }

  #set(model: KnownModel): KnownModel {
    const byId = this.#byProvider.get(model.provider) ?? new Map<string, KnownModel>();
    this.#byProvider.set(model.provider, byId.set(model.modelId, model));
    return model;
  }
}
