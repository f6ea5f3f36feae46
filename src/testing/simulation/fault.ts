/**
 * Faults: what may go wrong, where, and when. Plain data: a fault is written as `store:crash_after@12`, and a run is
 * repeated by its seed and its faults.
 */

/** What can go wrong at each boundary between an agent and what is around it. */
export const FAULT_KINDS: {
  readonly [Place in Boundary]: readonly FaultKind[];
} = {
  model: ['error', 'cut', 'stall', 'deaf', 'slow', 'crash_before', 'crash_after'],
  http: ['error', 'cut', 'stall', 'slow', 'crash_before', 'crash_after'],
  tool: ['error', 'stall', 'deaf', 'slow', 'crash_before', 'crash_after'],
  store: ['error', 'slow', 'crash_before', 'crash_after'],
  disk: ['error', 'cut', 'slow', 'crash_before', 'crash_after', 'crash_within'],
  memory: ['error', 'stall', 'slow', 'crash_before', 'crash_after'],
  listener: ['error', 'reject', 'stall'],
  event: ['abort', 'crash_after'],
};

/**
 * A boundary between an agent and what is around it: requests to a `model`, `http` requests of an adapter, calls of a `tool`,
 * writes to a `store` of sessions, calls of a `disk`, calls of a `memory` store, calls of a `listener`, an `event` that is told.
 */
export type Boundary = 'model' | 'http' | 'tool' | 'store' | 'disk' | 'memory' | 'listener' | 'event';

/**
 * What goes wrong. `error`: it fails, or throws. `reject`: a listener's promise rejects. `cut`: it breaks off in the middle.
 * `stall`: nothing comes until it is aborted. `deaf`: nothing comes, not even then. `slow`: it takes very long. `abort`: the host
 * aborts. `crash_before`, `crash_after`, `crash_within`: the process dies before it, right behind it, or with half of it done.
 */
export type FaultKind = 'error' | 'reject' | 'cut' | 'stall' | 'deaf' | 'slow' | 'abort' | 'crash_before' | 'crash_after' | 'crash_within';

/** Something that goes wrong once. */
export interface Fault {
  /** Where. */
  readonly boundary: Boundary;
  /** What. */
  readonly kind: FaultKind;
  /** At which use of the boundary, 1-based, over all lives of the process. */
  readonly at: number;
}

/** All boundaries, in the order in which they are shown. */
export const BOUNDARIES: readonly Boundary[] = Object.keys(FAULT_KINDS).filter(isBoundary);

/** A fault as text: `store:crash_after@12`. */
export function formatFault({ boundary, kind, at }: Fault): string {
  return `${boundary}:${kind}@${at}`;
}

/**
 * Reads a fault.
 *
 * @throws TypeError for a text that is none, naming what there is.
 */
export function parseFault(text: string): Fault {
  const [, boundary = '', kindText = '', at = ''] = /^(\w+):(\w+)@([1-9]\d{0,8})$/.exec(text) ?? [];
  if (!isBoundary(boundary)) throw notFault(text, `The boundaries are ${BOUNDARIES.join(', ')}`);
  const kinds = FAULT_KINDS[boundary];
  const kind = kinds.find((one) => one === kindText);
  if (kind === undefined) throw notFault(text, `What can go wrong with ${boundary} is ${kinds.join(', ')}`);
  return { boundary, kind, at: Number(at) };
}

function isBoundary(text: string): text is Boundary {
  return Object.hasOwn(FAULT_KINDS, text);
}

function notFault(text: string, hint: string): TypeError {
  return new TypeError(`"${text}" is no fault: write boundary:kind@number, such as store:crash_after@12. ${hint}.`);
}

/** True for the death of the process. */
export function isCrash(kind: FaultKind): boolean {
  return kind.startsWith('crash_');
}
