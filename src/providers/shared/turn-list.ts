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
   * @param change - Makes other JSON of a turn's last block: called for the last turns that the list keeps, at least four.
   */
  render(tail: readonly WrittenBlocks[], change?: (turn: TurnEnd) => string): string;
}

/** The last block of one of the last turns that the list keeps. */
export interface TurnEnd {
  readonly role: string;
  /** JSON of the block. */
  readonly block: string;
  /** How many turns of the same side the list keeps after this one. */
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

  return {
    add(written) {
      const turns = addTo(recent, written);
      settled = joinJson(settled, renderTurns(turns.slice(0, -KEPT_APART)));
      recent = turns.slice(-KEPT_APART);
    },
    render(tail, change) {
      const turns = change === undefined ? recent : changeEnds(recent, change);
      return joinJson(settled, renderTurns(tail.reduce(addTo, turns)));
    },
  };

  function renderTurns(turns: readonly Turn[]): string {
    let text = '';
    for (const { role, before, last } of turns) text = joinJson(text, `{"role":"${role}","${field}":[${before}${last}]}`);
    return text;
  }
}

function changeEnds(turns: readonly Turn[], change: (turn: TurnEnd) => string): readonly Turn[] {
  return turns.map((turn, at) => {
    const fromEnd = turns.slice(at + 1).filter((later) => later.role === turn.role).length;
    return { ...turn, last: change({ role: turn.role, block: turn.last, fromEnd }) };
  });
}

function addTo(turns: readonly Turn[], { role, blocks }: WrittenBlocks): readonly Turn[] {
  const open = turns.at(-1);
  const isSame = open?.role === role;
  const before = (isSame ? `${open.before}${open.last},` : '') + blocks.slice(0, -1).map((block) => `${block},`).join('');
  return [...(isSame ? turns.slice(0, -1) : turns), { role, before, last: blocks.at(-1) ?? '' }];
}
