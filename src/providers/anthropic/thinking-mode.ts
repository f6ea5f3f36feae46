/**
 * Thinking mode: how a request tells the model to think.
 *
 * The settings are made of the options once. What a request cannot have together with thinking (a forced call, a limit
 * that leaves no room, a reply in work that does not start with thinking) turns it off for that request: the server would
 * refuse it.
 *
 * Newer models may refuse thinking whose conversation was changed before it, as a reminder for one request or a compaction
 * does. They can be told to leave it out, which is not done unless they did refuse: told so, they leave it out for everyone,
 * also for accounts whose thinking they would have taken.
 */
import type { JsonObject } from '../../core/json.ts';
import type { ToolChoice } from '../../core/llm.ts';
import { type ClaudeModel, type ThinkingAbilities, thinkingAbilities } from './claude-model.ts';

/** The options that say how to think. */
export interface ThinkingOptions {
  /**
   * How hard the model thinks. Models that decide themselves how much they think get it word for word; older models, and
   * servers compatible with the protocol, get a budget: `low` 2,048 tokens, `medium` 8,192, `high` 16,384, `xhigh` 24,576,
   * `max` 32,768.
   *
   * @defaultValue the model's own: newer models think, older ones do not
   */
  readonly thinkingEffort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | (string & {}) | undefined;
  /**
   * Most tokens of thinking in a reply, for models that take such a number: all up to Claude 4.6, which take no less than
   * 1,024. Where it would leave no room for the answer it is half of what the reply may have, or nothing below 1,024.
   *
   * @defaultValue what `thinkingEffort` says
   */
  readonly thinkingBudget?: number | undefined;
  /**
   * Overrides what the model's name says of how it thinks: `adaptive`, as much as it sees fit, or `budget`. `off` is for
   * no thinking at all, whatever the other options say; models that always think then think little.
   *
   * @defaultValue by the model's name, once an effort or a budget is given; else nothing is said
   */
  readonly thinkingMode?: 'adaptive' | 'budget' | 'off' | undefined;
  /** Whether thinking can be read, or comes with its signature alone. @defaultValue the model's; newer ones omit it */
  readonly thinkingDisplay?: 'summarized' | 'omitted' | undefined;
}

/** What a request gets to say of thinking. */
export interface ThinkingFields {
  /** The field `thinking`; undefined to leave it out. */
  readonly thinking?: JsonObject | undefined;
  /** For `output_config`; undefined to leave it out. */
  readonly effort?: string | undefined;
}

/** What of a request bears on thinking. */
export interface ThinkingRequest {
  /** Most tokens of the reply. */
  readonly maxTokens: number;
  readonly toolChoice: ToolChoice;
  /** Whether the history has a reply in work that does not start with thinking, and the server refuses that. */
  readonly hasBareReply: boolean;
  /** Whether to tell the model to leave out thinking of another conversation, if it takes that. */
  readonly dropsUnbound: boolean;
}

/** How an adapter thinks. */
export interface ThinkingSettings {
  /** Whether older models need a header to think between calls. */
  readonly needsInterleavedHeader: boolean;
  /** Whether requests can tell the model to leave out thinking of another conversation. */
  readonly takesBinding: boolean;
  /** Whether a request may have a temperature of its own. @param fields - What it says of thinking. */
  readonly takesTemperature: (fields: ThinkingFields) => boolean;
  /** What a request says. */
  readonly fieldsFor: (request: ThinkingRequest) => ThinkingFields;
}

const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 24_576],
  ['max', 32_768],
]);
const MIN_BUDGET = 1024;

/**
 * Makes the settings of the options.
 *
 * @throws TypeError for options that do not go together, or that the model does not take.
 */
export function thinkingSettings(options: ThinkingOptions, claude: ClaudeModel | undefined): ThinkingSettings {
  const abilities = thinkingAbilities(claude);
  const unboundFields = requestFields(options, abilities, claude !== undefined);
  // Without up-front thinking there is nothing to tell it by.
  const takesBinding = abilities.bindsThinking && (modeOf(options, abilities) !== 'off' || abilities.off === 'never');
  return {
    fieldsFor(request) {
      const fields = unboundFields(request);
      return takesBinding && request.dropsUnbound ? withBinding(fields) : fields;
    },
    takesBinding,
    needsInterleavedHeader: abilities.interleavesByHeader && modeOf(options, abilities) === 'budget',
    takesTemperature: ({ thinking }) => !abilities.refusesTemperature && (thinking === undefined || thinking['type'] === 'disabled'),
  };
}

function modeOf(options: ThinkingOptions, abilities: ThinkingAbilities): 'adaptive' | 'budget' | 'off' | 'unset' {
  const { thinkingMode, thinkingEffort, thinkingBudget, thinkingDisplay } = options;
  if (thinkingMode !== undefined) return thinkingMode;
  if (thinkingBudget !== undefined) return 'budget';
  if (thinkingEffort !== undefined) return abilities.mode;
  // Models that think unasked can be told how to show it.
  return thinkingDisplay !== undefined && abilities.mode === 'adaptive' ? 'adaptive' : 'unset';
}

function requestFields(options: ThinkingOptions, abilities: ThinkingAbilities, isClaude: boolean): ThinkingSettings['fieldsFor'] {
  const mode = modeOf(options, abilities);
  const { thinkingEffort: effort, thinkingDisplay: display } = options;
  const shown = display === undefined ? {} : { display };
  const off = offFields(abilities, effort);
  switch (mode) {
    case 'unset':
      return () => ({});
    case 'off':
      return () => off;
    case 'adaptive': {
      const on = { thinking: { type: 'adaptive', ...shown }, effort };
      // Some models take no high effort while they do not think.
      const instead = abilities.off === 'never' ? on : off;
      return ({ toolChoice }) => (isForced(toolChoice) ? instead : on);
    }
    case 'budget': {
      const wanted = budgetOf(options, abilities, isClaude);
      // An effort beside a budget is meant as one; without a budget it has become one.
      const ownEffort = options.thinkingBudget === undefined ? undefined : effort;
      return ({ maxTokens, toolChoice, hasBareReply }) => {
        const budget = wanted < maxTokens ? wanted : Math.floor(maxTokens / 2);
        if (budget < Math.min(wanted, MIN_BUDGET) || isForced(toolChoice) || hasBareReply) return off;
        return { thinking: { type: 'enabled', budget_tokens: budget, ...shown }, effort: ownEffort };
      };
    }
  }
}

/** Fields that also tell the model to leave out thinking of another conversation. Unless told otherwise it thinks as it sees fit. */
function withBinding(fields: ThinkingFields): ThinkingFields {
  const { thinking = { type: 'adaptive' } } = fields;
  if (thinking['type'] !== 'adaptive') return fields;
  return { ...fields, thinking: { ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } } };
}

/** No thinking; of models that always think, little. */
function offFields({ off }: ThinkingAbilities, effort: string | undefined): ThinkingFields {
  switch (off) {
    case 'unset':
      return {};
    case 'never':
      return { effort: effort ?? 'low' };
    case 'disabled':
    case 'between_tools':
      return { thinking: { type: off } };
  }
}

function budgetOf({ thinkingBudget, thinkingEffort, thinkingMode }: ThinkingOptions, { takesBudget }: ThinkingAbilities, isClaude: boolean): number {
  if (!takesBudget && thinkingMode !== 'budget') {
    throw new TypeError(
      'anthropic: this model decides itself how much it thinks, and takes no `thinkingBudget`: give a `thinkingEffort` such as `high`, or `thinkingMode: \'budget\'` to send it all the same.',
    );
  }
  const budget = thinkingBudget ?? BUDGETS.get(thinkingEffort ?? 'medium');
  if (budget === undefined) {
    const known = [...BUDGETS.keys()].join(', ');
    throw new TypeError(`anthropic: this model takes a budget, and there is none for \`thinkingEffort\` "${String(thinkingEffort)}". It takes ${known}; or give a \`thinkingBudget\` in tokens.`);
  }
  const least = isClaude ? MIN_BUDGET : 1;
  if (!Number.isSafeInteger(budget) || budget < least) {
    throw new TypeError(`anthropic: \`thinkingBudget\` must be a number of tokens, such as 8192, and at least ${least}. For no thinking give \`thinkingMode: 'off'\`.`);
  }
  return budget;
}

function isForced(choice: ToolChoice): boolean {
  return choice === 'required' || typeof choice === 'object';
}
