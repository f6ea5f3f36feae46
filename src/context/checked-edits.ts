/**
 * Checked edits: which edits of a layer may be recorded. Layers may be a host's own.
 *
 * - A message that is protected stays as it is: an edit that has it in its range has it also in what it brings.
 * - An edit names messages of the record, the first before the last, and none that another edit has.
 * - What it brings are messages: the record is read by everybody.
 * - An edit that may not be is left out; the others go on. A layer that throws has nothing to do.
 */
import { messageOf } from '../core/errors.ts';
import type { CompactionEdit } from '../core/events.ts';
import { isRecord } from '../core/json.ts';
import type { Notice } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { isMessage } from './assert-context.ts';
import { isRecorded, isSame } from './history-edits.ts';
import { protectedMessages, taskTest } from './layer.ts';

const ROLES: readonly unknown[] = ['user', 'assistant', 'tool'];

/** Why an edit may not be recorded. */
type Reason = 'no_edit' | 'no_message' | 'unknown_id' | 'reversed' | 'overlapping' | 'protected';

/** Whose edits they are, and who is told of what was left out. */
interface CheckOptions {
  /** The layer they are of. The last one, `trim`, may do more. */
  readonly layer: string;
  readonly notify: (notice: Notice) => void;
}

/** The edits that may be recorded, in order; the same list if all may. Tells of the first that may not: `context.edit_refused`. */
export function checkedEdits(messages: readonly Message[], edits: readonly CompactionEdit[], { layer, notify }: CheckOptions): readonly CompactionEdit[] {
  const check = new EditCheck(messages, layer);
  const allowed: CompactionEdit[] = [];
  let isTold = false;
  for (const edit of edits) {
    const reason = check.reasonAgainst(edit);
    if (reason === undefined) allowed.push(edit);
    else if (!isTold) {
      isTold = true;
      notify({ name: 'context.edit_refused', data: { layer, from: fromOf(edit), reason } });
    }
  }
  return isTold ? allowed : edits;
}

/** What a layer that asks no model gives; undefined if it throws, which is told: `context.layer_failed`. */
export function attemptLayer<Result>({ layer, notify }: CheckOptions, run: () => Result): Result | undefined {
  try {
    return run();
  } catch (error) {
    notify({ name: 'context.layer_failed', data: { layer, message: messageOf(error) } });
    return undefined;
  }
}

class EditCheck {
  /** What an edit can name, and what goes with it. What was built for one request is neither. */
  readonly #messages: readonly Message[];
  readonly #positions: ReadonlyMap<string, number>;
  readonly #isProtected: (message: Message) => boolean;
  readonly #taken = new Set<number>();

  constructor(messages: readonly Message[], layer: string) {
    this.#messages = messages.filter(isRecorded);
    this.#positions = new Map(this.#messages.flatMap(({ id }, index) => (id === '' ? [] : [[id, index] as const])));
    this.#isProtected = layer === 'trim' ? protectedFromTrim(messages) : protectedFromLayers(messages);
  }

  reasonAgainst(edit: unknown): Reason | undefined {
    if (!isRecord(edit) || !Array.isArray(edit['messages'])) return 'no_edit';
    const brought: readonly unknown[] = edit['messages'];
    if (!brought.every(isWholeMessage)) return 'no_message';
    const [start, end] = [this.#positionOf(edit['from']), this.#positionOf(edit['to'])];
    if (start === undefined || end === undefined) return 'unknown_id';
    if (end < start) return 'reversed';
    const range = this.#messages.slice(start, end + 1);
    if (range.some((_, offset) => this.#taken.has(start + offset))) return 'overlapping';
    if (!range.every((message) => !this.#isProtected(message) || isAmong(message, brought))) return 'protected';
    for (let index = start; index <= end; index += 1) this.#taken.add(index);
    return undefined;
  }

  #positionOf(id: unknown): number | undefined {
    return typeof id === 'string' ? this.#positions.get(id) : undefined;
  }
}

function protectedFromLayers(messages: readonly Message[]): (message: Message) => boolean {
  const all = protectedMessages(messages);
  return (message) => all.has(message);
}

/** The last layer may do more: something has to go. */
function protectedFromTrim(messages: readonly Message[]): (message: Message) => boolean {
  const newest = messages.findLast(taskTest(messages));
  return (message) => message === newest || message.id === '' || (message.role === 'user' && message.pinned === true);
}

/** True if a message is brought as it was. One without an id would not be. */
function isAmong(message: Message, brought: readonly Message[]): boolean {
  return message.id !== '' && brought.some((other) => isSame(message, other));
}

function isWholeMessage(value: unknown): value is Message {
  return isMessage(value) && isRecord(value) && ROLES.includes(value['role']) && typeof value['id'] === 'string' && isListOfParts(value['content']);
}

function isListOfParts(value: unknown): boolean {
  return Array.isArray(value) && value.every((part) => isRecord(part) && typeof part['type'] === 'string');
}

function fromOf(edit: unknown): string {
  const from = isRecord(edit) ? edit['from'] : undefined;
  return typeof from === 'string' ? from : '';
}
