/** Skip: which cases of a kit do not apply, and why. The same for every kit. */

/** Whose options they are, for messages. */
export interface SkipArgument {
  /** Name of the kit's function. */
  readonly kit: string;
  /** A call that is right. */
  readonly example: string;
}

/** The first word of the id of a case. */
export function groupOf(id: string): string {
  return id.slice(0, id.indexOf('.'));
}

/** @throws TypeError for a `skip` that names no case or group, or gives no reason. */
export function assertSkips(skip: Readonly<Record<string, unknown>>, ids: readonly string[], { kit, example }: SkipArgument): void {
  const names = new Set([...ids, ...ids.map(groupOf)]);
  for (const [name, reason] of Object.entries(skip)) {
    if (!names.has(name)) throw new TypeError(`${kit} has no case or group \`${name}\` to skip. It has ${[...names].sort().join(', ')}.`);
    if (typeof reason !== 'string' || reason === '') throw new TypeError(`${kit}: \`skip\` has no reason for \`${name}\`: ${example}`);
  }
}

/** Why a case is skipped; undefined for one that runs. */
export function skipReason(skip: Readonly<Record<string, string | undefined>>, id: string): string | undefined {
  return skip[id] ?? skip[groupOf(id)];
}
