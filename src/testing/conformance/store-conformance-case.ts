/** Case: the names of all cases for session stores, and what the files of cases are lists of. */
import type { StoreStage } from './store-conformance-stage.ts';

/** Id of a case: stable, for `skip`. Its first word is the group. */
export type StoreConformanceCaseId =
  | 'create.new'
  | 'create.events'
  | 'create.exists'
  | 'create.at_once'
  | 'open.header'
  | 'open.missing'
  | 'read.all'
  | 'read.held'
  | 'read.missing'
  | 'list.summaries'
  | 'list.order'
  | 'delete.gone'
  | 'delete.others'
  | 'delete.held'
  | 'append.order'
  | 'append.overlapping'
  | 'append.nothing'
  | 'append.whole'
  | 'append.many'
  | 'content.texts'
  | 'content.keys'
  | 'content.values'
  | 'content.large'
  | 'content.results'
  | 'content.unknown'
  | 'content.appended'
  | 'content.handed_out'
  | 'close.refuses'
  | 'close.twice'
  | 'close.waits'
  | 'snapshot.behind'
  | 'snapshot.replaced'
  | 'snapshot.content'
  | 'snapshot.order'
  | 'snapshot.results'
  | 'snapshot.newer'
  | 'snapshot.beyond'
  | 'writer.one'
  | 'writer.free'
  | 'writer.at_once'
  | 'reopen.content'
  | 'reopen.writer'
  | 'reopen.at_once'
  | 'lost.taken'
  | 'lost.refused'
  | 'lost.close'
  | 'failure.whole'
  | 'failure.results'
  | 'failure.create'
  | 'failure.snapshot'
  | 'ids.texts'
  | 'ids.apart'
  | 'ids.refused'
  | 'ids.prototype'
  | 'outside.untouched'
  | 'children.own'
  | 'children.unlisted'
  | 'children.once'
  | 'children.close'
  | 'children.deleted'
  | 'children.apart'
  | 'children.snapshot'
  | 'children.nested';

/** The first word of the ids of some cases: stands for all of them. */
export type StoreConformanceGroup =
  | 'create'
  | 'open'
  | 'read'
  | 'list'
  | 'delete'
  | 'append'
  | 'content'
  | 'close'
  | 'snapshot'
  | 'writer'
  | 'reopen'
  | 'lost'
  | 'failure'
  | 'ids'
  | 'outside'
  | 'children';

/** A case, before it has a store to run on. */
export interface StoreCaseDefinition {
  /** What a store does that passes, as a sentence. */
  readonly title: string;
  /** Throws what is wrong. */
  readonly run: (stage: StoreStage) => Promise<void>;
}

/** All cases of some groups, by id. */
export type StoreCasesOf<Group extends StoreConformanceGroup> = Readonly<Record<Extract<StoreConformanceCaseId, `${Group}.${string}`>, StoreCaseDefinition>>;
