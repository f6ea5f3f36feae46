/**
 * Conformance cases: what the cases of every kit are, and how a kit makes them of its definitions.
 *
 * A case that does not apply is skipped by name and with a reason, and stays in the list.
 */

/** The first word of the id of a case. */
export type GroupOf<Id extends string> = Id extends `${infer Group}.${string}` ? Group : never;

/** One thing that an adapter, a store or a tool has to do. Made by a conformance kit. */
export interface ConformanceCase<Id extends string> {
  /** Stable name, for `skip`. */
  readonly id: Id;
  /** First word of the id, for `skip` too. */
  readonly group: GroupOf<Id>;
  /** Id and a sentence; of a skipped case also why. For the test runner. */
  readonly name: string;
  /** Why the case is skipped; absent for one that runs. */
  readonly skipped?: string | undefined;
  /** Rejects with an `Error` that says what is wrong. A skipped case does nothing. */
  readonly run: () => Promise<void>;
}

/** A case, before it has anything to run on. */
export interface CaseDefinition<Stage> {
  /** What passes, as a sentence. */
  readonly title: string;
  /** Throws what is wrong. */
  readonly run: (stage: Stage) => Promise<void>;
}

/** Why cases, or groups of them, do not apply. */
export type ConformanceSkips<Id extends string> = Readonly<Partial<Record<Id | GroupOf<Id>, string>>>;

/** What a kit makes its cases of. */
interface ConformanceKit<Id extends string, Stage> {
  /** Name of the kit's function, for messages. */
  readonly kit: string;
  /** A call that is right, for messages. */
  readonly example: string;
  /** Every case, by its id, in the order in which an author is best served. */
  readonly definitions: Readonly<Record<Id, CaseDefinition<Stage>>>;
  readonly skip: ConformanceSkips<NoInfer<Id>> | undefined;
  /** Runs one case on a stage of its own. */
  readonly run: (run: CaseDefinition<Stage>['run'], id: Id) => Promise<void>;
}

/**
 * Makes the cases of a kit.
 *
 * @throws TypeError for a `skip` that names no case or group, or gives no reason.
 */
export function conformanceCases<Id extends string, Stage>(kit: ConformanceKit<Id, Stage>): readonly ConformanceCase<Id>[] {
  const definitions = Object.entries<CaseDefinition<Stage>>(kit.definitions) as [Id, CaseDefinition<Stage>][];
  const skip: Readonly<Record<string, string | undefined>> = kit.skip ?? {};
  assertSkips(skip, definitions.map(([id]) => id), kit);
  return definitions.map(([id, { title, run }]): ConformanceCase<Id> => {
    const group = groupOf(id);
    const skipped = skip[id] ?? skip[group];
    const name = `${id}: ${title}`;
    if (skipped !== undefined) return { id, group, name: `${name} (skipped: ${skipped})`, skipped, run: async () => undefined };
    return { id, group, name, run: () => kit.run(run, id) };
  });
}

/** What cases run on. */
interface FinishedStage {
  /** Looks at what is left once the case has passed, and takes the stage down. */
  finish(): Promise<void>;
}

/** Runs a case on its stage, and takes the stage down however it ends. */
export async function runOnStage<AnyStage extends FinishedStage>(stage: AnyStage, run: (stage: AnyStage) => Promise<void>): Promise<void> {
  try {
    await run(stage);
  } catch (failure) {
    // What is wrong has been found: whatever else goes wrong now comes of it.
    await stage.finish().catch(() => undefined);
    throw failure;
  }
  await stage.finish();
}

function assertSkips(skip: Readonly<Record<string, unknown>>, ids: readonly string[], { kit, example }: { readonly kit: string; readonly example: string }): void {
  const names = new Set([...ids, ...ids.map(groupOf)]);
  for (const [name, reason] of Object.entries(skip)) {
    if (!names.has(name)) throw new TypeError(`${kit} has no case or group \`${name}\` to skip. It has ${[...names].sort().join(', ')}.`);
    if (typeof reason !== 'string' || reason === '') throw new TypeError(`${kit}: \`skip\` has no reason for \`${name}\`: ${example}`);
  }
}

function groupOf<Id extends string>(id: Id): GroupOf<Id> {
  // What the type says, done.
  return id.slice(0, id.indexOf('.')) as GroupOf<Id>;
}
