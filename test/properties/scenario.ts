/**
 * Scenarios: everything a turn can meet, as plain data, and the generator of it. The one source of all property tests
 * that run turns. What a scenario looks like when it is played is `play.ts`'s business.
 *
 * Plain data on purpose: a counter-example is shrunk and printed as it is, and can be pasted into a test.
 */
import fc from 'fast-check';
import type { LLMErrorKind, StepStopReason, ToolReplay, TurnStopReason, Usage } from 'turnloop';

/**
 * How long something foreign takes: `sync` it is there at once, a number so many virtual milliseconds, `hangs` it ends
 * only when the signal aborts, `deaf` it does not end before the turn is over.
 */
export type Pace = 'sync' | 'hangs' | 'deaf' | number;

/** One access of a call: `r`/`w` and the kind of place. */
export type Touch = readonly ['r' | 'w', 'resource' | 'file' | 'tree' | 'all', string];

/** Arguments that a tool of a scenario takes. */
export interface CallInput {
  readonly n: number;
  readonly touch: readonly Touch[];
}

/** A part of a reply. */
export type PartSpec =
  | { readonly kind: 'text' | 'blank'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string; readonly signed: boolean }
  | { readonly kind: 'media' }
  | { readonly kind: 'provider' }
  | { readonly kind: 'call'; readonly tool: string; readonly inputText: string; readonly providerId?: string };

/** How an attempt of a request ends. */
export type AttemptEnd =
  | { readonly kind: 'reply'; readonly parts: readonly PartSpec[]; readonly stopReason: StepStopReason | 'auto' }
  | {
      readonly kind: 'error';
      readonly error: LLMErrorKind;
      readonly partial?: readonly PartSpec[];
      readonly stopReason?: TurnStopReason;
      readonly tellsUsage: boolean;
    }
  | { readonly kind: 'throws'; readonly sync: boolean; readonly value: 'error' | 'abort_error' | 'string' | 'nothing' }
  | { readonly kind: 'garbage'; readonly value: 'nothing' | 'no_content' | 'bad_call' | 'empty' };

/** One attempt of a request. */
export interface AttemptSpec {
  readonly pace: Pace;
  readonly deltas: 'none' | 'whole' | 'letters';
  /** Goes on streaming when nobody listens any more. */
  readonly lateDelta: boolean;
  readonly usage: Partial<Usage>;
  readonly end: AttemptEnd;
}

/** What a tool does when it has waited. */
export type ToolDeed =
  | 'text'
  | 'blank'
  | 'parts'
  | 'result'
  | 'note'
  | 'error'
  | 'throws'
  | 'garbage'
  | 'cycle'
  | 'stop'
  | 'suspend'
  | 'suspend_child'
  | 'usage';

/** A tool. */
export interface ToolSpec {
  readonly name: string;
  readonly deed: ToolDeed;
  readonly pace: Pace;
  readonly replay?: ToolReplay;
  readonly readOnly?: boolean;
  /** `declared` by the input's `touch`; `throws` if that is empty. */
  readonly accesses: 'none' | 'declared' | 'throws';
  readonly timeoutMs?: number;
  readonly progress: number;
  readonly parse: 'none' | 'sync' | 'async' | 'throws' | 'rejects';
  readonly describe: 'none' | 'says' | 'throws';
}

/** Which calls a hook is about: those whose argument text has a length of this remainder by three. */
export type CallPick = 0 | 1 | 2 | 'all';

/** A hook: what it does at each point. */
export interface HookSpec {
  readonly name: string;
  readonly before?: { readonly step: number; readonly pace: Pace; readonly act: 'block' | 'throws' | 'settings' | 'usage' | 'compact' };
  readonly prepare?: {
    readonly pick: CallPick;
    readonly pace: Pace;
    readonly act: 'rewrite' | 'rewrite_bad' | 'block' | 'answer' | 'answer_garbage' | 'same_as' | 'same_as_bad' | 'throws';
  };
  readonly authorize?: {
    readonly pick: CallPick;
    readonly pace: Pace;
    readonly act: 'allow' | 'deny' | 'edit' | 'edit_bad' | 'answer' | 'suspend' | 'throws' | 'garbage';
    readonly touch: readonly Touch[];
  };
  readonly finalize?: { readonly pick: CallPick; readonly pace: Pace; readonly act: 'look' | 'replace' | 'stop' | 'throws' | 'garbage' };
  readonly progress?: 'rewrite' | 'drop' | 'throws';
  readonly after?: { readonly step: number; readonly pace: Pace; readonly act: 'stop' | 'throws' | 'usage' };
  readonly goOn?: { readonly times: number; readonly pace: Pace; readonly act: 'message' | 'true' | 'throws' };
}

/** A recovery. */
export interface RecoverySpec {
  readonly name: string;
  readonly kinds: readonly LLMErrorKind[];
  readonly pace: Pace;
  readonly act: 'maps' | 'nothing' | 'throws' | 'drops_media';
}

/** Something that a person or a host does: after so many virtual milliseconds, or at the n-th event (1-based). */
export interface ActionSpec {
  readonly at: { readonly ms: number } | { readonly event: number };
  readonly act: 'steer' | 'steer_skip' | 'stop' | 'cancel_call' | 'abort_signal' | 'abort_control' | 'user_cancel';
  /** Which of the calls so far is cancelled. */
  readonly target: number;
}

/** A fault of something the host provides. */
export interface FaultSpec {
  /** At its n-th use, 1-based. */
  readonly at: number;
  readonly mode: 'throws' | 'rejects' | 'deaf';
}

/** Something the host provides anew for each step. */
export interface SourceSpec {
  readonly form: 'value' | 'function';
  readonly pace: Pace;
  readonly fault?: FaultSpec;
}

/** A turn and all that happens to it. */
export interface Scenario {
  readonly input: readonly string[];
  /** Attempts of each step's request; behind the last step the model says `done`. */
  readonly steps: readonly (readonly AttemptSpec[])[];
  readonly tools: readonly ToolSpec[];
  readonly hooks: readonly HookSpec[];
  readonly recoveries: readonly RecoverySpec[];
  readonly retries: number;
  readonly maxSteps?: number;
  /** Output tokens after which the turn is to end; asked after each reply. */
  readonly budget?: number;
  readonly actions: readonly ActionSpec[];
  readonly recorder: { readonly pace: Pace; readonly fault?: FaultSpec };
  readonly llm: SourceSpec;
  readonly toolList: SourceSpec;
  readonly history: SourceSpec;
  readonly deadlineMs?: number;
  readonly graceMs: number;
  readonly maxParallelTools: number;
}

/** What a generator of scenarios leaves out. */
export interface ScenarioLimits {
  /** Nothing hangs, aborts, is cancelled or steered, and nothing the host provides fails. @defaultValue false */
  readonly calm?: boolean;
  /** Nothing depends on which of several calls is faster. @defaultValue false */
  readonly timeless?: boolean;
  /** @defaultValue 4 */
  readonly maxSteps?: number;
  /** @defaultValue 6 */
  readonly maxCalls?: number;
}

/** Names that are properties of every object, beside ordinary ones. */
const TOOL_NAMES: readonly string[] = ['read', 'write', 'constructor', '__proto__', 'toString', 'run'];
const UNKNOWN_NAMES: readonly string[] = ['nope', 'hasOwnProperty', 'reads', ''];
const MS = [0, 1, 2, 5, 20] as const;
const ERROR_KINDS: readonly LLMErrorKind[] = [
  'rate_limit',
  'server',
  'network',
  'auth',
  'context_overflow',
  'invalid_history',
  'request_too_large',
  'media_rejected',
  'malformed_response',
  'refused',
  'aborted',
  'unknown',
];

/** One of these, by weight. */
function weighted<Value>(...choices: readonly (readonly [number, Value])[]): fc.Arbitrary<Value> {
  return fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));
}

/** There once for every `odds` times that it is left out. */
function rarely<Value>(arbitrary: fc.Arbitrary<Value>, odds = 3): fc.Arbitrary<Value | undefined> {
  return fc.oneof({ weight: odds, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

/** Leaves out the keys whose value is undefined: absent and undefined are not the same here. */
function compact<Value extends object>(arbitrary: fc.Arbitrary<{ [Key in keyof Value]: Value[Key] | undefined }>): fc.Arbitrary<Value> {
  return arbitrary.map((value) => Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value);
}

const delay: fc.Arbitrary<number> = fc.constantFrom(...MS);

function paces(limits: ScenarioLimits): fc.Arbitrary<Pace> {
  const quick = fc.oneof({ weight: 4, arbitrary: fc.constant<Pace>('sync') }, { weight: 4, arbitrary: delay });
  if (limits.calm === true) return quick;
  return fc.oneof({ weight: 16, arbitrary: quick }, { weight: 1, arbitrary: fc.constant<Pace>('hangs') }, { weight: 1, arbitrary: fc.constant<Pace>('deaf') });
}

/** Accesses of a call: few places, so that they often meet. */
export const touches: fc.Arbitrary<readonly Touch[]> = fc.array(
  fc.tuple(
    fc.constantFrom('r', 'w'),
    fc.constantFrom('resource', 'file', 'file', 'tree', 'tree', 'all'),
    fc.constantFrom('/a', '/a/b', '/a/b/c.txt', '/a/../a/b', '/d', '/'),
  ),
  { maxLength: 3 },
);

const goodInput = fc.tuple(fc.nat(9), touches).map(([n, touch]) => JSON.stringify({ n, touch }));
const badInput = fc.constantFrom('{"n":1', '{"n":}', 'null', '[]', '"text"', '{"n":"one"}', '{n:1}', '', ' ', '{"n":1}}', '{"__proto__":{"n":1}}');
const inputText = fc.oneof({ weight: 8, arbitrary: goodInput }, { weight: 1, arbitrary: badInput });

const callPart: fc.Arbitrary<PartSpec> = compact(
  fc.record({
    kind: fc.constant('call' as const),
    tool: fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...TOOL_NAMES) }, { weight: 1, arbitrary: fc.constantFrom(...UNKNOWN_NAMES) }),
    inputText,
    providerId: fc.option(fc.constantFrom('call_1', 'call_2', '', 'toolu/1', '__proto__'), { nil: undefined }),
  }),
);

const contentPart: fc.Arbitrary<PartSpec> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<PartSpec>({ kind: 'text', text: 'Hello.' }, { kind: 'text', text: 'Wait …' }) },
  { weight: 1, arbitrary: fc.constantFrom<PartSpec>({ kind: 'blank', text: '' }, { kind: 'blank', text: ' \n' }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('thinking' as const), text: fc.constantFrom('Hm.', ''), signed: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constantFrom<PartSpec>({ kind: 'media' }, { kind: 'provider' }) },
);

function replies(limits: ScenarioLimits): fc.Arbitrary<AttemptEnd> {
  const parts = fc
    .tuple(fc.array(contentPart, { maxLength: 2 }), fc.array(callPart, { maxLength: limits.maxCalls ?? 6 }), fc.array(contentPart, { maxLength: 1 }))
    .map((lists) => lists.flat());
  const stopReason = weighted<StepStopReason | 'auto'>(
    [14, 'auto'],
    [1, 'end_turn'],
    [1, 'tool_use'],
    [1, 'max_tokens'],
    [1, 'stop_sequence'],
    [1, 'filtered'],
    [1, 'paused'],
    [1, 'unknown'],
  );
  return fc.record({ kind: fc.constant('reply' as const), parts, stopReason });
}

const failures: fc.Arbitrary<AttemptEnd> = fc.oneof(
  {
    weight: 4,
    arbitrary: compact<AttemptEnd & { kind: 'error' }>(
      fc.record({
        kind: fc.constant('error' as const),
        error: fc.constantFrom(...ERROR_KINDS),
        partial: fc.option(fc.array(contentPart, { maxLength: 3 }), { nil: undefined }),
        stopReason: rarely(fc.constantFrom<TurnStopReason>('circuit_breaker', 'context_overflow'), 8),
        tellsUsage: fc.boolean(),
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('throws' as const),
      sync: fc.boolean(),
      value: fc.constantFrom('error', 'abort_error', 'string', 'nothing'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('garbage' as const), value: fc.constantFrom('nothing', 'no_content', 'bad_call', 'empty') }) },
);

const counters: fc.Arbitrary<Partial<Usage>> = fc
  .tuple(fc.nat(40), fc.nat(9), fc.nat(9), fc.nat(20), weighted([20, 0], [1, -5], [1, Number.NaN]))
  .map(([inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens]) => ({
    inputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    outputTokens,
    thinkingTokens,
  }));

function attempts(limits: ScenarioLimits, end: fc.Arbitrary<AttemptEnd>): fc.Arbitrary<AttemptSpec> {
  return fc.record({
    pace: paces(limits),
    deltas: fc.constantFrom('none', 'whole', 'letters'),
    lateDelta: weighted([9, false], [1, true]),
    usage: counters,
    end,
  });
}

/** The attempts of one step: mostly a reply at once; sometimes failures before it, or nothing else. */
function steps(limits: ScenarioLimits): fc.Arbitrary<readonly AttemptSpec[]> {
  const good = attempts(limits, replies(limits));
  const bad = attempts(limits, failures);
  return fc.oneof(
    { weight: 8, arbitrary: fc.tuple(good) },
    { weight: 2, arbitrary: fc.tuple(bad, good) },
    { weight: 1, arbitrary: fc.tuple(bad, bad, good) },
    { weight: 1, arbitrary: fc.tuple(bad) },
  );
}

function toolSpecs(limits: ScenarioLimits): fc.Arbitrary<readonly ToolSpec[]> {
  const deed = weighted<ToolDeed>(
    [8, 'text'],
    [1, 'blank'],
    [1, 'parts'],
    [2, 'result'],
    [1, 'note'],
    [1, 'error'],
    [1, 'throws'],
    [1, 'garbage'],
    [1, 'cycle'],
    [limits.timeless === true ? 0 : 1, 'stop'],
    [1, 'suspend'],
    [1, 'suspend_child'],
    [1, 'usage'],
  );
  const tool = (name: string): fc.Arbitrary<ToolSpec> =>
    compact(
      fc.record({
        name: fc.constant(name),
        deed,
        pace: paces(limits),
        replay: fc.option(fc.constantFrom<ToolReplay>('safe', 'idempotent', 'never'), { nil: undefined }),
        readOnly: fc.option(fc.boolean(), { nil: undefined }),
        accesses: weighted<ToolSpec['accesses']>([3, 'none'], [8, 'declared'], [1, 'throws']),
        timeoutMs: limits.timeless === true ? fc.constant(undefined) : rarely(fc.constantFrom(0, 1, 10), 4),
        progress: weighted([3, 0], [1, 1], [1, 3]),
        parse: weighted<ToolSpec['parse']>([6, 'none'], [1, 'sync'], [1, 'async'], [1, 'throws'], [1, 'rejects']),
        describe: weighted<ToolSpec['describe']>([4, 'none'], [3, 'says'], [1, 'throws']),
      }),
    );
  return fc.tuple(...TOOL_NAMES.map(tool));
}

const pick: fc.Arbitrary<CallPick> = fc.constantFrom<CallPick>(0, 1, 2, 'all');

function hookSpecs(limits: ScenarioLimits): fc.Arbitrary<readonly HookSpec[]> {
  const pace = paces(limits);
  const step = fc.integer({ min: 1, max: 3 });
  const hook = compact<HookSpec>(
    fc.record({
      name: fc.constantFrom('one', 'two'),
      before: rarely(
        fc.record({ step, pace, act: weighted([1, 'block' as const], [1, 'throws' as const], [2, 'settings' as const], [2, 'usage' as const], [2, 'compact' as const]) }),
      ),
      prepare: rarely(
        fc.record({
          pick,
          pace,
          act: fc.constantFrom('rewrite', 'rewrite_bad', 'block', 'answer', 'answer_garbage', 'same_as', 'same_as', 'same_as_bad', 'throws'),
        }),
        2,
      ),
      authorize: rarely(
        fc.record({
          pick,
          pace,
          act: weighted(
            [4, 'allow' as const],
            [1, 'deny' as const],
            [3, 'edit' as const],
            [1, 'edit_bad' as const],
            [1, 'answer' as const],
            [2, 'suspend' as const],
            [1, 'throws' as const],
            [1, 'garbage' as const],
          ),
          touch: touches,
        }),
        2,
      ),
      finalize: rarely(fc.record({ pick, pace, act: fc.constantFrom('look', 'replace', ...(limits.timeless === true ? [] : ['stop' as const]), 'throws', 'garbage') }), 2),
      progress: rarely(fc.constantFrom('rewrite', 'drop', 'throws')),
      after: rarely(fc.record({ step, pace, act: fc.constantFrom('stop', 'throws', 'usage') })),
      goOn: rarely(fc.record({ times: fc.integer({ min: 1, max: 2 }), pace, act: fc.constantFrom('message', 'true', 'throws') })),
    }),
  );
  return fc.array(hook, { maxLength: 2 });
}

function recoverySpecs(limits: ScenarioLimits): fc.Arbitrary<readonly RecoverySpec[]> {
  const recovery = fc.record({
    name: fc.constantFrom('mend', 'shrink'),
    kinds: fc.subarray([...ERROR_KINDS], { minLength: 3 }),
    pace: paces(limits),
    act: fc.constantFrom('maps', 'maps', 'nothing', 'throws', 'drops_media'),
  });
  return fc.array(recovery, { maxLength: 2 });
}

const actions: fc.Arbitrary<readonly ActionSpec[]> = fc.array(
  fc.record({
    at: fc.oneof(fc.record({ ms: fc.constantFrom(0, 1, 2, 3, 5, 8, 20, 25) }), fc.record({ event: fc.integer({ min: 1, max: 40 }) })),
    act: fc.constantFrom('steer', 'steer', 'steer_skip', 'stop', 'cancel_call', 'cancel_call', 'abort_signal', 'abort_control', 'user_cancel'),
    target: fc.nat(5),
  }),
  { maxLength: 3 },
);

const fault: fc.Arbitrary<FaultSpec> = fc.record({ at: fc.integer({ min: 1, max: 25 }), mode: fc.constantFrom('throws', 'rejects', 'deaf') });
const earlyFault: fc.Arbitrary<FaultSpec> = fc.record({ at: fc.integer({ min: 1, max: 3 }), mode: fc.constantFrom('throws', 'rejects', 'deaf') });

function sources(limits: ScenarioLimits): fc.Arbitrary<SourceSpec> {
  const pace = fc.constantFrom<Pace>('sync', 'sync', 0, 1);
  const form = fc.constantFrom<SourceSpec['form']>('value', 'value', 'function');
  return compact(fc.record({ form, pace, fault: limits.calm === true ? fc.constant(undefined) : rarely(earlyFault, 12) }));
}

/** Any scenario within the limits. */
export function scenarios(limits: ScenarioLimits = {}): fc.Arbitrary<Scenario> {
  const calm = limits.calm === true;
  const timeless = limits.timeless === true;
  return compact(
    fc.record({
      input: fc.oneof(
        { weight: 8, arbitrary: fc.constant(['Do it.']) },
        { weight: 1, arbitrary: fc.constantFrom<readonly string[]>(['Do it.', 'Now.'], ['Do it.', ' ']) },
      ),
      steps: fc.array(steps(limits), { minLength: 1, maxLength: limits.maxSteps ?? 4 }),
      tools: toolSpecs(limits),
      hooks: hookSpecs(limits),
      recoveries: recoverySpecs(limits),
      retries: fc.nat(2),
      maxSteps: rarely(fc.integer({ min: 1, max: 4 }), 4),
      budget: timeless ? fc.constant(undefined) : rarely(fc.integer({ min: 1, max: 40 }), 4),
      actions: calm ? fc.constant([]) : actions,
      recorder: calm
        ? fc.record({ pace: fc.constantFrom<Pace>('sync', 'sync', 0, 1) })
        : compact<Scenario['recorder']>(fc.record({ pace: fc.constantFrom<Pace>('sync', 'sync', 'sync', 0, 1), fault: rarely(fault, 5) })),
      llm: sources(limits),
      toolList: sources(limits),
      history: sources(limits),
      deadlineMs: calm ? fc.constant(undefined) : rarely(fc.constantFrom(0, 1, 10, 40), 4),
      graceMs: fc.constantFrom(0, 1, 4, 100),
      maxParallelTools: fc.constantFrom(1, 2, 8),
    }),
  );
}
