/**
 * System prompt: assembled once for a turn, out of what the host and the project have to say.
 *
 * - The order is fixed, from what changes least to what changes most: providers cache the beginning.
 * - What people wrote into files is limited, and a cut is never silent. No character is cut in two.
 */
import { assertLLM, assertOptions } from '../core/assert.ts';
import { decorateLLM, type LLM } from '../core/llm.ts';

/** What a system prompt is made of; what is missing or blank is skipped. */
export interface SystemPromptParts {
  /** What the model is and how it works: comes first, whole, without a heading. */
  readonly base?: string | undefined;
  /** Body of the skill that this turn uses; whole. */
  readonly skill?: string | undefined;
  /** The project's rules, as `readProjectRules` of `turnloop/agent/files` gives them; the first 8,000 characters. */
  readonly projectRules?: string | undefined;
  /** Rules of the application; the first 8,000 characters. */
  readonly appRules?: string | undefined;
  /** What the project is; the first 12,000 characters. */
  readonly projectContext?: string | undefined;
}

/** The sections in their order. */
const SECTIONS: readonly { readonly name: keyof SystemPromptParts; readonly heading?: string; readonly maxCharacters: number }[] = [
  { name: 'base', maxCharacters: Infinity },
  { name: 'skill', heading: 'Skill', maxCharacters: Infinity },
  { name: 'projectRules', heading: 'Project rules', maxCharacters: 8_000 },
  { name: 'appRules', heading: 'Application rules', maxCharacters: 8_000 },
  { name: 'projectContext', heading: 'Project context', maxCharacters: 12_000 },
];

const EXAMPLE = "assembleSystemPrompt({ base: 'You are a careful programmer.', projectRules: await readProjectRules('.') })";
const PARTS: Readonly<Record<keyof SystemPromptParts, true>> = { base: true, skill: true, projectRules: true, appRules: true, projectContext: true };

/**
 * Puts a system prompt together: base, skill, project rules, application rules, project context. Each but the base stands
 * under a heading; what is longer than its limit is cut, with a mark that says so.
 *
 * @param parts - The sections.
 * @returns The prompt; empty if there is nothing to say.
 * @throws TypeError for a section that does not exist, or is no text.
 */
export function assembleSystemPrompt(parts: SystemPromptParts): string {
  assertOptions(parts, PARTS, { taker: 'assembleSystemPrompt', example: EXAMPLE });
  const sections = SECTIONS.flatMap(({ name, heading, maxCharacters }) => {
    const text: unknown = parts[name];
    if (text !== undefined && typeof text !== 'string') {
      throw new TypeError(`assembleSystemPrompt: \`${name}\` must be a text, not ${text === null ? 'null' : `a value of type ${typeof text}`}. For example: ${EXAMPLE}.`);
    }
    const body = text?.trim() ?? '';
    if (body === '') return [];
    const kept = cut(body, maxCharacters);
    return [heading === undefined ? kept : `# ${heading}\n\n${kept}`];
  });
  return sections.join('\n\n');
}

/** The beginning of a text, with a mark of what is missing; both within the limit. */
function cut(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const mark = (kept: number): string => `\n[… ${text.length - kept} of ${text.length} characters left out …]`;
  const room = maxCharacters - mark(0).length;
  const isInsidePair = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(room - 1, room + 1));
  const kept = text.slice(0, isInsidePair ? room - 1 : room);
  return kept + mark(kept.length);
}

/**
 * Makes a model with another system prompt.
 *
 * @param llm - The model.
 * @param systemPrompt - What it is told before the conversation; empty for nothing.
 * @throws TypeError without a model, or for a prompt that is no text.
 *
 * @example
 * ```ts
 * const llm = withSystemPrompt(anthropic({ model: 'claude-sonnet-4-5' }), assembleSystemPrompt({ base, projectRules }));
 * ```
 */
export function withSystemPrompt(llm: LLM, systemPrompt: string): LLM {
  const argument = { taker: 'withSystemPrompt', example: "withSystemPrompt(llm, 'You are a careful programmer.')" };
  assertLLM(llm, argument);
  if (typeof systemPrompt !== 'string') throw new TypeError(`withSystemPrompt takes a text. For example: ${argument.example}.`);
  return Object.defineProperty(
    decorateLLM(llm, (request) => llm.chat(request)),
    'systemPrompt',
    { value: systemPrompt, enumerable: true },
  );
}
