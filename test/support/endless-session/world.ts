/**
 * World: a simulated coding session, fixed by its seed. Says what the person writes, what the model answers at each step of
 * each turn, what the tools return and which model is asked. Nothing of it depends on what a context policy does: all
 * policies live through the same session.
 *
 * - A turn has ten steps: nine with one to three calls, and a last one with the answer.
 * - In some turns the person says something while the agent works.
 * - Sizes of tool outputs are log-normal, from 0.1 to 400 KB, with a tail that is heavier for `bash` than for `grep`: half
 *   are below about 1 KB, one in twenty is above 50 KB. Files are the same each time they are read, until some turns later.
 * - Models: the first is declared. From then on every dozen or so turns the session moves to a model of another id. Two
 *   of three do not say how large their window is; the third says 32k and takes less for its first turns.
 */
import type { AnyTool, LLMCapabilities, ReplyPart, ReplyToolCall } from 'turnloop';
import { createDice, type Dice } from './dice.ts';
import { makeProse, makeText, type TextKind, TEXT_KINDS } from './texts.ts';
import { TOOL_SPECS, type ToolName } from './tool-specs.ts';

/** Tokens of prompt and output together, of every model. */
export const WINDOW = 32_768;
/** Tokens that a model must have room to write, where a request does not say otherwise. */
export const OUTPUT = 2_048;
/** What a model takes that declares more, for a while. */
const SHRUNK_WINDOW = 24_576;
export const STEPS_PER_TURN = 10;

/** A model as the session knows it, and its real window. */
export interface ModelPlan {
  readonly modelId: string;
  /** Which vendor's adapter and wording it speaks through. */
  readonly vendor: number;
  readonly capabilities: LLMCapabilities | undefined;
  /** Tokens it really takes in a turn, 1-based. */
  windowIn(this: void, turn: number): number;
}

export interface World {
  readonly seed: number;
  readonly turns: number;
  /** What the person writes, by turn, 1-based. */
  task(turn: number): string;
  /** What the person adds while a turn runs, and in which step; nothing in most turns. */
  remark(turn: number): { readonly step: number; readonly text: string } | undefined;
  model(turn: number): ModelPlan;
  reply(turn: number, step: number): readonly ReplyPart[];
  /** Text of a turn's last reply. */
  finalText(turn: number): string;
  readonly tools: readonly AnyTool[];
  /** Bytes of each tool output so far, for the figures of the distribution. */
  readonly outputBytes: readonly number[];
  summary(count: number): string;
}

const FILES = 120;

export function createWorld(seed: number, turns: number): World {
  const paths = makePaths(createDice(seed, 'paths'));
  const models = makeModels(seed, turns);
  const outputBytes: number[] = [];
  const finalText = (turn: number): string => {
    const dice = createDice(seed, 'answer', turn);
    return `Turn ${turn} is done: ${makeProse(dice.between(2, 8), dice)}`;
  };
  return {
    seed,
    turns,
    task: (turn) => makeTask(turn, createDice(seed, 'task', turn)),
    remark: (turn) => {
      const dice = createDice(seed, 'remark', turn);
      return dice.chance(0.15) ? { step: dice.between(2, STEPS_PER_TURN - 2), text: `By the way, in turn ${turn}: ${makeProse(dice.between(1, 3), dice)}` } : undefined;
    },
    model: (turn) => models.findLast(({ from }) => from <= turn)!.plan,
    finalText,
    reply: (turn, step) => {
      const dice = createDice(seed, 'reply', turn, step);
      if (step >= STEPS_PER_TURN) return [...makeThinking(dice), { type: 'text', text: finalText(turn) }];
      return [...makeThinking(dice), ...makeRemark(dice), ...makeCalls(dice, { turn, step, paths })];
    },
    tools: TOOL_SPECS.map((spec) => ({
      ...spec,
      execute: (input, { turnId }) => {
        const { size, ...known } = spec;
        // A file stays what it is for some turns; everything else is what its arguments say.
        const epoch = known.name === 'read_file' || known.name === 'list_dir' ? Math.floor(turnOf(turnId) / 8) : '';
        const dice = createDice(seed, known.name, JSON.stringify(input), epoch);
        const bytes = Math.round(Math.min(400_000, Math.max(100, dice.logNormal(size.median, size.sigma))));
        outputBytes.push(bytes);
        const content = makeText(dice.pick(size.kinds), bytes, dice);
        return dice.chance(0.04) ? { content, isError: true } : content;
      },
    })),
    outputBytes,
    summary: (count) => makeSummary(createDice(seed, 'summary', count), paths),
  };
}

/** The number in the id of a turn. */
export function turnOf(turnId: string): number {
  return Number(turnId.replace('turn-', ''));
}

function makePaths(dice: Dice): readonly string[] {
  const folders = ['src/core', 'src/billing', 'src/http', 'lib/cache', 'test/unit', 'docs', 'services/export'];
  return Array.from({ length: FILES }, (_, index) => `${dice.pick(folders)}/${dice.pick(['user', 'order', 'token', 'queue', 'report'])}-${index}.${dice.pick(['ts', 'ts', 'py', 'json', 'md'])}`);
}

interface PlannedModel {
  readonly from: number;
  readonly plan: ModelPlan;
}

function makeModels(seed: number, turns: number): readonly PlannedModel[] {
  const dice = createDice(seed, 'models');
  const declared = { contextWindow: WINDOW, maxOutputTokens: OUTPUT };
  const models: PlannedModel[] = [];
  for (let from = 1, count = 0; from <= turns; from += dice.between(11, 17), count += 1) {
    const shrunkUntil = from + 5;
    const isDeclared = count % 3 === 0;
    const isShrunk = isDeclared && count > 0;
    const start = from;
    models.push({
      from: start,
      plan: {
        modelId: `model-${count}`,
        vendor: count,
        capabilities: isDeclared ? declared : undefined,
        windowIn: (turn) => (isShrunk && turn < shrunkUntil ? SHRUNK_WINDOW : WINDOW),
      },
    });
  }
  return models;
}

/** 0.05 to 2 KB: English, some Chinese, some with code. The first is the session's task, and longer than most. */
function makeTask(turn: number, dice: Dice): string {
  const bytes = turn === 1 ? 1500 : Math.min(2000, Math.max(50, dice.logNormal(220, 1)));
  const about = `Task ${turn}: `;
  if (dice.chance(0.2)) return about + makeText('chinese', bytes, dice);
  if (bytes > 300 && dice.chance(0.3)) return `${about}${makeText('english', bytes / 3, dice)}\n\n\`\`\`ts\n${makeText('code', bytes / 1.5, dice)}\n\`\`\``;
  return about + makeText('english', bytes, dice);
}

function makeThinking(dice: Dice): readonly ReplyPart[] {
  if (!dice.chance(0.5)) return [];
  const text = makeProse(dice.between(1, 8), dice);
  return [dice.chance(0.5) ? { type: 'thinking', text, signature: `sig-${dice.between(1e8, 9e8)}` } : { type: 'thinking', text }];
}

function makeRemark(dice: Dice): readonly ReplyPart[] {
  return dice.chance(0.6) ? [{ type: 'text', text: makeProse(dice.between(1, 3), dice) }] : [];
}

interface CallPlace {
  readonly turn: number;
  readonly step: number;
  readonly paths: readonly string[];
}

function makeCalls(dice: Dice, place: CallPlace): readonly ReplyPart[] {
  const count = dice.pick([1, 1, 1, 1, 1, 1, 1, 2, 2, 3]);
  return Array.from({ length: count }, (_, index) => makeCall(dice, place, index));
}

const CALLED: readonly ToolName[] = [
  ...Array<ToolName>(7).fill('read_file'),
  ...Array<ToolName>(3).fill('grep'),
  ...Array<ToolName>(2).fill('list_dir'),
  ...Array<ToolName>(5).fill('bash'),
  ...Array<ToolName>(3).fill('edit_file'),
  'write_file',
];

function makeCall(dice: Dice, { turn, step, paths }: CallPlace, index: number): ReplyToolCall {
  const name = dice.pick(CALLED);
  // Some files are read again and again.
  const path = paths[Math.floor(paths.length * dice.random() ** 2)]!;
  const mark = `${turn}.${step}.${index}`;
  return { type: 'tool_call', name, inputText: JSON.stringify(inputOf(name)), providerId: `call_${mark.replaceAll('.', '_')}` };

  function inputOf(tool: ToolName): Record<string, unknown> {
    switch (tool) {
      case 'read_file':
        return { path };
      case 'list_dir':
        return { path: path.slice(0, path.lastIndexOf('/')) };
      case 'grep':
        return { pattern: `${dice.pick(['resolve', 'flush', 'cancel', 'schema'])}.*${mark}`, path: 'src' };
      case 'bash':
        return { command: `npm test -- ${path} --shard ${mark}` };
      case 'edit_file':
        return { path, old_text: makeText('code', dice.logNormal(200, 0.8), dice), new_text: makeText('code', dice.logNormal(250, 0.8), dice) };
      case 'write_file':
        return { path: `${path}.${mark}.ts`, text: makeText(dice.pick(TEXT_KINDS), Math.min(6000, dice.logNormal(900, 0.8)), dice) };
    }
  }
}

/** What a model writes when it is asked for a summary: headings, facts of the session, 300 to 900 tokens. */
function makeSummary(dice: Dice, paths: readonly string[]): string {
  const facts = (count: number, kind: TextKind): string => Array.from({ length: count }, () => `- ${dice.pick(paths)}: ${makeText(kind, dice.between(60, 140), dice).replaceAll('\n', ' ')}`).join('\n');
  const size = dice.between(3, 5);
  return [
    `## Goal\n${makeProse(2, dice)}`,
    `## Decisions\n${facts(size, 'english')}`,
    `## Files\n${facts(size, 'code')}`,
    `## Errors and fixes\n${facts(size - 1, 'log')}`,
    `## To do\n${makeProse(size, dice)}`,
  ].join('\n\n');
}
