/**
 * Turn list: the messages of protocols in which two sides alternate. Messages of one side that follow one another
 * become one turn, so the sides alternate whatever the history.
 *
 * Older turns are joined to one text; only the last few are kept apart, since they may still grow, or get a mark.
 */

import { joinJson } from './wire-text.ts';

/** A message, written as the blocks of a turn. */
export interface WrittenBlocks {
  /** The side, by the protocol's name for it. */
  readonly role: string;
  /** JSON of each block, at least one. */
  readonly blocks: readonly string[];
}

/** Turns, as far as they have been added. */
export interface TurnList {
  /** Adds blocks: to the last turn if it is of the same side. */
  add(written: WrittenBlocks): void;
  /**
   * JSON of the turns, separated by commas.
   *
   * @param tail - More, which the list does not keep.
   * @param change - Makes other JSON of a turn's last block: called for the last turns only, at least the last four.
   */
  render(tail: readonly WrittenBlocks[], change?: (turn: TurnEnd) => string): string;
}

/** The last block of one of the last turns. */
export interface TurnEnd {
  readonly role: string;
  /** JSON of the block. */
  readonly block: string;
  /** How many turns of the same side come after this one. */
  readonly fromEnd: number;
}

interface Turn {
  readonly role: string;
  /** JSON of all blocks but the last, each with a comma behind it. */
  readonly before: string;
  readonly last: string;
}

// Two of each side.
const KEPT_APART = 4;

/** Makes an empty list. @param field - Name of the field that holds a turn's blocks. */
export function createTurnList(field: string): TurnList {
  let settled = '';
  let recent: readonly Turn[] = [];

  function renderTurns(turns: readonly Turn[], change: ((turn: TurnEnd) => string) | undefined): string {
    let text = '';
    turns.forEach(({ role, before, last }, at) => {
      const fromEnd = turns.slice(at + 1).filter((later) => later.role === role).length;
      const block = change === undefined ? last : change({ role, block: last, fromEnd });
      text = joinJson(text, `{"role":"${role}","${field}":[${before}${block}]}`);
    });
    return text;
  }

  return {
    add(written) {
      const turns = addTo(recent, written);
      settled = joinJson(settled, renderTurns(turns.slice(0, -KEPT_APART), undefined));
      recent = turns.slice(-KEPT_APART);
    },
    render(tail, change) {
      return joinJson(settled, renderTurns(tail.reduce(addTo, recent), change));
    },
  };
}

function addTo(turns: readonly Turn[], { role, blocks }: WrittenBlocks): readonly Turn[] {
  const open = turns.at(-1);
  const isSame = open?.role === role;
  const before = (isSame ? `${open.before}${open.last},` : '') + blocks.slice(0, -1).map((block) => `${block},`).join('');
  return [...(isSame ? turns.slice(0, -1) : turns), { role, before, last: blocks.at(-1) ?? '' }];
}
