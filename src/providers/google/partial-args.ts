/**
 * Partial arguments: the arguments of a call that Vertex AI streams value by value, each with the path of its place.
 *
 * Objects here have no prototype, since the paths come from a server.
 */
import { isRecord } from '../../core/json.ts';
import { fieldOf } from './fields.ts';

/** The arguments of one call, as far as they have come. */
export interface PartialArgs {
  /** Reads a `partialArgs` list. */
  read(list: unknown): void;
  /** JSON text of the object so far. */
  toText(): string;
}

type Container = Record<string, unknown> | unknown[];

/** `.name`, `[0]` or `['name']`. */
const STEP = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]/y;

/** Starts the arguments of one call. */
export function createPartialArgs(): PartialArgs {
  const root = emptyObject();
  /** The path of a text that goes on. */
  let openPath: string | undefined;

  function readOne(entry: Readonly<Record<string, unknown>>): void {
    const path = fieldOf(entry, 'jsonPath');
    const value = valueOf(entry);
    if (typeof path !== 'string' || value === undefined) return;
    const steps = toSteps(path);
    const goesOn = path === openPath;
    openPath = fieldOf(entry, 'willContinue') === true ? path : undefined;
    const last = steps.pop();
    if (last === undefined) return;
    let place: Container = root;
    for (const [at, step] of steps.entries()) place = descend(place, step, typeof (steps[at + 1] ?? last) === 'number');
    const before = get(place, last);
    set(place, last, goesOn && typeof before === 'string' && typeof value === 'string' ? before + value : value);
  }

  return {
    read(list) {
      if (!Array.isArray(list)) return;
      for (const entry of list as readonly unknown[]) if (isRecord(entry)) readOne(entry);
    },
    toText: () => JSON.stringify(root),
  };
}

function valueOf(entry: Readonly<Record<string, unknown>>): unknown {
  if ('nullValue' in entry || 'null_value' in entry) return null;
  return fieldOf(entry, 'stringValue') ?? fieldOf(entry, 'numberValue') ?? fieldOf(entry, 'boolValue');
}

function toSteps(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  STEP.lastIndex = path.startsWith('$') ? 1 : 0;
  for (let match = STEP.exec(path); match !== null; match = STEP.exec(path)) {
    const [, name, index, quoted, doubleQuoted] = match;
    steps.push(index === undefined ? (name ?? quoted ?? doubleQuoted ?? '') : Number(index));
  }
  return steps;
}

/** What stands at a place, made if there is nothing to descend into. */
function descend(place: Container, step: string | number, isList: boolean): Container {
  const there = get(place, step);
  if (Array.isArray(there) || isRecord(there)) return there;
  const made = isList ? [] : emptyObject();
  set(place, step, made);
  return made;
}

function get(place: Container, step: string | number): unknown {
  return Array.isArray(place) ? place[Number(step)] : place[step];
}

/** A list grows by one at a time: an index may be any number. */
function set(place: Container, step: string | number, value: unknown): void {
  if (!Array.isArray(place)) place[step] = value;
  else if (Number(step) < place.length) place[Number(step)] = value;
  else place.push(value);
}

function emptyObject(): Record<string, unknown> {
  // Any key is just a key.
  return Object.create(null) as Record<string, unknown>;
}
