/**
 * The stateful host most people want, and the parts it is made of, each of which works with plain `runTurn` too.
 *
 * @module
 */
export { emptyTurnsView, reduceTurnsView, stepsOf, turnsOf, turnsView } from './turn-view.ts';
export type {
  CompactionView,
  PartItem,
  ProgressView,
  ReplySummary,
  StepItem,
  StepLiveView,
  StepView,
  TextItem,
  ThinkingItem,
  ToolCallItem,
  ToolCallLiveView,
  TurnLiveView,
  TurnsView,
  TurnView,
} from './turn-view-types.ts';
