/**
 * Claude model: what a model's name says of what it takes.
 *
 * Names come with vendors' prefixes, dates and either order of family and version; versions to come do as the newest
 * known one. What is no Claude is a server compatible with the protocol.
 */

/** A Claude model. */
export interface ClaudeModel {
  /** `opus`, `sonnet`, `haiku` …; empty where the name has none. */
  readonly family: string;
  /** Major version times 100 plus minor, so that 4.10 comes after 4.9; `Infinity` where the name has none. */
  readonly version: number;
}

/** How a model is told to think. */
export interface ThinkingAbilities {
  /** `adaptive`: it decides how much; `budget`: it is given a number of tokens. */
  readonly mode: 'adaptive' | 'budget';
  /** Whether it takes a number of tokens at all. */
  readonly takesBudget: boolean;
  /** How thinking is turned off: by `thinking.type`, by saying nothing, or not at all, so that little has to do. */
  readonly off: 'disabled' | 'between_tools' | 'unset' | 'never';
  /** Whether it thinks between the calls of a turn only when a beta header asks for it. */
  readonly interleavesByHeader: boolean;
  /** Whether it refuses a temperature even when it does not think. */
  readonly refusesTemperature: boolean;
  /**
   * Whether it takes its thinking back only behind the very conversation that it came from, and can be told to leave out
   * what stands behind another.
   */
  readonly bindsThinking: boolean;
}

/** `claude-opus-4-6`, `anthropic.claude-3-5-sonnet-20240620-v1:0`, `claude-sonnet-4@20250514`, `anthropic/claude-4.6-opus`, `claude-v2:1`. */
const VERSIONED = /claude-(?:([a-z]+)-)?v?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)(?:-([a-z]+))?/i;
/** A family without later versions, by its last one. */
const ENDED_FAMILIES: ReadonlyMap<string, number> = new Map([['instant', 102]]);

/** The versions since which calls cannot be forced. */
const UNFORCED_SINCE: ReadonlyMap<string, number> = new Map([
  ['opus', 505],
  ['sonnet', 505],
  ['fable', 501],
  ['mythos', 501],
]);
/** The versions since which thinking is bound to its conversation. */
const BOUND_SINCE: ReadonlyMap<string, number> = new Map([...UNFORCED_SINCE, ['haiku', 505]]);

/** By the first version that has it, newest first. */
const OUTPUT_TOKENS: readonly (readonly [version: number, tokens: number])[] = [
  [406, 128_000],
  [307, 64_000],
  [305, 8192],
  [0, 4096],
];
/** Opus wrote less than its siblings before 4.5. */
const EARLY_OPUS_TOKENS = 32_000;
const UNKNOWN_OUTPUT_TOKENS = 128_000;

/** The Claude that a name stands for; undefined for another model. */
export function parseClaude(model: string): ClaudeModel | undefined {
  if (!/claude/i.test(model)) return undefined;
  const [, before, major, minor, after] = VERSIONED.exec(model) ?? [];
  const family = (before ?? after ?? /claude-([a-z]+)/i.exec(model)?.[1] ?? '').toLowerCase();
  const version = major === undefined ? (ENDED_FAMILIES.get(family) ?? Infinity) : Number(major) * 100 + Number(minor ?? 0);
  return { family, version };
}

/** Most tokens that a model writes in one reply; 128,000 where it is not known. */
export function outputCeiling(claude: ClaudeModel | undefined): number {
  if (claude === undefined) return UNKNOWN_OUTPUT_TOKENS;
  const { family, version } = claude;
  if (family === 'opus' && version >= 400 && version < 405) return EARLY_OPUS_TOKENS;
  return OUTPUT_TOKENS.find(([from]) => version >= from)?.[1] ?? UNKNOWN_OUTPUT_TOKENS;
}

/** How a model thinks. Compatible servers know the older way, a budget. */
export function thinkingAbilities(claude: ClaudeModel | undefined): ThinkingAbilities {
  if (claude === undefined) {
    return { mode: 'budget', takesBudget: true, off: 'disabled', interleavesByHeader: false, refusesTemperature: false, bindsThinking: false };
  }
  const { version } = claude;
  return {
    mode: version < 406 ? 'budget' : 'adaptive',
    takesBudget: version < 407,
    off: turnedOff(claude),
    interleavesByHeader: version >= 400 && version < 407,
    refusesTemperature: version >= 407,
    bindsThinking: isSince(claude, BOUND_SINCE),
  };
}

/** Whether a call can be forced upon a model. */
export function takesForcedCalls(claude: ClaudeModel | undefined): boolean {
  return claude === undefined || !isSince(claude, UNFORCED_SINCE);
}

/** Whether a model is known to be of its family's version, or a later one. */
function isSince({ family, version }: ClaudeModel, versions: ReadonlyMap<string, number>): boolean {
  return Number.isFinite(version) && version >= (versions.get(family) ?? Infinity);
}

function turnedOff({ family, version }: ClaudeModel): ThinkingAbilities['off'] {
  if (version < 406) return 'unset';
  if (family === 'fable' || family === 'mythos') return 'never';
  if (version < 505) return 'disabled';
  if (family === 'opus') return 'never';
  return family === 'sonnet' ? 'between_tools' : 'disabled';
}
