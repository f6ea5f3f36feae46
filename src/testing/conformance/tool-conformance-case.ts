/** Case: the names of all cases for tools, and what the files of cases are lists of. */
import type { CaseDefinition, GroupOf } from './conformance-case.ts';
import type { ToolStage } from './tool-conformance-stage.ts';

/** Id of a case: stable, for `skip`. Its first word is the group. */
export type ToolConformanceCaseId =
  | 'definition.taken'
  | 'definition.name'
  | 'definition.schema'
  | 'definition.stable'
  | 'definition.replay'
  | 'input.good'
  | 'input.bad'
  | 'input.required'
  | 'input.again'
  | 'input.unchanged'
  | 'accesses.list'
  | 'accesses.pure'
  | 'accesses.read_only'
  | 'describe.line'
  | 'describe.pure'
  | 'result.content'
  | 'result.success'
  | 'result.json'
  | 'result.size'
  | 'progress.shape'
  | 'failure.message'
  | 'end.listeners'
  | 'end.timers'
  | 'end.silence'
  | 'abort.before'
  | 'abort.early'
  | 'abort.running'
  | 'abort.left'
  | 'abort.others'
  | 'calls.apart'
  | 'replay.safe'
  | 'replay.idempotent'
  | 'secrets.results'
  | 'secrets.failures';

/** The first word of the ids of some cases: stands for all of them. */
export type ToolConformanceGroup = GroupOf<ToolConformanceCaseId>;

/** All cases of some groups, by id. */
export type ToolCasesOf<Group extends ToolConformanceGroup> = Readonly<Record<Extract<ToolConformanceCaseId, `${Group}.${string}`>, CaseDefinition<ToolStage>>>;
